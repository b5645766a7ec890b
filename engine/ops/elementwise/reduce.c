/* ops/elementwise/reduce.c - see reduce.h: the dispatches of a reduction, and the functions that the ops share. */
#include "ops/elementwise/reduce.h"

#include "kernel/ids.h"
#include "ops/elementwise/broadcast.h"

#include "abi/abi.h"
#include "abi/lanes.abi.h"
#include "abi/reduce.abi.h"

uint32_t vkt_lanes_for_passes(vkt_emit *e, uint16_t kernel, uint64_t loads, uint64_t passes)
{
    const uint64_t loop = vkt_largest_loop(e->lim);
    const uint32_t most = VKT_MIN(e->lim->max_workgroup_lanes, SUBGROUPS_MAX * vkt_subgroup(e->lim, kernel));
    uint32_t lanes = vkt_lanes_for(e->lim, kernel, loads);
    while (2 * lanes <= most && passes * (loads / lanes + 2) > loop) lanes *= 2;
    if (passes * (loads / lanes + 2) > loop)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: %llu passes over %llu loads are too long for %u lanes", e->node->op->name,
                                   (unsigned long long)passes, (unsigned long long)loads, lanes));
    return lanes;
}

/* A dimension of x, or several neighbouring dimensions of x that are merged into one: all of them are kept, or all are
 * reduced. The dimension has `size` indices. Elements of neighbouring indices are `stride` elements apart. */
typedef struct dim {
    uint32_t size, stride;
} dim;

/* A function that combines elements of x into one output. `number` is REDUCE_SUM, REDUCE_MAX or REDUCE_MIN
 * (reduce.abi.h). The result is multiplied by `scale`, which is 1 unless the function is a sum. */
typedef struct function {
    uint32_t number;
    float scale;
} function;

/* The dimensions of x that a reduction keeps, and the dimensions that it reduces. `kept` goes from the slowest to the
 * fastest dimension of y, and `reduced` from the slowest to the fastest dimension of x. reduction_of makes both lists
 * as short as possible. */
typedef struct reduction {
    dim kept[VKT_MAX_RANK], reduced[VKT_MAX_RANK + 1];
    uint32_t n_kept, n_reduced;
    uint32_t outputs;
    uint32_t rest, total; /* see reduce.abi.h */
} reduction;

/* How one dispatch computes a reduction. In a plan, a row is the elements of x along the fastest reduced dimension. If
 * this dimension is long, it is split into several rows. An output combines one or more rows. */
typedef struct plan {
    bool along;                /* the fastest reduced dimension has stride 1. Neighbouring lanes load neighbouring
                                * elements along it */
    uint32_t width, lanes;     /* width: number of elements of a load. lanes: number of lanes of a work group */
    uint32_t last;             /* number of elements of the last row along the fastest reduced dimension. The other
                                * rows may be longer */
    uint64_t rows, iterations; /* rows: number of rows that an output combines. iterations: an invocation's loads of a
                                * row, plus 4 */
    uint32_t splits;           /* number of work groups over which the rows of an output are split */
} plan;

static void push_dim(dim *list, uint32_t *n, uint32_t size, uint32_t stride)
{
    dim *before = *n ? &list[*n - 1] : NULL;
    if (size == 1) return;
    if (before && before->stride == (uint64_t)size * stride)
        *before = (dim){ before->size * size, stride };
    else
        list[(*n)++] = (dim){ size, stride };
}

/* Splits the dimensions of x into reduced and kept dimensions. A dimension is reduced if y lacks it, or if its size is
 * 1 in y. y is ROWS, so kept dimensions are in x's logical order. Reduced dimensions are in x's physical order, the
 * fastest last. */
static reduction reduction_of(const vkt_value *x, const vkt_value *y)
{
    reduction r = { .outputs = (uint32_t)vkt_shape_elements(y->shape) };
    const vkt_phys p = vkt_phys_of(x);
    const uint32_t rank = x->shape.rank, lead = rank - y->shape.rank;
    uint32_t stride[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 0; i < rank; i++) stride[p.logical[i]] = (uint32_t)p.stride[i];
    for (uint32_t l = lead; l < rank; l++)
        if (y->shape.dim[l - lead] != 1) push_dim(r.kept, &r.n_kept, x->shape.dim[l], stride[l]);
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t l = p.logical[i];
        if (l < lead || y->shape.dim[l - lead] == 1) push_dim(r.reduced, &r.n_reduced, x->shape.dim[l], stride[l]);
    }
    return r;
}

/* Returns the reduction over the rows of a matrix: (rows, columns) -> (columns). */
static reduction column_sums(uint32_t rows, uint32_t columns)
{
    reduction r = { .outputs = columns };
    push_dim(r.kept, &r.n_kept, columns, 1);
    push_dim(r.reduced, &r.n_reduced, rows, columns);
    return r;
}

/* Widens the matrix of a reduction over rows (column_sums). This is done if the matrix has few columns, or if the
 * number of columns is not a multiple of 4. Each new row is `fold` old rows, joined. So every lane has its own
 * output, and loads are whole vec4s. With fold = 4, 103 old rows become 25 new rows, and 3 old rows are left over.
 * r->rest is the index of the first element that is left over. Returns `fold`; 1: r did not change, for instance
 * because there would be fewer than 16 new rows. */
static uint32_t fold_columns(const vkt_emit *e, reduction *r)
{
    const uint32_t K = r->outputs, wanted = 4 * (vkt_lanes(e->lim, e->lim->traits->lanes_reduce));
    if (r->n_kept != 1 || r->n_reduced != 1 || r->kept[0].stride != 1 || r->reduced[0].stride != K) return 1;
    const uint32_t rows = r->reduced[0].size, whole = K % 4 == 0 ? 1 : K % 2 == 0 ? 2 : 4;
    const uint32_t fold = K >= wanted ? whole : (uint32_t)vkt_round_up(vkt_div_up(wanted, K), whole);
    if (fold == 1 || rows / fold < 16) return 1;
    *r = column_sums(rows / fold, fold * K);
    r->rest = rows / fold * fold * K;
    r->total = rows * K;
    return fold;
}

static bool all_multiples_of_4(const reduction *r, const dim *but)
{
    for (uint32_t i = 0; i < r->n_kept; i++)
        if (&r->kept[i] != but && r->kept[i].stride % 4) return false;
    for (uint32_t i = 0; i < r->n_reduced; i++)
        if (&r->reduced[i] != but && r->reduced[i].stride % 4) return false;
    return true;
}

/* Chooses the kernel. If the fastest reduced dimension needs more than 128 iterations, splits it into rows of 64
 * iterations. */
static plan plan_of(const vkt_emit *e, reduction *r)
{
    dim *run = &r->reduced[r->n_reduced - 1];
    const dim *fastest = r->n_kept ? &r->kept[r->n_kept - 1] : NULL;
    plan w = {
        .along = run->stride == 1, .width = 1, .lanes = vkt_lanes(e->lim, e->lim->traits->lanes_reduce), .rows = 1
    };
    if (w.along ? all_multiples_of_4(r, run)
                : fastest && fastest->stride == 1 && fastest->size % 4 == 0 && all_multiples_of_4(r, fastest))
        w.width = 4;
    if (w.along) w.lanes = vkt_lanes_for(e->lim, VKT_K_REDUCE_ALONG, run->size / w.width);
    const uint32_t iteration = w.along ? w.width * w.lanes : 1, chunk = 64 * iteration;
    w.last = run->size;
    if (run->size > 2 * chunk) {
        const dim whole = *run;
        const uint32_t rows = vkt_div_up(whole.size, chunk);
        *run = (dim){ rows, whole.stride * chunk };
        r->reduced[r->n_reduced++] = (dim){ chunk, whole.stride };
        w.last = whole.size - (rows - 1) * chunk;
    }
    w.iterations = vkt_div_up(r->reduced[r->n_reduced - 1].size, iteration) + 4;
    for (uint32_t i = 0; i + 1 < r->n_reduced; i++) w.rows *= r->reduced[i].size;
    return w;
}

#define LONG 16384u

/* Returns over how many work groups the rows of an output are split. If few outputs have many rows, the split keeps the
 * whole device busy. On any device there are so many splits that an invocation has about LONG iterations at most,
 * because longer sums have larger rounding errors. */
static uint32_t splits_for(const vkt_emit *e, const reduction *r, const plan *w)
{
    const uint64_t iterations = w->rows * w->iterations,
                   groups = w->along ? r->outputs : vkt_groups(r->outputs, w->lanes, w->width);
    const uint64_t wanted = e->lim->traits->groups_reduce, least = e->lim->traits->iterations_split;
    uint64_t splits = iterations / VKT_MIN(vkt_largest_loop(e->lim), LONG) + 1;
    if (groups < wanted && iterations * groups > 16 * least)
        splits = VKT_MAX(splits, VKT_MIN(wanted / groups, iterations / least));
    return (uint32_t)VKT_MIN(splits, w->rows);
}

static void dispatch(vkt_emit *e, const reduction *r, const plan *w, vkt_bind x, vkt_bind y, function f)
{
    dim k[5], t[5];
    for (uint32_t i = 0; i < 5; i++) {
        k[i] = i + r->n_kept < 5 ? (dim){ 1, 0 } : r->kept[i + r->n_kept - 5];
        t[i] = i + r->n_reduced < 5 ? (dim){ 1, 0 } : r->reduced[i + r->n_reduced - 5];
    }
    const vkt_reduce_push pc = { .outputs = r->outputs,
                                 .rows = (uint32_t)w->rows,
                                 .run = t[4].size,
                                 .last = w->last,
                                 .splits = w->splits,
                                 .scale = f.scale,
                                 .rest = r->rest,
                                 .total = r->total,
                                 .k1 = k[1].size,
                                 .k2 = k[2].size,
                                 .k3 = k[3].size,
                                 .k4 = k[4].size,
                                 .s0 = k[0].stride,
                                 .s1 = k[1].stride,
                                 .s2 = k[2].stride,
                                 .s3 = k[3].stride,
                                 .s4 = k[4].stride,
                                 .r1 = t[1].size,
                                 .r2 = t[2].size,
                                 .r3 = t[3].size,
                                 .t0 = t[0].stride,
                                 .t1 = t[1].stride,
                                 .t2 = t[2].stride,
                                 .t3 = t[3].stride,
                                 .t4 = t[4].stride };
    const vkt_bind bind[] = { [REDUCE_X] = x, [REDUCE_Y] = y };
    const uint32_t spec[] = { w->lanes, [REDUCE_SPEC_FUNCTION] = f.number };
    const uint16_t kernel = w->along ? (w->width == 4 ? VKT_K_REDUCE_ALONG4 : VKT_K_REDUCE_ALONG)
                                     : (w->width == 4 ? VKT_K_REDUCE4 : VKT_K_REDUCE);
    const uint64_t groups = w->along ? r->outputs : vkt_groups(r->outputs, w->lanes, w->width);
    const uint64_t per_group =
        VKT_MAX((uint64_t)e->lim->traits->iterations_group * w->splits / (w->rows * w->iterations), 1u);
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { (groups + per_group - 1) / per_group, w->splits, 1 } });
}

static void reduce(vkt_emit *e, reduction r, vkt_bind x, vkt_bind y, function f);

/* Returns the function that computes partial results of f: f without its scale, which is applied last. */
static function part_of(function f)
{
    return (function){ f.number, 1 };
}

/* Returns the part of r that has one index of the slowest kept dimension (if `kept`) or of the slowest reduced
 * dimension. */
static reduction step_of(const reduction *r, bool kept)
{
    reduction part = *r;
    dim *list = kept ? part.kept : part.reduced;
    uint32_t *n = kept ? &part.n_kept : &part.n_reduced;
    if (kept) part.outputs /= list[0].size;
    (*n)--;
    memmove(list, list + 1, *n * sizeof *list);
    return part;
}

/* Reduces x in steps, one after the other. A step is the part of x that has one index of the slowest dimension.
 * reduce_slices calls this function only if it can make no slices (see `per` there). If the slowest dimension is kept
 * and a step has a multiple of 64 outputs, each step writes to y. Else each step writes to a part of a scratch value,
 * and a last reduction computes y from these parts. */
static void reduce_steps(vkt_emit *e, const reduction *r, vkt_bind x, vkt_bind y, function f, bool kept)
{
    const dim slow = kept ? r->kept[0] : r->reduced[0];
    const reduction part = step_of(r, kept);
    const bool in_place = kept && part.outputs % 64 == 0;
    const uint64_t pitch = vkt_round_up(part.outputs, 64);
    const uint64_t step_bytes = (uint64_t)slow.stride * vkt_element_bytes(vkt_lowered_value(e, x.t));
    const vkt_bind to = in_place ? y : VKT_WHOLE(vkt_scratch(e, "steps", slow.size * pitch * 4));
    for (uint32_t i = 0; i < slow.size && e->status == VKT_OK; i++)
        reduce(e, part, (vkt_bind){ x.t, x.offset_bytes + i * step_bytes, 0 },
               (vkt_bind){ to.t, to.offset_bytes + i * pitch * 4, part.outputs * 4ull }, kept ? f : part_of(f));
    if (in_place || e->status != VKT_OK) return;
    reduction last = { .outputs = r->outputs };
    if (kept) push_dim(last.kept, &last.n_kept, slow.size, (uint32_t)pitch);
    push_dim(last.kept, &last.n_kept, part.outputs, 1);
    if (!kept) push_dim(last.reduced, &last.n_reduced, slow.size, (uint32_t)pitch);
    reduce(e, last, to, y, kept ? part_of(f) : f);
}

/* Reduces ranges of the slowest kept dimension, one after the other. The outputs of a range need at most an eighth of a
 * binding. Returns false, and emits nothing, if even the smallest range needs more, or if one range would have all
 * outputs. */
static bool reduce_outputs(vkt_emit *e, const reduction *r, vkt_bind x, vkt_bind y, function f)
{
    if (r->n_kept == 0) return false;
    const dim slow = r->kept[0];
    const uint32_t y_stride = r->outputs / slow.size, size = vkt_element_bytes(vkt_lowered_value(e, x.t));
    const uint32_t step = VKT_MAX(4 / size * vkt_bind_range_step(slow.stride), vkt_bind_range_step(y_stride));
    const uint64_t most = e->lim->max_storage_range_bytes / 8 / (4ull * y_stride), per = most - most % step;
    if (per == 0 || per >= slow.size) return false;
    for (uint64_t at = 0; at < slow.size && e->status == VKT_OK; at += per) {
        reduction part = *r;
        part.kept[0].size = (uint32_t)VKT_MIN(slow.size - at, per);
        part.outputs = part.kept[0].size * y_stride;
        reduce(e, part, (vkt_bind){ x.t, x.offset_bytes + at * slow.stride * size, 0 },
               (vkt_bind){ y.t, y.offset_bytes + at * y_stride * 4, part.outputs * 4ull }, f);
    }
    return true;
}

/* Reduces slices of the slowest dimension of x, one after the other, because one binding does not hold x or y. */
static void reduce_slices(vkt_emit *e, const reduction *r, vkt_bind x, vkt_bind y, function f)
{
    const bool kept = r->n_kept && (!r->n_reduced || r->kept[0].stride > r->reduced[0].stride);
    const dim slow = kept ? r->kept[0] : r->reduced[0];
    const uint32_t y_stride = kept ? r->outputs / slow.size : 0; /* elements of y for each index along `slow` */
    const uint32_t size = vkt_element_bytes(vkt_lowered_value(e, x.t));
    const uint32_t step = VKT_MAX(4 / size * vkt_bind_range_step(slow.stride), vkt_bind_range_step(y_stride));
    /* x_bytes is the size of the part of x that has one index along `slow`. If `kept`, y_bytes is the size of the part
     * of y that has this index. Else y_bytes is the size of y. */
    const uint64_t x_bytes = (uint64_t)size * slow.stride;
    const uint64_t y_bytes = 4ull * (kept ? y_stride : r->outputs);
    const uint64_t most = e->lim->max_storage_range_bytes / VKT_MAX(x_bytes, y_bytes), per = most - most % step;
    const uint64_t range = e->lim->max_storage_range_bytes, pitch_of_step = vkt_round_up(kept ? y_stride : 0, 64);
    if (!kept && per < 2 && reduce_outputs(e, r, x, y, f)) return;
    /* Another reduction combines the results of the steps, unless the steps write to y. The other reduction must be
     * smaller than this one, or the recursion would not end. */
    const bool smaller = !kept ? 8 * vkt_round_up(r->outputs, 64) <= range
                               : y_stride % 64 == 0 || 4 * slow.size * pitch_of_step <= range;
    if (per == 0 && slow.size > 1 && x_bytes % VKT_ALIGN_BYTES == 0 && smaller) {
        reduce_steps(e, r, x, y, f, kept);
        return;
    }
    /* per is 0 if even a slice of one index, or its outputs, does not fit in a binding, or if no slice that fits ends
     * at a multiple of VKT_ALIGN_BYTES. If per is 1 and neither `kept` nor `smaller` is true, the reduction of the
     * slices' results would not be smaller than this one. */
    /* If per is slow.size or more, all of `slow` would fit. So x has a slower dimension than `slow`. */
    if (per == 0 || (!kept && per < 2 && !smaller) || per >= slow.size) {
        vkt_emit_error(e,
                       vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                "%s: a reduction over slices of %u elements, of which this device binds %llu at once",
                                e->node->op->name, slow.stride, (unsigned long long)most));
        return;
    }
    const uint64_t slices = (slow.size + per - 1) / per, pitch = vkt_round_up(r->outputs, 64);
    const vkt_bind out = kept ? y : VKT_WHOLE(vkt_scratch(e, "slices", slices * pitch * 4));
    for (uint64_t i = 0; i < slices && e->status == VKT_OK; i++) {
        reduction part = *r;
        const uint64_t at = i * per, steps = VKT_MIN(slow.size - at, per);
        const uint64_t x_at = x.offset_bytes + at * x_bytes;
        (kept ? part.kept : part.reduced)[0].size = (uint32_t)steps;
        if (kept) part.outputs = (uint32_t)steps * y_stride;
        reduce(e, part, (vkt_bind){ x.t, x_at, 0 },
               (vkt_bind){ out.t, out.offset_bytes + (kept ? at * y_stride : i * pitch) * 4, part.outputs * 4ull },
               kept ? f : part_of(f));
    }
    reduction last = { .outputs = r->outputs };
    push_dim(last.kept, &last.n_kept, r->outputs, 1);
    push_dim(last.reduced, &last.n_reduced, (uint32_t)slices, (uint32_t)pitch);
    if (!kept) reduce(e, last, out, y, f);
}

/* Emits y = f of the elements of x. x.bytes need not be set. x may be in 16 bits; y is f32. */
static void reduce(vkt_emit *e, reduction r, vkt_bind x, vkt_bind y, function f)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < r.n_kept; i++) last += (uint64_t)(r.kept[i].size - 1) * r.kept[i].stride;
    for (uint32_t i = 0; i < r.n_reduced; i++) last += (uint64_t)(r.reduced[i].size - 1) * r.reduced[i].stride;
    x.bytes = (last + 1) * vkt_element_bytes(vkt_lowered_value(e, x.t));
    if (VKT_MAX(x.bytes, r.outputs * 4ull) > e->lim->max_storage_range_bytes) {
        reduce_slices(e, &r, x, y, f);
        return;
    }
    const uint32_t fold = fold_columns(e, &r), K = r.outputs / fold;
    if (r.n_reduced == 0) r.reduced[r.n_reduced++] = (dim){ 1, 0 };
    plan w = plan_of(e, &r);
    w.splits = splits_for(e, &r, &w);
    if (w.splits * fold == 1) {
        dispatch(e, &r, &w, x, y, f);
        return;
    }
    const vkt_tensor partial = vkt_scratch(e, "partial", (uint64_t)w.splits * r.outputs * 4);
    if (!partial.id) return;
    dispatch(e, &r, &w, x, VKT_WHOLE(partial), part_of(f));
    reduce(e, column_sums(w.splits * fold, K), VKT_WHOLE(partial), y, f);
}

void vkt_emit_reduce_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, uint32_t number, float scale)
{
    const function f = { number, scale };
    reduce(e, reduction_of(vkt_lowered_value(e, x), vkt_lowered_value(e, y)), VKT_WHOLE(x), VKT_WHOLE(y), f);
}

void vkt_emit_sum_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, float scale)
{
    vkt_emit_reduce_to(e, x, y, REDUCE_SUM, scale);
}

/* ---- shared by the ops: sum, mean ---- */

vkt_result vkt_infer_whole(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, 0);
    VKT_REQUIRE(f, x->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", f->n->op->name);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

/* Rounds the last dimension up to whole vec4s, with probability 1/2. */
static void whole_rows(vkt_rng *r, vkt_shape *s)
{
    uint32_t *last = &s->dim[s->rank - 1];
    if (vkt_rng_range(r, 0, 1)) *last = (uint32_t)vkt_round_up(*last, 4);
}

void vkt_sample_whole(vkt_rng *r, vkt_case *c)
{
    vkt_shape s = vkt_rng_range(r, 0, 2)
                      ? vkt_shape3(vkt_rng_range(r, 1, 130), vkt_rng_range(r, 1, 17), vkt_rng_range(r, 1, 31))
                      : vkt_shape1(vkt_rng_range(r, 1, 50000));
    whole_rows(r, &s);
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, s, 0.5f, 1.5f);
}

/* ---- sum_to, max_to, min_to ---- */

vkt_result vkt_infer_to(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    const vkt_shape s = ((const vkt_shape_attr *)f->n->attr)->shape;
    vkt_shape all;
    char from[80], to[80];
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, s.rank <= VKT_MAX_RANK && vkt_broadcast_shape(x.shape, s, &all) && vkt_shape_equal(all, x.shape),
                VKT_E_SHAPE, "%s: %s does not broadcast to %s", f->n->op->name, vkt_shape_text(s, to),
                vkt_shape_text(x.shape, from));
    VKT_REQUIRE(f, x.bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", f->n->op->name);
    vkt_out(f, VKT_F32, VKT_ROWS, s);
    return VKT_OK;
}

vkt_tensor vkt_reduce_to(vkt_graph *g, const vkt_op *op, vkt_tensor x, vkt_shape shape)
{
    if (x.id && x.id < g->n_values && vkt_shape_equal(g->values[x.id].shape, shape)) return x;
    const vkt_shape_attr a = { shape };
    return vkt_apply(g, op, &x, 1, &a, NULL);
}

void vkt_sample_to(vkt_rng *r, vkt_case *c, float lo, float hi)
{
    vkt_shape x =
        vkt_shape4(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 11));
    whole_rows(r, &x);
    vkt_shape_attr a = { { .rank = vkt_rng_range(r, 0, 4) } };
    for (uint32_t i = 0; i < a.shape.rank; i++)
        a.shape.dim[i] = vkt_rng_range(r, 0, 1) ? 1 : x.dim[4 - a.shape.rank + i];
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, x, lo, hi);
    vkt_case_attr(c, &a, sizeof a);
}
