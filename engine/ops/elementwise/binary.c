/* ops/elementwise/binary.c - functions of two numbers with broadcasting, and the op `where` (lib/binary.glsl). Kernels
 * of two operands compute the functions. Kernels of three operands compute `where`, the gradients that need dy, a and
 * b, and a sum that is fused with relu's gradient. If all operands have the result's shape and layout, flat kernels are
 * used. Otherwise kernels with strides are used (broadcast.c). */
#include "kernel/ids.h"
#include "ops/elementwise/broadcast.h"
#include "ops/elementwise/elementwise.h"

#include "abi/functions.abi.h"

/* ---- shared functions ---- */

static bool is_like(const vkt_value *a, const vkt_value *b)
{
    return a->layout == b->layout && vkt_shape_equal(a->shape, b->shape);
}

static bool is_flat(const vkt_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_like(vkt_node_in(n, i), vkt_node_out(n, 0))) return false;
    return true;
}

static void emit(const vkt_node *n, vkt_emit *e, uint32_t number)
{
    const uint16_t flat = n->n_in == 2 ? VKT_K_BINARY : VKT_K_TERNARY;
    if (is_flat(n))
        vkt_emit_flat(n, e, (vkt_flat){ .kernel = flat, .function = number });
    else
        vkt_emit_broadcast(e, number, n->in, n->n_in, n->out[0]);
}

static vkt_result infer_broadcast(vkt_infer *f)
{
    const vkt_value a = *vkt_in(f, 0), b = *vkt_in(f, 1);
    char at[80], bt[80];
    vkt_shape s;
    VKT_REQUIRE(f, a.dtype == VKT_F32 && b.dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32 and f32, got %s and %s",
                f->n->op->name, vkt_dtype_name(a.dtype), vkt_dtype_name(b.dtype));
    VKT_REQUIRE(f, vkt_broadcast_shape(a.shape, b.shape, &s), VKT_E_SHAPE, "%s: shapes %s and %s do not broadcast",
                f->n->op->name, vkt_shape_text(a.shape, at), vkt_shape_text(b.shape, bt));
    vkt_out(f, VKT_F32, b.shape.rank > a.shape.rank ? b.layout : a.layout, s);
    return VKT_OK;
}

/* Returns the gradient with respect to operand x, in x's shape and layout. d has the shape of the op's result. This
 * function sums d over the dimensions along which x was repeated. */
static vkt_tensor back_to(vkt_graph *g, vkt_tensor d, vkt_tensor x)
{
    const vkt_shape shape = g->values[x.id].shape;
    const vkt_layout layout = g->values[x.id].layout;
    return vkt_to_layout(g, vkt_sum_to(g, d, shape), layout);
}

static vkt_tensor apply(vkt_graph *g, const vkt_op *op, vkt_tensor a, vkt_tensor b)
{
    return vkt_apply(g, op, (vkt_tensor[]){ a, b }, 2, NULL, NULL);
}

/* Generates n <= 3 shapes that broadcast. At least one of them has the full rank. */
static void draw_shapes(vkt_rng *r, vkt_shape *in, uint32_t n)
{
    const uint32_t rank = vkt_rng_range(r, 0, 4);
    vkt_shape s = { .rank = rank }, shapes[3] = { { 0 } };
    for (uint32_t i = 0; i < rank; i++) s.dim[i] = vkt_rng_range(r, 1, i == 0 ? 19 : 9);
    const uint32_t how = vkt_rng_range(r, 0, 3);
    for (uint32_t k = 0; k < n; k++) {
        /* number of leading dimensions that are left out */
        const uint32_t omitted = how == 0 || k == 0 ? 0 : vkt_rng_range(r, 0, rank);
        shapes[k].rank = rank - omitted;
        for (uint32_t i = 0; i < shapes[k].rank; i++)
            shapes[k].dim[i] = how && vkt_rng_range(r, 0, 2) == 0 ? 1 : s.dim[i + omitted];
    }
    const uint32_t first = vkt_rng_range(r, 0, n - 1);
    for (uint32_t k = 0; k < n; k++) in[k] = shapes[(first + k) % n];
}

typedef struct range {
    float lo, hi;
} range;

/* Returns true if an operand has fewer than 16 elements, and fewer than another operand. Each element of this operand's
 * gradient is then a sum of several terms. If the terms had both signs, the sum could be small compared with its terms,
 * and its relative error large. So the terms must have one sign. */
static bool is_summed(const vkt_shape *in, uint32_t n)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t k = 0; k < n; k++) {
        least = VKT_MIN(least, vkt_shape_elements(in[k]));
        most = VKT_MAX(most, vkt_shape_elements(in[k]));
    }
    return least < 16 && most > least;
}

static void draw_pair(vkt_rng *r, vkt_case *c, const range any[2], const range one_sign[2])
{
    vkt_shape in[2];
    draw_shapes(r, in, 2);
    c->one_sign = is_summed(in, 2);
    const range *from = c->one_sign ? one_sign : any;
    for (uint32_t k = 0; k < 2; k++) vkt_case_f32(c, vkt_draw_layout(r), in[k], from[k].lo, from[k].hi);
}

#define EMIT(name, number)                                  \
    static void name##_emit(const vkt_node *n, vkt_emit *e) \
    {                                                       \
        emit(n, e, number);                                 \
    }

#define BINARY_ROW .min_in = 2, .max_in = 2, .cheap = true, .diff = 3, .flops = vkt_flops_an_output
#define HALF_WHEN_FLAT                                         \
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0), \
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0), .half_when = is_flat

/* ---- gradients that need dy, a and b ---- */

typedef struct binary_dx_attr {
    uint32_t number; /* which function: a constant TERNARY_.. of functions.abi.h */
    uint32_t flops;
} binary_dx_attr;

static vkt_result binary_dx_infer(vkt_infer *f)
{
    const binary_dx_attr *a = f->n->attr;
    const vkt_value like = *vkt_in(f, a->number == TERNARY_EQUAL ? 1 : 0);
    for (uint32_t i = 0; i < 3; i++) {
        vkt_shape s;
        VKT_REQUIRE(f, vkt_broadcast_shape(vkt_in(f, i)->shape, like.shape, &s) && vkt_shape_equal(s, like.shape),
                    VKT_E_SHAPE, "binary_dx: want operands that broadcast to the gradient's shape");
    }
    vkt_out(f, VKT_F32, like.layout, like.shape);
    return VKT_OK;
}

static void binary_dx_emit(const vkt_node *n, vkt_emit *e)
{
    emit(n, e, ((const binary_dx_attr *)n->attr)->number);
}

static double binary_dx_flops(const vkt_node *n)
{
    return ((const binary_dx_attr *)n->attr)->flops * vkt_elements_out(n, 0);
}

const vkt_op vkt_op_binary_dx = { .name = "binary_dx",
                                  .min_in = 3,
                                  .max_in = 3,
                                  .in_place = 1u << 0,
                                  .attr_bytes = sizeof(binary_dx_attr),
                                  .infer = binary_dx_infer,
                                  .emit = binary_dx_emit,
                                  .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
                                  .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
                                  .half_when = is_flat,
                                  .forward_only = true,
                                  .tested_by = "prelu",
                                  .flops = binary_dx_flops,
                                  .formula = "da or db = df(a, b) dy" };

/* Adds nodes that compute the gradient with respect to x, which is a or b. Returns the gradient. */
static vkt_tensor dx_of(vkt_graph *g, binary_dx_attr attr, vkt_tensor dy, vkt_tensor a, vkt_tensor b, vkt_tensor x)
{
    return back_to(g, vkt_apply(g, &vkt_op_binary_dx, (vkt_tensor[]){ dy, a, b }, 3, &attr, NULL), x);
}

vkt_tensor vkt_where_equal(vkt_graph *g, vkt_tensor d, vkt_tensor x, vkt_tensor y)
{
    return vkt_apply(g, &vkt_op_binary_dx, (vkt_tensor[]){ d, x, y }, 3, &(binary_dx_attr){ TERNARY_EQUAL, 2 }, NULL);
}

/* ---- add, sub, mul, div ---- */

vkt_tensor vkt_add(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_add, a, b);
}

/* Emits the sum a + b. A flat kernel can also compute the op behind the sum, if this op is one of two:
 * - relu of the sum
 * - the gradient of an earlier relu, with the sum as its dy. The third operand of the kernel is y, the output of the
 *   earlier relu. The result is 0 where y <= 0, else a + b. */
static void add_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_node sum = *n;
    const bool flat = is_flat(n);
    if (flat && e->epilogue && vkt_is_relu_dx(e->epilogue)) {
        sum.in[sum.n_in++] = vkt_fuse_epilogue(e, VKT_FUSE_SLOPE)->in[0];
        /* relu's output has the shape and layout of the sum (unary_dx_infer), so the third operand is flat, too */
        vkt_emit_flat(&sum, e, (vkt_flat){ VKT_K_TERNARY, TERNARY_RELU_DX });
        return;
    }
    if (flat && vkt_fuse_epilogue(e, VKT_FUSE_RELU)) e->relu = n->out[0];
    emit(n, e, BINARY_ADD);
}

static void add_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    for (uint32_t i = 0; i < 2; i++)
        if (vkt_wants_grad(g, n->in[i])) dx[i] = back_to(g, dy[0], n->in[i]);
}

static void product_sample(vkt_rng *r, vkt_case *c)
{
    draw_pair(r, c, (const range[]){ { -3, 3 }, { -3, 3 } }, (const range[]){ { 0.5f, 3 }, { 0.5f, 3 } });
}

#define SUM_TOLERANCE                                                                                          \
    .rel_tol = 1.2e-7f, .abs_tol = 2e-6f,                                                                      \
    .tol_why = "one rounding forward; a gradient sums up to 19*9^3 terms in rows: < 32 roundings of 2^-24 of " \
               "the sum of magnitudes"

const vkt_op vkt_op_add = { .name = "add",
                            BINARY_ROW,
                            HALF_WHEN_FLAT,
                            .in_place = 3,
                            .infer = infer_broadcast,
                            .emit = add_emit,
                            .backward = add_backward,
                            .sample = product_sample,
                            SUM_TOLERANCE,
                            .fuse_kind = VKT_FUSE_SUM,
                            .epilogues = 1u << VKT_FUSE_RELU | 1u << VKT_FUSE_SLOPE,
                            .formula = "y = a + b" };

vkt_tensor vkt_sub(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_sub, a, b);
}

EMIT(sub, BINARY_SUB)

static void sub_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    if (vkt_wants_grad(g, n->in[0])) dx[0] = back_to(g, dy[0], n->in[0]);
    if (vkt_wants_grad(g, n->in[1])) dx[1] = vkt_scale(g, back_to(g, dy[0], n->in[1]), -1, 0);
}

const vkt_op vkt_op_sub = { .name = "sub",
                            BINARY_ROW,
                            HALF_WHEN_FLAT,
                            .in_place = 3,
                            .infer = infer_broadcast,
                            .emit = sub_emit,
                            .backward = sub_backward,
                            .sample = product_sample,
                            SUM_TOLERANCE,
                            .formula = "y = a - b" };

vkt_tensor vkt_mul(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_mul, a, b);
}

EMIT(mul, BINARY_MUL)

static void mul_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    for (uint32_t i = 0; i < 2; i++)
        if (vkt_wants_grad(g, n->in[i])) dx[i] = back_to(g, vkt_mul(g, dy[0], n->in[1 - i]), n->in[i]);
}

const vkt_op vkt_op_mul = { .name = "mul",
                            BINARY_ROW,
                            HALF_WHEN_FLAT,
                            .in_place = 3,
                            .infer = infer_broadcast,
                            .emit = mul_emit,
                            .backward = mul_backward,
                            .sample = product_sample,
                            .rel_tol = 1.2e-7f,
                            .abs_tol = 4e-6f,
                            .tol_why = "as add, with one more rounding for each product",
                            .formula = "y = a b" };

vkt_tensor vkt_div(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_div, a, b);
}

EMIT(div, BINARY_DIV)

static void div_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor a = n->in[0], b = n->in[1];
    const binary_dx_attr db = { TERNARY_DIV_DB, 4 };
    if (vkt_wants_grad(g, a)) dx[0] = back_to(g, vkt_div(g, dy[0], b), a);
    if (vkt_wants_grad(g, b)) dx[1] = dx_of(g, db, dy[0], a, b, b);
}

static void div_sample(vkt_rng *r, vkt_case *c)
{
    draw_pair(r, c, (const range[]){ { -3, 3 }, { 0.5f, 3 } }, (const range[]){ { 0.5f, 3 }, { 0.5f, 3 } });
}

const vkt_op vkt_op_div = { .name = "div",
                            BINARY_ROW,
                            HALF_WHEN_FLAT,
                            .in_place = 3,
                            .infer = infer_broadcast,
                            .emit = div_emit,
                            .backward = div_backward,
                            .sample = div_sample,
                            .rel_tol = 6.5e-7f,
                            .abs_tol = 8e-6f,
                            .tol_why = "a division of 2.5 ulp (Vulkan 1.3), two and a product in db; sums as mul's, of "
                                       "terms up to 12",
                            .formula = "y = a / b" };

/* ---- minimum, maximum, pow ---- */

vkt_tensor vkt_minimum(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_minimum, a, b);
}

vkt_tensor vkt_maximum(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_maximum, a, b);
}

EMIT(minimum, BINARY_MINIMUM)
EMIT(maximum, BINARY_MAXIMUM)

static void choice_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx, uint32_t number)
{
    const binary_dx_attr attr = { number, 3 };
    for (uint32_t i = 0; i < 2; i++)
        if (vkt_wants_grad(g, n->in[i])) dx[i] = dx_of(g, attr, dy[0], n->in[i], n->in[1 - i], n->in[i]);
}

static void minimum_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    choice_backward(g, n, dy, dx, TERNARY_MINIMUM_DA);
}

static void maximum_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    choice_backward(g, n, dy, dx, TERNARY_MAXIMUM_DA);
}

const vkt_op vkt_op_minimum = { .name = "minimum",
                                BINARY_ROW,
                                HALF_WHEN_FLAT,
                                .in_place = 3,
                                .infer = infer_broadcast,
                                .emit = minimum_emit,
                                .backward = minimum_backward,
                                .sample = product_sample,
                                SUM_TOLERANCE,
                                .formula = "y = min(a, b)" };

const vkt_op vkt_op_maximum = { .name = "maximum",
                                BINARY_ROW,
                                HALF_WHEN_FLAT,
                                .in_place = 3,
                                .infer = infer_broadcast,
                                .emit = maximum_emit,
                                .backward = maximum_backward,
                                .sample = product_sample,
                                SUM_TOLERANCE,
                                .formula = "y = max(a, b)" };

vkt_tensor vkt_pow(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return apply(g, &vkt_op_pow, a, b);
}

EMIT(pow, BINARY_POW)

static void pow_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor a = n->in[0], b = n->in[1];
    if (vkt_wants_grad(g, a)) dx[0] = dx_of(g, (binary_dx_attr){ TERNARY_POW_DA, 4 }, dy[0], a, b, a);
    if (vkt_wants_grad(g, b)) dx[1] = dx_of(g, (binary_dx_attr){ TERNARY_POW_DB, 4 }, dy[0], a, b, b);
}

static void pow_sample(vkt_rng *r, vkt_case *c)
{
    draw_pair(r, c, (const range[]){ { 0.25f, 3 }, { -3, 3 } }, (const range[]){ { 1.25f, 3 }, { 0.5f, 3 } });
}

const vkt_op vkt_op_pow = { .name = "pow",
                            BINARY_ROW,
                            HALF_WHEN_FLAT,
                            .in_place = 3,
                            .infer = infer_broadcast,
                            .emit = pow_emit,
                            .backward = pow_backward,
                            .sample = pow_sample,
                            .rel_tol = 8e-7f,
                            .abs_tol = 8e-6f,
                            .tol_why = "pow_any: exp of 1.5 ulp of an exponent good to 5 2^-28, and a product; the "
                                       "gradients' b - 1 is rounded by 2^-23 of a factor log a < 1.4, log and two "
                                       "products; sums as mul's",
                            .formula = "y = a^b" };

/* ---- prelu ---- */

static vkt_result prelu_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0), w = *vkt_in(f, 1);
    char xt[80], wt[80];
    vkt_shape s;
    VKT_REQUIRE(f, x.dtype == VKT_F32 && w.dtype == VKT_F32, VKT_E_DTYPE, "prelu: want f32 and f32, got %s and %s",
                vkt_dtype_name(x.dtype), vkt_dtype_name(w.dtype));
    VKT_REQUIRE(f, vkt_broadcast_shape(x.shape, w.shape, &s) && vkt_shape_equal(s, x.shape), VKT_E_SHAPE,
                "prelu: a weight of shape %s does not fit an x of %s", vkt_shape_text(w.shape, wt),
                vkt_shape_text(x.shape, xt));
    vkt_out(f, VKT_F32, x.layout, x.shape);
    return VKT_OK;
}

/* Adds the node. The weight w is broadcast, so a w of shape (C) for x (N,C,H,W) is reshaped to (C,1,1). */
vkt_tensor vkt_prelu(vkt_graph *g, vkt_tensor x, vkt_tensor w)
{
    if (!vkt_is_usable(g, "prelu", x) || !vkt_is_usable(g, "prelu", w)) return (vkt_tensor){ 0 };
    const vkt_shape xs = vkt_tensor_shape(g, x), ws = vkt_tensor_shape(g, w);
    char xt[80], wt[80];
    if (ws.rank != 1 || (ws.dim[0] != 1 && (xs.rank < 2 || ws.dim[0] != xs.dim[1]))) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "prelu: want a weight (1), or (C) for an x (N,C,..), got %s and %s",
                                    vkt_shape_text(ws, wt), vkt_shape_text(xs, xt)));
        return (vkt_tensor){ 0 };
    }
    if (ws.dim[0] != 1 && xs.rank > 2) {
        vkt_shape s = { .rank = xs.rank - 1, .dim = { ws.dim[0] } };
        for (uint32_t i = 1; i < s.rank; i++) s.dim[i] = 1;
        w = vkt_reshape(g, w, s);
    }
    return apply(g, &vkt_op_prelu, x, w);
}

EMIT(prelu, BINARY_PRELU)

static void prelu_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], w = n->in[1];
    if (vkt_wants_grad(g, x)) dx[0] = dx_of(g, (binary_dx_attr){ TERNARY_PRELU_DX, 2 }, dy[0], x, w, x);
    if (vkt_wants_grad(g, w)) dx[1] = dx_of(g, (binary_dx_attr){ TERNARY_PRELU_DW, 2 }, dy[0], x, w, w);
}

static void prelu_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape x = vkt_rng_range(r, 0, 1) ? vkt_shape2(vkt_rng_range(r, 1, 67), vkt_rng_range(r, 1, 41))
                                               : vkt_shape4(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 7),
                                                            vkt_rng_range(r, 1, 13), vkt_rng_range(r, 1, 11));
    const bool one = vkt_rng_range(r, 0, 2) == 0;
    const vkt_shape per_channel = x.rank == 2 ? vkt_shape1(x.dim[1]) : vkt_shape3(x.dim[1], 1, 1);
    c->one_sign = true;
    vkt_case_f32(c, vkt_draw_layout(r), x, -2, 2);
    vkt_case_f32(c, VKT_ROWS, one ? vkt_shape1(1) : per_channel, -1, 1);
}

const vkt_op vkt_op_prelu = { .name = "prelu",
                              BINARY_ROW,
                              .in_place = 1u << 0,
                              .infer = prelu_infer,
                              .emit = prelu_emit,
                              .backward = prelu_backward,
                              .sample = prelu_sample,
                              .rel_tol = 1.2e-7f,
                              .abs_tol = 4e-6f,
                              .tol_why = "one product; dw sums up to 9*7*13*11 of them, as mul's gradients",
                              .formula = "y = x > 0 ? x : w x" };

/* ---- where ---- */

static vkt_result where_infer(vkt_infer *f)
{
    const vkt_value c = *vkt_in(f, 0), a = *vkt_in(f, 1), b = *vkt_in(f, 2);
    char ct[80], at[80], bt[80];
    vkt_shape s;
    VKT_REQUIRE(f, c.dtype == VKT_U32 && a.dtype == VKT_F32 && b.dtype == VKT_F32, VKT_E_DTYPE,
                "where: want u32, f32 and f32, got %s, %s and %s", vkt_dtype_name(c.dtype), vkt_dtype_name(a.dtype),
                vkt_dtype_name(b.dtype));
    VKT_REQUIRE(f, vkt_broadcast_shape(a.shape, b.shape, &s) && vkt_broadcast_shape(s, c.shape, &s), VKT_E_SHAPE,
                "where: shapes %s, %s and %s do not broadcast", vkt_shape_text(c.shape, ct),
                vkt_shape_text(a.shape, at), vkt_shape_text(b.shape, bt));
    const vkt_value *widest = b.shape.rank > a.shape.rank ? &b : &a;
    vkt_out(f, VKT_F32, c.shape.rank > widest->shape.rank ? c.layout : widest->layout, s);
    return VKT_OK;
}

vkt_tensor vkt_where(vkt_graph *g, vkt_tensor condition, vkt_tensor a, vkt_tensor b)
{
    return vkt_apply(g, &vkt_op_where, (vkt_tensor[]){ condition, a, b }, 3, NULL, NULL);
}

vkt_tensor vkt_masked_fill(vkt_graph *g, vkt_tensor x, vkt_tensor mask, float value)
{
    if (!vkt_is_usable(g, "masked_fill", x) || !vkt_is_usable(g, "masked_fill", mask)) return (vkt_tensor){ 0 };
    const vkt_shape xs = vkt_tensor_shape(g, x), ms = vkt_tensor_shape(g, mask);
    vkt_shape s;
    char xt[80], mt[80];
    if (!vkt_broadcast_shape(xs, ms, &s) || !vkt_shape_equal(s, xs)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "masked_fill: a mask of shape %s does not fit an x of %s",
                                    vkt_shape_text(ms, mt), vkt_shape_text(xs, xt)));
        return (vkt_tensor){ 0 };
    }
    return vkt_where(g, mask, vkt_graph_const(g, "value", VKT_F32, vkt_shape0(), &value), x);
}

EMIT(where, TERNARY_WHERE)

/* Adds nodes that compute the gradients: dy where the input is selected, else 0. The nodes select dy or 0. They do not
 * multiply dy by 1 or 0, because dy may be infinite, and infinity times 0 is NaN. */
static void where_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor c = n->in[0], zero = vkt_graph_const(g, "zero", VKT_F32, vkt_shape0(), &(float){ 0 });
    if (vkt_wants_grad(g, n->in[1])) dx[1] = back_to(g, vkt_where(g, c, dy[0], zero), n->in[1]);
    if (vkt_wants_grad(g, n->in[2])) dx[2] = back_to(g, vkt_where(g, c, zero, dy[0]), n->in[2]);
}

static void where_sample(vkt_rng *r, vkt_case *c)
{
    vkt_shape in[3];
    draw_shapes(r, in, 3);
    c->one_sign = is_summed(in, 3);
    vkt_case_u32(c, vkt_draw_layout(r), in[0], 2);
    vkt_case_f32(c, vkt_draw_layout(r), in[1], -3, 3);
    vkt_case_f32(c, vkt_draw_layout(r), in[2], -3, 3);
}

const vkt_op vkt_op_where = { .name = "where",
                              .min_in = 3,
                              .max_in = 3,
                              .cheap = true,
                              .in_place = 1u << 1 | 1u << 2,
                              .diff = 1u << 1 | 1u << 2,
                              .infer = where_infer,
                              .emit = where_emit,
                              .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
                              .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
                              .half_when = is_flat,
                              .backward = where_backward,
                              .sample = where_sample,
                              SUM_TOLERANCE,
                              .flops = vkt_flops_none,
                              .formula = "y = condition ? a : b" };
