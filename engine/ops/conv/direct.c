/* ops/conv/direct.c - y and dx by the variants DIRECT and DIRECT_SHARED. shaders/conv/direct.comp unrolls all products
 * of an element, so DIRECT can run only if an element has few products. shaders/conv/direct_shared.comp has a loop over
 * the products, and keeps the weights in shared memory. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_direct.abi.h"
#include "abi/conv2d_direct_shared.abi.h"
#include "abi/direct_tiles.abi.h"

/* The most products per element (conv/direct.comp). All are unrolled. More code would not fit into the instruction
 * cache. */
#define DIRECT_DEPTH 40u

bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2])
{
    return (uint64_t)channels_of_group * kernel[0] * kernel[1] <= DIRECT_DEPTH;
}

/* Emits the dispatch for the pixels that are in phase h along H and in phase v along W. If no tap reaches these pixels,
 * the kernel gets a source of height 0, so that each tap counts as padding. */
static void emit_direct_phase(vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, const vkt_conv_phase *h,
                              const vkt_conv_phase *v)
{
    const vkt_conv2d_size *z = j->z;
    const bool none = h->taps == 0 || v->taps == 0;
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_CONV2D_DIRECT), taps = z->kernel[0] * z->kernel[1];
    const uint32_t tiles = vkt_div_up(p->rows, VKT_DIRECT_ROWS), columns = h->count * v->count * z->n4;
    const uint32_t in_flight = vkt_div_up(vkt_groups_wanted(e->lim, lanes), tiles * p->groups);
    const uint32_t rounds =
        (uint32_t)VKT_MIN(vkt_div_up(vkt_div_up(columns, in_flight), lanes), vkt_largest_loop(e->lim) / 2);
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
    const vkt_bind bind[] = { [DIRECT_W] = vkt_conv_weights(e, j, p, &push.w_base),
                              [DIRECT_X] = vkt_conv_source(e, j, p, &push.src_base),
                              [DIRECT_BIAS] = VKT_WHOLE(j->bias.id ? j->bias : j->w), /* not read if there is no bias */
                              [DIRECT_Y] = vkt_conv_destination(e, j, p, &push.dst_base) };
    push.w_base += none ? 0 : h->tap * z->kernel[1] + v->tap;
    push.dst_base += (h->first * j->dst[1] + v->first) * z->n4;
    const uint32_t spec[DIRECT_SPECS] = { [DIRECT_SPEC_LANES] = lanes,
                                          [DIRECT_SPEC_ROWS] = vkt_div_up(p->rows, tiles),
                                          [DIRECT_SPEC_CHANNELS] = j->depth,
                                          [DIRECT_SPEC_KERNEL_H] = none ? 1 : h->taps,
                                          [DIRECT_SPEC_KERNEL_W] = none ? 1 : v->taps,
                                          [DIRECT_SPEC_PAD] = vkt_conv_reaches_out(j, h, v),
                                          [DIRECT_SPEC_BIAS] = j->bias.id != 0 };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_DIRECT,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { strips, tiles, p->groups } });
}

/* ---- weights in shared memory ---- */

/* The most channels that a lane of direct_shared.comp computes. A lane has four sums for each channel. With 8 channels,
 * the compilers of AMD's GPUs need at most 96 registers. */
#define SHARED_ROWS 8u
/* Here a tap is (c,r,s): a channel of x, and an element of the kernel. SHARED_CHANNELS: the most output channels of a
 * work group. SHARED_CHUNK: the number of taps whose weights are in shared memory at a time, for each output channel.
 * These weights need less than 8 KiB. */
#define SHARED_CHANNELS 32u
#define SHARED_CHUNK 48u
/* At least this many lanes compute the same channels, unless there are 16 columns or fewer. (A column is a vec4 of a
 * channel.) An NVIDIA subgroup has 32 lanes, so all its lanes read the same weights. */
#define SHARED_ACROSS 32u

/* Returns how many taps an iteration loads. The number is chosen so that the last iteration has few unused taps. */
static uint32_t taps_unrolled(uint64_t K)
{
    static const uint32_t order[] = { 4, 5, 6, 3 };
    uint32_t best = order[0];
    for (size_t i = 1; i < VKT_COUNT(order); i++)
        if (vkt_round_up(K, order[i]) < vkt_round_up(K, best)) best = order[i];
    return (uint32_t)VKT_MIN(best, VKT_MAX(K, 1));
}

/* A lane has as many channels as possible, because its channels share the loads of x. A lane has fewer channels if the
 * dispatch would otherwise have fewer lanes than `wanted`. */
vkt_direct_tiles vkt_direct_tiles_of(const vkt_limits *lim, const vkt_direct_job *j)
{
    const uint32_t most_lanes = vkt_lanes(lim, lim->traits->lanes_direct);
    const uint64_t wanted = (uint64_t)vkt_tiles_wanted(lim, most_lanes) / 2 * most_lanes;
    vkt_direct_tiles t = { .unroll = taps_unrolled(j->K) };
    uint32_t blocks;
    for (uint32_t most = j->most_rows;; most /= 2) {
        t.across = most_lanes;
        while (t.across > 1 && t.across / 2 >= j->columns) t.across /= 2;
        while (t.across > SHARED_ACROSS && most_lanes / t.across * most < j->rows) t.across /= 2;
        blocks = VKT_MIN(most_lanes / t.across, SHARED_CHANNELS / most);
        while (blocks / 2 >= j->rows) blocks /= 2;
        t.col_tiles = vkt_div_up(j->columns, t.across);
        t.row_tiles = vkt_div_up(j->rows, most * blocks);
        t.rows = vkt_div_up(vkt_div_up(j->rows, t.row_tiles), blocks);
        t.lanes = t.across * blocks;
        if (most == 1 || 2ull * t.row_tiles > lim->max_groups ||
            (uint64_t)t.col_tiles * t.row_tiles * j->groups * t.lanes >= wanted)
            break;
    }
    t.chunk = (uint32_t)VKT_MIN(vkt_round_up(VKT_MAX(j->K, 1), t.unroll), SHARED_CHUNK / t.unroll * t.unroll);
    t.rounds = j->K / t.unroll + 1 + (j->K / t.chunk + 1) * (t.chunk * (SHARED_CHANNELS + 1ull) / t.lanes + 4);
    return t;
}

uint64_t vkt_direct_strips(vkt_emit *e, const vkt_direct_tiles *t, uint32_t groups, uint64_t rounds)
{
    const uint32_t wanted = vkt_div_up(vkt_groups_wanted(e->lim, t->lanes), t->row_tiles * groups);
    const uint64_t each = VKT_MIN(vkt_div_up(t->col_tiles, wanted), VKT_MAX(vkt_largest_loop(e->lim) / rounds, 1));
    const uint64_t strips = vkt_div_up(t->col_tiles, (uint32_t)each);
    return vkt_conv2d_is_short(e, strips, each * rounds) ? strips : 0;
}

static vkt_direct_tiles phase_tiles(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p,
                                    const vkt_conv_phase *h, const vkt_conv_phase *v)
{
    const vkt_direct_job job = { .columns = h->count * v->count * j->z->n4,
                                 .rows = p->rows,
                                 .groups = p->groups,
                                 .K = (uint64_t)j->depth * h->taps * v->taps,
                                 .most_rows = SHARED_ROWS };
    return vkt_direct_tiles_of(e->lim, &job);
}

bool vkt_conv_direct_shared_can(const vkt_emit *e, const vkt_conv_job *j)
{
    const vkt_conv_phase h = { .count = j->dst[0], .taps = j->z->kernel[0] },
                         v = { .count = j->dst[1], .taps = j->z->kernel[1] };
    const uint64_t range = e->lim->max_storage_range_bytes, groups = j->z->a.groups;
    const uint64_t channels = vkt_steps_in(range, 16 * j->src_plane, groups * j->depth);
    const uint64_t weights = vkt_steps_in(range, 4ull * j->rows * j->depth * h.taps * v.taps, groups);
    return j->most.depth == j->depth && channels / j->depth >= j->most.groups && weights >= j->most.groups &&
           phase_tiles(e, j, &j->most, &h, &v).rounds <= vkt_largest_loop(e->lim);
}

/* Emits one phase, like emit_direct_phase. The kernel keeps the weights in shared memory. If no tap reaches the pixels
 * of the phase, K is 0, and the pixels get only the bias. */
static void emit_shared_phase(vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, const vkt_conv_phase *h,
                              const vkt_conv_phase *v)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t taps = z->kernel[0] * z->kernel[1];
    const vkt_direct_tiles t = phase_tiles(e, j, p, h, v);
    uint32_t slope_base = 0;
    vkt_conv2d_direct_shared_push push = { .columns = h->count * v->count * z->n4,
                                           .dst_plane = (uint32_t)j->dst_plane,
                                           .dst_row = h->step * j->dst[1] * z->n4,
                                           .dst_col = v->step * z->n4,
                                           .rows = p->rows,
                                           .dst_group = j->rows,
                                           .K = j->depth * h->taps * v->taps,
                                           .taps = h->taps * v->taps,
                                           .kernel_w = v->taps,
                                           .src_height = j->src[0],
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
    const vkt_bind w = vkt_conv_weights(e, j, p, &push.w_base);
    const vkt_bind bind[] = { [DIRECT_SHARED_W] = w,
                              [DIRECT_SHARED_X] = vkt_conv_source(e, j, p, &push.src_base),
                              [DIRECT_SHARED_BIAS] = j->bias.id ? VKT_WHOLE(j->bias) : w, /* not read without bias */
                              [DIRECT_SHARED_Y] = vkt_conv_destination(e, j, p, &push.dst_base),
                              [DIRECT_SHARED_V] =
                                  j->slope.id ? vkt_conv_slope(e, j, p, &slope_base) : (vkt_bind){ .bytes = 0 } };
    push.to_slope = (int32_t)slope_base - (int32_t)push.dst_base;
    push.w_base += push.K ? h->tap * z->kernel[1] + v->tap : 0;
    push.dst_base += (h->first * j->dst[1] + v->first) * z->n4;
    const uint32_t spec[DIRECT_TILES_SPECS] = {
        [DIRECT_TILES_LANES] = t.lanes,
        [DIRECT_TILES_ACROSS] = t.across,
        [DIRECT_TILES_ROWS] = t.rows,
        [DIRECT_TILES_CHUNK] = t.chunk,
        [DIRECT_TILES_UNROLL] = t.unroll,
        [DIRECT_TILES_PAD] = vkt_conv_reaches_out(j, h, v) || push.K % t.unroll != 0,
        [DIRECT_TILES_BIAS] = j->bias.id != 0,
        [DIRECT_TILES_N4] = z->n4,
        [DIRECT_TILES_WIDTH] = v->count
    };
    const uint64_t strips = vkt_direct_strips(e, &t, p->groups, t.rounds);
    if (!strips) return;
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = j->slope.id ? VKT_K_CONV2D_DIRECT_SHARED_SLOPE : VKT_K_CONV2D_DIRECT_SHARED,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { strips, t.row_tiles, p->groups } });
}

/* ---- all phases ---- */

typedef void emit_phase_fn(vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, const vkt_conv_phase *h,
                           const vkt_conv_phase *v);

static void emit_phases(vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, emit_phase_fn *emit)
{
    for (uint32_t i = 0; i < vkt_conv_phases(j->z, j->transposed, 0); i++)
        for (uint32_t k = 0; k < vkt_conv_phases(j->z, j->transposed, 1); k++) {
            const vkt_conv_phase h = vkt_conv_phase_of(j->z, j->transposed, 0, i),
                                 v = vkt_conv_phase_of(j->z, j->transposed, 1, k);
            emit(e, j, p, &h, &v);
        }
}

void vkt_conv_direct_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p)
{
    emit_phases(e, j, p, emit_direct_phase);
}

void vkt_conv_direct_shared_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p)
{
    emit_phases(e, j, p, emit_shared_phase);
}
