/* dist/dist.h - the additions and the message counters of vkt_all_reduce (vktrain/dist.h). Only all_reduce.c and tests
 * use them.
 *
 * vkt_all_reduce adds the numbers of the ranks along a binary tree (all_reduce.c). Each addition of the tree has these
 * steps. An operand with a magnitude below 2^-126 becomes +0. With VKT_WIRE_BF16, both operands are then rounded to
 * bfloat16. They are added in f32. A sum with a magnitude below 2^-126 becomes +0, and a NaN becomes 0x7fc00000. So the
 * bits of a sum depend neither on the order of its two operands nor on whether the processor keeps denormal numbers. */
#ifndef VKT_DIST_H
#define VKT_DIST_H

#include "base/base.h"
#include "vktrain/dist.h"

/* The messages of one rank in all its calls of vkt_all_reduce_counted, and the time that the rank spent in the function
 * `exchange`. */
typedef struct vkt_traffic {
    uint64_t messages;
    uint64_t sent_bytes;
    uint64_t exchange_ns;
} vkt_traffic;

/* Makes one addition of the tree for n numbers: into += summand. The two arrays do not overlap. */
void vkt_tree_add(float *into, const float *summand, size_t n, vkt_wire wire);
/* Converts n sums of the tree to their final form: a number with a magnitude below 2^-126 becomes +0, a NaN becomes
 * 0x7fc00000, and with VKT_WIRE_BF16 each number is rounded to bfloat16. vkt_all_reduce does this itself. */
void vkt_tree_end(float *data, size_t n, vkt_wire wire);
/* Does the same as vkt_all_reduce, and counts its messages in *traffic, which may be NULL. */
vkt_result vkt_all_reduce_counted(const vkt_transport *t, float *data, size_t n, vkt_wire wire, float *scratch,
                                  vkt_traffic *traffic);

#endif
