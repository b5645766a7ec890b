/* ops/shape.c - the same elements in another shape, layout or number: reshape, to_layout, expand. */
#include "kernel/ids.h"
#include "ops/broadcast.h"

#include "abi/abi.h"
#include "abi/broadcast.abi.h"
#include "abi/relayout.abi.h"

/* ---- reshape: an alias, after a copy to ROWS where the batch is regrouped ---- */

static vkt_result reshape_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    const vkt_shape s = ((const vkt_shape_attr *)f->n->attr)->shape;
    char from[80], to[80];
    VKT_REQUIRE(f, s.rank <= VKT_MAX_RANK && vkt_shape_elements(s) == vkt_shape_elements(x.shape), VKT_E_SHAPE,
                "reshape: %s does not have the elements of %s", vkt_shape_text(s, to), vkt_shape_text(x.shape, from));
    VKT_REQUIRE(f, x.layout == VKT_ROWS || (s.rank && x.shape.rank && s.dim[0] == x.shape.dim[0]), VKT_E_SHAPE,
                "reshape: a batch-last tensor keeps its batch: want %u first in %s", x.shape.dim[0], vkt_shape_text(s, to));
    vkt_out_alias(f, 0, x.layout, s);
    return VKT_OK;
}

vkt_tensor vkt_reshape(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    if (x.id && x.id < g->n_values && g->values[x.id].layout == VKT_BATCH_LAST &&
        (shape.rank == 0 || g->values[x.id].shape.rank == 0 || shape.dim[0] != g->values[x.id].shape.dim[0]))
        x = vkt_to_layout(g, x, VKT_ROWS);
    const vkt_shape_attr a = { shape };
    return vkt_apply(g, &vkt_op_reshape, &x, 1, &a, NULL);
}

vkt_tensor vkt_flatten(vkt_graph *g, vkt_tensor x)
{
    const vkt_shape s = vkt_tensor_shape(g, x);
    uint32_t rest = 1;
    for (uint32_t i = 1; i < s.rank; i++) rest *= s.dim[i];
    return vkt_reshape(g, x, vkt_shape2(s.rank ? s.dim[0] : 1, rest));
}

static void reshape_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape_attr a = { g->values[n->in[0].id].shape };
    dx[0] = vkt_apply(g, &vkt_op_reshape, &dy[0], 1, &a, NULL);
}

static void reshape_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t n = vkt_rng_range(r, 1, 37), a = vkt_rng_range(r, 1, 7), b = vkt_rng_range(r, 1, 6), d = vkt_rng_range(r, 1, 5);
    const bool batch_last = vkt_rng_range(r, 0, 1);
    const vkt_shape_attr attr = { batch_last || vkt_rng_range(r, 0, 1) ? vkt_shape3(n, d * a, b) : vkt_shape2(n * b, a * d) };
    vkt_case_f32(c, batch_last ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape4(n, a, b, d), -1, 1);
    vkt_case_attr(c, &attr, sizeof attr);
}

const vkt_op vkt_op_reshape = { .name = "reshape",
                                .min_in = 1,
                                .max_in = 1,
                                .diff = 1u << 0,
                                .attr_bytes = sizeof(vkt_shape_attr),
                                .infer = reshape_infer,
                                .backward = reshape_backward,
                                .sample = reshape_sample,
                                .tol_why = "exact: no arithmetic",
                                .formula = "the elements of x in logical order, seen with another shape" };

/* ---- to_layout: a transposing copy between (N, F) by rows and [F][N'] ---- */

static vkt_result to_layout_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, x.dtype != VKT_U8, VKT_E_DTYPE, "to_layout: want f32 or u32, got u8");
    vkt_out(f, x.dtype, ((const vkt_layout_attr *)f->n->attr)->layout, x.shape);
    return VKT_OK;
}

vkt_tensor vkt_to_layout(vkt_graph *g, vkt_tensor x, vkt_layout layout)
{
    if (x.id == 0 || x.id >= g->n_values || g->values[x.id].layout == layout) return x;
    const vkt_layout_attr a = { layout };
    return vkt_apply(g, &vkt_op_to_layout, &x, 1, &a, NULL);
}

static void to_layout_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *x = vkt_node_in(n, 0), *y = vkt_node_out(n, 0);
    const uint32_t batch = x->shape.rank ? x->shape.dim[0] : 1;
    const uint64_t features = vkt_shape_elements(x->shape) / batch;
    if (x->bytes / 4 > UINT32_MAX || y->bytes / 4 > UINT32_MAX) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "to_layout: want at most 2^32 elements"));
        return;
    }
    const vkt_relayout_push pc = { .batch = batch, .pitch4 = (uint32_t)vkt_round_up(batch, 4) / 4, .features = (uint32_t)features };
    const vkt_bind bind[] = { [RELAYOUT_X] = VKT_WHOLE(n->in[0]), [RELAYOUT_Y] = VKT_WHOLE(n->out[0]) };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128 };
    vkt_dispatch_add(e, y->layout == VKT_BATCH_LAST ? VKT_K_RELAYOUT_TO : VKT_K_RELAYOUT_FROM, bind, VKT_COUNT(bind), &pc,
                     sizeof pc, spec, 1, VKT_MIN(vkt_groups(features * pc.pitch4, spec[0], 8), 2048u), 1, 1);
}

static void to_layout_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_to_layout(g, dy[0], g->values[n->in[0].id].layout);
}

static void to_layout_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout to = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    const vkt_layout_attr a = { to };
    vkt_case_f32(c, to == VKT_ROWS ? VKT_BATCH_LAST : VKT_ROWS,
                 vkt_shape3(vkt_rng_range(r, 1, 70), vkt_rng_range(r, 1, 23), vkt_rng_range(r, 1, 5)), -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

const vkt_op vkt_op_to_layout = { .name = "to_layout",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .diff = 1u << 0,
                                  .attr_bytes = sizeof(vkt_layout_attr),
                                  .infer = to_layout_infer,
                                  .emit = to_layout_emit,
                                  .backward = to_layout_backward,
                                  .sample = to_layout_sample,
                                  .tol_why = "exact: a copy",
                                  .formula = "x in another layout" };

/* ---- broadcasting ---- */

bool vkt_broadcast_shape(vkt_shape a, vkt_shape b, vkt_shape *out)
{
    const vkt_shape large = a.rank >= b.rank ? a : b, small = a.rank >= b.rank ? b : a;
    *out = large;
    for (uint32_t i = 0; i < small.rank; i++) {
        const uint32_t at = large.rank - small.rank + i;
        if (large.dim[at] == 1) out->dim[at] = small.dim[i];
        else if (small.dim[i] != 1 && small.dim[i] != large.dim[at]) return false;
    }
    return true;
}

void vkt_broadcast_strides(const vkt_value *x, const vkt_value *y, uint32_t stride[VKT_MAX_RANK])
{
    const vkt_phys px = vkt_phys_of(x), py = vkt_phys_of(y);
    uint32_t logical[VKT_MAX_RANK] = { 0 }; /* x's stride by its logical dimension */
    for (uint32_t i = 0; i < x->shape.rank; i++) logical[px.logical[i]] = (uint32_t)px.stride[i];
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) stride[i] = 0;
    for (uint32_t i = 0; i < y->shape.rank; i++) {
        const uint32_t from_right = y->shape.rank - py.logical[i]; /* 1: the last logical dimension */
        if (from_right > x->shape.rank) continue;
        const uint32_t at = x->shape.rank - from_right;
        stride[i] = x->shape.dim[at] == 1 ? 0 : logical[at];
    }
}

void vkt_emit_broadcast(vkt_emit *e, uint16_t kernel, vkt_tensor a, vkt_tensor b, vkt_tensor y)
{
    const vkt_value *v = vkt_lowered_value(e, y);
    const vkt_phys p = vkt_phys_of(v);
    if (p.elements > UINT32_MAX) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements where shapes differ", e->node->op->name));
        return;
    }
    const uint32_t last = p.rank - 1, lead = VKT_MAX_RANK - p.rank; /* dimensions of 1 in front */
    uint32_t d[VKT_MAX_RANK], sa[VKT_MAX_RANK], sb[VKT_MAX_RANK] = { 0 }, ta[VKT_MAX_RANK] = { 0 }, tb[VKT_MAX_RANK] = { 0 };
    vkt_broadcast_strides(vkt_lowered_value(e, a), v, sa);
    if (b.id) vkt_broadcast_strides(vkt_lowered_value(e, b), v, sb);
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        d[i] = i < lead ? 1 : p.dim[i - lead];
        ta[i] = i < lead ? 0 : sa[i - lead];
        tb[i] = i < lead ? 0 : sb[i - lead];
    }
    const vkt_broadcast_push pc = { .rows = (uint32_t)(p.elements / p.pitch), .run = p.dim[last], .pitch = p.pitch,
                                    .d0 = d[0], .d1 = d[1], .d2 = d[2], .d3 = d[3], .d4 = d[4],
                                    .a0 = ta[0], .a1 = ta[1], .a2 = ta[2], .a3 = ta[3], .a4 = ta[4], .a5 = ta[5],
                                    .b0 = tb[0], .b1 = tb[1], .b2 = tb[2], .b3 = tb[3], .b4 = tb[4], .b5 = tb[5] };
    const vkt_bind bind[] = { [BROADCAST_A] = VKT_WHOLE(a), [BROADCAST_B] = VKT_WHOLE(b), [BROADCAST_Y] = VKT_WHOLE(y) };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 64 };
    vkt_dispatch_add(e, kernel, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1, pc.rows, 1, 1);
}

/* ---- expand ---- */

static vkt_result expand_infer(vkt_infer *f)
{
    const vkt_expand_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape s;
    char from[80], to[80];
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "expand: want f32, got %s", vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, vkt_broadcast_shape(x.shape, a->shape, &s) && vkt_shape_equal(s, a->shape), VKT_E_SHAPE,
                "expand: %s does not broadcast to %s", vkt_shape_text(x.shape, from), vkt_shape_text(a->shape, to));
    vkt_out(f, VKT_F32, a->layout, a->shape);
    return VKT_OK;
}

vkt_tensor vkt_expand(vkt_graph *g, vkt_tensor x, vkt_shape shape, vkt_layout layout)
{
    const vkt_expand_attr a = { shape, layout };
    return vkt_apply(g, &vkt_op_expand, &x, 1, &a, NULL);
}

static void expand_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_broadcast(e, VKT_K_BROADCAST_COPY, n->in[0], (vkt_tensor){ 0 }, n->out[0]);
}

static void expand_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape shape = g->values[n->in[0].id].shape;
    const vkt_layout layout = g->values[n->in[0].id].layout;
    dx[0] = vkt_to_layout(g, vkt_sum_to(g, dy[0], shape), layout);
}

static void expand_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_shape4(vkt_rng_range(r, 1, 19), vkt_rng_range(r, 1, 5), vkt_rng_range(r, 1, 3), vkt_rng_range(r, 1, 5));
    vkt_shape from = { .rank = vkt_rng_range(r, 0, 4) };
    for (uint32_t i = 0; i < from.rank; i++) from.dim[i] = vkt_rng_range(r, 0, 1) ? 1 : s.dim[4 - from.rank + i];
    const vkt_expand_attr a = { s, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS };
    vkt_case_f32(c, VKT_ROWS, from, -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

const vkt_op vkt_op_expand = { .name = "expand",
                               .min_in = 1,
                               .max_in = 1,
                               .diff = 1u << 0,
                               .attr_bytes = sizeof(vkt_expand_attr),
                               .infer = expand_infer,
                               .emit = expand_emit,
                               .backward = expand_backward,
                               .sample = expand_sample,
                               .rel_tol = 1.2e-7f,
                               .abs_tol = 4e-5f,
                               .tol_why = "forward is a copy; a gradient sums up to 1425 terms of both signs, in < 128 roundings "
                                          "of partial sums that are some 10 times the result",
                               .formula = "x, its dimensions of 1 repeated" };
