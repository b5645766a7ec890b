/* nn/norm.c - layers that normalise. */
#include "nn/builder.h"

#include <stdio.h>

static const vkt_init zeros = { VKT_INIT_CONSTANT, 0, 0 }, ones = { VKT_INIT_CONSTANT, 1, 0 };

/* Makes "<layer>.<part>", a parameter or a state of n numbers. */
static vkt_tensor vector(vkt_builder *b, const char *layer, const char *part, uint32_t n, vkt_init init, bool state)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    return state ? vkt_nn_state(b, name, vkt_shape1(n), init) : vkt_nn_param(b, name, vkt_shape1(n), init, n, n);
}

/* Returns the size of the last dimension of x if `last`, else of dimension 1. Returns 0 after an error: the name is
 * missing, x is not usable (vkt_is_usable), or x has fewer than two dimensions. */
static uint32_t features_of(vkt_builder *b, const char *name, vkt_tensor x, bool last)
{
    if (!vkt_builder_is_named(b, name) || !vkt_is_usable(b->g, name, x)) return 0;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    char text[80];
    if (s.rank >= 2) return s.dim[last ? s.rank - 1 : 1];
    vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_SHAPE, "%s%s: want an input of rank 2 or more, got %s", b->scope,
                                   name, vkt_shape_text(s, text)));
    return 0;
}

/* Returns `keras` if `given` is 0 and the preset is one of the Keras presets; else returns `given`. A result of 0 means
 * the op's default, which is torch's. */
static float or_keras(const vkt_builder *b, float given, float keras)
{
    return given == 0 && b->preset != VKT_PRESET_TORCH ? keras : given;
}

/* Returns whether the preset wants the biased running variance. The Keras presets do, with one exception: tf.keras
 * normalises images (rank 4) with tf.nn.fused_batch_norm, which returns the unbiased variance. */
static bool keras_biased(const vkt_builder *b, vkt_tensor x)
{
    const bool fused = b->preset == VKT_PRESET_TF_KERAS && vkt_tensor_shape(b->g, x).rank == 4;
    return b->preset != VKT_PRESET_TORCH && !fused;
}

vkt_tensor vkt_nn_batch_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_batch_norm_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    const vkt_nn_batch_norm_params defaults = { .eps = 0 }, *q = p ? p : &defaults;
    const uint32_t channels = features_of(b, name, x, false);
    if (!channels) return (vkt_tensor){ 0 };
    vkt_batch_norm_params norm = { .eps = or_keras(b, q->eps, 1e-3f),
                                   .momentum = or_keras(b, q->momentum, 0.01f),
                                   .biased = q->biased || keras_biased(b, x) };
    if (!q->no_affine) {
        norm.gamma = vector(b, name, "weight", channels, ones, false);
        norm.beta = vector(b, name, "bias", channels, zeros, false);
    }
    norm.running_mean = vector(b, name, "running_mean", channels, zeros, true);
    norm.running_var = vector(b, name, "running_var", channels, ones, true);
    norm.evaluate = !b->training || q->use_running;
    return vkt_builder_note(b, name, "BatchNorm", vkt_batch_norm(b->g, x, &norm));
}

static const vkt_nn_norm_params default_norm = { .eps = 0 };

/* weight_of and bias_of make the parameters of a norm. They return the null tensor if the norm does not have the
 * parameter. */
static vkt_tensor weight_of(vkt_builder *b, const char *name, uint32_t n, const vkt_nn_norm_params *p)
{
    return p->no_affine ? (vkt_tensor){ 0 } : vector(b, name, "weight", n, ones, false);
}

static vkt_tensor bias_of(vkt_builder *b, const char *name, uint32_t n, const vkt_nn_norm_params *p)
{
    return p->no_affine ? (vkt_tensor){ 0 } : vector(b, name, "bias", n, zeros, false);
}

vkt_tensor vkt_nn_layer_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_norm_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    const uint32_t n = features_of(b, name, x, true);
    if (!n) return (vkt_tensor){ 0 };
    if (!p) p = &default_norm;
    const vkt_tensor w = weight_of(b, name, n, p), bias = bias_of(b, name, n, p);
    return vkt_builder_note(b, name, "LayerNorm", vkt_layer_norm(b->g, x, 1, w, bias, or_keras(b, p->eps, 1e-3f)));
}

vkt_tensor vkt_nn_rms_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_norm_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    const uint32_t n = features_of(b, name, x, true);
    if (!n) return (vkt_tensor){ 0 };
    if (!p) p = &default_norm;
    return vkt_builder_note(b, name, "RMSNorm",
                            vkt_rms_norm(b->g, x, 1, weight_of(b, name, n, p), or_keras(b, p->eps, 1e-6f)));
}

vkt_tensor vkt_nn_group_norm(vkt_builder *b, const char *name, vkt_tensor x, uint32_t groups,
                             const vkt_nn_norm_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    const uint32_t n = features_of(b, name, x, false);
    if (!n) return (vkt_tensor){ 0 };
    if (!p) p = &default_norm;
    const vkt_tensor w = weight_of(b, name, n, p), bias = bias_of(b, name, n, p);
    return vkt_builder_note(b, name, "GroupNorm", vkt_group_norm(b->g, x, groups, w, bias, or_keras(b, p->eps, 1e-3f)));
}
