/* ops/elementwise/reduce.h - reductions over all elements (sum, mean), and to a given shape (sum_to, max_to,
 * min_to). */
#ifndef VKT_REDUCE_H
#define VKT_REDUCE_H

#include "ops/ops.h"

/* Emits y = scale * f(x). `function` says what f is: REDUCE_SUM, REDUCE_MAX or REDUCE_MIN (reduce.abi.h). f reduces the
 * dimensions of x that y lacks, or whose size is 1 in y. y is ROWS. scale is 1 unless f is a sum. */
void vkt_emit_reduce_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, uint32_t function, float scale);

/* Infers a reduction over all elements: x f32 -> scalar. */
vkt_result vkt_infer_whole(vkt_infer *f);
/* Generates an x for a reduction over all elements. */
void vkt_sample_whole(vkt_rng *r, vkt_case *c);

/* Infers a reduction of x f32 to the shape of the node's vkt_shape_attr, which must broadcast to x's shape. */
vkt_result vkt_infer_to(vkt_infer *f);
/* Adds the node of `op` that reduces x to `shape`. Returns x itself if it has this shape already. */
vkt_tensor vkt_reduce_to(vkt_graph *g, const vkt_op *op, vkt_tensor x, vkt_shape shape);
/* Generates an x with elements from lo to hi, and a shape to which it is reduced. */
void vkt_sample_to(vkt_rng *r, vkt_case *c, float lo, float hi);

/* x may be stored in 16 bits if its rows are whole vec4s. In this case, the kernel reads x as vec4s, whichever
 * dimensions are kept. This is possible because the last dimension has stride 1, and each other stride is a multiple
 * of the length of a row. */
#define VKT_REDUCE_HALF .half_rows = VKT_HALF_IN(0)

#define VKT_SUM_TOLERANCE               \
    .rel_tol = 8e-6f, .abs_tol = 1e-6f, \
    .tol_why = "terms of one sign; a row and the running sum of rows: < 130 roundings of 2^-24 per term"

#endif
