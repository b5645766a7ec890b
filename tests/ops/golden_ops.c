/* ops/golden_ops.c - see golden_ops.h. */
#include "ops/golden_ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/golden.h"

static vkt_tensor conv2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_conv2d_params p = { .groups = (uint32_t)golden_number(a, "groups", 0) };
    golden_pair(a, "stride", p.stride);
    golden_pair(a, "pad", p.pad);
    golden_pair(a, "dilation", p.dilation);
    return vkt_conv2d(g, in[0], in[1], in[2], &p);
}

static vkt_tensor pool2d(vkt_graph *g, const vkt_tensor *in, const json_t *a, bool average)
{
    vkt_pool2d_params p = { .ceil_mode = golden_flag(a, "ceil_mode"), .exclude_pad = golden_flag(a, "exclude_pad") };
    golden_pair(a, "kernel", p.kernel);
    golden_pair(a, "stride", p.stride);
    golden_pair(a, "pad", p.pad);
    golden_pair(a, "dilation", p.dilation);
    return average ? vkt_avg_pool2d(g, in[0], &p) : vkt_max_pool2d(g, in[0], &p);
}

static vkt_tensor max_pool2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return pool2d(g, in, a, false);
}

static vkt_tensor avg_pool2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return pool2d(g, in, a, true);
}

static vkt_tensor adaptive_max_pool2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    uint32_t out[2] = { 0 };
    golden_pair(a, "out", out);
    return vkt_adaptive_max_pool2d(g, in[0], out[0], out[1]);
}

static vkt_tensor adaptive_avg_pool2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    uint32_t out[2] = { 0 };
    golden_pair(a, "out", out);
    return vkt_adaptive_avg_pool2d(g, in[0], out[0], out[1]);
}

/* Returns the first number of a list, for instance the stride along a sequence; 0 if there is no list. */
static uint32_t single(const json_t *a, const char *key)
{
    uint32_t pair[2] = { 0 };
    golden_pair(a, key, pair);
    return pair[0];
}

static vkt_tensor conv1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_conv1d_params p = { .stride = single(a, "stride"),
                                  .pad = single(a, "pad"),
                                  .dilation = single(a, "dilation"),
                                  .groups = (uint32_t)golden_number(a, "groups", 0) };
    return vkt_conv1d(g, in[0], in[1], in[2], &p);
}

static vkt_tensor conv_transpose2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_conv_transpose2d_params p = { .groups = (uint32_t)golden_number(a, "groups", 0) };
    golden_pair(a, "stride", p.stride);
    golden_pair(a, "pad", p.pad);
    golden_pair(a, "dilation", p.dilation);
    golden_pair(a, "output_pad", p.output_pad);
    return vkt_conv_transpose2d(g, in[0], in[1], in[2], &p);
}

static vkt_tensor conv_transpose1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_conv_transpose1d_params p = { .stride = single(a, "stride"),
                                            .pad = single(a, "pad"),
                                            .dilation = single(a, "dilation"),
                                            .groups = (uint32_t)golden_number(a, "groups", 0),
                                            .output_pad = single(a, "output_pad") };
    return vkt_conv_transpose1d(g, in[0], in[1], in[2], &p);
}

static vkt_pool1d_params pool1d(const json_t *a)
{
    return (vkt_pool1d_params){ .kernel = single(a, "kernel"),
                                .stride = single(a, "stride"),
                                .pad = single(a, "pad"),
                                .dilation = single(a, "dilation"),
                                .ceil_mode = golden_flag(a, "ceil_mode"),
                                .exclude_pad = golden_flag(a, "exclude_pad") };
}

static vkt_tensor max_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_max_pool1d(g, in[0], (vkt_pool1d_params[]){ pool1d(a) });
}

static vkt_tensor avg_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_avg_pool1d(g, in[0], (vkt_pool1d_params[]){ pool1d(a) });
}

static vkt_tensor adaptive_max_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_adaptive_max_pool1d(g, in[0], single(a, "out"));
}

static vkt_tensor adaptive_avg_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_adaptive_avg_pool1d(g, in[0], single(a, "out"));
}

static vkt_tensor global_max_pool(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_global_max_pool(g, in[0]);
}

static vkt_tensor global_avg_pool(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_global_avg_pool(g, in[0]);
}

static vkt_tensor linear(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_linear(g, in[0], in[1], in[2]);
}

static vkt_tensor matmul(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_matmul(g, in[0], in[1], golden_flag(a, "trans_a"), golden_flag(a, "trans_b"));
}

static vkt_tensor relu(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_relu(g, in[0]);
}

static vkt_tensor add(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_add(g, in[0], in[1]);
}

static vkt_tensor mul(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_mul(g, in[0], in[1]);
}

static vkt_tensor sum(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_sum(g, in[0]);
}

static vkt_tensor mean(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_mean(g, in[0]);
}

static int32_t axis_of(const json_t *a, const char *key)
{
    return (int32_t)golden_number(a, key, 0);
}

static vkt_tensor permute(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    uint32_t perm[VKT_MAX_RANK];
    golden_list(a, "perm", perm);
    return vkt_permute(g, in[0], perm);
}

static vkt_tensor transpose(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_transpose(g, in[0], axis_of(a, "axis0"), axis_of(a, "axis1"));
}

static vkt_tensor slice(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_slice(g, in[0], axis_of(a, "axis"), (int64_t)golden_number(a, "start", 0),
                     (int64_t)golden_number(a, "stop", 0), (uint32_t)golden_number(a, "step", 1));
}

static vkt_tensor flip(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_flip(g, in[0], axis_of(a, "axis"));
}

static vkt_tensor concat(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_concat(g, in, 3, axis_of(a, "axis"));
}

static vkt_tensor pad(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    uint32_t before[VKT_MAX_RANK], after[VKT_MAX_RANK];
    golden_list(a, "before", before);
    golden_list(a, "after", after);
    return vkt_pad(g, in[0], before, after, (float)golden_number(a, "value", 0));
}

static vkt_tensor expand(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_shape s;
    s.rank = golden_list(a, "shape", s.dim);
    return vkt_expand(g, in[0], s, VKT_ROWS);
}

static vkt_tensor upsample2d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_upsample2d_params p = { .mode = (vkt_upsample_mode)golden_number(a, "mode", VKT_UPSAMPLE_NEAREST),
                                .align_corners = golden_flag(a, "align_corners") };
    golden_pair(a, "size", p.size);
    return vkt_upsample2d(g, in[0], &p);
}

static vkt_tensor softmax_cross_entropy(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_softmax_cross_entropy(g, in[0], in[1]);
}

static vkt_tensor mse(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_mse(g, in[0], in[1]);
}

static vkt_loss_reduction reduction(const json_t *a)
{
    static const char *const names[] = { "mean", "sum", "batchmean", "none" };
    const char *text = json_string_value(json_object_get(a, "reduction"));
    for (int i = 0; text && i < 4; i++)
        if (strcmp(text, names[i]) == 0) return (vkt_loss_reduction)i;
    return VKT_LOSS_MEAN;
}

static vkt_cross_entropy_params label_options(const vkt_tensor *in, const json_t *a)
{
    return (vkt_cross_entropy_params){ .weight = in[2],
                                       .has_ignore_index = json_object_get(a, "ignore_index") != NULL,
                                       .ignore_index = (int32_t)golden_number(a, "ignore_index", 0),
                                       .label_smoothing = (float)golden_number(a, "label_smoothing", 0),
                                       .reduction = reduction(a) };
}

static vkt_tensor cross_entropy(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_cross_entropy_params p = label_options(in, a);
    return vkt_cross_entropy(g, in[0], in[1], &p);
}

static vkt_tensor cross_entropy_images(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_cross_entropy_params p = label_options(in, a);
    p.classes_second = true;
    return vkt_cross_entropy(g, in[0], in[1], &p);
}

static vkt_tensor linear_cross_entropy(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_cross_entropy_params o = label_options(in, a);
    vkt_linear_cross_entropy_params p = { o.has_ignore_index, o.ignore_index, o.reduction != VKT_LOSS_MEAN };
    return vkt_linear_cross_entropy(g, in[0], in[1], in[2], &p);
}

static vkt_tensor nll_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_cross_entropy_params p = label_options(in, a);
    return vkt_nll_loss(g, in[0], in[1], &p);
}

static vkt_tensor mse_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_mse_loss(g, in[0], in[1], reduction(a));
}

static vkt_tensor l1_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_l1_loss(g, in[0], in[1], reduction(a));
}

static vkt_tensor smooth_l1_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_smooth_l1_loss(g, in[0], in[1], (float)golden_number(a, "beta", 1), reduction(a));
}

static vkt_tensor huber_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_huber_loss(g, in[0], in[1], (float)golden_number(a, "delta", 1), reduction(a));
}

static vkt_tensor relative_l2_loss(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_relative_l2_loss(g, in[0], in[1], (float)golden_number(a, "epsilon", 0), reduction(a));
}

static vkt_tensor binary_cross_entropy(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_binary_cross_entropy(g, in[0], in[1], reduction(a));
}

static vkt_tensor binary_cross_entropy_with_logits(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_binary_cross_entropy_with_logits(g, in[0], in[1], in[2], reduction(a));
}

static vkt_tensor kl_div(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_kl_div(g, in[0], in[1], golden_flag(a, "log_target"), reduction(a));
}

static vkt_tensor softmax(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_softmax(g, in[0], (int32_t)golden_number(a, "axis", 0));
}

static vkt_tensor log_softmax(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_log_softmax(g, in[0], (int32_t)golden_number(a, "axis", 0));
}

static vkt_tensor softmax_of_scores(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_softmax_of_scores(g, in[0], (float)golden_number(a, "factor", 1), golden_flag(a, "causal"));
}

static vkt_tensor embedding(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const uint32_t padding = (uint32_t)golden_number(a, "padding", VKT_NO_PADDING);
    return golden_flag(a, "channels") ? vkt_embedding_channels(g, in[0], in[1], padding)
                                      : vkt_embedding(g, in[0], in[1], padding);
}

/* In ops.safetensors, the indices are input 0 and the table is input 1. */
static vkt_tensor index_select(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_index_select(g, in[1], in[0]);
}

#define UNARY(name)                                                                \
    static vkt_tensor name##_(vkt_graph *g, const vkt_tensor *in, const json_t *a) \
    {                                                                              \
        (void)a;                                                                   \
        return vkt_##name(g, in[0]);                                               \
    }
#define UNARY_WITH(name, ...)                                                      \
    static vkt_tensor name##_(vkt_graph *g, const vkt_tensor *in, const json_t *a) \
    {                                                                              \
        return vkt_##name(g, in[0], __VA_ARGS__);                                  \
    }
#define BINARY(name)                                                               \
    static vkt_tensor name##_(vkt_graph *g, const vkt_tensor *in, const json_t *a) \
    {                                                                              \
        (void)a;                                                                   \
        return vkt_##name(g, in[0], in[1]);                                        \
    }
#define NUMBER(key) (float)golden_number(a, key, 0)
UNARY(gelu)
UNARY(gelu_tanh)
UNARY(silu)
UNARY(sigmoid)
UNARY(tanh)
UNARY(hardswish)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(abs)
UNARY_WITH(leaky_relu, NUMBER("slope"))
UNARY_WITH(elu, NUMBER("alpha"))
UNARY_WITH(softplus, NUMBER("beta"), NUMBER("threshold"))
UNARY_WITH(clamp, NUMBER("min"), NUMBER("max"))
UNARY_WITH(scale, NUMBER("factor"), NUMBER("shift"))
BINARY(sub)
BINARY(div)
BINARY(minimum)
BINARY(maximum)
BINARY(pow)
BINARY(prelu)

static vkt_tensor where_(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    (void)a;
    return vkt_where(g, in[0], in[1], in[2]);
}

static uint32_t axes_of(const json_t *a)
{
    uint32_t list[VKT_MAX_RANK], axes = 0;
    for (uint32_t n = golden_list(a, "axes", list); n-- > 0;) axes |= VKT_AXIS(list[n]);
    return axes;
}

static vkt_tensor max_over(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_max_over(g, in[0], axes_of(a), golden_flag(a, "keepdim"));
}

static vkt_tensor min_over(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_min_over(g, in[0], axes_of(a), golden_flag(a, "keepdim"));
}

static vkt_tensor masked_fill(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_masked_fill(g, in[0], in[1], NUMBER("value"));
}

static vkt_tensor attention(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_attention_params p = { .scale = (float)golden_number(a, "factor", 0),
                                     .causal = golden_flag(a, "causal"),
                                     .mask = in[3],
                                     .kv_heads = (uint32_t)golden_number(a, "kv_heads", 0) };
    return vkt_attention(g, in[0], in[1], in[2], &p);
}

static vkt_tensor attention_packed(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_attention_params p = { .causal = golden_flag(a, "causal"),
                                     .kv_heads = (uint32_t)golden_number(a, "kv_heads", 0) };
    return vkt_attention_packed(g, in[0], (uint32_t)golden_number(a, "heads", 0), &p);
}

static vkt_tensor attention_packed_masked(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_attention_params p = { .mask = in[1], .kv_heads = (uint32_t)golden_number(a, "kv_heads", 0) };
    return vkt_attention_packed(g, in[0], (uint32_t)golden_number(a, "heads", 0), &p);
}

static vkt_tensor hash_grid(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_hash_grid_params p = { .levels = (uint32_t)golden_number(a, "levels", 0),
                                     .features = (uint32_t)golden_number(a, "features", 0),
                                     .log2_table_size = (uint32_t)golden_number(a, "log2_table_size", 0),
                                     .base_resolution = (uint32_t)golden_number(a, "base_resolution", 0),
                                     .per_level_scale = golden_number(a, "per_level_scale", 0) };
    return vkt_hash_grid(g, in[0], in[1], &p);
}

static vkt_tensor frequency(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_frequency(g, in[0], (uint32_t)golden_number(a, "frequencies", 0));
}

BINARY(swiglu)
UNARY(swiglu_packed)

static vkt_tensor rms_norm(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_rms_norm(g, in[0], 1, in[1], NUMBER("eps"));
}

static vkt_tensor rope(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    float factors[64];
    const json_t *list = json_object_get(a, "factors");
    for (size_t i = 0; i < json_array_size(list) && i < VKT_COUNT(factors); i++)
        factors[i] = (float)json_number_value(json_array_get(list, i));
    const vkt_rope_params p = { .order = golden_flag(a, "neighbours") ? VKT_ROPE_NEIGHBOURS : VKT_ROPE_HALVES,
                                .dims = (uint32_t)golden_number(a, "dims", 0),
                                .base = NUMBER("base"),
                                .factor = NUMBER("factor"),
                                .factors = list ? factors : NULL,
                                .heads = (uint32_t)golden_number(a, "heads", 0),
                                .split = golden_flag(a, "split"),
                                .rotated = (uint32_t)golden_number(a, "rotated", 0),
                                .position = (uint32_t)golden_number(a, "position", 0),
                                .first = in[1] };
    return vkt_rope(g, in[0], &p);
}

static vkt_tensor latent_grid(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    vkt_latent_grid_params p = { .scale = (uint32_t)golden_number(a, "factor", 0),
                                 .corners = golden_flag(a, "corners") };
    golden_pair(a, "tile", p.tile);
    return vkt_latent_grid(g, in[0], in[1], &p);
}

static vkt_tensor quantize(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    return vkt_quantize(g, in[0], (uint32_t)golden_number(a, "bits", 0), golden_flag(a, "noise"));
}

static const golden_op ops[] = {
    { "conv2d", conv2d, 3, .images = true },
    { "max_pool2d", max_pool2d, 1, .images = true },
    { "avg_pool2d", avg_pool2d, 1, .images = true },
    { "adaptive_max_pool2d", adaptive_max_pool2d, 1, .images = true },
    { "adaptive_avg_pool2d", adaptive_avg_pool2d, 1, .images = true },
    { "conv_transpose2d", conv_transpose2d, 3, .images = true },
    { "conv_transpose1d", conv_transpose1d, 3, .images = true, .several = true },
    { "conv1d", conv1d, 3, .images = true, .several = true },
    { "max_pool1d", max_pool1d, 1, .images = true, .several = true },
    { "avg_pool1d", avg_pool1d, 1, .images = true, .several = true },
    { "adaptive_max_pool1d", adaptive_max_pool1d, 1, .images = true, .several = true },
    { "adaptive_avg_pool1d", adaptive_avg_pool1d, 1, .images = true, .several = true },
    { "global_max_pool", global_max_pool, 1, .images = true, .several = true },
    { "global_avg_pool", global_avg_pool, 1, .images = true, .several = true },
    { "linear", linear, 3 },
    { "matmul", matmul, 2 },
    { "matmul_broadcast", matmul, 2, .several = true },
    { "relu", relu, 1 },
    { "add", add, 2 },
    { "mul", mul, 2 },
    { "sum", sum, 1 },
    { "mean", mean, 1 },
    { "permute", permute, 1 },
    { "transpose", transpose, 1 },
    { "slice", slice, 1 },
    { "flip", flip, 1 },
    { "concat", concat, 3 },
    { "pad", pad, 1 },
    { "expand", expand, 1 },
    { "upsample2d", upsample2d, 1, .images = true },
    { "softmax_cross_entropy", softmax_cross_entropy, 2, .integers = 2 },
    { "mse", mse, 2 },
    { "cross_entropy", cross_entropy, 3, .integers = 2 },
    { "cross_entropy_tokens", cross_entropy, 3, .integers = 2, .several = true },
    { "cross_entropy_pictures", cross_entropy_images, 3, .images = true, .integers = 2, .several = true },
    { "linear_cross_entropy", linear_cross_entropy, 3, .integers = 4 },
    { "linear_cross_entropy_tokens", linear_cross_entropy, 3, .integers = 4, .several = true },
    { "nll_loss", nll_loss, 3, .integers = 2 },
    { "mse_loss", mse_loss, 2 },
    { "l1_loss", l1_loss, 2 },
    { "smooth_l1_loss", smooth_l1_loss, 2 },
    { "huber_loss", huber_loss, 2 },
    { "relative_l2_loss", relative_l2_loss, 2 },
    { "binary_cross_entropy", binary_cross_entropy, 2 },
    { "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits, 3, .several = true },
    { "kl_div", kl_div, 2 },
    { "softmax", softmax, 1 },
    { "log_softmax", log_softmax, 1 },
    { "softmax_of_scores", softmax_of_scores, 1 },
    { "embedding", embedding, 2, .integers = 1 },
    { "index_select", index_select, 2, .integers = 1 },
    { "gelu", gelu_, 1 },
    { "gelu_tanh", gelu_tanh_, 1 },
    { "silu", silu_, 1 },
    { "sigmoid", sigmoid_, 1 },
    { "tanh", tanh_, 1 },
    { "hardswish", hardswish_, 1 },
    { "exp", exp_, 1 },
    { "log", log_, 1 },
    { "sqrt", sqrt_, 1 },
    { "abs", abs_, 1 },
    { "leaky_relu", leaky_relu_, 1 },
    { "elu", elu_, 1 },
    { "softplus", softplus_, 1 },
    { "clamp", clamp_, 1 },
    { "scale", scale_, 1 },
    { "sub", sub_, 2 },
    { "div", div_, 2 },
    { "minimum", minimum_, 2 },
    { "maximum", maximum_, 2 },
    { "pow", pow_, 2 },
    { "prelu", prelu_, 2, .several = true },
    { "max_over", max_over, 1, .several = true },
    { "min_over", min_over, 1, .several = true },
    { "where", where_, 3, .integers = 1 },
    { "masked_fill", masked_fill, 2, .integers = 2, .several = true },
    { "linear_rows", linear, 3, .several = true },
    { "attention", attention, 4, .several = true },
    { "attention_packed", attention_packed, 1 },
    { "attention_packed_masked", attention_packed_masked, 2, .several = true },
    { "hash_grid", hash_grid, 2, .images = true },
    { "frequency", frequency, 1, .images = true },
    { "swiglu", swiglu_, 2 },
    { "swiglu_packed", swiglu_packed_, 1 },
    { "swiglu_packed_odd", swiglu_packed_, 1, .several = true },
    { "rms_norm", rms_norm, 2 },
    { "rope", rope, 2, .integers = 2, .several = true },
    { "latent_grid", latent_grid, 2, .integers = 2 },
    { "quantize", quantize, 1 },
};

const golden_op *golden_op_of(const json_t *attr)
{
    const char *name = json_string_value(json_object_get(attr, "op"));
    for (size_t i = 0; name && i < VKT_COUNT(ops); i++)
        if (strcmp(ops[i].name, name) == 0) return &ops[i];
    fail_msg("no public function for op '%s'", name ? name : "(none)");
    return NULL;
}
