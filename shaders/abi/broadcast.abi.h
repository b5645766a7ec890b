/* broadcast.abi.h - y = f(a, b, c) with operands that repeat along some dimensions of y. f is a function of
 * functions.abi.h, or y is a copy of a.
 *
 * y has `rows` rows along its fastest dimension. A row has `run` elements, padded to `pitch`. The kernel converts the
 * index of a row to BROADCAST_SPEC_DIMS coordinates, one for each of the other dimensions. Dimension 0 is the slowest.
 * d1 to d4 are the sizes of the dimensions 1 to 4.
 *
 * The operand a has the strides a0 to a4 along the dimensions 0 to 4, and the stride a5 along a row; b and c likewise.
 * Strides are in elements. A stride is 0 where an operand repeats. */
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
#define BROADCAST_SPEC_DIMS     1 /* number of coordinates that the index of a row is converted to: 0 to 5 */
/* Above 0: each row is divided into pieces. A work group processes a piece in this number of iterations. 0: rows are
 * not divided, and each work group processes a contiguous share of all elements. */
#define BROADCAST_SPEC_ITERATIONS 2
#define BROADCAST_SPEC_A_STEP   3 /* a5: 0 or 1. Only kernels that compute 4 elements per lane use A_STEP, B_STEP, C_STEP */
#define BROADCAST_SPEC_B_STEP   4 /* b5 */
#define BROADCAST_SPEC_C_STEP   5 /* c5 */
#define BROADCAST_SPEC_FUNCTION 6
