/* ops/conv/span.c - y and dx by spans of neighbouring pixels, which share the loads of their taps: see
 * shaders/conv/span.comp. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_span.abi.h"

/* The channels and the pixels of a lane. docs/lab/2026-11-22.md has the measurements from which these numbers come. */
#define SPAN_ROWS 8u
#define SPAN_PIXELS 4u

/* Returns the number of source channels per iteration. An iteration adds at most ten products to each sum. */
static uint32_t span_unroll(uint32_t taps, uint32_t depth)
{
    return taps <= 5 && depth % 2 == 0 ? 2 : 1;
}

/* Returns true if span.comp can compute the parts. The stride and the dilation along W must be 1, so that neighbouring
 * pixels and neighbouring taps read neighbouring source pixels. For dx, the stride along H must also be 1. A part must
 * have all source channels and short loops. Its weights, packed in panels of SPAN_ROWS rows, must fit into a binding. A
 * kernel row must have at least 2 taps, which share loads. It must have at most 7 taps, because an iteration unrolls
 * all of them. */
bool vkt_conv_span_can(const vkt_emit *e, const vkt_conv_job *j)
{
    const vkt_conv_part *p = &j->most;
    const vkt_conv2d_attr *a = &j->z->a;
    const uint32_t *kernel = j->z->kernel;
    return a->stride[1] == 1 && a->dilation[1] == 1 && !(j->transposed && a->stride[0] > 1) && kernel[1] > 1 &&
           kernel[1] <= 7 && p->depth == j->depth &&
           kernel[0] * (p->depth / span_unroll(kernel[1], p->depth) + 1ull) < vkt_largest_loop(e->lim) &&
           4ull * kernel[0] * kernel[1] * vkt_round_up(p->rows, SPAN_ROWS) * p->depth * p->groups <=
               e->lim->max_storage_range_bytes;
}

/* Returns true if spans are faster than tiles on this device. If rows (destination channels) are few, tiles have few
 * products per load and per shuffle. With more rows, tiles are as fast as spans, and tiles skip the taps above and
 * below the image. A kernel of height 1 has no such taps, so spans are faster up to a larger
 * number of rows (span_channels_flat). */
bool vkt_conv_span_pays(const vkt_limits *lim, const vkt_conv_job *j)
{
    const vkt_traits *t = lim->traits;
    return j->rows <= (j->z->kernel[0] == 1 ? VKT_MAX(t->span_channels, t->span_channels_flat) : t->span_channels);
}

void vkt_conv_span_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const vkt_conv_phase h = vkt_conv_phase_of(j->z, j->transposed, 0, 0),
                         v = vkt_conv_phase_of(j->z, j->transposed, 1, 0);
    const uint32_t mb = SPAN_ROWS, span = SPAN_PIXELS, taps = v.taps, lanes = vkt_subgroup(e->lim, VKT_K_CONV2D_SPAN);
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
    const vkt_bind packed = vkt_conv_pack(e, j, p, mb, false, order);
    const vkt_bind bind[] = { [SPAN_A] = packed,
                              [SPAN_SRC] = vkt_conv_source(e, j, p, &push.src_base),
                              [SPAN_BIAS] = j->bias.id ? VKT_WHOLE(j->bias) : packed, /* not read if there is no bias */
                              [SPAN_DST] = vkt_conv_destination(e, j, p, &push.dst_base) };
    const uint32_t spec[SPAN_SPECS] = {
        [SPAN_SPEC_LANES] = lanes,         [SPAN_SPEC_MB] = mb,
        [SPAN_SPEC_SPAN] = span,           [SPAN_SPEC_TAPS] = taps,
        [SPAN_SPEC_UNROLL] = unroll,       [SPAN_SPEC_PAD] = vkt_conv_reaches_out(j, &h, &v),
        [SPAN_SPEC_BIAS] = j->bias.id != 0
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_SPAN,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { tiles, 1, p->groups } });
}
