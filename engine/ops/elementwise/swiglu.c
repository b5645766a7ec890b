/* ops/elementwise/swiglu.c - silu(a) b, the gate of a transformer's feed-forward layer, and its gradient. The operands
 * are two tensors of the same shape and layout, or the two halves of each row of one tensor. */
#include "ops/elementwise/elementwise.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/swiglu.abi.h"

/* ---- both ops ---- */

/* The operands of a node. In a swiglu_dx, y is the gradient dy. If b is {0}, each row of a has both operands, and
 * each row of da has both gradients. */
typedef struct operands {
    vkt_tensor a, b, y, da, db;
} operands;

static vkt_result check(const vkt_infer *f, const vkt_value *a, const vkt_value *b)
{
    const char *name = f->n->op->name;
    const vkt_shape s = a->shape;
    char at[80], bt[80];
    VKT_REQUIRE(f, a->dtype == VKT_F32 && (!b || b->dtype == VKT_F32), VKT_E_DTYPE, "%s: want f32, got %s and %s", name,
                vkt_dtype_name(a->dtype), vkt_dtype_name(b ? b->dtype : a->dtype));
    VKT_REQUIRE(f, !b || (vkt_shape_equal(s, b->shape) && a->layout == b->layout), VKT_E_SHAPE,
                "%s: want two tensors of one shape and layout, got %s and %s", name, vkt_shape_text(s, at),
                vkt_shape_text(b->shape, bt));
    VKT_REQUIRE(f, b || (a->layout == VKT_ROWS && s.rank >= 1 && s.dim[s.rank - 1] % 8 == 0), VKT_E_SHAPE,
                "%s: want one tensor by rows of 8, 16, .. numbers, or two tensors, got %s", name,
                vkt_shape_text(s, at));
    VKT_REQUIRE(f, a->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", name);
    return VKT_OK;
}

static vkt_shape half_of(vkt_shape s)
{
    s.dim[s.rank - 1] /= 2;
    return s;
}

static void dispatch(vkt_emit *e, const vkt_swiglu_push *pc, const vkt_bind *bind, bool is_gradient, bool halves)
{
    const vkt_traits *t = e->lim->traits;
    const uint32_t spec[] = { vkt_lanes(e->lim, t->lanes_elementwise), [SWIGLU_SPEC_HALVES] = halves };
    const uint64_t groups = vkt_groups(pc->n, spec[0], t->items_elementwise);
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = is_gradient ? VKT_K_SWIGLU_DX : VKT_K_SWIGLU,
                                       .bind = bind,
                                       .n_bind = is_gradient ? SWIGLU_DB + 1 : SWIGLU_Y + 1,
                                       VKT_LAUNCH_PUSH(*pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { VKT_MIN(groups, t->groups_flat_most), 1, 1 } });
}

/* Emits a node whose operands are two tensors: one dispatch for each range of elements. */
static void emit_two(vkt_emit *e, const operands *o, bool is_gradient)
{
    const uint64_t total = vkt_value_of(e->g, o->a)->bytes / 4, range = vkt_bind_range_elements(e->lim);
    for (uint64_t at = 0; at < total; at += range) {
        const vkt_swiglu_push pc = { .n = (uint32_t)VKT_MIN(total - at, range) };
        vkt_bind bind[SWIGLU_DB + 1] = { [SWIGLU_A] = vkt_part(e, o->a, at, pc.n),
                                         [SWIGLU_B] = vkt_part(e, o->b, at, pc.n),
                                         [SWIGLU_DA] = vkt_part(e, o->da, at, pc.n),
                                         [SWIGLU_DB] = vkt_part(e, o->db, at, pc.n) };
        bind[is_gradient ? SWIGLU_DY : SWIGLU_Y] = vkt_part(e, o->y, at, pc.n);
        dispatch(e, &pc, bind, is_gradient, false);
    }
}

/* Emits a node whose operands are the two halves of each row of one tensor: one dispatch for each range of rows.
 * SWIGLU_A and SWIGLU_B are bound to the same range of o->a. In a gradient, SWIGLU_DA and SWIGLU_DB are bound to the
 * same range of o->da. */
static void emit_halves(vkt_emit *e, const operands *o, bool is_gradient)
{
    const vkt_shape s = vkt_value_of(e->g, o->a)->shape;
    const uint64_t run = s.dim[s.rank - 1] / 2, rows = vkt_shape_elements(s) / (2 * run);
    const uint64_t most = vkt_steps_in(e->lim->max_storage_range_bytes, 2 * run * 4, rows);
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: a row of %llu numbers does not fit a binding",
                                   e->node->op->name, (unsigned long long)(2 * run)));
    for (uint64_t at = 0; most && at < rows; at += most) {
        const uint64_t n = VKT_MIN(most, rows - at);
        const uint32_t run4 = (uint32_t)(run / 4);
        vkt_swiglu_push pc = { .n = (uint32_t)(n * run), .row4 = run4, .b = run4 };
        vkt_bind bind[SWIGLU_DB + 1] = { { .bytes = 0 } };
        bind[SWIGLU_A] = bind[SWIGLU_B] = vkt_bind_range(e, o->a, at * 2 * run, n * 2 * run, &pc.x);
        bind[is_gradient ? SWIGLU_DY : SWIGLU_Y] = vkt_bind_range(e, o->y, at * run, n * run, &pc.y);
        if (is_gradient)
            bind[SWIGLU_DA] = bind[SWIGLU_DB] = vkt_bind_range(e, o->da, at * 2 * run, n * 2 * run, &pc.dx);
        pc.x /= 4;
        pc.y /= 4;
        pc.dx /= 4;
        dispatch(e, &pc, bind, is_gradient, true);
    }
}

static void emit_operands(vkt_emit *e, const operands *o, bool is_gradient)
{
    if (o->b.id)
        emit_two(e, o, is_gradient);
    else
        emit_halves(e, o, is_gradient);
}

/* ---- swiglu: a, b -> y; or one tensor (..,2F) -> (..,F) ---- */

static vkt_result infer(vkt_infer *f)
{
    const vkt_value a = *vkt_in(f, 0);
    const bool two = vkt_has(f, 1);
    VKT_TRY(check(f, &a, two ? vkt_in(f, 1) : NULL));
    vkt_out(f, VKT_F32, a.layout, two ? a.shape : half_of(a.shape));
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const operands o = { .a = n->in[0], .b = n->n_in > 1 ? n->in[1] : (vkt_tensor){ 0 }, .y = n->out[0] };
    emit_operands(e, &o, false);
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { dy[0], n->in[0], n->n_in > 1 ? n->in[1] : (vkt_tensor){ 0 } };
    vkt_tensor outs[VKT_MAX_OUT] = { { 0 } };
    vkt_apply(g, &vkt_op_swiglu_dx, in, in[2].id ? 3 : 2, NULL, outs);
    for (uint32_t i = 0; i < n->n_in; i++) dx[i] = outs[i];
}

static void sample(vkt_rng *r, vkt_case *c)
{
    if (vkt_rng_range(r, 0, 1)) {
        vkt_case_f32(c, VKT_ROWS,
                     vkt_shape3(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 9), 8 * vkt_rng_range(r, 1, 20)), -20, 20);
        return;
    }
    const vkt_shape s = vkt_shape3(vkt_rng_range(r, 1, 21), vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 40));
    const vkt_layout layout = vkt_draw_layout(r);
    vkt_case_f32(c, layout, s, -20, 20);
    vkt_case_f32(c, layout, s, -3, 3);
}

/* Counts four operations for each element: exponential, sum, division and product. */
static double flops(const vkt_node *n)
{
    return 4 * vkt_elements_out(n, 0);
}

const vkt_op vkt_op_swiglu = {
    .name = "swiglu",
    .min_in = 1,
    .max_in = 2,
    .cheap = true,
    .in_place = 3,
    .diff = 3,
    .infer = infer,
    .emit = emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 1.4e-6f,
    .abs_tol = 1e-6f,
    .tol_why = "as silu, with one more product, and two in da; the slope of silu is a sum that cancels near a = -1.28",
    .flops = flops,
    .formula = "y = a b / (1 + e^-a); a and b are two tensors, or the halves of the rows of one",
};

/* ---- swiglu_dx: dy, a, b -> da, db; or dy, x -> dx ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const vkt_value a = *vkt_in(f, 1);
    const bool two = vkt_has(f, 2);
    VKT_TRY(check(f, &a, two ? vkt_in(f, 2) : NULL));
    const vkt_value *dy = vkt_in(f, 0);
    VKT_REQUIRE(f, vkt_shape_equal(dy->shape, two ? a.shape : half_of(a.shape)) && dy->layout == a.layout, VKT_E_SHAPE,
                "swiglu_dx: want a gradient like the result of swiglu");
    vkt_out(f, VKT_F32, a.layout, a.shape);
    if (two) vkt_out(f, VKT_F32, a.layout, a.shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    operands o = { .a = n->in[1], .y = n->in[0], .da = n->out[0] };
    if (n->n_in > 2) o.b = n->in[2];
    if (o.b.id) o.db = n->out[1];
    emit_operands(e, &o, true);
}

/* Counts eleven operations for each element: exponential, two sums, a division and seven products. */
static double dx_flops(const vkt_node *n)
{
    return 11 * vkt_elements_in(n, 0);
}

const vkt_op vkt_op_swiglu_dx = {
    .name = "swiglu_dx",
    .min_in = 2,
    .max_in = 3,
    .cheap = true,
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0) | VKT_HALF_OUT(1),
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0) | VKT_HALF_OUT(1),
    .forward_only = true,
    .tested_by = "swiglu",
    .flops = dx_flops,
    .formula = "da = dy b s (1 + a (1 - s)), db = dy a s, with s = 1 / (1 + e^-a)",
};

/* ---- building ---- */

vkt_tensor vkt_swiglu(vkt_graph *g, vkt_tensor a, vkt_tensor b)
{
    if (!vkt_is_usable(g, "swiglu", a) || !vkt_is_usable(g, "swiglu", b)) return (vkt_tensor){ 0 };
    return vkt_apply(g, &vkt_op_swiglu, (vkt_tensor[]){ a, vkt_to_layout(g, b, vkt_value_of(g, a)->layout) }, 2, NULL,
                     NULL);
}

vkt_tensor vkt_swiglu_packed(vkt_graph *g, vkt_tensor x)
{
    if (!vkt_is_usable(g, "swiglu", x)) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(g, x);
    const uint32_t row = s.rank ? s.dim[s.rank - 1] : 0;
    char text[80];
    if (row == 0 || row % 2 != 0) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "swiglu: want (..,2 F), got %s", vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    if (vkt_value_of(g, x)->layout == VKT_ROWS && row % 8 == 0) return vkt_apply(g, &vkt_op_swiglu, &x, 1, NULL, NULL);
    vkt_tensor half[2];
    if (vkt_split_sizes(g, x, -1, (uint32_t[]){ row / 2, row / 2 }, 2, half) != VKT_OK) return (vkt_tensor){ 0 };
    return vkt_swiglu(g, half[0], half[1]);
}
