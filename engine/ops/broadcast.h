/* ops/broadcast.h - repeating and summing over dimensions, as strides. */
#ifndef VKT_BROADCAST_H
#define VKT_BROADCAST_H

#include "ops/ops.h"

/* NumPy's rule: aligned at the right, a dimension of 1 is repeated. False when the shapes do not fit. */
bool vkt_broadcast_shape(vkt_shape a, vkt_shape b, vkt_shape *out);
/* The two widths of broadcast.comp for one function. */
typedef struct vkt_broadcast_kernels {
    uint16_t narrow, wide;
} vkt_broadcast_kernels;
/* y = f(a, b), or f(a) where b is {0}. */
void vkt_emit_broadcast(vkt_emit *e, vkt_broadcast_kernels kernels, vkt_tensor a, vkt_tensor b, vkt_tensor y);
/* y = scale * x summed over the dimensions that broadcasting y to x's shape repeats. y is ROWS. */
void vkt_emit_sum_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, float scale);

#endif
