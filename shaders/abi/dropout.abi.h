/* dropout.abi.h - y = x * mask * scale over a window of `n` elements that begins at element `begin` of the tensor; both are
 * multiples of 4 but for the tensor's end. Planes: see dropout.comp. p, q: parameters of a function (functions.abi.h). */
VKT_PUSH(vkt_dropout_push,
         VKT_U32(n) VKT_U32(begin) VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt)
         VKT_U32(plane) VKT_U32(columns) VKT_U32(channels)
         VKT_F32(p) VKT_F32(q))
#define DROPOUT_X    0
#define DROPOUT_Y    1
#define DROPOUT_STEP 2
#define DROPOUT_B    3 /* like x; of DROPOUT_BEFORE */
#define DROPOUT_SPEC_FUNCTION 1
#define DROPOUT_SUM  99 /* a function of DROPOUT_BEFORE that unary.glsl has not: the sum */
#define DROPOUT_CHUNK 256 /* steps of a plane that a work group in y takes at once */
