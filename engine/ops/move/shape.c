/* ops/move/shape.c - the same elements in another shape or layout, without a gradient, or in an array: reshape,
 * stop_gradient, to_layout, write. */
#include "kernel/ids.h"
#include "ops/elementwise/elementwise.h"
#include "ops/move/move.h"

#include "abi/abi.h"
#include "abi/relayout.abi.h"

/* ---- reshape: an alias of x, or of a copy in ROWS if dimension 0 of a BATCH_LAST x changes ---- */

static vkt_result reshape_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    const vkt_shape s = ((const vkt_shape_attr *)f->n->attr)->shape;
    char from[80], to[80];
    VKT_REQUIRE(f, s.rank <= VKT_MAX_RANK && vkt_shape_elements(s) == vkt_shape_elements(x.shape), VKT_E_SHAPE,
                "reshape: %s does not have the elements of %s", vkt_shape_text(s, to), vkt_shape_text(x.shape, from));
    VKT_REQUIRE(f, x.layout == VKT_ROWS || (s.rank && x.shape.rank && s.dim[0] == x.shape.dim[0]), VKT_E_SHAPE,
                "reshape: a batch-last tensor keeps its batch: want %u first in %s", x.shape.dim[0],
                vkt_shape_text(s, to));
    vkt_out_alias(f, 0, x.layout, s);
    return VKT_OK;
}

vkt_tensor vkt_reshape(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    if (x.id && x.id < g->n_values && g->values[x.id].layout == VKT_BATCH_LAST &&
        (shape.rank == 0 || g->values[x.id].shape.rank == 0 || shape.dim[0] != g->values[x.id].shape.dim[0]))
        x = vkt_to_layout(g, x, VKT_ROWS);
    const vkt_shape_attr a = { shape };
    return vkt_apply(g, &vkt_op_reshape, &x, 1, &a, NULL);
}

vkt_tensor vkt_flatten(vkt_graph *g, vkt_tensor x)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(g, x);
    uint32_t rest = 1;
    for (uint32_t i = 1; i < s.rank; i++) rest *= s.dim[i];
    return vkt_reshape(g, x, vkt_shape2(s.rank ? s.dim[0] : 1, rest));
}

vkt_tensor vkt_squeeze(vkt_graph *g, vkt_tensor x, int32_t axis)
{
    vkt_shape s = vkt_tensor_shape(g, x);
    uint32_t k;
    char text[80];
    if (!vkt_find_axis(g, "squeeze", x, axis, &k)) return (vkt_tensor){ 0 };
    if (s.dim[k] != 1) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "squeeze: want a dimension of 1, got number %u of %s", k,
                                    vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    s.rank--;
    for (uint32_t i = k; i < s.rank; i++) s.dim[i] = s.dim[i + 1];
    return vkt_reshape(g, x, s);
}

vkt_tensor vkt_unsqueeze(vkt_graph *g, vkt_tensor x, int32_t axis)
{
    if (!g) return (vkt_tensor){ 0 };
    vkt_shape s = vkt_tensor_shape(g, x);
    const int32_t rank = (int32_t)s.rank + 1, k = axis < 0 ? axis + rank : axis;
    char text[80];
    if (g->status != VKT_OK) return (vkt_tensor){ 0 };
    if (k < 0 || k >= rank || rank > VKT_MAX_RANK) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "unsqueeze: %s can have no further dimension as number %d",
                                    vkt_shape_text(s, text), axis));
        return (vkt_tensor){ 0 };
    }
    for (uint32_t i = s.rank++; i > (uint32_t)k; i--) s.dim[i] = s.dim[i - 1];
    s.dim[k] = 1;
    return vkt_reshape(g, x, s);
}

static void reshape_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape_attr a = { g->values[n->in[0].id].shape };
    dx[0] = vkt_apply(g, &vkt_op_reshape, &dy[0], 1, &a, NULL);
}

static void reshape_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t n = vkt_rng_range(r, 1, 37), a = vkt_rng_range(r, 1, 7), b = vkt_rng_range(r, 1, 6),
                   d = vkt_rng_range(r, 1, 5);
    const bool batch_last = vkt_rng_range(r, 0, 1);
    const vkt_shape_attr attr = { batch_last || vkt_rng_range(r, 0, 1) ? vkt_shape3(n, d * a, b)
                                                                       : vkt_shape2(n * b, a * d) };
    if (vkt_rng_range(r, 0, 3))
        vkt_case_f32(c, batch_last ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape4(n, a, b, d), -1, 1);
    else
        vkt_case_u32(c, batch_last ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape4(n, a, b, d), UINT32_MAX);
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
                                .flops = vkt_flops_none,
                                .formula = "the elements of x in logical order, seen with another shape" };

/* ---- stop_gradient: an alias of x ---- */

static vkt_result stop_gradient_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "stop_gradient: want f32, got %s", vkt_dtype_name(x.dtype));
    vkt_out_alias(f, 0, x.layout, x.shape);
    return VKT_OK;
}

vkt_tensor vkt_stop_gradient(vkt_graph *g, vkt_tensor x)
{
    return g ? vkt_apply(g, &vkt_op_stop_gradient, &x, 1, NULL, NULL) : (vkt_tensor){ 0 };
}

static void stop_gradient_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    vkt_case_f32(c, layout, vkt_shape3(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 5)), -1, 1);
}

const vkt_op vkt_op_stop_gradient = { .name = "stop_gradient",
                                      .min_in = 1,
                                      .max_in = 1,
                                      .infer = stop_gradient_infer,
                                      .sample = stop_gradient_sample,
                                      .tol_why = "exact: no arithmetic",
                                      .flops = vkt_flops_none,
                                      .formula = "x, and no gradient passes through it" };

/* ---- to_layout: copies a tensor from ROWS to BATCH_LAST, or from BATCH_LAST to ROWS ---- */

static vkt_result to_layout_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    const vkt_layout layout = ((const vkt_layout_attr *)f->n->attr)->layout;
    VKT_REQUIRE(f, x.dtype == VKT_F32 || x.dtype == VKT_U32, VKT_E_DTYPE, "to_layout: want f32 or u32, got %s",
                vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, vkt_is_layout(layout) && layout != x.layout, VKT_E_ARG,
                "to_layout: want the other layout than that of x, got number %d", (int)layout);
    vkt_out(f, x.dtype, layout, x.shape);
    return VKT_OK;
}

vkt_tensor vkt_to_layout(vkt_graph *g, vkt_tensor x, vkt_layout layout)
{
    if (!g) return (vkt_tensor){ 0 };
    if (x.id == 0 || (vkt_is_usable(g, "to_layout", x) && g->values[x.id].layout == layout)) return x;
    const vkt_layout_attr a = { layout };
    return vkt_apply(g, &vkt_op_to_layout, &x, 1, &a, NULL);
}

/* relayout: the copy between a tensor (batch, features) in ROWS and a tensor [features][4 * pitch4] in BATCH_LAST. A
 * column is 4 samples. tile: the part of this copy with the columns column .. column + columns - 1 and the features
 * feature .. feature + features - 1. */
typedef struct relayout {
    vkt_tensor x, y;
    bool to; /* true: y is BATCH_LAST; false: x is BATCH_LAST */
    uint32_t batch, pitch4;
    uint64_t features;
    uint16_t kernel;
    /* unit: 4 if the rows are whole vec4s of f32, else 1. The first feature of a tile is a multiple of `unit`. */
    uint32_t lanes, unit;
} relayout;
typedef struct tile {
    uint64_t column, columns, feature, features;
} tile;

static void emit_tile(vkt_emit *e, const relayout *r, const tile *t);

/* Splits a tile along its columns (if `columns`) or along its features, and emits both halves. If a half would have
 * more than 16 columns, the first half has a multiple of 16 columns. 16 columns have 64 samples. In BATCH_LAST, 64
 * elements of 32 bits have VKT_ALIGN_BYTES bytes. So in this case, if the tile's BATCH_LAST offset is aligned, the
 * offset of the second half is aligned, too. */
static void emit_halves(vkt_emit *e, const relayout *r, const tile *t, bool columns)
{
    tile half = *t;
    const uint64_t n = (columns ? t->columns : t->features) / 2;
    if (columns)
        half.columns = n > 16 ? vkt_round_up(n, 16) : n;
    else
        half.features = vkt_round_up(n, r->unit);
    emit_tile(e, r, &half);
    if (columns) {
        half.column += half.columns;
        half.columns = t->columns - half.columns;
    } else {
        half.feature += half.features;
        half.features = t->features - half.features;
    }
    if (e->status == VKT_OK) emit_tile(e, r, &half);
}

/* Emits a tile. If the tile does not fit into the bindings, emits its two halves instead. */
static void emit_tile(vkt_emit *e, const relayout *r, const tile *t)
{
    const uint64_t pitch = 4ull * r->pitch4, samples = VKT_MIN(r->batch - 4 * t->column, 4 * t->columns);
    const uint64_t most = e->lim->max_storage_range_bytes;
    uint32_t rows_base, last_base;
    const vkt_bind rows = vkt_bind_range(e, r->to ? r->x : r->y, 4 * t->column * r->features + t->feature,
                                         (samples - 1) * r->features + t->features, &rows_base);
    const vkt_bind last = vkt_bind_range(e, r->to ? r->y : r->x, t->feature * pitch + 4 * t->column,
                                         (t->features - 1) * pitch + 4 * t->columns, &last_base);
    const bool fits = rows.bytes <= most && last.bytes <= most, wide = t->features > r->unit;
    if (!fits && t->columns > 1 && (rows.bytes > most || !wide)) {
        emit_halves(e, r, t, true);
    } else if (!fits && rows.bytes <= most && wide) {
        emit_halves(e, r, t, false);
    } else if (!fits) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: four samples of %llu numbers are more than the %llu bytes that this device "
                                   "binds",
                                   e->node->op->name, (unsigned long long)r->features, (unsigned long long)most));
    } else {
        const vkt_relayout_push pc = { .batch = r->batch,
                                       .pitch4 = r->pitch4,
                                       .stride = (uint32_t)r->features,
                                       .column = (uint32_t)t->column,
                                       .columns = (uint32_t)t->columns,
                                       .features = (uint32_t)t->features,
                                       .rows_base = rows_base,
                                       .last_base = last_base / 4 };
        const vkt_bind bind[] = { [RELAYOUT_X] = r->to ? rows : last, [RELAYOUT_Y] = r->to ? last : rows };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = r->kernel,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           .spec = &r->lanes,
                                           .n_spec = 1,
                                           .groups = { vkt_groups(pc.columns, r->lanes, 1),
                                                       (uint32_t)VKT_MIN(vkt_groups(pc.features, 4, RELAYOUT_CHUNK),
                                                                         e->lim->max_groups),
                                                       1 } });
    }
}

/* Copies f32 or u32 from x to y, which have the same shape. One of them is BATCH_LAST, and the other one is ROWS. */
static void emit_relayout(vkt_emit *e, vkt_tensor tx, vkt_tensor ty)
{
    static const uint16_t kernels[3][2] = { { VKT_K_RELAYOUT_FROM, VKT_K_RELAYOUT_TO },
                                            { VKT_K_RELAYOUT_FROM4, VKT_K_RELAYOUT_TO4 },
                                            { VKT_K_RELAYOUT_FROM_WORDS, VKT_K_RELAYOUT_TO_WORDS } };
    const vkt_value *x = vkt_value_of(e->g, tx), *y = vkt_value_of(e->g, ty);
    relayout r = { .x = tx, .y = ty, .to = y->layout == VKT_BATCH_LAST };
    r.batch = x->shape.rank ? x->shape.dim[0] : 1;
    r.pitch4 = vkt_div_up(r.batch, 4);
    r.features = vkt_shape_elements(x->shape) / r.batch;
    const bool words = x->dtype == VKT_U32, wide = !words && r.features % 4 == 0;
    r.kernel = kernels[words ? 2 : wide][r.to];
    r.unit = wide ? 4 : 1;
    r.lanes = vkt_lanes(e->lim, e->lim->traits->lanes_relayout);
    emit_tile(e, &r, &(tile){ 0, r.pitch4, 0, r.features });
}

static void to_layout_emit(const vkt_node *n, vkt_emit *e)
{
    emit_relayout(e, n->in[0], n->out[0]);
}

static void to_layout_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_to_layout(g, dy[0], g->values[n->in[0].id].layout);
}

static void to_layout_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout to = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    const vkt_layout_attr a = { to };
    vkt_shape s = vkt_shape3(vkt_rng_range(r, 1, 70), vkt_rng_range(r, 1, 23), vkt_rng_range(r, 1, 5));
    if (vkt_rng_range(r, 0, 1))
        s = vkt_shape2(vkt_rng_range(r, 33, 130), 16 * vkt_rng_range(r, 1, 4)); /* x is split if bindings are small */
    if (vkt_rng_range(r, 0, 3))
        vkt_case_f32(c, to == VKT_ROWS ? VKT_BATCH_LAST : VKT_ROWS, s, -1, 1);
    else
        vkt_case_u32(c, to == VKT_ROWS ? VKT_BATCH_LAST : VKT_ROWS, s, UINT32_MAX);
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field layout_fields[] = { VKT_FIELD(vkt_layout_attr, layout, U32, 1, 0), { .name = NULL } };

const vkt_op vkt_op_to_layout = { .name = "to_layout",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .cheap = true,
                                  .diff = 1u << 0,
                                  .attr_bytes = sizeof(vkt_layout_attr),
                                  .infer = to_layout_infer,
                                  .emit = to_layout_emit,
                                  .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                                  .backward = to_layout_backward,
                                  .sample = to_layout_sample,
                                  .tol_why = "exact: a copy",
                                  .flops = vkt_flops_none,
                                  .fields = layout_fields,
                                  .formula = "x in another layout" };

/* ---- write: x in any layout, y in ROWS -> y, in place ---- */

static vkt_result write_infer(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, 0), *y = vkt_in(f, 1);
    char xt[80], yt[80];
    const bool rounds = x->dtype == VKT_F32 && x->layout == VKT_ROWS && y->dtype == VKT_F16;
    VKT_REQUIRE(f, ((x->dtype == VKT_F32 || x->dtype == VKT_U32) && x->dtype == y->dtype) || rounds, VKT_E_DTYPE,
                "write: want f32 or u32 on both sides, or f32 by rows into f16, got %s into %s",
                vkt_dtype_name(x->dtype), vkt_dtype_name(y->dtype));
    VKT_REQUIRE(f, y->layout == VKT_ROWS && vkt_shape_equal(x->shape, y->shape), VKT_E_SHAPE,
                "write: want two tensors of one shape, the second by rows, got %s into %s",
                vkt_shape_text(x->shape, xt), vkt_shape_text(y->shape, yt));
    vkt_out_alias(f, 1, VKT_ROWS, y->shape);
    return VKT_OK;
}

static void write_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *x = vkt_node_in(n, 0), *y = vkt_node_in(n, 1);
    if (y->dtype == VKT_F16) {
        vkt_emit_convert(e, n->in[0], n->in[1]);
        return;
    }
    if (x->layout == VKT_BATCH_LAST) {
        emit_relayout(e, n->in[0], n->in[1]);
        return;
    }
    const vkt_phys p = vkt_phys_of(y);
    int64_t stride[VKT_MAX_RANK] = { 0 };
    vkt_move m = { .n = 0 };
    vkt_logical_strides(x, stride);
    for (uint32_t i = 0; i < p.rank; i++)
        vkt_move_dim_add(&m, (vkt_move_dim){ p.dim[i], stride[i], (int64_t)p.stride[i] });
    vkt_emit_move(e, n->in[0], n->in[1], &m);
}

static void write_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    const vkt_shape s = vkt_shape3(vkt_rng_range(r, 1, 90), vkt_rng_range(r, 1, 23), vkt_rng_range(r, 1, 5));
    if (vkt_rng_range(r, 0, 3)) {
        vkt_case_f32(c, layout, s, -1, 1);
        vkt_case_f32(c, VKT_ROWS, s, 2, 3); /* no element of x is from 2 to 3, so an element of the array that is not
                                             * overwritten is wrong */
    } else {
        vkt_case_u32(c, layout, s, 1000);
        vkt_case_u32(c, VKT_ROWS, s, UINT32_MAX);
    }
}

/* Counts the bytes of x, which is read, and of y, which is only written. */
static double write_bytes(const vkt_node *n)
{
    return (double)(vkt_node_in(n, 0)->bytes + vkt_node_in(n, 1)->bytes);
}

const vkt_op vkt_op_write = { .name = "write",
                              .min_in = 2,
                              .max_in = 2,
                              .side_effect = true,
                              .infer = write_infer,
                              .emit = write_emit,
                              .half = VKT_HALF_IN(0),
                              .sample = write_sample,
                              .tol_why = "exact: a copy",
                              .flops = vkt_flops_none,
                              .bytes = write_bytes,
                              .formula = "x into an array, by rows" };

vkt_result vkt_check_written(const vkt_graph *g, const char *op, vkt_tensor external)
{
    const vkt_value *v = external.id < g->n_values ? vkt_value_of(g, external) : NULL;
    if (!v || v->role != VKT_ROLE_EXTERNAL || v->alias)
        return vkt_fail(&g->host, VKT_E_ARG, "%s: want a value made by vkt_external, got %s", op,
                        !v            ? "one of another graph"
                        : external.id ? v->name
                                      : "the null tensor");
    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_in; k++)
            if (vkt_root(g, g->nodes[i]->in[k]) == external.id)
                return vkt_fail(&g->host, VKT_E_STATE,
                                "%s: '%s' is an input of %s already; what is written is written once and read nowhere",
                                op, v->name, g->nodes[i]->op->name);
    return VKT_OK;
}

void vkt_write(vkt_graph *g, vkt_tensor x, vkt_tensor external)
{
    if (!g) return;
    vkt_result r = g->status;
    if (r == VKT_OK) r = vkt_check_written(g, "write", external);
    vkt_graph_error(g, r);
    if (r == VKT_OK && g->values[external.id].dtype == VKT_F16) x = vkt_to_layout(g, x, VKT_ROWS);
    if (r == VKT_OK && vkt_apply(g, &vkt_op_write, (vkt_tensor[]){ x, external }, 2, NULL, NULL).id)
        g->values[external.id].written = true;
}
