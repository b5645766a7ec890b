/* ops/move/pad.c - slices, and constant padding around a tensor and between its elements. The gradient of a padding is
 * a slice of dy. The gradient of a slice is a padding of dy. If the slice is flipped, dy is flipped back first.
 *
 * Both ops leave the batch of a BATCH_LAST tensor unchanged. If dimension 0 itself changes, the builders convert
 * the input to ROWS, and convert the result back. */
#include "ops/move/move.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/pad.abi.h"
#include "abi/positions.abi.h"

static vkt_result pad_infer(vkt_infer *f)
{
    const vkt_pad_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape y = { .rank = x.shape.rank };
    char text[80];
    VKT_REQUIRE(f, x.dtype == VKT_F32 || x.dtype == VKT_U32, VKT_E_DTYPE, "pad: want f32 or u32, got %s",
                vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, x.dtype == VKT_F32 || (a->value >= 0 && a->value < 0x1p32f && floorf(a->value) == a->value),
                VKT_E_ARG, "pad: want a whole number below 2^32 for u32, got %g", (double)a->value);
    for (uint32_t i = 0; i < y.rank; i++) {
        const uint64_t size = a->before[i] + (uint64_t)a->gap[i] * (x.shape.dim[i] - 1) + 1 + a->after[i];
        VKT_REQUIRE(f, a->gap[i] > 0 && size <= INT32_MAX, VKT_E_SHAPE,
                    "pad: dimension %u of %s: want a gap of 1 or more and 2^31 - 1 elements at most, got %u and %llu",
                    i, vkt_shape_text(x.shape, text), a->gap[i], (unsigned long long)size);
        y.dim[i] = (uint32_t)size;
    }
    VKT_REQUIRE(f, x.layout == VKT_ROWS || y.dim[0] == x.shape.dim[0], VKT_E_SHAPE,
                "pad: a batch-last tensor keeps its batch of %u, got %u", x.shape.dim[0], y.dim[0]);
    VKT_REQUIRE(f, x.layout == VKT_ROWS || isfinite(a->value) || y.dim[0] % 4 == 0, VKT_E_ARG,
                "pad: want a finite number beside a batch of %u that is padded itself", y.dim[0]);
    vkt_out(f, x.dtype, x.layout, y);
    return VKT_OK;
}

/* One dimension of a part of y. y has `whole` elements along the dimension, and n of them are elements of x. Element i
 * of x has the index before + i * gap in y. The part has the `size` elements from index `at` on. A frame has all
 * dimensions of the part, from slow to fast. */
typedef struct dim {
    uint32_t whole, n, before, gap, at, size;
} dim;
typedef struct frame {
    uint32_t rank;
    dim d[VKT_MAX_RANK];
} frame;

/* Appends a dimension. A dimension without padding is merged with the dimension before it, unless the dimension before
 * it has gaps, or the merged dimension would have more than 2^31 - 1 elements. */
static void push_dim(frame *f, dim d)
{
    dim *before = f->rank ? &f->d[f->rank - 1] : NULL;
    if (before && d.whole == d.n && before->gap == 1 && (uint64_t)before->whole * d.n <= INT32_MAX) {
        before->whole *= d.n;
        before->n *= d.n;
        before->before *= d.n;
        before->size = before->whole;
    } else {
        f->d[f->rank++] = d;
    }
}

static frame frame_of(const vkt_node *n)
{
    const vkt_pad_attr *a = n->attr;
    const vkt_phys x = vkt_phys_of(vkt_node_in(n, 0)), y = vkt_phys_of(vkt_node_out(n, 0));
    frame f = { .rank = 0 };
    for (uint32_t i = 0; i < y.rank; i++) {
        const uint32_t l = y.logical[i], whole = vkt_moved_size(&y, i);
        push_dim(&f, (dim){ whole, vkt_moved_size(&x, i), a->before[l], x.dim[i] == 1 ? 1 : a->gap[l], 0, whole });
    }
    return f;
}

/* A range of elements in memory. */
typedef struct range {
    uint64_t first, count;
} range;

static range part_of_y(const frame *f)
{
    range r = { 0, 1 };
    uint64_t stride = 1;
    for (uint32_t i = f->rank; i-- > 0; stride *= f->d[i].whole) {
        r.first += f->d[i].at * stride;
        r.count *= f->d[i].size;
    }
    return r;
}

/* Returns the range of x that a part of y contains. If the part contains nothing of x, the range has as many elements
 * as one load. */
static range part_of_x(const frame *f, uint32_t width)
{
    range r = { 0, 1 };
    uint64_t stride = 1;
    for (uint32_t i = f->rank; i-- > 0; stride *= f->d[i].n) {
        const dim d = f->d[i];
        const uint64_t end = (uint64_t)d.at + d.size;
        const uint64_t first = d.at > d.before ? ((uint64_t)d.at - d.before + d.gap - 1) / d.gap : 0;
        const uint64_t behind = end > d.before ? VKT_MIN((end - d.before - 1) / d.gap + 1, d.n) : 0;
        if (behind <= first) return (range){ 0, width };
        r.first += first * stride;
        r.count += (behind - first - 1) * stride;
    }
    return r;
}

/* Returns true if the kernel can copy four elements at once: along the fastest dimension, x and the padding are whole
 * vec4s of f32, and there are no gaps. */
static bool are_vectors(const vkt_node *n, const frame *f)
{
    const dim run = f->d[f->rank - 1];
    return vkt_node_in(n, 0)->dtype == VKT_F32 && run.gap == 1 && run.before % 4 == 0 && run.n % 4 == 0 &&
           run.whole % 4 == 0;
}

static uint32_t fill_of(const vkt_node *n)
{
    const float value = ((const vkt_pad_attr *)n->attr)->value;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return vkt_node_in(n, 0)->dtype == VKT_F32 ? bits : (uint32_t)value;
}

static void dispatch(const vkt_node *n, vkt_emit *e, const frame *f, const vkt_bind bind[2], uint32_t x, uint32_t y)
{
    const uint32_t width = are_vectors(n, f) ? 4 : 1, lanes = vkt_lanes(e->lim, e->lim->traits->lanes_move);
    const uint32_t first = VKT_MAX_RANK - f->rank;
    uint32_t d[VKT_MAX_RANK] = { 0 }, s[VKT_MAX_RANK] = { 0 }, b[VKT_MAX_RANK] = { 0 }, m[VKT_MAX_RANK] = { 0 },
             g[VKT_MAX_RANK] = { 0 };
    uint32_t positions = 1, gaps = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        const uint32_t k = first + i, unit = i + 1 == f->rank ? width : 1;
        d[k] = f->d[i].size / unit;
        b[k] = f->d[i].before / unit - f->d[i].at / unit; /* may be negative, modulo 2^32 */
        m[k] = f->d[i].n / unit;
        g[k] = f->d[i].gap;
        gaps |= g[k] != 1;
        positions *= d[k];
    }
    vkt_position_step(lanes, d + first, f->rank, s + first);
    const vkt_pad_push pc = { .n = positions,
                              .d1 = d[1],
                              .d2 = d[2],
                              .d3 = d[3],
                              .d4 = d[4],
                              .d5 = d[5],
                              .s0 = s[0],
                              .s1 = s[1],
                              .s2 = s[2],
                              .s3 = s[3],
                              .s4 = s[4],
                              .s5 = s[5],
                              .b0 = b[0],
                              .b1 = b[1],
                              .b2 = b[2],
                              .b3 = b[3],
                              .b4 = b[4],
                              .b5 = b[5],
                              .n0 = m[0],
                              .n1 = m[1],
                              .n2 = m[2],
                              .n3 = m[3],
                              .n4 = m[4],
                              .n5 = m[5],
                              .g0 = g[0],
                              .g1 = g[1],
                              .g2 = g[2],
                              .g3 = g[3],
                              .g4 = g[4],
                              .g5 = g[5],
                              .x = x,
                              .y = y / width };
    const uint32_t spec[] = {
        lanes, [POSITIONS_SPEC_FIRST] = first, [PAD_SPEC_FILL] = fill_of(n), [PAD_SPEC_GAPS] = gaps
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = width == 4 ? VKT_K_PAD4 : VKT_K_PAD,
                                       .bind = bind,
                                       .n_bind = 2,
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(positions, lanes, e->lim->traits->items_move), 1, 1 } });
}

/* Emits a part of y. If the part does not fit into the bindings, emits its two halves instead. The split is along the
 * slowest dimension that has several elements. So the elements of a part are consecutive in y, and the elements that
 * come from x are consecutive in x. */
static void emit_part(const vkt_node *n, vkt_emit *e, const frame *f)
{
    const uint32_t width = are_vectors(n, f) ? 4 : 1;
    const range x = part_of_x(f, width), y = part_of_y(f);
    uint32_t base_x, base_y, split = 0;
    const vkt_bind bind[] = { [PAD_X] = vkt_bind_range(e, n->in[0], x.first, x.count, &base_x),
                              [PAD_Y] = vkt_bind_range(e, n->out[0], y.first, y.count, &base_y) };
    const uint64_t most = e->lim->max_storage_range_bytes;
    if (bind[PAD_X].bytes <= most && bind[PAD_Y].bytes <= most) {
        dispatch(n, e, f, bind, (uint32_t)(base_x / width - x.first / width), base_y);
        return;
    }
    while (f->d[split].size == 1) split++;
    const uint32_t size = f->d[split].size, half = size > 4 ? (size / 2 + 3) / 4 * 4 : size / 2;
    frame part = *f;
    part.d[split].size = half;
    emit_part(n, e, &part);
    part.d[split].size = size - half;
    part.d[split].at += half;
    emit_part(n, e, &part);
}

static void pad_emit(const vkt_node *n, vkt_emit *e)
{
    const frame f = frame_of(n);
    emit_part(n, e, &f);
}

vkt_tensor vkt_pad(vkt_graph *g, vkt_tensor x, const uint32_t *before, const uint32_t *after, float value)
{
    if (!before || !after) return vkt_null_argument(g, "pad", before ? "after" : "before");
    if (!vkt_is_usable(g, "pad", x)) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(g, x);
    vkt_pad_attr a = { .value = value };
    bool any = false;
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        a.gap[i] = 1;
        if (i >= s.rank) continue;
        a.before[i] = before[i];
        a.after[i] = after[i];
        any = any || before[i] || after[i];
    }
    if (x.id && !any) return x;
    const bool through_rows =
        vkt_is_batch_last(g, x) && s.rank && (before[0] || after[0] || (!isfinite(value) && s.dim[0] % 4));
    if (through_rows) x = vkt_to_layout(g, x, VKT_ROWS);
    const vkt_tensor y = vkt_apply(g, &vkt_op_pad, &x, 1, &a, NULL);
    return through_rows ? vkt_to_layout(g, y, VKT_BATCH_LAST) : y;
}

static void pad_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_pad_attr *a = n->attr;
    const vkt_shape x = vkt_node_in(n, 0)->shape;
    vkt_slice_attr s = { .start = { 0 } };
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        s.start[i] = a->before[i];
        s.step[i] = a->gap[i];
        s.size[i] = i < x.rank ? x.dim[i] : 0;
    }
    dx[0] = vkt_apply(g, &vkt_op_slice, &dy[0], 1, &s, NULL);
}

static void pad_sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t most[VKT_MAX_RANK + 1] = { 0, 300, 41, 13, 7, 4, 3 };
    static const float values[] = { 0, 0, 7, -1.5f };
    vkt_shape s = { .rank = vkt_rng_range(r, 1, VKT_MAX_RANK) };
    const bool whole = vkt_rng_range(r, 0, 2) == 0, ids = vkt_rng_range(r, 0, 3) == 0;
    for (uint32_t i = 0; i < s.rank; i++) s.dim[i] = vkt_rng_range(r, 1, most[s.rank]);
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    if (whole) s.dim[s.rank - 1] = 4 * vkt_rng_range(r, 1, 4);
    vkt_pad_attr a = { .value = values[vkt_rng_range(r, 0, ids ? 2 : 3)] };
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        a.gap[i] = 1;
        if (i >= s.rank || (i == 0 && layout == VKT_BATCH_LAST) || vkt_rng_range(r, 0, 1)) continue;
        const uint32_t unit = whole && i + 1 == s.rank ? 4 : 1;
        a.before[i] = unit * vkt_rng_range(r, 0, 3);
        a.after[i] = unit * vkt_rng_range(r, 0, 2);
        if (vkt_rng_range(r, 0, 3) == 0) a.gap[i] = vkt_rng_range(r, 2, 3);
    }
    if (ids)
        vkt_case_u32(c, layout, s, UINT32_MAX);
    else
        vkt_case_f32(c, layout, s, -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field pad_fields[] = { VKT_FIELD(vkt_pad_attr, before, U32, VKT_MAX_RANK, 0),
                                        VKT_FIELD(vkt_pad_attr, after, U32, VKT_MAX_RANK, 0),
                                        VKT_FIELD(vkt_pad_attr, gap, U32, VKT_MAX_RANK, 1),
                                        VKT_FIELD(vkt_pad_attr, value, F32, 1, 0),
                                        { .name = NULL } };

const vkt_op vkt_op_pad = { .name = "pad",
                            .min_in = 1,
                            .max_in = 1,
                            .cheap = true,
                            .diff = 1u << 0,
                            .attr_bytes = sizeof(vkt_pad_attr),
                            .infer = pad_infer,
                            .emit = pad_emit,
                            .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                            .backward = pad_backward,
                            .sample = pad_sample,
                            .tol_why = "exact: a copy",
                            .flops = vkt_flops_none,
                            .fields = pad_fields,
                            .formula = "y[before + gap i] = x[i] along every dimension, a value elsewhere" };

/* ---- slice ---- */

static vkt_result slice_infer(vkt_infer *f)
{
    const vkt_slice_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape y = { .rank = x.shape.rank };
    char text[80];
    VKT_TRY(vkt_infer_moved(f, &x));
    for (uint32_t i = 0; i < y.rank; i++) {
        const uint64_t last = a->start[i] + (uint64_t)a->step[i] * (a->size[i] - 1ull);
        VKT_REQUIRE(f, a->size[i] > 0 && a->step[i] > 0 && last < x.shape.dim[i], VKT_E_SHAPE,
                    "slice: dimension %u of %s: want elements of it, got %u from %u on in steps of %u", i,
                    vkt_shape_text(x.shape, text), a->size[i], a->start[i], a->step[i]);
        y.dim[i] = a->size[i];
    }
    VKT_REQUIRE(f, x.layout == VKT_ROWS || (a->size[0] == x.shape.dim[0] && !a->flip[0]), VKT_E_SHAPE,
                "slice: a batch-last tensor keeps its batch, got %u of %u", a->size[0], x.shape.dim[0]);
    vkt_out(f, x.dtype, x.layout, y);
    return VKT_OK;
}

static void slice_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_slice_attr *a = n->attr;
    const vkt_phys p = vkt_phys_of(vkt_node_out(n, 0));
    int64_t stride[VKT_MAX_RANK] = { 0 };
    vkt_move m = { .n = 0 };
    vkt_logical_strides(vkt_node_in(n, 0), stride);
    for (uint32_t i = 0; i < p.rank; i++) {
        const uint32_t l = p.logical[i];
        const uint64_t first = a->start[l] + (a->flip[l] ? (uint64_t)a->step[l] * (a->size[l] - 1) : 0);
        const int64_t step = stride[l] * (int64_t)a->step[l];
        m.x += first * (uint64_t)stride[l];
        vkt_move_dim_add(&m, (vkt_move_dim){ vkt_moved_size(&p, i), a->flip[l] ? -step : step, (int64_t)p.stride[i] });
    }
    vkt_emit_move(e, n->in[0], n->out[0], &m);
}

/* Applies a slice. If the slice changes dimension 0 (`batch`), a BATCH_LAST x is converted to ROWS, and y is
 * converted back. */
static vkt_tensor apply_slice(vkt_graph *g, vkt_tensor x, const vkt_slice_attr *a, bool batch)
{
    const bool through_rows = batch && vkt_is_batch_last(g, x);
    if (through_rows) x = vkt_to_layout(g, x, VKT_ROWS);
    const vkt_tensor y = vkt_apply(g, &vkt_op_slice, &x, 1, a, NULL);
    return through_rows ? vkt_to_layout(g, y, VKT_BATCH_LAST) : y;
}

/* Limits an index by Python's rule: a negative index counts from the end; an index beyond an end becomes that end. */
static uint32_t index_in(int64_t i, uint32_t size)
{
    if (i < 0) i += size;
    return (uint32_t)VKT_MIN(VKT_MAX(i, 0), (int64_t)size);
}

vkt_tensor vkt_slice(vkt_graph *g, vkt_tensor x, int32_t axis, int64_t start, int64_t stop, uint32_t step)
{
    const vkt_shape s = vkt_tensor_shape(g, x);
    uint32_t k;
    char text[80];
    if (!vkt_find_axis(g, "slice", x, axis, &k)) return (vkt_tensor){ 0 };
    const uint32_t from = index_in(start, s.dim[k]), to = index_in(stop, s.dim[k]);
    if (step == 0 || from >= to) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG,
                                    "slice: nothing is left of dimension %u of %s from %lld to %lld in steps of %u", k,
                                    vkt_shape_text(s, text), (long long)start, (long long)stop, step));
        return (vkt_tensor){ 0 };
    }
    vkt_slice_attr a = vkt_slice_all(s);
    a.start[k] = from;
    a.step[k] = step;
    a.size[k] = (to - from - 1) / step + 1;
    return a.size[k] == s.dim[k] ? x : apply_slice(g, x, &a, k == 0);
}

vkt_tensor vkt_flip(vkt_graph *g, vkt_tensor x, int32_t axis)
{
    uint32_t k;
    if (!vkt_find_axis(g, "flip", x, axis, &k)) return (vkt_tensor){ 0 };
    vkt_slice_attr a = vkt_slice_all(vkt_tensor_shape(g, x));
    a.flip[k] = true;
    return apply_slice(g, x, &a, k == 0);
}

vkt_result vkt_split_sizes(vkt_graph *g, vkt_tensor x, int32_t axis, const uint32_t *sizes, uint32_t n,
                           vkt_tensor *parts)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, sizes);
    VKT_WANT(&g->host, parts);
    const vkt_shape s = vkt_tensor_shape(g, x);
    uint32_t k;
    uint64_t total = 0, at = 0;
    char text[80];
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = (vkt_tensor){ 0 };
        total += sizes[i];
    }
    if (!vkt_find_axis(g, "split", x, axis, &k)) return g->status;
    if (total != s.dim[k])
        vkt_graph_error(g,
                        vkt_fail(&g->host, VKT_E_SHAPE, "split: want sizes that sum up to dimension %u of %s, got %llu",
                                 k, vkt_shape_text(s, text), (unsigned long long)total));
    for (uint32_t i = 0; i < n && g->status == VKT_OK; at += sizes[i++])
        parts[i] = vkt_slice(g, x, axis, (int64_t)at, (int64_t)(at + sizes[i]), 1);
    for (uint32_t i = 0; i < n && g->status != VKT_OK; i++) parts[i] = (vkt_tensor){ 0 };
    return g->status;
}

/* Adds the gradient. dy is flipped back along the flipped dimensions. The elements of x that are not in the slice get
 * the gradient 0. */
static void slice_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_slice_attr *a = n->attr;
    const vkt_shape x = vkt_node_in(n, 0)->shape;
    vkt_slice_attr flip_back = vkt_slice_all(vkt_node_out(n, 0)->shape);
    vkt_pad_attr zeros = { .value = 0 };
    bool is_flipped = false;
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        zeros.gap[i] = 1;
        if (i >= x.rank) continue;
        flip_back.flip[i] = a->flip[i];
        is_flipped = is_flipped || a->flip[i];
        zeros.before[i] = a->start[i];
        zeros.gap[i] = a->step[i];
        zeros.after[i] = x.dim[i] - 1 - a->start[i] - a->step[i] * (a->size[i] - 1);
    }
    const vkt_tensor d = is_flipped ? vkt_apply(g, &vkt_op_slice, &dy[0], 1, &flip_back, NULL) : dy[0];
    dx[0] = vkt_shape_equal(vkt_tensor_shape(g, d), x) ? d : vkt_apply(g, &vkt_op_pad, &d, 1, &zeros, NULL);
}

static void slice_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_case_input *x = vkt_draw_moved(r, c);
    vkt_slice_attr a = vkt_slice_all(x->shape);
    for (uint32_t i = x->layout == VKT_BATCH_LAST; i < x->shape.rank; i++) {
        if (vkt_rng_range(r, 0, 2) == 0) continue;
        a.start[i] = vkt_rng_range(r, 0, x->shape.dim[i] - 1);
        a.step[i] = vkt_rng_range(r, 1, 3);
        a.size[i] = vkt_rng_range(r, 1, (x->shape.dim[i] - 1 - a.start[i]) / a.step[i] + 1);
        a.flip[i] = vkt_rng_range(r, 0, 3) == 0;
    }
    vkt_case_attr(c, &a, sizeof a);
}

static double slice_bytes(const vkt_node *n)
{
    return 2 * vkt_elements_out(n, 0) * vkt_dtype_bytes(vkt_node_out(n, 0)->dtype);
}

static const vkt_field slice_fields[] = { VKT_FIELD(vkt_slice_attr, start, U32, VKT_MAX_RANK, 0),
                                          VKT_FIELD(vkt_slice_attr, step, U32, VKT_MAX_RANK, 1),
                                          VKT_FIELD(vkt_slice_attr, size, U32, VKT_MAX_RANK, 0),
                                          VKT_FIELD(vkt_slice_attr, flip, BOOL, VKT_MAX_RANK, 0),
                                          { .name = NULL } };

const vkt_op vkt_op_slice = { .name = "slice",
                              .min_in = 1,
                              .max_in = 1,
                              .cheap = true,
                              .diff = 1u << 0,
                              .attr_bytes = sizeof(vkt_slice_attr),
                              .infer = slice_infer,
                              .emit = slice_emit,
                              .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                              .backward = slice_backward,
                              .sample = slice_sample,
                              .tol_why = "exact: a copy",
                              .flops = vkt_flops_none,
                              .bytes = slice_bytes,
                              .fields = slice_fields,
                              .formula = "y[i] = x[start + step i], or from the end on, along every dimension" };
