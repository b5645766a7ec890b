/* ops/conv2d_emit.c - how the products of conv2d are cut into tiles: see the headers of shaders/conv2d_*.comp. */
#include "ops/conv2d.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_direct.abi.h"
#include "abi/conv2d_dw.abi.h"
#include "abi/conv2d_dw_sum.abi.h"
#include "abi/conv2d_pack.abi.h"
#include "abi/conv2d_tile.abi.h"

/* All loops of an invocation together: Mesa before 23 ends them silently after 65535 rounds. */
#define MAX_ROUNDS 60000u

static bool fits(vkt_emit *e, vkt_tensor t)
{
    const vkt_value *v = vkt_lowered_value(e, t);
    if (v->bytes <= e->lim->max_storage_range_bytes && v->bytes / 16 <= INT32_MAX) return true;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                               "%s: %s has %llu bytes, but this device binds %llu at most: use smaller batches",
                               e->node->op->name, v->name, (unsigned long long)v->bytes,
                               (unsigned long long)e->lim->max_storage_range_bytes));
    return false;
}

/* Whether `groups` groups of at most `rounds` rounds each, cut to what a dispatch can have, keep below MAX_ROUNDS. */
static bool is_short(vkt_emit *e, uint64_t groups, uint64_t rounds)
{
    const uint64_t in_turn = (groups + e->lim->max_groups - 1) / e->lim->max_groups;
    if (in_turn <= MAX_ROUNDS / rounds) return true;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %llu x %llu rounds are too long for one work group",
                               e->node->op->name, (unsigned long long)in_turn, (unsigned long long)rounds));
    return false;
}

/* ---- y and dx: tiles of destination channels x pixels ---- */

typedef struct tile_job {
    const vkt_conv2d_size *z;
    bool transposed; /* dx: the destination is the input picture */
    uint32_t dst[2], src[2];
    uint32_t rows, depth; /* destination and source channels of a group */
    uint32_t mb, unroll;
    bool m_major;
    vkt_tensor weights; /* as the kernel reads them */
    vkt_conv2d_tile_push push;
} tile_job;

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* One axis of the table TAPS: source[i kernel + r] is the place that tap r of destination i reads, or -1; range[2i],
 * range[2i+1] the first tap that reads one, and the last + 1. */
static void fill_axis(const tile_job *j, int axis, int32_t *range, int32_t *source)
{
    const vkt_conv2d_attr *a = &j->z->a;
    const int64_t stride = a->stride[axis], pad = a->pad[axis], dilation = a->dilation[axis];
    const uint32_t kernel = j->z->kernel[axis];
    for (int64_t i = 0; i < j->dst[axis]; i++, range += 2) {
        range[0] = range[1] = 0;
        for (int32_t r = 0; r < (int32_t)kernel; r++) {
            int64_t at = j->transposed ? i + pad - r * dilation : i * stride - pad + r * dilation;
            bool inside = at >= 0;
            if (j->transposed) {
                inside = inside && at % stride == 0;
                at /= stride;
            }
            inside = inside && at < j->src[axis];
            *source++ = inside ? (int32_t)at : -1;
            if (!inside) continue;
            if (range[1] == 0) range[0] = r;
            range[1] = r + 1;
        }
    }
}

static vkt_tensor tap_table(vkt_emit *e, tile_job *j)
{
    const uint64_t ranges_w = 2ull * j->dst[0], sources_h = ranges_w + 2ull * j->dst[1];
    const uint64_t sources_w = sources_h + (uint64_t)j->dst[0] * j->z->kernel[0];
    const uint64_t n = sources_w + (uint64_t)j->dst[1] * j->z->kernel[1];
    int32_t *t = vkt_alloc_array(&e->host, (size_t)n, sizeof *t);
    if (!t) {
        vkt_emit_error(e, vkt_fail_nomem(&e->host, "a table of taps", (size_t)n * sizeof *t));
        return (vkt_tensor){ 0 };
    }
    fill_axis(j, 0, t, t + sources_h);
    fill_axis(j, 1, t + ranges_w, t + sources_w);
    j->push.col_ranges = (uint32_t)ranges_w;
    j->push.row_sources = (uint32_t)sources_h;
    j->push.col_sources = (uint32_t)sources_w;
    const vkt_tensor taps = vkt_emit_const(e, "taps", t, n * sizeof *t);
    vkt_free(&e->host, t);
    return taps;
}

/* Tile height: as tall as the accumulators allow, and no taller than an even share of the rows. */
static uint32_t tile_rows(const vkt_limits *lim, uint32_t rows)
{
    const uint32_t most = lim->cpu ? 4 * VKT_MIN(lim->subgroup_size, 16u) : VKT_MIN(4 * lim->subgroup_size, 32u);
    const uint32_t share = vkt_div_up(rows, vkt_div_up(rows, most));
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

/* Puts w in k-major panels of mb rows. */
static void pack_weights(vkt_emit *e, tile_job *j, vkt_tensor w)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], tiles = vkt_div_up(j->rows, j->mb),
                   groups = j->z->a.groups;
    const uint32_t per_group = j->rows * j->depth * taps; /* of w: the same forward and back */
    const uint32_t out_step = j->z->channels / groups * taps;
    const uint64_t panel = (uint64_t)taps * j->depth * j->mb / 4;
    j->push.a_pitch = j->mb / 4;
    j->push.a_tap = j->depth * j->mb / 4;
    j->push.a_tile = (uint32_t)panel;
    j->push.a_group = tiles * (uint32_t)panel;
    j->weights = vkt_scratch(e, "weights", 16 * panel * tiles * groups);
    const vkt_conv2d_pack_push push = { .vec4s = (uint32_t)panel,
                                        .depth = j->depth,
                                        .rows = j->rows,
                                        .tiles = tiles,
                                        .mb4 = j->mb / 4,
                                        .w_group = per_group,
                                        .w_row = j->transposed ? taps : out_step,
                                        .w_depth = j->transposed ? out_step : taps };
    const vkt_bind bind[] = { [PACK_W] = VKT_WHOLE(w), [PACK_A] = VKT_WHOLE(j->weights) };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128u };
    vkt_dispatch_add(e, VKT_K_CONV2D_PACK, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec),
                     vkt_groups(panel, spec[0], e->lim->cpu ? 16 : 1), tiles * groups, 1);
}

/* A 1x1 kernel can be read where it lies when its rows are whole vec4s: forward as [m][k], back as [k][m]. */
static bool use_weights_in_place(vkt_emit *e, tile_job *j, vkt_tensor w)
{
    const uint32_t in_depth = j->z->channels / j->z->a.groups;
    if (j->z->kernel[0] * j->z->kernel[1] != 1 || in_depth % 4 != 0) return false;
    j->m_major = !j->transposed;
    if (j->m_major && j->mb > e->lim->subgroup_size) j->mb = (uint32_t)vkt_round_up(j->mb, e->lim->subgroup_size);
    j->weights = w;
    j->push.a_pitch = in_depth / 4;
    j->push.a_tile = j->m_major ? j->mb * (in_depth / 4) : j->mb / 4;
    j->push.a_group = j->rows * j->depth / 4;
    return true;
}

static void emit_tiles(vkt_emit *e, tile_job *j, vkt_tensor src, vkt_tensor w, vkt_tensor bias, vkt_tensor dst)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t lanes = e->lim->subgroup_size, *stride = z->a.stride, *dilation = z->a.dilation;
    if (!fits(e, src) || !fits(e, dst) || !fits(e, w)) return;
    j->mb = tile_rows(e->lim, j->rows);
    j->unroll = step_depth(j->depth);
    j->push.columns = j->dst[0] * j->dst[1] * z->n4;
    j->push.n4 = z->n4;
    j->push.width = j->dst[1];
    j->push.rows = j->rows;
    j->push.src_width = j->src[1];
    j->push.src_plane = j->src[0] * j->src[1] * z->n4;
    j->push.src_group = j->depth;
    j->push.kernel_h = z->kernel[0];
    j->push.kernel_w = z->kernel[1];
    j->push.tap_step_h = j->transposed ? stride[0] / gcd(stride[0], dilation[0]) : 1;
    j->push.tap_step_w = j->transposed ? stride[1] / gcd(stride[1], dilation[1]) : 1;
    const vkt_tensor taps = tap_table(e, j);
    if (!use_weights_in_place(e, j, w)) pack_weights(e, j, w);
    if (e->status != VKT_OK || !fits(e, j->weights)) return;
    j->push.row_tiles = vkt_div_up(j->rows, j->mb);

    const uint64_t tiles = (uint64_t)vkt_div_up(j->push.columns, lanes) * j->push.row_tiles;
    if (!is_short(e, tiles, (uint64_t)z->kernel[0] * z->kernel[1] * (j->depth / j->unroll + 2))) return;
    const vkt_bind bind[] = { [TILE_A] = VKT_WHOLE(j->weights),
                              [TILE_SRC] = VKT_WHOLE(src),
                              [TILE_TAPS] = VKT_WHOLE(taps),
                              [TILE_BIAS] = VKT_WHOLE(bias.id ? bias : taps), /* not read without one */
                              [TILE_DST] = VKT_WHOLE(dst) };
    const uint32_t spec[TILE_SPECS] = { [TILE_SPEC_LANES] = lanes,       [TILE_SPEC_MB] = j->mb,
                                        [TILE_SPEC_UNROLL] = j->unroll,  [TILE_SPEC_UNIFORM] = z->n4 % lanes == 0,
                                        [TILE_SPEC_BIAS] = bias.id != 0, [TILE_SPEC_M_MAJOR] = j->m_major };
    vkt_dispatch_add(e, VKT_K_CONV2D_TILE, bind, VKT_COUNT(bind), &j->push, sizeof j->push, spec, VKT_COUNT(spec),
                     tiles, 1, z->a.groups);
}

/* At most DIRECT_DEPTH products an element (conv2d_direct.comp). All are unrolled: more code would leave the
 * instruction cache. Few rows a tile: each is a stream of writes, and eight are as many as prefetchers follow. */
#define DIRECT_DEPTH 32u
#define DIRECT_ROWS 8u

static bool is_shallow(const tile_job *j)
{
    return j->depth * j->z->kernel[0] * j->z->kernel[1] <= DIRECT_DEPTH &&
           (!j->transposed || (j->z->a.stride[0] == 1 && j->z->a.stride[1] == 1));
}

static void emit_direct(vkt_emit *e, const tile_job *j, vkt_tensor src, vkt_tensor w, vkt_tensor bias, vkt_tensor dst)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t lanes = e->lim->subgroup_size, taps = z->kernel[0] * z->kernel[1], groups = z->a.groups;
    const uint32_t tiles = vkt_div_up(j->rows, DIRECT_ROWS), columns = j->dst[0] * j->dst[1] * z->n4;
    const uint32_t in_flight = vkt_div_up(e->lim->cpu ? 64 : 4096, tiles * groups);
    const uint32_t rounds = VKT_MIN(vkt_div_up(vkt_div_up(columns, in_flight), lanes), MAX_ROUNDS / 2);
    const uint32_t strips = vkt_div_up(columns, rounds * lanes);
    if (!fits(e, src) || !fits(e, dst) || !is_short(e, strips, rounds + 1)) return;
    int32_t pad[2];
    for (int i = 0; i < 2; i++)
        pad[i] = (int32_t)(j->transposed ? z->a.dilation[i] * (z->kernel[i] - 1) - z->a.pad[i] : z->a.pad[i]);
    const vkt_conv2d_direct_push push = { .columns = columns,
                                          .n4 = z->n4,
                                          .width = j->dst[1],
                                          .strip = rounds * lanes,
                                          .step_p = lanes / z->n4 / j->dst[1],
                                          .step_q = lanes / z->n4 % j->dst[1],
                                          .step_n = lanes % z->n4,
                                          .rows = j->rows,
                                          .src_height = j->src[0],
                                          .src_width = j->src[1],
                                          .stride_h = z->a.stride[0],
                                          .stride_w = z->a.stride[1],
                                          .pad_h = pad[0],
                                          .pad_w = pad[1],
                                          .dilation_h = z->a.dilation[0],
                                          .dilation_w = z->a.dilation[1],
                                          .w_group = j->rows * j->depth * taps,
                                          .w_row = j->transposed ? taps : j->depth * taps,
                                          .w_depth = j->transposed ? j->rows * taps : taps };
    const vkt_bind bind[] = { [DIRECT_W] = VKT_WHOLE(w),
                              [DIRECT_X] = VKT_WHOLE(src),
                              [DIRECT_BIAS] = VKT_WHOLE(bias.id ? bias : w), /* not read without one */
                              [DIRECT_Y] = VKT_WHOLE(dst) };
    const uint32_t spec[DIRECT_SPECS] = {
        [DIRECT_SPEC_LANES] = lanes,           [DIRECT_SPEC_ROWS] = vkt_div_up(j->rows, tiles),
        [DIRECT_SPEC_CHANNELS] = j->depth,     [DIRECT_SPEC_KERNEL_H] = z->kernel[0],
        [DIRECT_SPEC_KERNEL_W] = z->kernel[1], [DIRECT_SPEC_PAD] = pad[0] != 0 || pad[1] != 0,
        [DIRECT_SPEC_BIAS] = bias.id != 0,     [DIRECT_SPEC_FLIP] = j->transposed
    };
    vkt_dispatch_add(e, VKT_K_CONV2D_DIRECT, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), strips,
                     tiles, groups);
}

static void emit_product(vkt_emit *e, tile_job *j, vkt_tensor src, vkt_tensor w, vkt_tensor bias, vkt_tensor dst)
{
    const bool shallow = is_shallow(j);
    vkt_variant v = shallow ? VKT_V_DIRECT : VKT_V_TILE;
    const uint64_t fft = vkt_conv2d_fft_variants(e, j->z, j->transposed ? VKT_CONV2D_DX : VKT_CONV2D_Y, &v);
    v = vkt_pick(e, fft | VKT_V(TILE) | (shallow ? VKT_V(DIRECT) : 0), v);
    if (vkt_conv2d_is_fft(v) && j->transposed)
        vkt_emit_conv2d_fft_dx(e, j->z, v, src, w, dst);
    else if (vkt_conv2d_is_fft(v))
        vkt_emit_conv2d_fft(e, j->z, v, src, w, bias, dst);
    else if (v == VKT_V_DIRECT)
        emit_direct(e, j, src, w, bias, dst);
    else
        emit_tiles(e, j, src, w, bias, dst);
}

void vkt_emit_conv2d(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor w, vkt_tensor bias, vkt_tensor y)
{
    tile_job j = { .z = z,
                   .dst = { z->out[0], z->out[1] },
                   .src = { z->in[0], z->in[1] },
                   .rows = z->out_channels / z->a.groups,
                   .depth = z->channels / z->a.groups };
    emit_product(e, &j, x, w, bias, y);
}

void vkt_emit_conv2d_dx(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor dy, vkt_tensor w, vkt_tensor dx)
{
    tile_job j = { .z = z,
                   .transposed = true,
                   .dst = { z->in[0], z->in[1] },
                   .src = { z->out[0], z->out[1] },
                   .rows = z->channels / z->a.groups,
                   .depth = z->out_channels / z->a.groups };
    emit_product(e, &j, dy, w, (vkt_tensor){ 0 }, dx);
}

/* ---- dw and db: tiles of output channels x weights, summed over the plane ---- */

typedef struct dw_cut {
    uint32_t lane_rows, cols;      /* of a tile: output channels per lane, weights of a channel */
    uint32_t row_tiles, col_tiles; /* of a group */
    uint32_t slice, slices;        /* vec4s of a plane of dy that one work group sums; how many such */
} dw_cut;

/* Tiles of even size; then slices until there is work for every thread, the operands of a slice stay in a core's cache,
 * and no loop is too long. */
static dw_cut cut_dw(const vkt_emit *e, const vkt_conv2d_size *z, uint32_t plane)
{
    const uint32_t lanes = e->lim->subgroup_size, rows = z->out_channels / z->a.groups;
    const uint32_t cols = z->channels / z->a.groups * z->kernel[0] * z->kernel[1];
    const uint32_t most_rows = VKT_MAX(VKT_MIN(4 * lanes, 64u), lanes);
    dw_cut c = { .row_tiles = vkt_div_up(rows, most_rows), .col_tiles = vkt_div_up(cols, 32) };
    c.lane_rows = vkt_div_up(vkt_div_up(rows, c.row_tiles), lanes);
    c.cols = vkt_div_up(cols, c.col_tiles);
    const uint64_t tiles = (uint64_t)c.row_tiles * c.col_tiles * z->a.groups, wanted = e->lim->cpu ? 32 : 1024;
    const uint32_t shortest = 16, longest = MAX_ROUNDS / 8;
    const uint32_t spread = (uint32_t)VKT_MIN((wanted + tiles - 1) / tiles, vkt_div_up(plane, shortest));
    c.slice = vkt_div_up(plane, VKT_MAX(spread, vkt_div_up(plane, longest)));
    c.slices = vkt_div_up(plane, c.slice);
    return c;
}

static void sum_slices(vkt_emit *e, vkt_tensor part, uint32_t slices, uint32_t part_floats, uint32_t bias_start,
                       vkt_tensor dw, vkt_tensor db)
{
    const uint32_t weights = (uint32_t)(vkt_lowered_value(e, dw)->bytes / 4);
    const vkt_conv2d_dw_sum_push push = { .weights = weights,
                                          .biases = db.id ? (uint32_t)(vkt_lowered_value(e, db)->bytes / 4) : 0,
                                          .bias_start = bias_start,
                                          .part = part_floats,
                                          .slices = slices };
    const vkt_bind bind[] = {
        [DW_SUM_PART] = VKT_WHOLE(part), [DW_SUM_W] = VKT_WHOLE(dw), [DW_SUM_B] = VKT_WHOLE(db.id ? db : dw)
    };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128u };
    vkt_dispatch_add(e, VKT_K_CONV2D_DW_SUM, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec),
                     vkt_groups(push.weights + push.biases, spec[0], e->lim->cpu ? 8 : 1), 1, 1);
}

static void emit_dw_tiles(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor dy, vkt_tensor dw,
                          vkt_tensor db)
{
    if (!fits(e, x) || !fits(e, dy) || !fits(e, dw)) return;
    const uint32_t plane = z->out[0] * z->out[1] * z->n4;
    const dw_cut c = cut_dw(e, z, plane);
    const uint64_t works = (uint64_t)c.row_tiles * c.col_tiles * c.slices;
    if (!is_short(e, works, c.slice + c.slice / z->n4 + 2ull)) return;
    const uint64_t bias_start = vkt_round_up(vkt_lowered_value(e, dw)->bytes, VKT_ALIGN_BYTES) / 4;
    const uint64_t part_floats = bias_start + (db.id ? vkt_round_up(z->out_channels, VKT_ALIGN_BYTES / 4) : 0);
    vkt_tensor part = { 0 };
    if (c.slices > 1) {
        part = vkt_scratch(e, "slices", 4 * part_floats * c.slices);
        if (!part.id || !fits(e, part)) return;
    }
    const vkt_conv2d_dw_push push = { .n4 = z->n4,
                                      .width = z->out[1],
                                      .plane = plane,
                                      .slice = c.slice,
                                      .src_height = z->in[0],
                                      .src_width = z->in[1],
                                      .src_group = z->channels / z->a.groups,
                                      .kernel_h = z->kernel[0],
                                      .kernel_w = z->kernel[1],
                                      .stride_h = z->a.stride[0],
                                      .stride_w = z->a.stride[1],
                                      .pad_h = z->a.pad[0],
                                      .pad_w = z->a.pad[1],
                                      .dilation_h = z->a.dilation[0],
                                      .dilation_w = z->a.dilation[1],
                                      .rows = z->out_channels / z->a.groups,
                                      .row_tiles = c.row_tiles,
                                      .col_tiles = c.col_tiles,
                                      .slices = c.slices,
                                      .part = (uint32_t)part_floats };
    const vkt_bind to_w = VKT_WHOLE(part.id ? part : dw), to_b = VKT_WHOLE(part.id || !db.id ? to_w.t : db);
    vkt_bind bind[] = { [DW_DY] = VKT_WHOLE(dy), [DW_X] = VKT_WHOLE(x), [DW_W] = to_w, [DW_B] = to_b };
    if (part.id && db.id) bind[DW_B].offset_bytes = 4 * bias_start;
    const uint32_t spec[DW_SPECS] = { [DW_SPEC_LANES] = e->lim->subgroup_size,
                                      [DW_SPEC_COLS] = c.cols,
                                      [DW_SPEC_ROWS] = c.lane_rows,
                                      [DW_SPEC_PAD] = z->a.pad[0] != 0 || z->a.pad[1] != 0,
                                      [DW_SPEC_BIAS] = db.id != 0 };
    vkt_dispatch_add(e, VKT_K_CONV2D_DW, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), works, 1,
                     z->a.groups);
    if (part.id) sum_slices(e, part, c.slices, (uint32_t)part_floats, (uint32_t)bias_start, dw, db);
}

void vkt_emit_conv2d_dw(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor dy, vkt_tensor dw,
                        vkt_tensor db)
{
    vkt_variant v = VKT_V_TILE;
    const uint64_t fft = vkt_conv2d_fft_variants(e, z, VKT_CONV2D_DW, &v);
    v = vkt_pick(e, fft | VKT_V(TILE), v);
    if (vkt_conv2d_is_fft(v))
        vkt_emit_conv2d_fft_dw(e, z, v, x, dy, dw, db);
    else
        emit_dw_tiles(e, z, x, dy, dw, db);
}
