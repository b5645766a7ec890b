/* nn/layers.c - layers: their parameters with fan-in and fan-out, and their ops. */
#include "nn/builder.h"

#include <stdio.h>

static uint32_t or_else(uint32_t x, uint32_t fallback)
{
    return x ? x : fallback;
}

static vkt_tensor layer_param(vkt_builder *b, const char *layer, const char *part, vkt_shape shape, vkt_init init,
                              uint32_t fan_in, uint32_t fan_out)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    return vkt_nn_param(b, name, shape, init, fan_in, fan_out);
}

static vkt_tensor layer_weight(vkt_builder *b, const char *layer, vkt_shape shape, vkt_init init, uint32_t fan_in,
                               uint32_t fan_out)
{
    return layer_param(b, layer, "weight", shape,
                       vkt_builder_init(b, init, (vkt_init){ VKT_INIT_XAVIER_UNIFORM, 0, 0 }), fan_in, fan_out);
}

static vkt_tensor layer_bias(vkt_builder *b, const char *layer, bool none, uint32_t n, vkt_init init, uint32_t fan_in)
{
    if (none) return (vkt_tensor){ 0 };
    return layer_param(b, layer, "bias", vkt_shape1(n),
                       vkt_builder_init(b, init, (vkt_init){ VKT_INIT_CONSTANT, 0, 0 }), fan_in, n);
}

/* Checks x's rank. Call this function before making parameters, because the parameters' shapes depend on x. */
static bool want_rank(vkt_builder *b, const char *layer, vkt_tensor x, uint32_t rank)
{
    if (!vkt_builder_is_named(b, layer) || !vkt_is_usable(b->g, layer, x)) return false;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    char text[80];
    if (s.rank != rank)
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_SHAPE, "%s%s: want an input of rank %u, got %s", b->scope,
                                       layer, rank, vkt_shape_text(s, text)));
    return s.rank == rank;
}

/* Checks channels, kernel and groups of a convolution. Call this function before making parameters, because the
 * parameters' shapes depend on these numbers. */
static bool want_conv(vkt_builder *b, const char *layer, uint32_t channels, uint32_t out, uint32_t kernel,
                      uint32_t groups)
{
    const bool fits = out && kernel && channels % groups == 0 && out % groups == 0;
    if (!fits)
        vkt_graph_error(
            b->g,
            vkt_fail(&b->g->host, VKT_E_ARG,
                     "%s%s: want out_channels and a kernel of 1 or more, and groups that divide the channels of x and "
                     "out_channels; got %u channels of x, %u out_channels, kernel %u, groups %u",
                     b->scope, layer, channels, out, kernel, groups));
    return fits;
}

vkt_tensor vkt_nn_conv2d(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_conv2d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_conv2d_params defaults;
    if (!p) p = &defaults;
    if (!want_rank(b, name, x, 4)) return (vkt_tensor){ 0 };
    const uint32_t groups = or_else(p->groups, 1), channels = vkt_tensor_shape(b->g, x).dim[1];
    const uint32_t r = p->kernel[0], s = or_else(p->kernel[1], r), o = p->out_channels;
    if (!want_conv(b, name, channels, o, r, groups)) return (vkt_tensor){ 0 };
    const uint32_t fan_in = channels / groups * r * s, fan_out = o * r * s;
    const vkt_tensor w = layer_weight(b, name, vkt_shape4(o, channels / groups, r, s), p->weight_init, fan_in, fan_out);
    const vkt_tensor bias = layer_bias(b, name, p->no_bias, o, p->bias_init, fan_in);
    const vkt_conv2d_params conv = { .stride = { p->stride[0], or_else(p->stride[1], p->stride[0]) },
                                     .pad = { p->pad[0], or_else(p->pad[1], p->kernel[1] ? 0 : p->pad[0]) },
                                     .dilation = { p->dilation[0], or_else(p->dilation[1], p->dilation[0]) },
                                     .groups = groups };
    return vkt_builder_note(b, name, "Conv2d", vkt_conv2d(b->g, x, w, bias, &conv));
}

vkt_tensor vkt_nn_conv1d(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_conv1d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_conv1d_params defaults;
    if (!p) p = &defaults;
    if (!want_rank(b, name, x, 3)) return (vkt_tensor){ 0 };
    const uint32_t groups = or_else(p->groups, 1), channels = vkt_tensor_shape(b->g, x).dim[1];
    const uint32_t k = p->kernel, o = p->out_channels;
    if (!want_conv(b, name, channels, o, k, groups)) return (vkt_tensor){ 0 };
    const uint32_t fan_in = channels / groups * k, fan_out = o * k;
    const vkt_tensor w = layer_weight(b, name, vkt_shape3(o, channels / groups, k), p->weight_init, fan_in, fan_out);
    const vkt_tensor bias = layer_bias(b, name, p->no_bias, o, p->bias_init, fan_in);
    const vkt_conv1d_params conv = { .stride = p->stride, .pad = p->pad, .dilation = p->dilation, .groups = p->groups };
    return vkt_builder_note(b, name, "Conv1d", vkt_conv1d(b->g, x, w, bias, &conv));
}

vkt_tensor vkt_nn_conv_transpose2d(vkt_builder *b, const char *name, vkt_tensor x,
                                   const vkt_nn_conv_transpose2d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_conv_transpose2d_params defaults;
    if (!p) p = &defaults;
    if (!want_rank(b, name, x, 4)) return (vkt_tensor){ 0 };
    const uint32_t groups = or_else(p->groups, 1), channels = vkt_tensor_shape(b->g, x).dim[1];
    const uint32_t r = p->kernel[0], s = or_else(p->kernel[1], r), o = p->out_channels;
    if (!want_conv(b, name, channels, o, r, groups)) return (vkt_tensor){ 0 };
    /* torch computes fan-in from dimension 1 of a weight. For a transposed convolution, this is the number of output
     * channels of a group. */
    const uint32_t fan_in = o / groups * r * s, fan_out = channels * r * s;
    const vkt_tensor w = layer_weight(b, name, vkt_shape4(channels, o / groups, r, s), p->weight_init, fan_in, fan_out);
    const vkt_tensor bias = layer_bias(b, name, p->no_bias, o, p->bias_init, fan_in);
    const vkt_conv_transpose2d_params conv = {
        .stride = { p->stride[0], or_else(p->stride[1], p->stride[0]) },
        .pad = { p->pad[0], or_else(p->pad[1], p->kernel[1] ? 0 : p->pad[0]) },
        .dilation = { p->dilation[0], or_else(p->dilation[1], p->dilation[0]) },
        .groups = groups,
        .output_pad = { p->output_pad[0], or_else(p->output_pad[1], p->stride[1] ? 0 : p->output_pad[0]) }
    };
    return vkt_builder_note(b, name, "ConvTranspose2d", vkt_conv_transpose2d(b->g, x, w, bias, &conv));
}

vkt_tensor vkt_nn_conv_transpose1d(vkt_builder *b, const char *name, vkt_tensor x,
                                   const vkt_nn_conv_transpose1d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_conv_transpose1d_params defaults;
    if (!p) p = &defaults;
    if (!want_rank(b, name, x, 3)) return (vkt_tensor){ 0 };
    const uint32_t groups = or_else(p->groups, 1), channels = vkt_tensor_shape(b->g, x).dim[1];
    const uint32_t k = p->kernel, o = p->out_channels;
    if (!want_conv(b, name, channels, o, k, groups)) return (vkt_tensor){ 0 };
    const uint32_t fan_in = o / groups * k, fan_out = channels * k;
    const vkt_tensor w = layer_weight(b, name, vkt_shape3(channels, o / groups, k), p->weight_init, fan_in, fan_out);
    const vkt_tensor bias = layer_bias(b, name, p->no_bias, o, p->bias_init, fan_in);
    const vkt_conv_transpose1d_params conv = {
        .stride = p->stride, .pad = p->pad, .dilation = p->dilation, .groups = p->groups, .output_pad = p->output_pad
    };
    return vkt_builder_note(b, name, "ConvTranspose1d", vkt_conv_transpose1d(b->g, x, w, bias, &conv));
}

vkt_tensor vkt_nn_linear(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_linear_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_linear_params defaults;
    if (!p) p = &defaults;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    if (!want_rank(b, name, x, s.rank > 2 ? s.rank : 2)) return (vkt_tensor){ 0 };
    const uint32_t in = s.dim[s.rank - 1], out = p->out_features;
    if (!out) {
        vkt_graph_error(
            b->g, vkt_fail(&b->g->host, VKT_E_ARG, "%s%s: want out_features of 1 or more, got 0", b->scope, name));
        return (vkt_tensor){ 0 };
    }
    const vkt_tensor w = layer_weight(b, name, vkt_shape2(out, in), p->weight_init, in, out);
    const vkt_tensor bias = layer_bias(b, name, p->no_bias, out, p->bias_init, in);
    const vkt_tensor y = vkt_builder_adapt(b, name, x, vkt_linear(b->g, x, w, bias));
    if (!vkt_builder_adapts(b, name) || !y.id) return vkt_builder_note(b, name, "Linear", y);
    b->g->values[w.id].frozen = true;
    if (bias.id) b->g->values[bias.id].frozen = true;
    return vkt_builder_note(b, name, "Linear, LoRA", y);
}

/* Adds the external value "<scopes>.<layer>.<part>" for an array. Counts its numbers for the summary. */
static vkt_tensor frozen_array(vkt_builder *b, const char *layer, const char *part, vkt_array *array, vkt_dtype dtype,
                               vkt_shape shape, uint64_t numbers)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%s%s.%s", b->scope, layer, part);
    vkt_builder_count_array(b, numbers, 4 * vkt_shape_elements(shape));
    return vkt_external_array(b->g, name, array, dtype, shape);
}

vkt_tensor vkt_nn_linear_quantized(vkt_builder *b, const char *name, vkt_tensor x,
                                   const vkt_nn_linear_quantized_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    if (!want_rank(b, name, x, s.rank > 2 ? s.rank : 2)) return (vkt_tensor){ 0 };
    const uint32_t in = s.dim[s.rank - 1], out = p ? p->out_features : 0;
    const uint64_t bytes = !out ? 0 : p->format ? vkt_quantized_bytes(p->format, out, in) : 4ull * out * in;
    if (!out || !p->weight || bytes == 0) {
        vkt_graph_error(b->g,
                        vkt_fail(&b->g->host, VKT_E_ARG,
                                 "%s%s: want out_features of 1 or more, weights, and a format for rows of %u "
                                 "numbers, got %u, %s and %d",
                                 b->scope, name, in, out, p && p->weight ? "weights" : "NULL", p ? (int)p->format : 0));
        return (vkt_tensor){ 0 };
    }
    const vkt_shape words = p->format ? vkt_shape1((uint32_t)((bytes + 3) / 4)) : vkt_shape2(out, in);
    const vkt_tensor w =
        frozen_array(b, name, "weight", p->weight, p->format ? VKT_U32 : VKT_F32, words, (uint64_t)out * in);
    vkt_tensor bias = { 0 };
    if (p->bias) bias = frozen_array(b, name, "bias", p->bias, VKT_F32, vkt_shape1(out), out);
    const vkt_tensor y =
        p->format ? vkt_linear_quantized(b->g, x, w, bias, p->format, out) : vkt_linear(b->g, x, w, bias);
    const char *kind = vkt_builder_adapts(b, name) ? "Linear, frozen, LoRA" : "Linear, frozen";
    return vkt_builder_note(b, name, kind, vkt_builder_adapt(b, name, x, y));
}

static vkt_pool2d_params pool2d_params(const vkt_nn_pool2d_params *p)
{
    return (vkt_pool2d_params){ .kernel = { p->kernel[0], or_else(p->kernel[1], p->kernel[0]) },
                                .stride = { p->stride[0], or_else(p->stride[1], p->stride[0]) },
                                .pad = { p->pad[0], or_else(p->pad[1], p->kernel[1] ? 0 : p->pad[0]) },
                                .dilation = { p->dilation[0], or_else(p->dilation[1], p->dilation[0]) },
                                .ceil_mode = p->ceil_mode,
                                .exclude_pad = p->exclude_pad };
}

vkt_tensor vkt_nn_max_pool2d_with(vkt_builder *b, vkt_tensor x, const vkt_nn_pool2d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_pool2d_params defaults;
    if (!p) p = &defaults;
    const vkt_pool2d_params pool = pool2d_params(p);
    return vkt_builder_note(b, NULL, "MaxPool2d", vkt_max_pool2d(b->g, x, &pool));
}

vkt_tensor vkt_nn_avg_pool2d_with(vkt_builder *b, vkt_tensor x, const vkt_nn_pool2d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_pool2d_params defaults;
    if (!p) p = &defaults;
    const vkt_pool2d_params pool = pool2d_params(p);
    return vkt_builder_note(b, NULL, "AvgPool2d", vkt_avg_pool2d(b->g, x, &pool));
}

vkt_tensor vkt_nn_embedding(vkt_builder *b, const char *name, vkt_tensor ids, const vkt_nn_embedding_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_embedding_params none;
    if (!p) p = &none;
    if (!vkt_builder_is_named(b, name) || !vkt_is_usable(b->g, name, ids)) return (vkt_tensor){ 0 };
    const uint32_t rows = p->num_embeddings, width = p->embedding_dim;
    if (!rows || !width || (p->has_padding && p->padding_id >= rows)) {
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_ARG,
                                       "%s%s: want num_embeddings, embedding_dim, and a padding_id below "
                                       "num_embeddings, got %u, %u and %u",
                                       b->scope, name, rows, width, p->padding_id));
        return (vkt_tensor){ 0 };
    }
    const uint32_t padding = p->has_padding ? p->padding_id : VKT_NO_PADDING;
    const vkt_init torch = { VKT_INIT_NORMAL, 0, 1 }, keras = { VKT_INIT_UNIFORM, -0.05f, 0.05f };
    const vkt_init defaults = b->preset == VKT_PRESET_TORCH ? torch : keras;
    const vkt_init init = p->weight_init.kind == VKT_INIT_DEFAULT ? defaults : p->weight_init;
    const vkt_tensor w = layer_param(b, name, "weight", vkt_shape2(rows, width), init, width, rows);
    if (!w.id) return w;
    b->inits[b->n_inits - 1].zero_row = padding;
    return vkt_builder_note(b, name, "Embedding",
                            p->channels ? vkt_embedding_channels(b->g, ids, w, padding)
                                        : vkt_embedding(b->g, ids, w, padding));
}

vkt_tensor vkt_nn_max_pool2d(vkt_builder *b, vkt_tensor x, uint32_t kernel)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_nn_max_pool2d_with(b, x, &(vkt_nn_pool2d_params){ .kernel = { kernel } });
}

vkt_tensor vkt_nn_avg_pool2d(vkt_builder *b, vkt_tensor x, uint32_t kernel)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_nn_avg_pool2d_with(b, x, &(vkt_nn_pool2d_params){ .kernel = { kernel } });
}

vkt_tensor vkt_nn_max_pool1d(vkt_builder *b, vkt_tensor x, const vkt_pool1d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "MaxPool1d", vkt_max_pool1d(b->g, x, p));
}

vkt_tensor vkt_nn_avg_pool1d(vkt_builder *b, vkt_tensor x, const vkt_pool1d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "AvgPool1d", vkt_avg_pool1d(b->g, x, p));
}

vkt_tensor vkt_nn_adaptive_max_pool1d(vkt_builder *b, vkt_tensor x, uint32_t out)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "AdaptiveMaxPool1d", vkt_adaptive_max_pool1d(b->g, x, out));
}

vkt_tensor vkt_nn_adaptive_avg_pool1d(vkt_builder *b, vkt_tensor x, uint32_t out)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "AdaptiveAvgPool1d", vkt_adaptive_avg_pool1d(b->g, x, out));
}

vkt_tensor vkt_nn_global_max_pool(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "GlobalMaxPool", vkt_global_max_pool(b->g, x));
}

vkt_tensor vkt_nn_global_avg_pool(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "GlobalAvgPool", vkt_global_avg_pool(b->g, x));
}

vkt_tensor vkt_nn_adaptive_max_pool2d(vkt_builder *b, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "AdaptiveMaxPool2d", vkt_adaptive_max_pool2d(b->g, x, out_h, out_w));
}

vkt_tensor vkt_nn_adaptive_avg_pool2d(vkt_builder *b, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "AdaptiveAvgPool2d", vkt_adaptive_avg_pool2d(b->g, x, out_h, out_w));
}

vkt_tensor vkt_nn_dropout(vkt_builder *b, vkt_tensor x, float p)
{
    if (!b) return (vkt_tensor){ 0 };
    return b->training ? vkt_builder_note(b, NULL, "Dropout", vkt_dropout(b->g, x, p)) : x;
}

vkt_tensor vkt_nn_dropout2d(vkt_builder *b, vkt_tensor x, float p)
{
    if (!b) return (vkt_tensor){ 0 };
    return b->training ? vkt_builder_note(b, NULL, "Dropout2d", vkt_dropout2d(b->g, x, p)) : x;
}

vkt_tensor vkt_nn_softmax(vkt_builder *b, vkt_tensor x, int32_t axis)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Softmax", vkt_softmax(b->g, x, axis));
}

vkt_tensor vkt_nn_log_softmax(vkt_builder *b, vkt_tensor x, int32_t axis)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "LogSoftmax", vkt_log_softmax(b->g, x, axis));
}

vkt_tensor vkt_nn_flatten(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Flatten", vkt_flatten(b->g, x));
}

vkt_tensor vkt_nn_upsample2d(vkt_builder *b, vkt_tensor x, const vkt_upsample2d_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Upsample", vkt_upsample2d(b->g, x, p));
}

vkt_tensor vkt_nn_constant_pad2d(vkt_builder *b, vkt_tensor x, uint32_t left, uint32_t right, uint32_t top,
                                 uint32_t bottom, float value)
{
    if (!b) return (vkt_tensor){ 0 };
    if (!want_rank(b, "ConstantPad2d", x, 4)) return (vkt_tensor){ 0 };
    const uint32_t before[] = { 0, 0, top, left }, after[] = { 0, 0, bottom, right };
    return vkt_builder_note(b, NULL, "ConstantPad2d", vkt_pad(b->g, x, before, after, value));
}
