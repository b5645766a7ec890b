/* ops/conv/tile.c - y and dx by tiles of destination channels x pixels: see shaders/conv/tile.comp. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_tile.abi.h"

/* Fills one axis of the table of taps, one phase after the other. `range` gets two numbers for each pixel: the first
 * tap that reads inside the source, and the last such tap + 1. Both numbers are 0 if no tap reads inside the source.
 * `source` gets a number for each tap of each pixel: the index that the tap reads, or -1 if the tap reads outside the
 * source. The numbers of phase l start at source[l.before * kernel]. */
static void fill_axis(const vkt_conv_job *j, int axis, int32_t *range, int32_t *source)
{
    for (uint32_t first = 0; first < vkt_conv_phases(j->z, j->transposed, axis); first++) {
        const vkt_conv_phase l = vkt_conv_phase_of(j->z, j->transposed, axis, first);
        int32_t *to = source + (size_t)l.before * j->z->kernel[axis];
        for (int64_t i = 0; i < l.count; i++, range += 2) {
            range[0] = range[1] = 0;
            for (int32_t k = 0; k < (int32_t)l.taps; k++) {
                const bool inside = vkt_conv_phase_inside(j->z, j->transposed, axis, &l, i, k);
                *to++ = inside ? (int32_t)vkt_conv_phase_source(&l, i, k) : -1;
                if (!inside) continue;
                if (range[1] == 0) range[0] = k;
                range[1] = k + 1;
            }
        }
    }
}

/* Computes where the parts of the table start. fill_axis writes `range` at part[0] for H and at part[1] for W, and
 * `source` at part[2] for H and at part[3] for W. part[4] is the size of the table. */
static void table_parts(const vkt_conv_job *j, uint64_t part[5])
{
    part[0] = 0;
    part[1] = 2ull * j->dst[0];
    part[2] = part[1] + 2ull * j->dst[1];
    part[3] = part[2] + (uint64_t)j->dst[0] * j->z->kernel[0];
    part[4] = part[3] + (uint64_t)j->dst[1] * j->z->kernel[1];
}

static vkt_tensor tap_table(vkt_emit *e, const vkt_conv_job *j)
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

/* Returns the number of lanes along a row of a tile. */
static uint32_t lanes_across(const vkt_limits *lim, const vkt_conv_job *j, uint32_t rows)
{
    return rows >= 32 && j->halves ? 8 : vkt_subgroup(lim, VKT_K_CONV2D_TILE);
}

/* Returns true if tiles of 32 rows or more are half a subgroup wide: 8 of 16 lanes. If a pixel has an odd multiple of 8
 * vec4s, a half-wide tile has vec4s of one pixel only. Half-wide tiles pay if the plane is one pixel of 8 vec4s,
 * because half of a wider tile would be idle. They also pay if at least an eighth of the taps are outside of the
 * source, because a tile over several pixels computes a tap if any of the pixels needs the tap. The two halves of a
 * subgroup compute different rows of the same pixels, so lanes_across requires 32 rows. */
static bool takes_halves(const vkt_limits *lim, const vkt_conv_job *j)
{
    return lim->traits->conv_halves && vkt_subgroup(lim, VKT_K_CONV2D_TILE) == 16 && j->z->n4 % 16 == 8 &&
           (j->dst_plane == 8 || vkt_conv_phases_filled(j->z, j->transposed) <= 0.875);
}

/* Returns the number of rows (destination channels) of a lane: a multiple of 4, and at most the trait conv_rows. All
 * lanes get about the same number. For instance, with at most 32 rows a lane, 40 rows are split into two tiles, and a
 * lane has 20 rows. */
static uint32_t tile_rows(const vkt_limits *lim, const vkt_conv_job *j, uint32_t rows)
{
    const uint32_t across = lanes_across(lim, j, rows), blocks = vkt_subgroup(lim, VKT_K_CONV2D_TILE) / across;
    const uint32_t most = VKT_MIN(4 * across, lim->traits->conv_rows);
    const uint32_t share = vkt_div_up(rows, vkt_div_up(rows, most * blocks) * blocks);
    return (uint32_t)vkt_round_up(share, 4);
}

/* Returns the source channels of an iteration: a divisor of `depth`, so that no channels are left over. Four is best:
 * there are enough products between a load and a store of an accumulator, but few operands. */
static uint32_t step_depth(uint32_t depth)
{
    static const uint32_t order[] = { 4, 5, 6, 3, 7, 2 };
    for (uint32_t i = 0; i < VKT_COUNT(order); i++)
        if (depth % order[i] == 0) return order[i];
    return 1;
}

/* ---- the size of a part ---- */

static uint32_t packed_rows(const vkt_limits *lim, const vkt_conv_job *j, uint32_t rows)
{
    const uint32_t mb = tile_rows(lim, j, rows);
    return vkt_div_up(rows, mb) * mb;
}

/* Returns the iterations of all loops of an invocation of conv/tile.comp, for one tile with `taps` taps. */
static uint64_t tile_rounds(uint64_t taps, uint32_t depth)
{
    return taps * (depth / step_depth(depth) + 2) + 1;
}

/* Returns the iterations of an invocation for part p: the iterations for one tile, times the number of tiles that a
 * work group computes one after the other. Each tile counts as a tile of the phase with the most taps. */
static uint64_t rounds_of(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p)
{
    uint64_t taps[2] = { 0 }, count[2] = { 0 };
    for (int axis = 0; axis < 2; axis++)
        for (uint32_t i = 0; i < vkt_conv_phases(j->z, j->transposed, axis); i++) {
            const vkt_conv_phase l = vkt_conv_phase_of(j->z, j->transposed, axis, i);
            taps[axis] = VKT_MAX(taps[axis], l.taps);
            count[axis] = VKT_MAX(count[axis], l.count);
        }
    const uint32_t across = lanes_across(e->lim, j, p->rows), blocks = vkt_subgroup(e->lim, VKT_K_CONV2D_TILE) / across;
    const uint64_t tiles = vkt_groups(count[0] * count[1] * j->z->n4, across, 1) *
                           vkt_div_up(p->rows, tile_rows(e->lim, j, p->rows) * blocks);
    return vkt_groups(tiles, e->lim->max_groups, 1) * tile_rounds(taps[0] * taps[1], p->depth);
}

/* Returns true if the loops are short enough in part p and in the last part. The last part may have fewer source
 * channels. Its loops may still be longer, because its step_depth may be smaller. */
static bool is_short(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p)
{
    vkt_conv_part last = *p;
    last.depth = j->depth % p->depth;
    return rounds_of(e, j, p) <= vkt_largest_loop(e->lim) && rounds_of(e, j, &last) <= vkt_largest_loop(e->lim);
}

/* Sets j->most. Returns false if not even one channel (four channels if j->in_place) fits into a binding. */
static bool split(const vkt_emit *e, vkt_conv_job *j)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], groups = j->z->a.groups, unit = j->in_place ? 4 : 1;
    const uint64_t range = e->lim->max_storage_range_bytes, read = vkt_read_range(e->lim);
    const uint64_t w_bytes = 4ull * j->z->channels / groups * taps; /* bytes of a row of w; w has O rows */
    uint64_t rows = vkt_steps_in(range, 16 * j->dst_plane, (uint64_t)groups * j->rows);
    uint64_t depth = vkt_steps_in(read, 16 * j->src_plane, (uint64_t)groups * j->depth);
    const uint64_t w_rows = vkt_steps_in(j->in_place ? read : range, w_bytes, j->z->out_channels);
    if (j->transposed)
        depth = VKT_MIN(depth, w_rows);
    else
        rows = VKT_MIN(rows, w_rows);
    vkt_conv_part p = { .rows = vkt_conv2d_share(j->rows, rows, unit) };
    if (p.rows == 0) return false;
    /* A dispatch can have max_groups work groups along its y axis. The packing kernel has one work group along y for
     * each panel (the packed weights of a tile's rows). The kernels of DIRECT have one work group along y for each
     * tile. None of these kernels loops over y. If a group of channels has several panels or tiles, each has at least 4
     * rows. So 4 * max_groups rows of a group need at most max_groups work groups. */
    p.rows = vkt_conv2d_share(j->rows, VKT_MIN(rows, 4ull * e->lim->max_groups), unit);
    const uint32_t a_rows = packed_rows(e->lim, j, p.rows);
    const uint64_t packed = j->in_place ? 0 : 4ull * taps * a_rows; /* bytes of a source channel's packed weights */
    const uint64_t packed_depth = packed ? range / packed : depth;
    const uint64_t depth_of_one = VKT_MIN(depth, packed_depth);
    p.depth = vkt_conv2d_share(j->depth, depth_of_one, j->in_place || depth_of_one >= 4 ? 4 : 1);
    if (p.depth == 0) return false;
    for (uint32_t n = vkt_div_up(j->depth, p.depth) + 1; p.depth > 4 && !is_short(e, j, &p); n++)
        p.depth = (uint32_t)vkt_round_up(vkt_div_up(j->depth, n), 4);
    p.groups = 1;
    if (p.rows == j->rows && p.depth == j->depth)
        p.groups = (uint32_t)VKT_MIN(VKT_MIN(rows / p.rows, depth / p.depth), VKT_MIN(packed_depth / p.depth, groups));
    j->most = p;
    return true;
}

/* Returns true if tile.comp can read the weights without packing: the kernel is 1x1, and the rows of w are whole vec4s.
 * For y, w has the order [m][k]; for dx, it has the order [k][m]. */
static bool needs_no_packing(const vkt_conv_job *j)
{
    return j->z->kernel[0] * j->z->kernel[1] == 1 && (j->transposed ? j->rows : j->depth) % 4 == 0;
}

bool vkt_conv_tile_split(const vkt_emit *e, vkt_conv_job *j)
{
    j->in_place = needs_no_packing(j);
    j->halves = takes_halves(e->lim, j);
    if (split(e, j)) return true;
    j->in_place = false;
    return split(e, j);
}

/* Copies the weights into panels, and sets the strides of the panels in *to. A panel has the weights of one tap after
 * the other. The weights of a tap have the order [m][k] if `m_major`, else [k][m]. */
static vkt_bind pack_weights(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p, uint32_t mb, bool m_major,
                             vkt_conv2d_tile_push *to)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], panel = taps * p->depth * mb / 4;
    to->a_pitch = (m_major ? p->depth : mb) / 4;
    to->a_tap_w = p->depth * mb / 4;
    to->a_tap_h = j->z->kernel[1] * to->a_tap_w;
    to->a_tile = panel;
    to->a_group = vkt_div_up(p->rows, mb) * panel;
    return vkt_conv_pack(e, j, p, mb, m_major, (vkt_conv2d_pack_push){ .inner = 1, .w_outer = 1 });
}

static vkt_bind weights_in_place(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t mb,
                                 vkt_conv2d_tile_push *to)
{
    const vkt_bind b = vkt_conv_weights(e, j, p, &to->a_base);
    to->a_base /= 4;
    to->a_pitch = (j->transposed ? j->rows : j->depth) / 4;
    to->a_tile = j->transposed ? mb / 4 : mb * to->a_pitch;
    to->a_group = j->rows * j->depth / 4;
    return b;
}

/* Returns true if the kernel reads weights as [m][k]. Weights of y that are not packed have this order. Packed weights
 * get this order if depth is a multiple of 4, and if the rows are so few that a lane holds the weights of one or two
 * rows. In this case, a lane loads the weights for four k with one or two loads instead of four. */
static bool is_m_major(const vkt_limits *lim, const vkt_conv_job *j, const vkt_conv_part *p)
{
    const uint32_t across = lanes_across(lim, j, p->rows), mb = tile_rows(lim, j, p->rows);
    if (j->in_place) return !j->transposed;
    return p->depth % 4 == 0 && (mb <= across || mb == 2 * across);
}

/* Emits the pixels that are in phase h along H and in phase v along W. */
static void emit_phase(vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, const vkt_conv_phase *h,
                       const vkt_conv_phase *v, uint32_t mb, vkt_conv2d_tile_push push, vkt_bind a)
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
    const bool uniform = z->n4 % across == 0 || !vkt_conv_reaches_out(j, h, v);
    const uint64_t tiles = (uint64_t)vkt_div_up(push.columns, across) * push.row_tiles;
    if (!vkt_conv2d_is_short(e, tiles, tile_rounds((uint64_t)h->taps * v->taps, p->depth))) return;
    const vkt_bind source = vkt_conv_source(e, j, p, &push.src_base),
                   to = vkt_conv_destination(e, j, p, &push.dst_base);
    push.dst_base += (h->first * j->dst[1] + v->first) * z->n4;
    const vkt_bind bind[] = { [TILE_A] = a,
                              [TILE_SRC] = source,
                              [TILE_TAPS] = VKT_WHOLE(j->taps),
                              [TILE_BIAS] = VKT_WHOLE(bias ? j->bias : j->taps), /* not read if there is no bias */
                              [TILE_DST] = to };
    const uint32_t spec[TILE_SPECS] = { [TILE_SPEC_LANES] = vkt_subgroup(e->lim, VKT_K_CONV2D_TILE),
                                        [TILE_SPEC_MB] = mb,
                                        [TILE_SPEC_UNROLL] = unroll,
                                        [TILE_SPEC_UNIFORM] = uniform,
                                        [TILE_SPEC_BIAS] = bias,
                                        [TILE_SPEC_M_MAJOR] = m_major,
                                        [TILE_SPEC_ACROSS] = across };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = add ? VKT_K_CONV2D_TILE_ADD : VKT_K_CONV2D_TILE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { tiles, 1, p->groups } });
}

void vkt_conv_tile_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p)
{
    const uint32_t across = lanes_across(e->lim, j, p->rows), tall = tile_rows(e->lim, j, p->rows);
    const bool m_major = is_m_major(e->lim, j, p);
    const uint32_t mb = m_major && tall > across ? (uint32_t)vkt_round_up(tall, across) : tall;
    vkt_conv2d_tile_push push = { .n4 = j->z->n4,
                                  .dst_plane = (uint32_t)j->dst_plane,
                                  .rows = p->rows,
                                  .row_tiles =
                                      vkt_div_up(p->rows, mb * (vkt_subgroup(e->lim, VKT_K_CONV2D_TILE) / across)),
                                  .src_width = j->src[1],
                                  .src_plane = (uint32_t)j->src_plane,
                                  .depth = p->depth,
                                  .src_group = j->depth,
                                  .dst_group = j->rows,
                                  .bias_base = p->group * j->rows + p->row };
    if (!j->taps.id) j->taps = tap_table(e, j);
    const vkt_bind a = j->in_place ? weights_in_place(e, j, p, mb, &push) : pack_weights(e, j, p, mb, m_major, &push);
    for (uint32_t i = 0; i < vkt_conv_phases(j->z, j->transposed, 0); i++)
        for (uint32_t k = 0; k < vkt_conv_phases(j->z, j->transposed, 1); k++) {
            const vkt_conv_phase h = vkt_conv_phase_of(j->z, j->transposed, 0, i),
                                 v = vkt_conv_phase_of(j->z, j->transposed, 1, k);
            emit_phase(e, j, p, &h, &v, mb, push, a);
        }
}
