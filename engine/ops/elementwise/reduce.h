/* ops/elementwise/reduce.h - reductions: over all elements (sum, mean), and over the dimensions that broadcasting
 * repeats (sum_to, max_to, min_to). */
#ifndef VKT_REDUCE_H
#define VKT_REDUCE_H

#include "ops/ops.h"

/* Computes y = scale * function REDUCE_ (reduce.abi.h) of the elements of x, over the dimensions that broadcasting y to
 * x's shape repeats. y is ROWS; scale is 1 unless it is a sum. */
void vkt_emit_reduce_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, uint32_t function, float scale);

/* For reductions over all elements: infers x f32 -> scalar; makes a sample of x. */
vkt_result vkt_infer_whole(vkt_infer *f);
void vkt_sample_whole(vkt_rng *r, vkt_case *c);

/* For reductions with a vkt_shape_attr: infers x f32 -> that shape, which broadcasts to x's; adds the node; makes a
 * sample with elements of x from lo to hi. */
vkt_result vkt_infer_to(vkt_infer *f);
vkt_tensor vkt_reduce_to(vkt_graph *g, const vkt_op *op, vkt_tensor x, vkt_shape shape);
void vkt_sample_to(vkt_rng *r, vkt_case *c, float lo, float hi);

/* Rows of whole vec4s are read as vec4s. All strides but that of the last dimension are multiples of the last
 * dimension, whichever dimensions are kept. */
#define VKT_REDUCE_HALF .half_rows = VKT_HALF_IN(0)

#define VKT_SUM_TOLERANCE               \
    .rel_tol = 8e-6f, .abs_tol = 1e-6f, \
    .tol_why = "terms of one sign; a row and the running sum of rows: < 130 roundings of 2^-24 per term"

#endif
