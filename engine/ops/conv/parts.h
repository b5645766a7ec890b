/* ops/conv/parts.h - what conv/tile.c, conv/dw_tile.c and conv/fused_max_pool.c, which cut products into parts that a
 * device can bind, share.
 */
#ifndef VKT_CONV2D_PARTS_H
#define VKT_CONV2D_PARTS_H

#include "ops/conv/conv2d.h"

/* All loops of an invocation together: Mesa before 23 ends them silently after 65535 rounds. */
#define VKT_MAX_ROUNDS 60000u

/* Output channels of a tile of a direct convolution. Each is a stream of writes, and eight are as many as prefetchers
 * follow; with so few products writes are most of the work (7 channels to 64 with 5 taps: half the time of 32 rows). */
#define VKT_DIRECT_ROWS 8u

/* n in even shares of at most `most`, multiples of `unit` unless one share is all; 0: none is so small. */
uint32_t vkt_conv2d_share(uint32_t n, uint64_t most, uint32_t unit);
void vkt_conv2d_too_large(vkt_emit *e, const vkt_conv2d_size *z);
/* Whether `groups` groups of at most `rounds` rounds each, cut to what a dispatch can have, keep below VKT_MAX_ROUNDS.
 */
bool vkt_conv2d_is_short(vkt_emit *e, uint64_t groups, uint64_t rounds);
/* Channels of `plane` vec4s of t. */
vkt_bind vkt_conv2d_channels(const vkt_emit *e, vkt_tensor t, uint64_t plane, uint64_t first, uint64_t n,
                             uint32_t *base);

#endif
