/* ops/elementwise/broadcast.h - repeating and summing over dimensions, as strides. */
#ifndef VKT_BROADCAST_H
#define VKT_BROADCAST_H

#include "ops/ops.h"

/* NumPy's rule: aligned at the right, a dimension of 1 is repeated. False when the shapes do not fit. */
bool vkt_broadcast_shape(vkt_shape a, vkt_shape b, vkt_shape *out);
/* y = f(in[0], ..), f being number `function` of functions.abi.h: BINARY_ of two operands, TERNARY_ of three; of one it
 * is the operand itself. */
void vkt_emit_broadcast(vkt_emit *e, uint32_t function, const vkt_tensor *in, uint32_t n_in, vkt_tensor y);
/* y = scale * x summed over the dimensions that broadcasting y to x's shape repeats. y is ROWS. */
void vkt_emit_sum_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, float scale);

#endif
