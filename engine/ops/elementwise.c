/* ops/elementwise.c - relu, dropout, and add and mul with broadcasting. */
#include "ops/ops.h"

#include <math.h>

#include "kernel/ids.h"
#include "ops/broadcast.h"

#include "abi/abi.h"
#include "abi/dropout.abi.h"
#include "abi/elementwise.abi.h"

/* Flat kernels run over the physical elements, in windows that a binding can hold. */

static uint32_t flat_lanes(const vkt_emit *e)
{
    return e->lim->cpu ? e->lim->subgroup_size : 128;
}

static uint64_t flat_groups(const vkt_emit *e, uint64_t elements)
{
    return VKT_MIN(vkt_groups(elements, flat_lanes(e), e->lim->cpu ? 64 : 8), e->lim->cpu ? 256u : 4096u);
}

static void emit_flat(const vkt_node *n, vkt_emit *e, uint16_t kernel, bool two)
{
    const uint64_t total = vkt_node_out(n, 0)->bytes / 4, window = vkt_window_elements(e->lim);
    const uint32_t spec[] = { flat_lanes(e) };
    for (uint64_t at = 0; at < total; at += window) {
        const vkt_elementwise_push pc = { .n = (uint32_t)VKT_MIN(total - at, window) };
        vkt_bind bind[] = { [ELEMENTWISE_A] = vkt_part(e, n->in[0], at, pc.n),
                            [ELEMENTWISE_B] = vkt_part(e, two ? n->in[1] : (vkt_tensor){ 0 }, at, pc.n),
                            [ELEMENTWISE_Y] = vkt_part(e, n->out[0], at, pc.n) };
        vkt_dispatch_add(e, kernel, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1, flat_groups(e, pc.n), 1, 1);
    }
}

static vkt_result infer_same(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x.dtype));
    if (vkt_has(f, 1) && !f->n->op->uses_step) {
        const vkt_value *b = vkt_in(f, 1);
        VKT_REQUIRE(f, b->dtype == VKT_F32 && b->layout == x.layout && vkt_shape_equal(b->shape, x.shape), VKT_E_SHAPE,
                    "%s: want two tensors of one shape and layout", f->n->op->name);
    }
    vkt_out(f, VKT_F32, x.layout, x.shape);
    return VKT_OK;
}

static vkt_layout draw_layout(vkt_rng *r)
{
    return vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
}

/* ---- relu ---- */

vkt_tensor vkt_relu(vkt_graph *g, vkt_tensor x)
{
    return vkt_apply(g, &vkt_op_relu, &x, 1, NULL, NULL);
}

static void relu_emit(const vkt_node *n, vkt_emit *e)
{
    emit_flat(n, e, VKT_K_RELU, false);
}

static void relu_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_relu_dx, (vkt_tensor[]){ n->out[0], dy[0] }, 2, NULL, NULL);
}

static void relu_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_rng_range(r, 0, 1) ? vkt_shape2(vkt_rng_range(r, 1, 130), vkt_rng_range(r, 1, 97))
                                               : vkt_shape4(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 5),
                                                            vkt_rng_range(r, 1, 13), vkt_rng_range(r, 1, 11));
    vkt_case_f32(c, draw_layout(r), s, -2, 2);
}

const vkt_op vkt_op_relu = { .name = "relu",
                             .min_in = 1,
                             .max_in = 1,
                             .stage = VKT_STAGE_RELU,
                             .cheap = true,
                             .diff = 1u << 0,
                             .in_place = 1u << 0,
                             .infer = infer_same,
                             .emit = relu_emit,
                             .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                             .backward = relu_backward,
                             .sample = relu_sample,
                             .tol_why = "exact: a choice between two values",
                             .flops = vkt_flops_an_output,
                             .formula = "y = max(x, 0)" };

static void relu_dx_emit(const vkt_node *n, vkt_emit *e)
{
    emit_flat(n, e, VKT_K_RELU_DX, true);
}

const vkt_op vkt_op_relu_dx = { .name = "relu_dx",
                                .min_in = 2,
                                .max_in = 2,
                                .in_place = 3,
                                .infer = infer_same,
                                .emit = relu_dx_emit,
                                .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                                .tested_by = "relu",
                                .flops = vkt_flops_an_output,
                                .formula = "dx = y <= 0 ? 0 : dy" };

/* ---- dropout ---- */

/* What the planes of (N,C,...) are: see dropout.abi.h. */
static vkt_dropout_push dropout_push(const vkt_value *x, const vkt_dropout_attr *a)
{
    vkt_dropout_push pc = { .threshold = a->threshold, .scale = a->scale, .salt = a->salt, .plane = 1 };
    if (!a->planes) return pc;
    pc.columns = (uint32_t)vkt_round_up(x->shape.dim[0], 4);
    pc.channels = x->shape.dim[1];
    for (uint32_t i = 2; i < x->shape.rank; i++) pc.plane *= x->shape.dim[i];
    return pc;
}

static void dropout_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_dropout_attr *a = n->attr;
    const vkt_value *x = vkt_node_in(n, 0);
    const bool columns = a->planes && x->layout == VKT_BATCH_LAST;
    const uint16_t kernel = !a->planes ? VKT_K_DROPOUT : columns ? VKT_K_DROPOUT_PLANES : VKT_K_DROPOUT_PLANES_ROWS;
    vkt_dropout_push pc = dropout_push(x, a);
    const uint32_t spec[] = { flat_lanes(e) };
    const uint64_t total = x->bytes / 4, window = vkt_window_elements(e->lim);
    for (uint64_t at = 0; at < total; at += window) {
        pc.n = (uint32_t)VKT_MIN(total - at, window);
        pc.begin = (uint32_t)at;
        const vkt_bind bind[] = { [DROPOUT_X] = vkt_part(e, n->in[0], at, pc.n),
                                  [DROPOUT_Y] = vkt_part(e, n->out[0], at, pc.n),
                                  [DROPOUT_STEP] = VKT_WHOLE(n->in[1]) };
        const uint64_t planes = (uint64_t)pc.channels * pc.columns;
        const uint64_t groups = !a->planes ? flat_groups(e, pc.n) : columns ? vkt_groups(planes, spec[0], 4) : planes;
        vkt_dispatch_add(e, kernel, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1, groups,
                         vkt_div_up(pc.plane, DROPOUT_CHUNK), 1);
    }
}

static vkt_result dropout_infer(vkt_infer *f)
{
    const vkt_dropout_attr *a = f->n->attr;
    char text[80];
    VKT_REQUIRE(f, !a->planes || vkt_in(f, 0)->shape.rank >= 3, VKT_E_SHAPE,
                "dropout2d: want (N,C,...) of rank 3 or more, got %s", vkt_shape_text(vkt_in(f, 0)->shape, text));
    VKT_REQUIRE(f, vkt_in(f, 0)->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "dropout: want at most 2^32 elements");
    return infer_same(f);
}

static vkt_tensor dropout(vkt_graph *g, vkt_tensor x, float p, bool planes)
{
    if (!(p >= 0 && p <= 1)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "dropout: want a probability in [0, 1], got %g", (double)p));
        return (vkt_tensor){ 0 };
    }
    if (p == 0) return x;
    const double threshold = nearbyint((double)p * 0x1p32);
    const vkt_dropout_attr a = { .threshold = threshold >= 0x1p32 ? UINT32_MAX : (uint32_t)threshold,
                                 .scale = p < 1 ? 1.0f / (1.0f - p) : 0.0f,
                                 .salt = (uint32_t)g->n_nodes,
                                 .planes = planes };
    return vkt_apply(g, &vkt_op_dropout, &x, 1, &a, NULL);
}

vkt_tensor vkt_dropout(vkt_graph *g, vkt_tensor x, float p)
{
    return dropout(g, x, p, false);
}

vkt_tensor vkt_dropout2d(vkt_graph *g, vkt_tensor x, float p)
{
    return dropout(g, x, p, true);
}

static void dropout_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_dropout, &dy[0], 1, n->attr, NULL);
}

static void dropout_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_dropout_attr a = { .threshold = vkt_rng_range(r, 0, 7) ? vkt_rng_u32(r) : UINT32_MAX,
                                 .scale = vkt_rng_uniform(r, 0.5f, 4),
                                 .salt = vkt_rng_range(r, 0, 99),
                                 .planes = vkt_rng_range(r, 0, 1) };
    vkt_case_f32(
        c, draw_layout(r),
        vkt_shape4(vkt_rng_range(r, 1, 21), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 6), vkt_rng_range(r, 1, 5)), 1,
        3);
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field dropout_fields[] = { VKT_FIELD(vkt_dropout_attr, threshold, U32, 1, 0),
                                            VKT_FIELD(vkt_dropout_attr, scale, F32, 1, 1),
                                            VKT_FIELD(vkt_dropout_attr, planes, BOOL, 1, 0),
                                            { .name = NULL } };

const vkt_op vkt_op_dropout = { .name = "dropout",
                                .min_in = 1,
                                .max_in = 1,
                                .cheap = true,
                                .uses_step = true,
                                .in_place = 1u << 0,
                                .diff = 1u << 0,
                                .attr_bytes = sizeof(vkt_dropout_attr),
                                .infer = dropout_infer,
                                .emit = dropout_emit,
                                .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                                .backward = dropout_backward,
                                .sample = dropout_sample,
                                .rel_tol = 1.2e-7f,
                                .tol_why =
                                    "one fp32 product: half an ulp, 2^-24, doubled for the scale that was rounded once",
                                .flops = vkt_flops_an_output,
                                .fields = dropout_fields,
                                .formula = "y = mask x / (1-p)" };

/* ---- add, mul ---- */

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

static bool is_flat(const vkt_node *n)
{
    const vkt_value *y = vkt_node_out(n, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const vkt_value *v = vkt_node_in(n, i);
        if (v->layout != y->layout || !vkt_shape_equal(v->shape, y->shape)) return false;
    }
    return true;
}

static void add_emit(const vkt_node *n, vkt_emit *e)
{
    if (is_flat(n))
        emit_flat(n, e, VKT_K_ADD, true);
    else
        vkt_emit_broadcast(e, (vkt_broadcast_kernels){ VKT_K_BROADCAST_ADD, VKT_K_BROADCAST_ADD4 }, n->in[0], n->in[1],
                           n->out[0]);
}

static void mul_emit(const vkt_node *n, vkt_emit *e)
{
    if (is_flat(n))
        emit_flat(n, e, VKT_K_MUL, true);
    else
        vkt_emit_broadcast(e, (vkt_broadcast_kernels){ VKT_K_BROADCAST_MUL, VKT_K_BROADCAST_MUL4 }, n->in[0], n->in[1],
                           n->out[0]);
}

vkt_tensor vkt_add(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return vkt_apply(g, &vkt_op_add, (vkt_tensor[]){ a, b }, 2, NULL, NULL);
}

vkt_tensor vkt_mul(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    return vkt_apply(g, &vkt_op_mul, (vkt_tensor[]){ a, b }, 2, NULL, NULL);
}

/* What came by broadcasting goes back by summing, into the operand's own layout. */
static vkt_tensor back_to(vkt_graph *g, vkt_tensor d, vkt_tensor x)
{
    const vkt_shape shape = g->values[x.id].shape;
    const vkt_layout layout = g->values[x.id].layout;
    return vkt_to_layout(g, vkt_sum_to(g, d, shape), layout);
}

static void add_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    for (uint32_t i = 0; i < 2; i++)
        if (vkt_wants_grad(g, n->in[i])) dx[i] = back_to(g, dy[0], n->in[i]);
}

static void mul_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    for (uint32_t i = 0; i < 2; i++)
        if (vkt_wants_grad(g, n->in[i])) dx[i] = back_to(g, vkt_mul(g, dy[0], n->in[1 - i]), n->in[i]);
}

static void broadcast_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t rank = vkt_rng_range(r, 0, 4);
    vkt_shape s = { .rank = rank }, in[2] = { { 0 } };
    for (uint32_t i = 0; i < rank; i++) s.dim[i] = vkt_rng_range(r, 1, i == 0 ? 19 : 9);
    const uint32_t how = vkt_rng_range(r, 0, 3);
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t cut = how == 0 || k == 0 ? 0 : vkt_rng_range(r, 0, rank); /* leading dimensions left out */
        in[k].rank = rank - cut;
        for (uint32_t i = 0; i < in[k].rank; i++)
            in[k].dim[i] = how && vkt_rng_range(r, 0, 2) == 0 ? 1 : s.dim[i + cut];
    }
    const uint32_t swap = vkt_rng_range(r, 0, 1);
    vkt_case_f32(c, draw_layout(r), in[swap], -3, 3);
    vkt_case_f32(c, draw_layout(r), in[1 - swap], -3, 3);
}

const vkt_op vkt_op_add = { .name = "add",
                            .min_in = 2,
                            .max_in = 2,
                            .cheap = true,
                            .in_place = 3,
                            .diff = 3,
                            .infer = infer_broadcast,
                            .emit = add_emit,
                            .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                            .half_when = is_flat,
                            .backward = add_backward,
                            .sample = broadcast_sample,
                            .rel_tol = 1.2e-7f,
                            .abs_tol = 2e-6f,
                            .tol_why = "one rounding forward; a gradient sums up to 19*9^3 terms in rows: < 32 "
                                       "roundings of 2^-24 of the sum of magnitudes",
                            .flops = vkt_flops_an_output,
                            .formula = "y = a + b" };

const vkt_op vkt_op_mul = { .name = "mul",
                            .min_in = 2,
                            .max_in = 2,
                            .cheap = true,
                            .in_place = 3,
                            .diff = 3,
                            .infer = infer_broadcast,
                            .emit = mul_emit,
                            .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                            .half_when = is_flat,
                            .backward = mul_backward,
                            .sample = broadcast_sample,
                            .rel_tol = 1.2e-7f,
                            .abs_tol = 4e-6f,
                            .tol_why = "as add, with one more rounding for each product",
                            .flops = vkt_flops_an_output,
                            .formula = "y = a b" };
