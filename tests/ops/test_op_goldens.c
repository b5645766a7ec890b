/* Ops at awkward shapes against PyTorch (tests/golden/ops.safetensors, float64): first the references, to the last
 * digits; then, through the public functions of ops.h, the engine, as every other subject of the op tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/golden.h"
#include "ops/harness.h"
#include "support/host.h"

static vkt_ctx *ctx;
static golden file;

/* ---- the public functions, by the name that the file gives them ---- */

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

/* The one number of a list such as a sequence's stride. */
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
                                .ceil_mode = golden_flag(a, "ceil_mode"),
                                .exclude_pad = golden_flag(a, "exclude_pad") };
}

static vkt_tensor max_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_pool1d_params p = pool1d(a);
    return vkt_max_pool1d(g, in[0], &p);
}

static vkt_tensor avg_pool1d(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const vkt_pool1d_params p = pool1d(a);
    return vkt_avg_pool1d(g, in[0], &p);
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
    static const char *const names[] = { "mean", "sum", "batchmean" };
    const char *text = json_string_value(json_object_get(a, "reduction"));
    for (int i = 0; text && i < 3; i++)
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

/* The ids are input 0 of an embedding, whatever the order of PyTorch's arguments. */
static vkt_tensor embedding(vkt_graph *g, const vkt_tensor *in, const json_t *a)
{
    const uint32_t padding = (uint32_t)golden_number(a, "padding", VKT_NO_PADDING);
    return golden_flag(a, "channels") ? vkt_embedding_channels(g, in[0], in[1], padding)
                                      : vkt_embedding(g, in[0], in[1], padding);
}

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

static const struct {
    const char *name;
    vkt_tensor (*build)(vkt_graph *g, const vkt_tensor *in, const json_t *attr);
    uint32_t n_in;
    bool pictures;     /* the first input is BATCH_LAST */
    uint32_t integers; /* bit k: input k is u32 */
    bool several;      /* the function makes several nodes: no row of its own, so no reference, and no harness */
} builders[] = {
    { "conv2d", conv2d, 3, .pictures = true },
    { "max_pool2d", max_pool2d, 1, .pictures = true },
    { "avg_pool2d", avg_pool2d, 1, .pictures = true },
    { "adaptive_max_pool2d", adaptive_max_pool2d, 1, .pictures = true },
    { "adaptive_avg_pool2d", adaptive_avg_pool2d, 1, .pictures = true },
    { "conv_transpose2d", conv_transpose2d, 3, .pictures = true },
    { "conv_transpose1d", conv_transpose1d, 3, .pictures = true, .several = true },
    { "conv1d", conv1d, 3, .pictures = true, .several = true },
    { "max_pool1d", max_pool1d, 1, .pictures = true, .several = true },
    { "avg_pool1d", avg_pool1d, 1, .pictures = true, .several = true },
    { "adaptive_max_pool1d", adaptive_max_pool1d, 1, .pictures = true, .several = true },
    { "adaptive_avg_pool1d", adaptive_avg_pool1d, 1, .pictures = true, .several = true },
    { "global_max_pool", global_max_pool, 1, .pictures = true, .several = true },
    { "global_avg_pool", global_avg_pool, 1, .pictures = true, .several = true },
    { "linear", linear, 3 },
    { "matmul", matmul, 2 },
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
    { "upsample2d", upsample2d, 1, .pictures = true },
    { "softmax_cross_entropy", softmax_cross_entropy, 2, .integers = 2 },
    { "mse", mse, 2 },
    { "cross_entropy", cross_entropy, 3, .integers = 2 },
    { "cross_entropy_tokens", cross_entropy, 3, .integers = 2, .several = true },
    { "nll_loss", nll_loss, 3, .integers = 2 },
    { "mse_loss", mse_loss, 2 },
    { "l1_loss", l1_loss, 2 },
    { "smooth_l1_loss", smooth_l1_loss, 2 },
    { "huber_loss", huber_loss, 2 },
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
    { "where", where_, 3, .integers = 1 },
};

static size_t builder_of(const json_t *attr)
{
    const char *op = json_string_value(json_object_get(attr, "op"));
    for (size_t i = 0; op && i < VKT_COUNT(builders); i++)
        if (strcmp(builders[i].name, op) == 0) return i;
    fail_msg("no builder for op '%s'", op ? op : "(none)");
    return 0;
}

/* ---- a case ---- */

/* Input k of the case, absent where the file has none. */
static void add_input(subject *s, const char *name, uint32_t k, vkt_layout layout, vkt_dtype dtype)
{
    char part[16];
    vkt_case_input c = { .dtype = dtype, .layout = layout, .bound = 1 };
    snprintf(part, sizeof part, "in%u", k);
    float *data = golden_f32(&file, name, part, &c.shape);
    c.absent = !data;
    subject_input(s, &c, data);
    free(data);
}

/* The inputs and the result of the function. */
static vkt_tensor apply(subject *s, const char *name, bool *several)
{
    json_t *attr = golden_attributes(&file, name);
    const size_t b = builder_of(attr);
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    subject_begin(s, 1 + vkt_hash(VKT_HASH_START, name, strlen(name)) % 100);
    s->run.rows = (uint32_t)golden_number(attr, "rows", 0);
    for (uint32_t k = 0; k < builders[b].n_in; k++) {
        add_input(s, name, k, builders[b].pictures && k == 0 ? VKT_BATCH_LAST : VKT_ROWS,
                  builders[b].integers >> k & 1 ? VKT_U32 : VKT_F32);
        in[k] = s->in[k].t;
    }
    const vkt_tensor out = builders[b].build(s->g, in, attr);
    assert_int_equal(vkt_graph_status(s->g), VKT_OK);
    *several = builders[b].several;
    json_decref(attr);
    return out;
}

static void take(subject *s, const char *name, vkt_tensor out)
{
    subject_take(s, out);
    float *dout = golden_f32(&file, name, "grad_out", NULL);
    assert_non_null(dout);
    subject_set(&s->dout[0], dout, side_count(&s->dout[0]));
    free(dout);
    subject_forward(s);
    subject_backward(s);
}

static double *expected(const char *name, const char *part, const side *v)
{
    vkt_shape shape = { 0 };
    double *want = golden_f64(&file, name, part, &shape);
    char got[80], of[80];
    if (want && !vkt_shape_equal(shape, v->ref.shape))
        fail_msg("%s/%s has shape %s, PyTorch's %s", name, part, vkt_shape_text(v->ref.shape, got),
                 vkt_shape_text(shape, of));
    return want;
}

/* The reference is PyTorch's number but for the order of float64 additions. */
static void check_reference(const char *name, const char *part, const side *v)
{
    double *want = expected(name, part, v);
    double scale = 0;
    assert_non_null(want);
    for (size_t i = 0; i < side_count(v); i++) scale = fmax(scale, fabs(want[i]));
    for (size_t i = 0; i < side_count(v); i++)
        if (!(fabs(v->ref.f[i] - want[i]) <= 1e-13 * (scale > 0 ? scale : 1)))
            fail_msg("%s/%s[%zu]: the reference has %.17g, PyTorch %.17g", name, part, i, v->ref.f[i], want[i]);
    free(want);
}

/* ---- functions of several nodes: what the device makes beside PyTorch's numbers ---- */

/* Sums of at most 2^5 products, see the rows' own tolerances. */
#define CLOSE 2e-5

static void check_value(vkt_program *p, const vkt_graph *g, const char *name, const char *part, vkt_tensor t)
{
    vkt_shape shape;
    char text[80];
    double *want = golden_f64(&file, name, part, &shape);
    assert_non_null(want);
    assert_true(vkt_shape_equal(shape, vkt_tensor_shape(g, t)));
    const size_t n = (size_t)vkt_shape_elements(shape);
    float *got = malloc(n * sizeof *got);
    assert_int_equal(vkt_program_read(p, t, got, n * sizeof *got), VKT_OK);
    snprintf(text, sizeof text, "%s/%s", name, part);
    assert_true(harness_close(text, got, want, n, CLOSE, CLOSE));
    free(got);
    free(want);
}

static bool has_gradient(const char *name, uint32_t k)
{
    char part[24];
    snprintf(part, sizeof part, "grad_in%u", k);
    double *there = golden_f64(&file, name, part, NULL);
    free(there);
    return there != NULL;
}

static void run_nodes(subject *s, const char *name, vkt_tensor out)
{
    vkt_tensor wrt[VKT_MAX_IN], grads[VKT_MAX_IN];
    uint32_t n_wrt = 0, input_of[VKT_MAX_IN];
    vkt_shape shape;
    vkt_program *p;
    float *seed = golden_f32(&file, name, "grad_out", &shape);
    const vkt_tensor dout = vkt_input(s->g, "dout", VKT_F32, vkt_value_of(s->g, out)->layout, shape);
    for (uint32_t k = 0; k < s->c.n_in; k++)
        if (has_gradient(name, k)) {
            input_of[n_wrt] = k;
            wrt[n_wrt++] = s->in[k].t;
        }
    assert_int_equal(vkt_gradients(s->g, &out, &dout, 1, wrt, n_wrt, grads), VKT_OK);
    vkt_keep(s->g, out);
    for (uint32_t i = 0; i < n_wrt; i++) vkt_keep(s->g, grads[i]);
    assert_int_equal(vkt_program_create_guarded(ctx, s->g, NULL, NULL, &p), VKT_OK);
    for (uint32_t k = 0; k < s->c.n_in; k++) {
        const side *in = &s->in[k];
        if (in->t.id) assert_int_equal(vkt_program_write(p, in->t, in->data, 4 * side_count(in)), VKT_OK);
    }
    assert_int_equal(vkt_program_write(p, dout, seed, 4 * vkt_shape_elements(shape)), VKT_OK);
    assert_int_equal(vkt_program_run(p, &s->run, NULL), VKT_OK);
    check_value(p, s->g, name, "out", out);
    for (uint32_t i = 0; i < n_wrt; i++) {
        char part[24];
        snprintf(part, sizeof part, "grad_in%u", input_of[i]);
        check_value(p, s->g, name, part, grads[i]);
    }
    vkt_program_destroy(&p);
    free(seed);
}

static void a_case_is_as_in_pytorch(void **state)
{
    const char *name = *state;
    harness_report report = { .faults = 0 };
    subject s;
    bool several;
    const vkt_tensor out = apply(&s, name, &several);
    if (several) {
        if (ctx) run_nodes(&s, name, out);
        subject_free(&s);
        return;
    }
    take(&s, name, out);
    check_reference(name, "out", &s.out[0]);
    for (uint32_t k = 0; k < s.c.n_in; k++) {
        char part[24];
        snprintf(part, sizeof part, "grad_in%u", k);
        if (s.din[k].t.id) check_reference(name, part, &s.din[k]);
    }
    if (ctx) harness_check(ctx, &s, &report);
    subject_free(&s);
    if (report.faults) fail_msg("%s: %s", name, report.text);
}

int main(void)
{
    static struct CMUnitTest tests[256];
    size_t n = 0;
    harness_open(&ctx);
    golden_open(&file, "ops.safetensors");
    for (; n < file.n && n < VKT_COUNT(tests); n++)
        tests[n] = (struct CMUnitTest){ .name = file.cases[n],
                                        .test_func = a_case_is_as_in_pytorch,
                                        .initial_state = file.cases[n] };
    const int failures = _cmocka_run_group_tests("ops as in PyTorch", tests, n, NULL, NULL);
    golden_close(&file); /* only now: the tests' names are in it */
    vkt_ctx_destroy(&ctx);
    return failures + !vkt_test_is_clean();
}
