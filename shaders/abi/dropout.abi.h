/* dropout.abi.h - y = keep ? x * scale : 0 over a range of `n` elements that starts at element `begin` of the tensor.
 * `begin` is a multiple of 4, and so is `n`, except at the tensor's end. threshold, scale, salt and columns: see
 * dropout.comp. PLANES and PLANES_ROWS: a plane is one channel of one sample. It has `plane` elements, and a sample has
 * `channels` planes. p, q: parameters of FUNCTION (functions.abi.h). */
VKT_PUSH(vkt_dropout_push,
         VKT_U32(n) VKT_U32(begin) VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt)
         VKT_U32(plane) VKT_U32(columns) VKT_U32(channels)
         VKT_F32(p) VKT_F32(q))
#define DROPOUT_X    0
#define DROPOUT_Y    1
#define DROPOUT_STEP 2
#define DROPOUT_B    3 /* BEFORE: a tensor b with the shape and layout of x */
#define DROPOUT_SPEC_FUNCTION 1
#define DROPOUT_SUM  99 /* BEFORE: value of FUNCTION for y = dropout(x) + b. No function of functions.abi.h has this number */
#define DROPOUT_CHUNK 256 /* positions in a chunk of a plane. The grid's y axis counts chunks: see dropout.comp */
