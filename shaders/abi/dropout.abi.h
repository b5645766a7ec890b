/* dropout.abi.h - y = x * mask * scale over a window of `n` elements that begins at element `begin` of the tensor; both are
 * multiples of 4 but for the tensor's end. Planes: see dropout.comp. */
VKT_PUSH(vkt_dropout_push,
         VKT_U32(n) VKT_U32(begin) VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt)
         VKT_U32(plane) VKT_U32(columns) VKT_U32(channels))
#define DROPOUT_X    0
#define DROPOUT_Y    1
#define DROPOUT_STEP 2
#define DROPOUT_CHUNK 256 /* steps of a plane that a work group in y takes at once */
