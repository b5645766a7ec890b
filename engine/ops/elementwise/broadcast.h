/* ops/elementwise/broadcast.h - the dispatches that repeat a tensor along dimensions, or sum it over dimensions. */
#ifndef VKT_BROADCAST_H
#define VKT_BROADCAST_H

#include "ops/ops.h"

/* Computes the shape to which a and b broadcast by NumPy's rule: shapes are aligned at the right, and a dimension of 1
 * is repeated. Returns false if the shapes do not match. */
bool vkt_broadcast_shape(vkt_shape a, vkt_shape b, vkt_shape *out);
/* Emits y = f(in[0], ..). f is the function with the number `function` in functions.abi.h: BINARY_ for two operands,
 * TERNARY_ for three. For one operand f is the identity. */
void vkt_emit_broadcast(vkt_emit *e, uint32_t function, const vkt_tensor *in, uint32_t n_in, vkt_tensor y);
/* Emits y = scale * (the sum of x over the dimensions that y lacks, or whose size is 1 in y). y is ROWS. */
void vkt_emit_sum_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, float scale);

#endif
