/* dropout.abi.h - y = x * mask * scale over a range of `n` elements that starts at element `begin` of the tensor. Both are
 * multiples of 4, except at the tensor's end. Planes: see dropout.comp. p, q: parameters of a function (functions.abi.h). */
VKT_PUSH(vkt_dropout_push,
         VKT_U32(n) VKT_U32(begin) VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt)
         VKT_U32(plane) VKT_U32(columns) VKT_U32(channels)
         VKT_F32(p) VKT_F32(q))
#define DROPOUT_X    0
#define DROPOUT_Y    1
#define DROPOUT_STEP 2
#define DROPOUT_B    3 /* DROPOUT_BEFORE: a tensor like x */
#define DROPOUT_SPEC_FUNCTION 1
#define DROPOUT_SUM  99 /* DROPOUT_BEFORE: the sum, a function that unary.glsl does not have */
#define DROPOUT_CHUNK 256 /* positions of a plane per work group in y and iteration */
