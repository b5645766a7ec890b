/* broadcast.abi.h - y = f(a, b, c) with operands that repeat along some dimensions of y. f is a function of
 * functions.abi.h, or y is a copy of a. A row runs along y's fastest dimension: it has `run` elements, padded to
 * `pitch`. a5, b5 and c5 are the operands' strides along a row. A row number is converted to coordinates of
 * BROADCAST_SPEC_DIMS dimensions, slow to fast. d1..d4 are the sizes of these dimensions (the size of the slowest one is
 * not needed). a0..a4, b0..b4 and c0..c4 are the operands' strides along these dimensions. Strides are in elements. A
 * stride is 0 where an operand repeats. */
VKT_PUSH(vkt_broadcast_push,
         VKT_U32(rows) VKT_U32(run) VKT_U32(pitch)
         VKT_U32(d1) VKT_U32(d2) VKT_U32(d3) VKT_U32(d4)
         VKT_U32(a0) VKT_U32(a1) VKT_U32(a2) VKT_U32(a3) VKT_U32(a4) VKT_U32(a5)
         VKT_U32(b0) VKT_U32(b1) VKT_U32(b2) VKT_U32(b3) VKT_U32(b4) VKT_U32(b5)
         VKT_U32(c0) VKT_U32(c1) VKT_U32(c2) VKT_U32(c3) VKT_U32(c4) VKT_U32(c5))
#define BROADCAST_A 0
#define BROADCAST_B 1
#define BROADCAST_C 2
#define BROADCAST_Y 3
#define BROADCAST_SPEC_DIMS     1 /* number of coordinates that a row number is converted to: 0 to 5 */
/* Above 0: a work group processes pieces of rows. A piece has this number of iterations. 0: a work group processes a
 * share of all elements. */
#define BROADCAST_SPEC_ITERATIONS 2
#define BROADCAST_SPEC_A_STEP   3 /* a5: 0 or 1. Only kernels that compute 4 elements per lane use A_STEP, B_STEP, C_STEP */
#define BROADCAST_SPEC_B_STEP   4 /* b5 */
#define BROADCAST_SPEC_C_STEP   5 /* c5 */
#define BROADCAST_SPEC_FUNCTION 6
