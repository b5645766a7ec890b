/* ops/move/move.c - see move.h. A box is copied by vec4s if its last dimension is contiguous in x and in y, its
 * elements are f32, and all starts, strides and row lengths are multiples of 4. A box is copied through blocks of 4 x 4
 * if different dimensions are contiguous in x and in y, and the other conditions of transposed_dim are true. All other
 * boxes are copied one 32-bit word at a time. */
#include "ops/move/move.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/move.abi.h"
#include "abi/positions.abi.h"
#include "abi/transpose.abi.h"

void vkt_logical_strides(const vkt_value *v, int64_t stride[VKT_MAX_RANK])
{
    const vkt_phys p = vkt_phys_of(v);
    for (uint32_t i = 0; i < p.rank; i++) stride[p.logical[i]] = (int64_t)p.stride[i];
}

void vkt_position_step(uint32_t lanes, const uint32_t *size, uint32_t n, uint32_t *step)
{
    for (uint32_t i = n; i-- > 1; lanes /= size[i]) step[i] = lanes % size[i];
    step[0] = lanes;
}

void vkt_move_dim_add(vkt_move *m, vkt_move_dim d)
{
    if (d.size == 1) return;
    vkt_move_dim *before = m->n ? &m->dim[m->n - 1] : NULL;
    if (before && before->x == d.x * (int64_t)d.size && before->y == d.y * (int64_t)d.size) {
        d.size *= before->size;
        *before = d;
    } else {
        m->dim[m->n++] = d;
    }
}

/* The elements of a box in one of the two tensors, x or y. */
typedef struct side {
    vkt_bind bind;
    uint32_t base; /* the index of the box's first element in the binding */
    bool fits;     /* a binding can hold the range of the tensor from the box's first element to its last one */
} side;

static side side_of(const vkt_emit *e, vkt_tensor t, const vkt_move *m, bool is_y)
{
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const int64_t extent = (is_y ? m->dim[i].y : m->dim[i].x) * (int64_t)(m->dim[i].size - 1);
        low += extent < 0 ? extent : 0;
        high += extent > 0 ? extent : 0;
    }
    const uint64_t at = is_y ? m->y : m->x;
    side s = { .base = 0 };
    s.bind = vkt_bind_range(e, t, at + (uint64_t)low, (uint64_t)(high - low) + 1, &s.base);
    s.base += (uint32_t)-low;
    s.fits = s.bind.bytes <= e->lim->max_storage_range_bytes;
    return s;
}

/* ---- one dispatch ---- */

static bool are_vectors(const vkt_move *m, const side *x, const side *y)
{
    const vkt_move_dim run = m->dim[m->n - 1];
    bool ok = run.x == 1 && run.y == 1 && run.size % 4 == 0 && x->base % 4 == 0 && y->base % 4 == 0;
    for (uint32_t i = 0; i + 1 < m->n; i++) ok = ok && m->dim[i].x % 4 == 0 && m->dim[i].y % 4 == 0;
    return ok;
}

static uint32_t lanes_of(const vkt_emit *e)
{
    return vkt_lanes(e->lim, e->lim->traits->lanes_move);
}

static void dispatch_positions(vkt_emit *e, const vkt_move *m, const side *x, const side *y, bool vectors)
{
    const uint32_t width = vectors ? 4 : 1, lanes = lanes_of(e), first = VKT_MAX_RANK - m->n;
    uint32_t d[VKT_MAX_RANK] = { 0 }, s[VKT_MAX_RANK] = { 0 }, xs[VKT_MAX_RANK] = { 0 }, ys[VKT_MAX_RANK] = { 0 };
    uint32_t n = 1;
    for (uint32_t i = 0; i < m->n; i++) {
        const bool run = i + 1 == m->n;
        d[first + i] = m->dim[i].size / (run ? width : 1);
        xs[first + i] = (uint32_t)(m->dim[i].x / (run ? 1 : width));
        ys[first + i] = (uint32_t)(m->dim[i].y / (run ? 1 : width));
        n *= d[first + i];
    }
    vkt_position_step(lanes, d + first, m->n, s + first);
    const vkt_move_push pc = { .n = n,
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
                               .x0 = xs[0],
                               .x1 = xs[1],
                               .x2 = xs[2],
                               .x3 = xs[3],
                               .x4 = xs[4],
                               .x5 = xs[5],
                               .y0 = ys[0],
                               .y1 = ys[1],
                               .y2 = ys[2],
                               .y3 = ys[3],
                               .y4 = ys[4],
                               .y5 = ys[5],
                               .x = x->base / width,
                               .y = y->base / width };
    const vkt_bind bind[] = { [MOVE_X] = x->bind, [MOVE_Y] = y->bind };
    const uint32_t spec[] = { lanes, [POSITIONS_SPEC_FIRST] = first };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = vectors ? VKT_K_MOVE4 : VKT_K_MOVE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(n, lanes, e->lim->traits->items_move), 1, 1 } });
}

/* Returns the dimension that is contiguous in x, if the box can be copied through blocks of 4 x 4. This dimension must
 * have 4 elements or more, and must not be the last one. The last one must be contiguous in y and have a positive
 * stride in x. Returns -1 if no dimension meets these conditions. */
static int transposed_dim(const vkt_move *m)
{
    const vkt_move_dim run = m->dim[m->n - 1];
    for (uint32_t i = 0; i + 1 < m->n; i++)
        if (m->dim[i].x == 1 && m->dim[i].size >= 4 && run.y == 1 && run.x > 0) return (int)i;
    return -1;
}

static void dispatch_transposed(vkt_emit *e, const vkt_move *m, const side *x, const side *y, uint32_t transposed)
{
    const vkt_move_dim run = m->dim[m->n - 1], b = m->dim[transposed];
    uint32_t d[4] = { 1, 1, 1, 1 }, xs[4] = { 0 }, ys[4] = { 0 }, rows = 1;
    bool load4 = b.size % 4 == 0 && x->base % 4 == 0 && run.x % 4 == 0;
    bool store4 = run.size % 4 == 0 && y->base % 4 == 0 && b.y % 4 == 0;
    for (uint32_t i = m->n - 1, k = 4; i-- > 0;) {
        if (i == transposed) continue;
        d[--k] = m->dim[i].size;
        xs[k] = (uint32_t)m->dim[i].x;
        ys[k] = (uint32_t)m->dim[i].y;
        rows *= d[k];
        load4 = load4 && xs[k] % 4 == 0;
        store4 = store4 && ys[k] % 4 == 0;
    }
    if (vkt_lowered_value(e, x->bind.t)->dtype != VKT_F32) load4 = store4 = false;
    const vkt_transpose_push pc = { .rows = rows,
                                    .a = run.size,
                                    .b = b.size,
                                    .xa = (uint32_t)run.x,
                                    .yb = (uint32_t)b.y,
                                    .chunk = e->lim->traits->items_transpose,
                                    .d1 = d[1],
                                    .d2 = d[2],
                                    .d3 = d[3],
                                    .x0 = xs[0],
                                    .x1 = xs[1],
                                    .x2 = xs[2],
                                    .x3 = xs[3],
                                    .x = x->base,
                                    .y0 = ys[0],
                                    .y1 = ys[1],
                                    .y2 = ys[2],
                                    .y3 = ys[3],
                                    .y = y->base };
    static const uint16_t kernels[2][2] = { { VKT_K_TRANSPOSE, VKT_K_TRANSPOSE_STORE4 },
                                            { VKT_K_TRANSPOSE_LOAD4, VKT_K_TRANSPOSE4 } };
    const vkt_bind bind[] = { [TRANSPOSE_X] = x->bind, [TRANSPOSE_Y] = y->bind };
    const uint32_t spec[] = { lanes_of(e) };
    const uint64_t units = (uint64_t)vkt_div_up(run.size, 4) * vkt_div_up(vkt_div_up(b.size, 4), pc.chunk) * rows;
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernels[load4][store4],
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       .spec = spec,
                                       .n_spec = 1,
                                       .groups = { vkt_groups(units, spec[0], 1), 1, 1 } });
}

/* ---- as many dispatches as needed ---- */

/* Returns the dimension to split if a box does not fit into a binding: the dimension along which the box has the
 * largest extent in memory. The extent is measured in y if `in_y` is set, else in x. */
static uint32_t longest_dim(const vkt_move *m, bool in_y)
{
    uint32_t longest = 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const int64_t stride = in_y ? m->dim[i].y : m->dim[i].x;
        const int64_t extent = (stride < 0 ? -stride : stride) * (int64_t)(m->dim[i].size - 1);
        if (extent > most) most = extent, longest = i;
    }
    return longest;
}

static void emit_box(vkt_emit *e, vkt_tensor tx, vkt_tensor ty, const vkt_move *m)
{
    const side x = side_of(e, tx, m, false), y = side_of(e, ty, m, true);
    if (x.fits && y.fits) {
        const bool is_float = vkt_lowered_value(e, ty)->dtype == VKT_F32;
        const int transposed = transposed_dim(m);
        if (transposed >= 0)
            dispatch_transposed(e, m, &x, &y, (uint32_t)transposed);
        else
            dispatch_positions(e, m, &x, &y, is_float && are_vectors(m, &x, &y));
        return;
    }
    const uint32_t split = longest_dim(m, !y.fits);
    const uint32_t size = m->dim[split].size;
    /* In a dimension of more than 128 elements, the first half has a multiple of 64 elements. So if a box of 32-bit
     * elements starts at an aligned offset, its second half starts at an aligned offset, too. In a dimension of 5 to
     * 128 elements, the first half has a multiple of 4 elements, so that no vec4 is split. */
    const uint32_t unit = size > 128 ? VKT_ALIGN_BYTES / 4 : size > 4 ? 4 : 1;
    const uint32_t half = vkt_div_up(size / 2, unit) * unit;
    vkt_move part = *m;
    part.dim[split].size = half;
    emit_box(e, tx, ty, &part);
    part.dim[split].size = size - half;
    part.x += (uint64_t)(m->dim[split].x * (int64_t)half);
    part.y += (uint64_t)(m->dim[split].y * (int64_t)half);
    emit_box(e, tx, ty, &part);
}

void vkt_emit_move(vkt_emit *e, vkt_tensor x, vkt_tensor y, const vkt_move *m)
{
    vkt_move box = *m;
    if (box.n == 0) box.dim[box.n++] = (vkt_move_dim){ 1, 1, 1 };
    emit_box(e, x, y, &box);
}

/* ---- shared by the ops ---- */

vkt_result vkt_infer_moved(vkt_infer *f, const vkt_value *x)
{
    VKT_REQUIRE(f, x->dtype == VKT_F32 || x->dtype == VKT_U32, VKT_E_DTYPE, "%s: want f32 or u32, got %s",
                f->n->op->name, vkt_dtype_name(x->dtype));
    return VKT_OK;
}

vkt_case_input *vkt_draw_moved(vkt_rng *r, vkt_case *c)
{
    static const uint32_t most[VKT_MAX_RANK + 1] = { 0, 300, 67, 19, 9, 5, 4 };
    vkt_shape s = { .rank = vkt_rng_range(r, 1, VKT_MAX_RANK) };
    const bool whole = vkt_rng_range(r, 0, 2) == 0;
    for (uint32_t i = 0; i < s.rank; i++) s.dim[i] = vkt_rng_range(r, 1, most[s.rank]);
    if (whole) s.dim[s.rank - 1] = 4 * vkt_rng_range(r, 1, 4);
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    if (vkt_rng_range(r, 0, 3) == 0) return vkt_case_u32(c, layout, s, UINT32_MAX);
    return vkt_case_f32(c, layout, s, -1, 1);
}

vkt_slice_attr vkt_slice_all(vkt_shape x)
{
    vkt_slice_attr a = { .start = { 0 } };
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) {
        a.step[i] = 1;
        a.size[i] = i < x.rank ? x.dim[i] : 0;
    }
    return a;
}

/* ---- for builders ---- */

bool vkt_find_axis(vkt_graph *g, const char *op, vkt_tensor x, int32_t axis, uint32_t *out)
{
    const int32_t rank = (int32_t)vkt_tensor_shape(g, x).rank;
    char text[80];
    if (vkt_graph_status(g) != VKT_OK) return false;
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    if (axis >= -rank && axis < rank) return true;
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "%s: %s has no dimension %d", op,
                                vkt_shape_text(vkt_tensor_shape(g, x), text), axis));
    return false;
}

bool vkt_is_batch_last(const vkt_graph *g, vkt_tensor x)
{
    return g && x.id && x.id < g->n_values && g->values[x.id].layout == VKT_BATCH_LAST;
}
