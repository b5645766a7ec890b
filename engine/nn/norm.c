/* nn/norm.c - layers that normalise. */
#include "nn/builder.h"

#include <stdio.h>

static const vkt_init zeros = { VKT_INIT_CONSTANT, 0, 0 }, ones = { VKT_INIT_CONSTANT, 1, 0 };

/* "<layer>.<part>", a parameter or a state of n numbers. */
static vkt_tensor vector(vkt_builder *b, const char *layer, const char *part, uint32_t n, vkt_init init, bool state)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    return state ? vkt_nn_state(b, name, vkt_shape1(n), init) : vkt_nn_param(b, name, vkt_shape1(n), init, n, n);
}

/* Whether x has a dimension 1 that can be channels. */
static bool has_channels(vkt_builder *b, const char *name, vkt_tensor x)
{
    if (b->g->status != VKT_OK || !x.id) return false;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    char text[80];
    if (s.rank < 2)
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_SHAPE, "%s%s: want an input (N,C,...), got %s", b->scope,
                                       name, vkt_shape_text(s, text)));
    return s.rank >= 2;
}

vkt_tensor vkt_nn_batch_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_batch_norm_params *p)
{
    const vkt_nn_batch_norm_params usual = { .eps = 0 }, *q = p ? p : &usual;
    if (!has_channels(b, name, x)) return (vkt_tensor){ 0 };
    const uint32_t channels = vkt_tensor_shape(b->g, x).dim[1];
    vkt_batch_norm_params norm = { .eps = q->eps, .momentum = q->momentum, .biased = q->biased };
    if (!q->no_affine) {
        norm.gamma = vector(b, name, "weight", channels, ones, false);
        norm.beta = vector(b, name, "bias", channels, zeros, false);
    }
    norm.running_mean = vector(b, name, "running_mean", channels, zeros, true);
    norm.running_var = vector(b, name, "running_var", channels, ones, true);
    norm.evaluate = !b->training || q->use_running;
    return vkt_builder_note(b, name, "BatchNorm", vkt_batch_norm(b->g, x, &norm));
}
