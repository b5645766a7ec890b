/* ops/conv/direct.c - y and dx with few products per element, all of them unrolled: see shaders/conv/direct.comp. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_direct.abi.h"

/* The most products per element (conv/direct.comp). All are unrolled. More code would not fit into the instruction
 * cache. */
#define DIRECT_DEPTH 40u

bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2])
{
    return (uint64_t)channels_of_group * kernel[0] * kernel[1] <= DIRECT_DEPTH;
}

/* Emits the pixels that are in phase h along H and in phase v along W. If no tap reaches them, the kernel gets a source
 * of height 0, so that it adds no products. */
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

void vkt_conv_direct_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p)
{
    for (uint32_t i = 0; i < vkt_conv_phases(j->z, j->transposed, 0); i++)
        for (uint32_t k = 0; k < vkt_conv_phases(j->z, j->transposed, 1); k++) {
            const vkt_conv_phase h = vkt_conv_phase_of(j->z, j->transposed, 0, i),
                                 v = vkt_conv_phase_of(j->z, j->transposed, 1, k);
            emit_direct_phase(e, j, p, &h, &v);
        }
}
