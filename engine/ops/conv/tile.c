/* ops/conv/tile.c - which way y and dx are computed, and how they are cut into tiles: see the headers of
 * shaders/conv/tile.comp, conv/span.comp and conv/direct.comp. */
#include "ops/conv/phase.h"
#include "ops/conv/parts.h"
#include "ops/conv/shared.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_direct.abi.h"
#include "abi/conv2d_pack.abi.h"
#include "abi/conv2d_span.abi.h"
#include "abi/conv2d_tile.abi.h"

/* ---- y and dx: tiles of destination channels x pixels ---- */

typedef struct tile_job {
    const vkt_conv2d_size *z;
    bool transposed; /* dx: the destination is the input picture */
    uint32_t dst[2], src[2];
    uint32_t rows, depth;          /* destination and source channels of a group */
    uint64_t dst_plane, src_plane; /* vec4s of a channel */
    vkt_tensor from, w, bias, to;
    vkt_tensor taps, packed; /* the tile kernel's table, and weights in its order or span's, once they are needed */
    bool in_place;           /* it reads w where it lies */
    bool halves;             /* tiles are half of the lanes wide: takes_halves */
} tile_job;

/* What one dispatch makes: channels row .. row + rows - 1 of some groups of the destination, of channels
 * k .. k + depth - 1 of these groups of the source. The whole product unless a tensor is larger than a binding. */
typedef struct tile_part {
    uint32_t group, groups, row, rows, k, depth;
} tile_part;

static bool reaches_out(const tile_job *j, const vkt_lattice *h, const vkt_lattice *v)
{
    return vkt_lattice_reaches_out(j->z, j->transposed, 0, h) || vkt_lattice_reaches_out(j->z, j->transposed, 1, v);
}

/* One axis of the table TAPS, for pixels of each lattice in turn: source[i taps + k] is the place that tap k of pixel i
 * reads, or -1; range[2i], range[2i+1] the first tap that reads one, and the last + 1. */
static void fill_axis(const tile_job *j, int axis, int32_t *range, int32_t *source)
{
    for (uint32_t first = 0; first < vkt_lattices(j->z, j->transposed, axis); first++) {
        const vkt_lattice l = vkt_lattice_of(j->z, j->transposed, axis, first);
        int32_t *to = source + (size_t)l.before * j->z->kernel[axis];
        for (int64_t i = 0; i < l.count; i++, range += 2) {
            range[0] = range[1] = 0;
            for (int32_t k = 0; k < (int32_t)l.taps; k++) {
                const bool inside = vkt_lattice_inside(j->z, j->transposed, axis, &l, i, k);
                *to++ = inside ? (int32_t)vkt_lattice_place(&l, i, k) : -1;
                if (!inside) continue;
                if (range[1] == 0) range[0] = k;
                range[1] = k + 1;
            }
        }
    }
}

/* Where the parts of the table start: ranges of rows and of columns, sources of rows and of columns, the end. */
static void table_parts(const tile_job *j, uint64_t part[5])
{
    part[0] = 0;
    part[1] = 2ull * j->dst[0];
    part[2] = part[1] + 2ull * j->dst[1];
    part[3] = part[2] + (uint64_t)j->dst[0] * j->z->kernel[0];
    part[4] = part[3] + (uint64_t)j->dst[1] * j->z->kernel[1];
}

static vkt_tensor tap_table(vkt_emit *e, const tile_job *j)
{
    uint64_t part[5];
    table_parts(j, part);
    int32_t *t = vkt_alloc_array(&e->host, (size_t)part[4], sizeof *t);
    if (!t) {
        vkt_emit_error(e, vkt_fail_nomem(&e->host, "a table of taps", (size_t)part[4] * sizeof *t));
        return (vkt_tensor){ 0 };
    }
    fill_axis(j, 0, t, t + part[2]);
    fill_axis(j, 1, t + part[1], t + part[3]);
    const vkt_tensor taps = vkt_emit_const(e, "taps", t, part[4] * sizeof *t);
    vkt_free(&e->host, t);
    return taps;
}

/* Lanes beside each other in a tile. */
static uint32_t lanes_across(const vkt_limits *lim, const tile_job *j, uint32_t rows)
{
    return rows >= 32 && j->halves ? 8 : lim->subgroup_size;
}

/* Where a pixel's vec4s are an odd multiple of 8, half of 16 lanes keeps a tile at one pixel: all of a plane that has
 * no more, and where an eighth of the taps or more fall off, for a tile at several pixels meets the taps of each. Both
 * halves then load the same source, which wants rows enough to be worth it. */
static bool takes_halves(const vkt_limits *lim, const tile_job *j)
{
    return lim->cpu && lim->subgroup_size == 16 && j->z->n4 % 16 == 8 &&
           (j->dst_plane == 8 || vkt_lattices_filled(j->z, j->transposed) <= 0.875);
}

/* Channels of a lane: as many as the accumulators allow, and no more than an even share of the rows. */
static uint32_t tile_rows(const vkt_limits *lim, const tile_job *j, uint32_t rows)
{
    const uint32_t across = lanes_across(lim, j, rows), blocks = lim->subgroup_size / across;
    const uint32_t most = lim->cpu ? 4 * VKT_MIN(across, 16u) : VKT_MIN(4 * across, 32u);
    const uint32_t share = vkt_div_up(rows, vkt_div_up(rows, most * blocks) * blocks);
    return (uint32_t)vkt_round_up(share, 4);
}

/* Source channels of a step: a divisor of `depth`, so that there is no rest. Four is best: enough products between a
 * load and a store of an accumulator, few enough operands. */
static uint32_t step_depth(uint32_t depth)
{
    static const uint32_t order[] = { 4, 5, 6, 3, 7, 2 };
    for (uint32_t i = 0; i < VKT_COUNT(order); i++)
        if (depth % order[i] == 0) return order[i];
    return 1;
}

/* ---- how much of a product one dispatch can make ---- */

static uint32_t packed_rows(const vkt_limits *lim, const tile_job *j, uint32_t rows)
{
    const uint32_t mb = tile_rows(lim, j, rows);
    return vkt_div_up(rows, mb) * mb;
}

/* Rounds of all loops of an invocation of conv/tile.comp for one tile that meets `taps` taps. */
static uint64_t tile_rounds(uint64_t taps, uint32_t depth)
{
    return taps * (depth / step_depth(depth) + 2) + 1;
}

/* The same for part p in the worst of its lattices, times the tiles that a work group makes one after the other. */
static uint64_t rounds_of(const vkt_emit *e, const tile_job *j, const tile_part *p)
{
    uint64_t taps[2] = { 0 }, count[2] = { 0 };
    for (int axis = 0; axis < 2; axis++)
        for (uint32_t i = 0; i < vkt_lattices(j->z, j->transposed, axis); i++) {
            const vkt_lattice l = vkt_lattice_of(j->z, j->transposed, axis, i);
            taps[axis] = VKT_MAX(taps[axis], l.taps);
            count[axis] = VKT_MAX(count[axis], l.count);
        }
    const uint32_t across = lanes_across(e->lim, j, p->rows), blocks = e->lim->subgroup_size / across;
    const uint64_t tiles = vkt_groups(count[0] * count[1] * j->z->n4, across, 1) *
                           vkt_div_up(p->rows, tile_rows(e->lim, j, p->rows) * blocks);
    return vkt_groups(tiles, e->lim->max_groups, 1) * tile_rounds(taps[0] * taps[1], p->depth);
}

/* Whether loops end in time in part p and in the last one, whose depth may be no multiple of anything. */
static bool is_short(const vkt_emit *e, const tile_job *j, const tile_part *p)
{
    tile_part last = *p;
    last.depth = j->depth % p->depth;
    return rounds_of(e, j, p) <= VKT_MAX_ROUNDS && rounds_of(e, j, &last) <= VKT_MAX_ROUNDS;
}

/* The largest part; the others are no larger. False where not even one channel fits. Few source channels cost more than
 * few destination channels: their sums are stored and read again. */
static bool cut(const vkt_emit *e, const tile_job *j, tile_part *out)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], groups = j->z->a.groups, unit = j->in_place ? 4 : 1;
    const uint64_t range = e->lim->max_storage_range_bytes, read = vkt_read_range(e->lim);
    const uint64_t w_bytes = 4ull * j->z->channels / groups * taps; /* of one of its O rows */
    uint64_t rows = vkt_steps_in(range, 16 * j->dst_plane, (uint64_t)groups * j->rows);
    uint64_t depth = vkt_steps_in(read, 16 * j->src_plane, (uint64_t)groups * j->depth);
    const uint64_t w_rows = vkt_steps_in(j->in_place ? read : range, w_bytes, j->z->out_channels);
    if (j->transposed)
        depth = VKT_MIN(depth, w_rows);
    else
        rows = VKT_MIN(rows, w_rows);
    tile_part p = { .rows = vkt_conv2d_share(j->rows, rows, unit) };
    if (p.rows == 0) return false;
    /* Panels and strips of at least 4 rows are work groups along y, which no dispatch cuts. */
    p.rows = vkt_conv2d_share(j->rows, VKT_MIN(rows, 4ull * e->lim->max_groups), unit);
    const uint32_t a_rows = packed_rows(e->lim, j, p.rows);
    const uint64_t packed = j->in_place ? 0 : 4ull * taps * a_rows; /* bytes of a source channel */
    const uint64_t packed_depth = packed ? range / packed : depth;
    const uint64_t depth_of_one = VKT_MIN(depth, packed_depth);
    p.depth = vkt_conv2d_share(j->depth, depth_of_one, j->in_place || depth_of_one >= 4 ? 4 : 1);
    if (p.depth == 0) return false;
    for (uint32_t n = vkt_div_up(j->depth, p.depth) + 1; p.depth > 4 && !is_short(e, j, &p); n++)
        p.depth = (uint32_t)vkt_round_up(vkt_div_up(j->depth, n), 4);
    p.groups = 1;
    if (p.rows == j->rows && p.depth == j->depth)
        p.groups = (uint32_t)VKT_MIN(VKT_MIN(rows / p.rows, depth / p.depth), VKT_MIN(packed_depth / p.depth, groups));
    *out = p;
    return true;
}

/* The part of w that belongs to p, from its first group, row, channel and tap on. */
static vkt_bind weights_of(const vkt_emit *e, const tile_job *j, const tile_part *p, uint32_t *base)
{
    const bool back = j->transposed;
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], o_group = back ? j->depth : j->rows;
    const uint64_t o_step = (uint64_t)(back ? j->rows : j->depth) * taps;
    const uint64_t o = (uint64_t)p->group * o_group + (back ? p->k : p->row), c = back ? p->row : p->k;
    const uint64_t n_o = (p->groups - 1ull) * o_group + (back ? p->depth : p->rows), n_c = back ? p->rows : p->depth;
    return vkt_window(e, j->w, o * o_step + c * taps, (n_o - 1) * o_step + n_c * taps, base);
}

static vkt_bind source_of(const vkt_emit *e, const tile_job *j, const tile_part *p, uint32_t *base)
{
    return vkt_conv2d_channels(e, j->from, j->src_plane, (uint64_t)p->group * j->depth + p->k,
                               (p->groups - 1ull) * j->depth + p->depth, base);
}

static vkt_bind destination_of(const vkt_emit *e, const tile_job *j, const tile_part *p, uint32_t *base)
{
    return vkt_conv2d_channels(e, j->to, j->dst_plane, (uint64_t)p->group * j->rows + p->row,
                               (p->groups - 1ull) * j->rows + p->rows, base);
}

/* ---- tiles ---- */

/* Puts w in panels of `mb` rows, in an order that `push` knows by `inner` and its steps from tap to tap. */
static vkt_bind pack(vkt_emit *e, tile_job *j, const tile_part *p, uint32_t mb, bool m_major, vkt_conv2d_pack_push push)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], o_step = (j->transposed ? j->rows : j->depth) * taps;
    const uint64_t panel = (uint64_t)taps * p->depth * mb / 4;
    push.vec4s = (uint32_t)panel;
    push.depth = p->depth;
    push.rows = p->rows;
    push.tiles = vkt_div_up(p->rows, mb);
    push.mb4 = mb / 4;
    push.w_group = j->rows * j->depth * taps;
    push.w_row = j->transposed ? taps : o_step;
    push.w_depth = j->transposed ? o_step : taps;
    const uint64_t panels = (uint64_t)push.tiles * p->groups, bytes = 16 * panel * panels;
    if (!j->packed.id) j->packed = vkt_scratch(e, "weights", bytes);
    uint32_t first;
    const vkt_bind w = weights_of(e, j, p, &first), packed = { .t = j->packed, .bytes = bytes };
    push.w_base += first;
    const vkt_bind bind[] = { [PACK_W] = w, [PACK_A] = packed };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128u, [PACK_SPEC_M_MAJOR] = m_major };
    vkt_dispatch_add(e, VKT_K_CONV2D_PACK, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec),
                     vkt_groups(panel, spec[0], e->lim->cpu ? 16 : 1), (uint32_t)panels, 1);
    return packed;
}

/* Panels that are k-major or m-major, tap by tap. */
static vkt_bind pack_weights(vkt_emit *e, tile_job *j, const tile_part *p, uint32_t mb, bool m_major,
                             vkt_conv2d_tile_push *to)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], panel = taps * p->depth * mb / 4;
    to->a_pitch = (m_major ? p->depth : mb) / 4;
    to->a_tap_w = p->depth * mb / 4;
    to->a_tap_h = j->z->kernel[1] * to->a_tap_w;
    to->a_tile = panel;
    to->a_group = vkt_div_up(p->rows, mb) * panel;
    return pack(e, j, p, mb, m_major, (vkt_conv2d_pack_push){ .inner = 1, .w_outer = 1 });
}

/* A 1x1 kernel can be read where it lies when its rows are whole vec4s: forward as [m][k], back as [k][m]. */
static bool can_lie(const tile_job *j)
{
    return j->z->kernel[0] * j->z->kernel[1] == 1 && (j->transposed ? j->rows : j->depth) % 4 == 0;
}

static vkt_bind weights_in_place(const vkt_emit *e, const tile_job *j, const tile_part *p, uint32_t mb,
                                 vkt_conv2d_tile_push *to)
{
    const vkt_bind b = weights_of(e, j, p, &to->a_base);
    to->a_base /= 4;
    to->a_pitch = (j->transposed ? j->rows : j->depth) / 4;
    to->a_tile = j->transposed ? mb / 4 : mb * to->a_pitch;
    to->a_group = j->rows * j->depth / 4;
    return b;
}

/* Whether weights are [m][k]: forward where they lie so, and where the rows are so few that a lane holds four k of one
 * or two of them, which is a load or two in place of four. */
static bool is_m_major(const vkt_limits *lim, const tile_job *j, const tile_part *p)
{
    const uint32_t across = lanes_across(lim, j, p->rows), mb = tile_rows(lim, j, p->rows);
    if (j->in_place) return !j->transposed;
    return p->depth % 4 == 0 && (mb <= across || mb == 2 * across);
}

/* The pixels that lie on h and v. */
static void emit_lattice(vkt_emit *e, const tile_job *j, const tile_part *p, const vkt_lattice *h, const vkt_lattice *v,
                         uint32_t mb, vkt_conv2d_tile_push push, vkt_bind a)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t across = lanes_across(e->lim, j, p->rows), unroll = step_depth(p->depth);
    const bool m_major = is_m_major(e->lim, j, p), add = p->k > 0, bias = j->bias.id && !add;
    uint64_t part[5], a_base = push.a_base;
    table_parts(j, part);
    push.columns = h->count * v->count * z->n4;
    push.width = v->count;
    push.dst_row = h->step * j->dst[1] * z->n4;
    push.dst_col = v->step * z->n4;
    push.kernel_h = h->taps;
    push.kernel_w = v->taps;
    push.row_ranges = 2 * h->before;
    push.col_ranges = (uint32_t)part[1] + 2 * v->before;
    push.row_sources = (uint32_t)part[2] + h->before * z->kernel[0];
    push.col_sources = (uint32_t)part[3] + v->before * z->kernel[1];
    a_base += (uint64_t)h->tap * push.a_tap_h + (uint64_t)v->tap * push.a_tap_w;
    push.a_base = h->taps && v->taps ? (uint32_t)a_base : push.a_base;
    push.a_tap_h *= h->tap_step;
    push.a_tap_w *= v->tap_step;
    const bool uniform = z->n4 % across == 0 || !reaches_out(j, h, v);
    const uint64_t tiles = (uint64_t)vkt_div_up(push.columns, across) * push.row_tiles;
    if (!vkt_conv2d_is_short(e, tiles, tile_rounds((uint64_t)h->taps * v->taps, p->depth))) return;
    const vkt_bind source = source_of(e, j, p, &push.src_base), to = destination_of(e, j, p, &push.dst_base);
    push.dst_base += (h->first * j->dst[1] + v->first) * z->n4;
    const vkt_bind bind[] = { [TILE_A] = a,
                              [TILE_SRC] = source,
                              [TILE_TAPS] = VKT_WHOLE(j->taps),
                              [TILE_BIAS] = VKT_WHOLE(bias ? j->bias : j->taps), /* not read without one */
                              [TILE_DST] = to };
    const uint32_t spec[TILE_SPECS] = { [TILE_SPEC_LANES] = e->lim->subgroup_size,
                                        [TILE_SPEC_MB] = mb,
                                        [TILE_SPEC_UNROLL] = unroll,
                                        [TILE_SPEC_UNIFORM] = uniform,
                                        [TILE_SPEC_BIAS] = bias,
                                        [TILE_SPEC_M_MAJOR] = m_major,
                                        [TILE_SPEC_ACROSS] = across };
    vkt_dispatch_add(e, add ? VKT_K_CONV2D_TILE_ADD : VKT_K_CONV2D_TILE, bind, VKT_COUNT(bind), &push, sizeof push,
                     spec, VKT_COUNT(spec), tiles, 1, p->groups);
}

static void emit_tiles(vkt_emit *e, tile_job *j, const tile_part *p)
{
    const uint32_t across = lanes_across(e->lim, j, p->rows), tall = tile_rows(e->lim, j, p->rows);
    const bool m_major = is_m_major(e->lim, j, p);
    const uint32_t mb = m_major && tall > across ? (uint32_t)vkt_round_up(tall, across) : tall;
    vkt_conv2d_tile_push push = { .n4 = j->z->n4,
                                  .dst_plane = (uint32_t)j->dst_plane,
                                  .rows = p->rows,
                                  .row_tiles = vkt_div_up(p->rows, mb * (e->lim->subgroup_size / across)),
                                  .src_width = j->src[1],
                                  .src_plane = (uint32_t)j->src_plane,
                                  .depth = p->depth,
                                  .src_group = j->depth,
                                  .dst_group = j->rows,
                                  .bias_base = p->group * j->rows + p->row };
    if (!j->taps.id) j->taps = tap_table(e, j);
    const vkt_bind a = j->in_place ? weights_in_place(e, j, p, mb, &push) : pack_weights(e, j, p, mb, m_major, &push);
    for (uint32_t i = 0; i < vkt_lattices(j->z, j->transposed, 0); i++)
        for (uint32_t k = 0; k < vkt_lattices(j->z, j->transposed, 1); k++) {
            const vkt_lattice h = vkt_lattice_of(j->z, j->transposed, 0, i),
                              v = vkt_lattice_of(j->z, j->transposed, 1, k);
            emit_lattice(e, j, p, &h, &v, mb, push, a);
        }
}

/* ---- runs of pixels ---- */

/* Channels and pixels of a lane: more of either took more time than it saved (docs/performance.md). */
#define SPAN_ROWS 8u
#define SPAN_PIXELS 4u

/* Source channels of a turn: at most ten products of a sum. */
static uint32_t span_unroll(uint32_t taps, uint32_t depth)
{
    return taps <= 5 && depth % 2 == 0 ? 2 : 1;
}

/* Where each source pixel next to one that a pixel reads is what its neighbour reads, a part is whole products, its
 * loops end in time, and its weights fit into a binding in panels of SPAN_ROWS. A turn unrolls all taps of a row: of
 * more than 7 it would be too long. */
static bool can_span(const vkt_emit *e, const tile_job *j, const tile_part *p)
{
    const vkt_conv2d_attr *a = &j->z->a;
    const uint32_t *kernel = j->z->kernel;
    return a->stride[1] == 1 && a->dilation[1] == 1 && !(j->transposed && a->stride[0] > 1) && kernel[1] > 1 &&
           kernel[1] <= 7 && p->depth == j->depth &&
           kernel[0] * (p->depth / span_unroll(kernel[1], p->depth) + 1ull) < VKT_MAX_ROUNDS &&
           4ull * kernel[0] * kernel[1] * vkt_round_up(p->rows, SPAN_ROWS) * p->depth * p->groups <=
               e->lim->max_storage_range_bytes;
}

/* Few rows, by tiles, are few products for a load and for a shuffle. With more rows tiles are as fast, and leave out
 * what is above and below the picture. */
static bool span_pays(const tile_job *j)
{
    return j->rows <= 16 || (j->z->kernel[0] == 1 && j->rows <= 32);
}

static void emit_span(vkt_emit *e, tile_job *j, const tile_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const vkt_lattice h = vkt_lattice_of(j->z, j->transposed, 0, 0), v = vkt_lattice_of(j->z, j->transposed, 1, 0);
    const uint32_t mb = SPAN_ROWS, span = SPAN_PIXELS, taps = v.taps, lanes = e->lim->subgroup_size;
    const uint32_t unroll = span_unroll(taps, p->depth);
    const uint32_t runs = vkt_div_up(j->dst[1], span), panel = h.taps * taps * p->depth * mb / 4;
    vkt_conv2d_span_push push = { .columns = j->dst[0] * runs * z->n4,
                                  .n4 = z->n4,
                                  .runs = runs,
                                  .width = j->dst[1],
                                  .dst_plane = (uint32_t)j->dst_plane,
                                  .rows = p->rows,
                                  .row_tiles = vkt_div_up(p->rows, mb),
                                  .src_height = (int32_t)j->src[0],
                                  .src_width = (int32_t)j->src[1],
                                  .src_row = j->src[1] * z->n4,
                                  .src_plane = (uint32_t)j->src_plane,
                                  .depth = p->depth,
                                  .dst_group = j->rows,
                                  .kernel_h = h.taps,
                                  .stride_h = (uint32_t)h.stride,
                                  .offset_h = h.offset,
                                  .reach_h = h.reach,
                                  .offset_w = v.offset + VKT_MIN(v.reach, 0) * (int32_t)(taps - 1),
                                  .a_group = vkt_div_up(p->rows, mb) * panel,
                                  .a_tile = panel,
                                  .bias_base = p->group * j->rows + p->row };
    const uint64_t tiles = (uint64_t)vkt_div_up(push.columns, lanes) * push.row_tiles;
    if (!vkt_conv2d_is_short(e, tiles, (uint64_t)h.taps * (p->depth / unroll + 1) + 1)) return;
    const vkt_conv2d_pack_push order = { .inner = taps,
                                         .w_base = v.reach < 0 ? taps - 1 : 0,
                                         .w_outer = z->kernel[1],
                                         .w_inner = v.reach < 0 ? UINT32_MAX : 1 };
    const vkt_bind packed = pack(e, j, p, mb, false, order);
    const vkt_bind bind[] = { [SPAN_A] = packed,
                              [SPAN_SRC] = source_of(e, j, p, &push.src_base),
                              [SPAN_BIAS] = j->bias.id ? VKT_WHOLE(j->bias) : packed, /* not read without one */
                              [SPAN_DST] = destination_of(e, j, p, &push.dst_base) };
    const uint32_t spec[SPAN_SPECS] = {
        [SPAN_SPEC_LANES] = lanes,         [SPAN_SPEC_MB] = mb,         [SPAN_SPEC_SPAN] = span,
        [SPAN_SPEC_TAPS] = taps,           [SPAN_SPEC_UNROLL] = unroll, [SPAN_SPEC_PAD] = reaches_out(j, &h, &v),
        [SPAN_SPEC_BIAS] = j->bias.id != 0
    };
    vkt_dispatch_add(e, VKT_K_CONV2D_SPAN, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), tiles, 1,
                     p->groups);
}

/* At most DIRECT_DEPTH products an element (conv/direct.comp). All are unrolled: more code would leave the
 * instruction cache. */
#define DIRECT_DEPTH 40u

bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2])
{
    return (uint64_t)channels_of_group * kernel[0] * kernel[1] <= DIRECT_DEPTH;
}

/* The pixels that lie on h and v. Where no tap meets them, they are held against one of a source without rows. */
static void emit_direct_lattice(vkt_emit *e, const tile_job *j, const tile_part *p, const vkt_lattice *h,
                                const vkt_lattice *v)
{
    const vkt_conv2d_size *z = j->z;
    const bool none = h->taps == 0 || v->taps == 0;
    const uint32_t lanes = e->lim->subgroup_size, taps = z->kernel[0] * z->kernel[1];
    const uint32_t tiles = vkt_div_up(p->rows, VKT_DIRECT_ROWS), columns = h->count * v->count * z->n4;
    const uint32_t in_flight = vkt_div_up(e->lim->cpu ? 64 : 4096, tiles * p->groups);
    const uint32_t rounds = VKT_MIN(vkt_div_up(vkt_div_up(columns, in_flight), lanes), VKT_MAX_ROUNDS / 2);
    const uint32_t strips = vkt_div_up(columns, rounds * lanes);
    if (!vkt_conv2d_is_short(e, strips, rounds + 1)) return;
    vkt_conv2d_direct_push push = { .columns = columns,
                                    .n4 = z->n4,
                                    .width = v->count,
                                    .dst_plane = (uint32_t)j->dst_plane,
                                    .dst_row = h->step * j->dst[1] * z->n4,
                                    .dst_col = v->step * z->n4,
                                    .strip = rounds * lanes,
                                    .step_p = lanes / z->n4 / v->count,
                                    .step_q = lanes / z->n4 % v->count,
                                    .step_n = lanes % z->n4,
                                    .rows = p->rows,
                                    .dst_group = j->rows,
                                    .src_height = none ? 0 : j->src[0],
                                    .src_width = j->src[1],
                                    .stride_h = (uint32_t)h->stride,
                                    .stride_w = (uint32_t)v->stride,
                                    .offset_h = h->offset,
                                    .offset_w = v->offset,
                                    .reach_h = h->reach,
                                    .reach_w = v->reach,
                                    .w_group = j->rows * j->depth * taps,
                                    .w_row = j->transposed ? taps : j->depth * taps,
                                    .w_depth = j->transposed ? j->rows * taps : taps,
                                    .w_tap_h = h->tap_step * z->kernel[1],
                                    .w_tap_w = v->tap_step,
                                    .bias_base = p->group * j->rows + p->row };
    const vkt_bind bind[] = { [DIRECT_W] = weights_of(e, j, p, &push.w_base),
                              [DIRECT_X] = source_of(e, j, p, &push.src_base),
                              [DIRECT_BIAS] = VKT_WHOLE(j->bias.id ? j->bias : j->w), /* not read without one */
                              [DIRECT_Y] = destination_of(e, j, p, &push.dst_base) };
    push.w_base += none ? 0 : h->tap * z->kernel[1] + v->tap;
    push.dst_base += (h->first * j->dst[1] + v->first) * z->n4;
    const uint32_t spec[DIRECT_SPECS] = { [DIRECT_SPEC_LANES] = lanes,
                                          [DIRECT_SPEC_ROWS] = vkt_div_up(p->rows, tiles),
                                          [DIRECT_SPEC_CHANNELS] = j->depth,
                                          [DIRECT_SPEC_KERNEL_H] = none ? 1 : h->taps,
                                          [DIRECT_SPEC_KERNEL_W] = none ? 1 : v->taps,
                                          [DIRECT_SPEC_PAD] = reaches_out(j, h, v),
                                          [DIRECT_SPEC_BIAS] = j->bias.id != 0 };
    vkt_dispatch_add(e, VKT_K_CONV2D_DIRECT, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), strips,
                     tiles, p->groups);
}

static void emit_direct(vkt_emit *e, const tile_job *j, const tile_part *p)
{
    for (uint32_t i = 0; i < vkt_lattices(j->z, j->transposed, 0); i++)
        for (uint32_t k = 0; k < vkt_lattices(j->z, j->transposed, 1); k++) {
            const vkt_lattice h = vkt_lattice_of(j->z, j->transposed, 0, i),
                              v = vkt_lattice_of(j->z, j->transposed, 1, k);
            emit_direct_lattice(e, j, p, &h, &v);
        }
}

static void emit_product(vkt_emit *e, tile_job *j)
{
    tile_part most, p;
    j->dst_plane = (uint64_t)j->dst[0] * j->dst[1] * j->z->n4;
    j->src_plane = (uint64_t)j->src[0] * j->src[1] * j->z->n4;
    j->in_place = can_lie(j);
    j->halves = takes_halves(e->lim, j);
    if (!cut(e, j, &most)) {
        j->in_place = false;
        if (!cut(e, j, &most)) {
            vkt_conv2d_too_large(e, j->z);
            return;
        }
    }
    const vkt_conv2d_product whole = { j->z, j->transposed, j->from, j->w, j->bias, j->to };
    const vkt_conv2d_cuts cuts = vkt_conv2d_shared_cut(e, &whole);
    const bool shallow = vkt_conv2d_is_shallow(j->depth, j->z->kernel) && most.depth == j->depth;
    vkt_variant v = shallow ? VKT_V_DIRECT : cuts.pays ? cuts.preferred : VKT_V_TILE;
    uint64_t usable = VKT_V(TILE) | (shallow ? VKT_V(DIRECT) : 0) | cuts.usable;
    usable |= vkt_conv2d_fft_variants(e, j->z, j->transposed ? VKT_CONV2D_DX : VKT_CONV2D_Y, &v);
    if (vkt_conv2d_can_winograd(e, j->z, j->transposed)) {
        usable |= VKT_V(WINOGRAD);
        if (vkt_conv2d_winograd_pays(e, j->z, j->transposed, v)) v = VKT_V_WINOGRAD;
    }
    if (can_span(e, j, &most)) {
        usable |= VKT_V(SPAN);
        if (e->lim->cpu && v == VKT_V_TILE && span_pays(j) && !(e->lim->choices.off & VKT_V(SPAN))) v = VKT_V_SPAN;
    }
    v = vkt_pick(e, usable, v);
    const bool relu = vkt_take(e, VKT_STAGE_RELU);
    if (relu) e->relu = j->to;
    if (v == VKT_V_WINOGRAD) {
        vkt_emit_conv2d_winograd(e, j->z, j->transposed, j->from, j->w, j->bias, j->to);
        return;
    }
    if (vkt_conv2d_is_fft(v)) {
        vkt_emit_conv2d_fft(e, j->z, v, j->transposed, j->from, j->w, j->bias, j->to);
        return;
    }
    if (v == VKT_V_SHARED || v == VKT_V_COOP) {
        vkt_conv2d_shared_emit(e, &whole, v == VKT_V_COOP ? &cuts.coop : &cuts.shared);
        return;
    }
    for (p.group = 0; p.group < j->z->a.groups; p.group += most.groups)
        for (p.row = 0; p.row < j->rows; p.row += most.rows)
            for (p.k = 0; p.k < j->depth; p.k += most.depth) {
                p.groups = VKT_MIN(most.groups, j->z->a.groups - p.group);
                p.rows = VKT_MIN(most.rows, j->rows - p.row);
                p.depth = VKT_MIN(most.depth, j->depth - p.k);
                if (v == VKT_V_DIRECT)
                    emit_direct(e, j, &p);
                else if (v == VKT_V_SPAN)
                    emit_span(e, j, &p);
                else {
                    e->relu.id = relu && p.k + p.depth == j->depth ? j->to.id : 0; /* of a sum that is whole */
                    emit_tiles(e, j, &p);
                }
            }
}

void vkt_emit_conv2d(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor w, vkt_tensor bias, vkt_tensor y)
{
    tile_job j = { .z = z,
                   .dst = { z->out[0], z->out[1] },
                   .src = { z->in[0], z->in[1] },
                   .rows = z->out_channels / z->a.groups,
                   .depth = z->channels / z->a.groups,
                   .from = x,
                   .w = w,
                   .bias = bias,
                   .to = y };
    emit_product(e, &j);
}

void vkt_emit_conv2d_dx(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor dy, vkt_tensor w, vkt_tensor bias,
                        vkt_tensor dx)
{
    tile_job j = { .z = z,
                   .transposed = true,
                   .dst = { z->in[0], z->in[1] },
                   .src = { z->out[0], z->out[1] },
                   .rows = z->channels / z->a.groups,
                   .depth = z->out_channels / z->a.groups,
                   .from = dy,
                   .w = w,
                   .bias = bias,
                   .to = dx };
    emit_product(e, &j);
}
