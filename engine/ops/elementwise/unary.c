/* ops/elementwise/unary.c - functions of one number: activations and elementary functions. lib/unary.glsl computes all
 * functions and their gradients, except the gradient of scale, which is another scale. A number selects the
 * function. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/functions.abi.h"

/* The data of a function that are not in its op descriptor. `from_y`: the gradient is computed from y instead of x.
 * This saves memory, because the next op often keeps y anyway. `from_y` is false if y does not determine the gradient,
 * or lacks digits that the gradient needs. leaky_relu and scale do not use `from_y`. `flops`: the operations of the
 * formula; a tanh or erf counts as one. */
typedef struct function {
    const vkt_op *op;
    uint32_t number;
    bool from_y;
    uint8_t flops;
} function;

static const function functions[] = {
    { &vkt_op_relu, UNARY_RELU, true, 1 },    { &vkt_op_leaky_relu, UNARY_LEAKY_RELU, false, 2 },
    { &vkt_op_abs, UNARY_ABS, false, 1 },     { &vkt_op_clamp, UNARY_CLAMP, false, 2 },
    { &vkt_op_scale, UNARY_SCALE, false, 2 }, { &vkt_op_hardswish, UNARY_HARDSWISH, false, 5 },
    { &vkt_op_sqrt, UNARY_SQRT, true, 1 },    { &vkt_op_exp, UNARY_EXP, true, 1 },
    { &vkt_op_log, UNARY_LOG, false, 1 },     { &vkt_op_sigmoid, UNARY_SIGMOID, true, 3 },
    { &vkt_op_tanh, UNARY_TANH, true, 1 },    { &vkt_op_silu, UNARY_SILU, false, 3 },
    { &vkt_op_elu, UNARY_ELU, false, 4 },     { &vkt_op_softplus, UNARY_SOFTPLUS, false, 6 },
    { &vkt_op_gelu, UNARY_GELU, false, 5 },   { &vkt_op_gelu_tanh, UNARY_GELU_TANH, false, 9 },
};

/* The entry for an op that `functions` lacks. lib/unary.glsl has no function with this number, so results are NaN. */
static const function missing = { .number = UNARY_COUNT };

static const function *function_of(const vkt_node *n)
{
    for (size_t i = 0; i < VKT_COUNT(functions); i++)
        if (functions[i].op == n->op) return &functions[i];
    return &missing;
}

/* Reads the attributes: every function has up to two floats, which are p and q of the kernel. */
static void parameters(const vkt_node *n, float p[2])
{
    p[0] = p[1] = 0;
    if (n->op->attr_bytes) memcpy(p, n->attr, n->op->attr_bytes);
}

static void unary_emit(const vkt_node *n, vkt_emit *e)
{
    float p[2];
    parameters(n, p);
    vkt_flat f = { VKT_K_UNARY, function_of(n)->number, p[0], p[1] };
    const vkt_node *dropout = vkt_take_dropout(e);
    if (!dropout) {
        vkt_emit_flat(n, e, f);
        return;
    }
    f.kernel = VKT_K_DROPOUT_AFTER;
    vkt_emit_dropout(e, dropout, n->in[0], n->out[0], f);
}

static double unary_flops(const vkt_node *n)
{
    return function_of(n)->flops * vkt_elements_out(n, 0);
}

static vkt_tensor dx_from(vkt_graph *g, const vkt_node *n, vkt_tensor v, vkt_tensor dy)
{
    const function *f = function_of(n);
    float p[2];
    parameters(n, p);
    const vkt_slope_attr a = { p[0], p[1], f->number, f->flops + 1u };
    return vkt_apply(g, &vkt_op_unary_dx, (vkt_tensor[]){ v, dy }, 2, &a, NULL);
}

static void unary_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = dx_from(g, n, function_of(n)->from_y ? n->out[0] : n->in[0], dy[0]);
}

static void unary_case(vkt_rng *r, vkt_case *c, float lo, float hi)
{
    const vkt_shape s = vkt_rng_range(r, 0, 1) ? vkt_shape2(vkt_rng_range(r, 1, 130), vkt_rng_range(r, 1, 97))
                                               : vkt_shape4(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 5),
                                                            vkt_rng_range(r, 1, 13), vkt_rng_range(r, 1, 11));
    vkt_case_f32(c, vkt_draw_layout(r), s, lo, hi);
}

#define SAMPLE(name, lo, hi)                           \
    static void name##_sample(vkt_rng *r, vkt_case *c) \
    {                                                  \
        unary_case(r, c, lo, hi);                      \
    }

#define UNARY_ROW_OF(infer_)                                                                          \
    .min_in = 1, .max_in = 1, .cheap = true, .diff = 1u << 0, .in_place = 1u << 0, .infer = (infer_), \
    .emit = unary_emit, .flops = unary_flops, .epilogues = 1u << VKT_FUSE_DROPOUT
#define UNARY_ROW UNARY_ROW_OF(vkt_infer_same)
#define HALF .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0), .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0)

static vkt_tensor apply(vkt_graph *g, const vkt_op *op, vkt_tensor x, const void *attr)
{
    return vkt_apply(g, op, &x, 1, attr, NULL);
}

/* ---- the gradient of all functions ---- */

static vkt_result unary_dx_infer(vkt_infer *f)
{
    const vkt_value *v = vkt_in(f, 0), *dy = vkt_in(f, 1);
    VKT_REQUIRE(f, v->layout == dy->layout && vkt_shape_equal(v->shape, dy->shape), VKT_E_SHAPE,
                "unary_dx: want two tensors of one shape and layout");
    return vkt_infer_same(f);
}

static void unary_dx_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_flat(n, e, vkt_slope_of(n));
}

bool vkt_is_relu_dx(const vkt_node *n)
{
    return n->op == &vkt_op_unary_dx && ((const vkt_slope_attr *)n->attr)->number == UNARY_RELU;
}

static double unary_dx_flops(const vkt_node *n)
{
    return ((const vkt_slope_attr *)n->attr)->flops * vkt_elements_out(n, 0);
}

const vkt_op vkt_op_unary_dx = { .name = "unary_dx",
                                 .min_in = 2,
                                 .max_in = 2,
                                 .in_place = 3,
                                 .fuse_kind = VKT_FUSE_SLOPE,
                                 .attr_bytes = sizeof(vkt_slope_attr),
                                 .infer = unary_dx_infer,
                                 .emit = unary_dx_emit,
                                 .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                                 .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                                 .forward_only = true,
                                 .tested_by = "relu",
                                 .flops = unary_dx_flops,
                                 .formula = "dx = f'(x) dy, from x or from y = f(x)" };

/* ---- piecewise linear functions ---- */

vkt_tensor vkt_relu(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_relu, x, NULL);
}

SAMPLE(relu, -2, 2)

const vkt_op vkt_op_relu = { .name = "relu",
                             UNARY_ROW,
                             HALF,
                             .fuse_kind = VKT_FUSE_RELU,
                             .backward = unary_backward,
                             .sample = relu_sample,
                             .tol_why = "exact: a choice between two values",
                             .formula = "y = max(x, 0)" };

vkt_tensor vkt_leaky_relu(vkt_graph *g, vkt_tensor x, float slope)
{
    return apply(g, &vkt_op_leaky_relu, x, &(vkt_leaky_relu_attr){ slope });
}

/* Adds the gradient. If the slope is not negative, y > 0 exactly where x > 0, so the gradient is computed from y. */
static void leaky_relu_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_leaky_relu_attr *a = n->attr;
    dx[0] = dx_from(g, n, a->slope >= 0 ? n->out[0] : n->in[0], dy[0]);
}

static void leaky_relu_sample(vkt_rng *r, vkt_case *c)
{
    unary_case(r, c, -2, 2);
    const vkt_leaky_relu_attr a = { vkt_rng_range(r, 0, 2) ? 0.01f : vkt_rng_uniform(r, -1, 1) };
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field leaky_relu_fields[] = { VKT_FIELD(vkt_leaky_relu_attr, slope, F32, 1, 0.01), { .name = NULL } };

const vkt_op vkt_op_leaky_relu = { .name = "leaky_relu",
                                   UNARY_ROW,
                                   HALF,
                                   .attr_bytes = sizeof(vkt_leaky_relu_attr),
                                   .backward = leaky_relu_backward,
                                   .sample = leaky_relu_sample,
                                   .fields = leaky_relu_fields,
                                   .rel_tol = 6e-8f,
                                   .tol_why = "one product: half an ulp, 2^-24",
                                   .formula = "y = x > 0 ? x : slope x" };

vkt_tensor vkt_abs(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_abs, x, NULL);
}

SAMPLE(abs, -2, 2)

const vkt_op vkt_op_abs = { .name = "abs",
                            UNARY_ROW,
                            HALF,
                            .backward = unary_backward,
                            .sample = abs_sample,
                            .tol_why = "exact: a sign is changed",
                            .formula = "y = |x|" };

static vkt_result clamp_infer(vkt_infer *f)
{
    const vkt_clamp_attr *a = f->n->attr;
    VKT_REQUIRE(f, !isnan(a->min) && !isnan(a->max), VKT_E_ARG, "clamp: want two numbers as bounds, got %g and %g",
                (double)a->min, (double)a->max);
    return vkt_infer_same(f);
}

vkt_tensor vkt_clamp(vkt_graph *g, vkt_tensor x, float min, float max)
{
    return apply(g, &vkt_op_clamp, x, &(vkt_clamp_attr){ min, max });
}

static void clamp_sample(vkt_rng *r, vkt_case *c)
{
    unary_case(r, c, -2, 2);
    const vkt_clamp_attr a = { vkt_rng_range(r, 0, 3) ? vkt_rng_uniform(r, -2, 0.5f) : -INFINITY,
                               vkt_rng_range(r, 0, 3) ? vkt_rng_uniform(r, 0, 2) : INFINITY };
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field clamp_fields[] = { VKT_FIELD(vkt_clamp_attr, min, F32, 1, -1),
                                          VKT_FIELD(vkt_clamp_attr, max, F32, 1, 1),
                                          { .name = NULL } };

const vkt_op vkt_op_clamp = { .name = "clamp",
                              UNARY_ROW_OF(clamp_infer),
                              HALF,
                              .attr_bytes = sizeof(vkt_clamp_attr),
                              .backward = unary_backward,
                              .sample = clamp_sample,
                              .fields = clamp_fields,
                              .tol_why = "exact: a choice among three values",
                              .formula = "y = min(max(x, min), max)" };

vkt_tensor vkt_scale(vkt_graph *g, vkt_tensor x, float scale, float shift)
{
    return apply(g, &vkt_op_scale, x, &(vkt_scale_attr){ scale, shift });
}

static void scale_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_scale(g, dy[0], ((const vkt_scale_attr *)n->attr)->scale, 0);
}

static void scale_sample(vkt_rng *r, vkt_case *c)
{
    unary_case(r, c, -2, 2);
    const vkt_scale_attr a = { vkt_rng_uniform(r, -3, 3), vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, -3, 3) : 0 };
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field scale_fields[] = { VKT_FIELD(vkt_scale_attr, scale, F32, 1, 1),
                                          VKT_FIELD(vkt_scale_attr, shift, F32, 1, 0),
                                          { .name = NULL } };

const vkt_op vkt_op_scale = { .name = "scale",
                              UNARY_ROW,
                              HALF,
                              .attr_bytes = sizeof(vkt_scale_attr),
                              .backward = scale_backward,
                              .sample = scale_sample,
                              .fields = scale_fields,
                              .rel_tol = 6e-8f,
                              .abs_tol = 6e-8f,
                              .tol_why = "a product and a sum: half an ulp of each, and |scale x| is at most twice the "
                                         "tensor's largest |y|",
                              .formula = "y = scale x + shift" };

vkt_tensor vkt_hardswish(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_hardswish, x, NULL);
}

SAMPLE(hardswish, -5, 5)

const vkt_op vkt_op_hardswish = { .name = "hardswish",
                                  UNARY_ROW,
                                  HALF,
                                  .backward = unary_backward,
                                  .sample = hardswish_sample,
                                  .rel_tol = 3e-7f,
                                  .abs_tol = 1.2e-7f,
                                  .tol_why = "x + 3, 1/6 and two products: 4 roundings of 2^-24; those of x + 3 and "
                                             "x/3 + 1/2 are of 1 and more, whatever their result",
                                  .formula = "y = x min(max(x + 3, 0), 6) / 6" };

/* ---- elementary functions ---- */

vkt_tensor vkt_sqrt(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_sqrt, x, NULL);
}

SAMPLE(sqrt, 0.01f, 9)

const vkt_op vkt_op_sqrt = { .name = "sqrt",
                             UNARY_ROW,
                             HALF,
                             .backward = unary_backward,
                             .sample = sqrt_sample,
                             .rel_tol = 1.1e-6f,
                             .tol_why =
                                 "Vulkan 1.3: sqrt is 1 / inversesqrt, 2 + 2.5 ulp; its gradient divides by that, "
                                 "2.5 more, and twice 2^-24",
                             .formula = "y = sqrt(x)" };

vkt_tensor vkt_exp(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_exp, x, NULL);
}

SAMPLE(exp, -30, 10)

const vkt_op vkt_op_exp = { .name = "exp",
                            UNARY_ROW,
                            HALF,
                            .backward = unary_backward,
                            .sample = exp_sample,
                            .rel_tol = 2.5e-7f,
                            .tol_why =
                                "exp_any: 1 + the error of a sum of 1 and less than 0.42 to 2^-23 or so, and one "
                                "product for the gradient",
                            .formula = "y = e^x" };

vkt_tensor vkt_log(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_log, x, NULL);
}

SAMPLE(log, 0.01f, 9)

const vkt_op vkt_op_log = { .name = "log",
                            UNARY_ROW,
                            HALF,
                            .backward = unary_backward,
                            .sample = log_sample,
                            .rel_tol = 3.1e-7f,
                            .tol_why =
                                "log_1ulp with one division, of 2.5 ulp by Vulkan 1.3, in a term that is at most "
                                "a third of the result; the gradient is one division",
                            .formula = "y = ln x" };

/* ---- smooth functions ---- */

vkt_tensor vkt_sigmoid(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_sigmoid, x, NULL);
}

SAMPLE(sigmoid, -20, 20)

/* y is not stored in 16 bits, because the gradient is computed from y, as in torch, and needs the digits of 1 - y.
 * This is also true of tanh, whose gradient needs the digits of 1 - y^2. */
const vkt_op vkt_op_sigmoid = { .name = "sigmoid",
                                UNARY_ROW,
                                .half = VKT_HALF_IN(0),
                                .backward = unary_backward,
                                .sample = sigmoid_sample,
                                .rel_tol = 8e-7f,
                                .abs_tol = 2e-6f,
                                .tol_why =
                                    "exp_any 1.5 ulp, a sum, a division of 2.5 ulp, a product; the gradient's 1 - y "
                                    "has y's error, of scale 0.25",
                                .formula = "y = 1 / (1 + e^-x)" };

vkt_tensor vkt_tanh(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_tanh, x, NULL);
}

SAMPLE(tanh, -6, 6)

const vkt_op vkt_op_tanh = { .name = "tanh",
                             UNARY_ROW,
                             .half = VKT_HALF_IN(0),
                             .backward = unary_backward,
                             .sample = tanh_sample,
                             .rel_tol = 8e-7f,
                             .abs_tol = 1.6e-6f,
                             .tol_why =
                                 "expm1 of 1.5 ulp, which counts twice where it is small, a sum, a division of 2.5 "
                                 "ulp; the gradient's 1 - y^2 has twice y's error",
                             .formula = "y = tanh x" };

vkt_tensor vkt_silu(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_silu, x, NULL);
}

SAMPLE(silu, -20, 20)

const vkt_op vkt_op_silu = { .name = "silu",
                             UNARY_ROW,
                             HALF,
                             .backward = unary_backward,
                             .sample = silu_sample,
                             .rel_tol = 1.2e-6f,
                             .abs_tol = 1e-6f,
                             .tol_why =
                                 "as sigmoid and a product; the gradient is a sum of two such terms, which cancel near "
                                 "x = -1.28",
                             .formula = "y = x / (1 + e^-x)" };

vkt_tensor vkt_elu(vkt_graph *g, vkt_tensor x, float alpha)
{
    return apply(g, &vkt_op_elu, x, &(vkt_elu_attr){ alpha });
}

static void elu_sample(vkt_rng *r, vkt_case *c)
{
    unary_case(r, c, -12, 4);
    const vkt_elu_attr a = { vkt_rng_range(r, 0, 1) ? 1 : vkt_rng_uniform(r, -2, 2) };
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field elu_fields[] = { VKT_FIELD(vkt_elu_attr, alpha, F32, 1, 1), { .name = NULL } };

/* The gradient is computed from x, because y + alpha has lost the digits of e^x if x is far below 0. */
const vkt_op vkt_op_elu = { .name = "elu",
                            UNARY_ROW,
                            HALF,
                            .attr_bytes = sizeof(vkt_elu_attr),
                            .backward = unary_backward,
                            .sample = elu_sample,
                            .fields = elu_fields,
                            .rel_tol = 4e-7f,
                            .tol_why = "exp or expm1 of 1.5 ulp and two products",
                            .formula = "y = x > 0 ? x : alpha (e^x - 1)" };

static vkt_result softplus_infer(vkt_infer *f)
{
    const vkt_softplus_attr *a = f->n->attr;
    VKT_REQUIRE(f, a->beta > 0 && a->beta < INFINITY, VKT_E_ARG, "softplus: want a beta above 0, got %g",
                (double)a->beta);
    return vkt_infer_same(f);
}

vkt_tensor vkt_softplus(vkt_graph *g, vkt_tensor x, float beta, float threshold)
{
    return apply(g, &vkt_op_softplus, x, &(vkt_softplus_attr){ beta, threshold });
}

static void softplus_sample(vkt_rng *r, vkt_case *c)
{
    unary_case(r, c, -12, 25);
    const bool standard = vkt_rng_range(r, 0, 1);
    const vkt_softplus_attr a = { standard ? 1 : vkt_rng_uniform(r, 0.2f, 3),
                                  standard ? 20 : vkt_rng_uniform(r, 5, 30) };
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field softplus_fields[] = { VKT_FIELD(vkt_softplus_attr, beta, F32, 1, 1),
                                             VKT_FIELD(vkt_softplus_attr, threshold, F32, 1, 20),
                                             { .name = NULL } };

const vkt_op vkt_op_softplus = { .name = "softplus",
                                 UNARY_ROW_OF(softplus_infer),
                                 HALF,
                                 .attr_bytes = sizeof(vkt_softplus_attr),
                                 .backward = unary_backward,
                                 .sample = softplus_sample,
                                 .fields = softplus_fields,
                                 .rel_tol = 4e-6f,
                                 .tol_why =
                                     "beta x is rounded, by 36 2^-24 at most here, which e^(beta x) repeats; then "
                                     "exp and log1p of 1.5 ulp, a division of 2.5; sigmoid likewise",
                                 .formula = "y = beta x > threshold ? x : ln(1 + e^(beta x)) / beta" };

vkt_tensor vkt_gelu(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_gelu, x, NULL);
}

SAMPLE(gelu, -7, 5)

const vkt_op vkt_op_gelu = { .name = "gelu",
                             UNARY_ROW,
                             HALF,
                             .backward = unary_backward,
                             .sample = gelu_sample,
                             .rel_tol = 1.5e-6f,
                             .abs_tol = 1e-6f,
                             .tol_why =
                                 "normal_above: a division of 2.5 ulp for v, exp 1.5, a polynomial 1.5, a division "
                                 "of 2.5, two products; the gradient is a sum of two such terms, which cancel "
                                 "near x = -0.75",
                             .formula = "y = x (1 + erf(x / sqrt 2)) / 2" };

vkt_tensor vkt_gelu_tanh(vkt_graph *g, vkt_tensor x)
{
    return apply(g, &vkt_op_gelu_tanh, x, NULL);
}

SAMPLE(gelu_tanh, -7, 5)

const vkt_op vkt_op_gelu_tanh = { .name = "gelu_tanh",
                                  UNARY_ROW,
                                  HALF,
                                  .backward = unary_backward,
                                  .sample = gelu_tanh_sample,
                                  .rel_tol = 2e-5f,
                                  .abs_tol = 1e-6f,
                                  .tol_why = "2 u, 36 at most here, has 5 roundings, which e^(2 u) repeats: 180 2^-24; "
                                             "then as silu",
                                  .formula = "y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2" };
