/* frequency.abi.h - see frequency.comp. */
VKT_PUSH(vkt_frequency_push,
         VKT_U32(n4)           /* vec4s of a row of x, y, dx */
         VKT_U32(dims)         /* dimensions of this dispatch */
         VKT_U32(frequencies)
         VKT_U32(x_base) VKT_U32(y_base) VKT_U32(dx_base)) /* index of the dispatch's first vec4 in each binding */
#define FREQUENCY_X  0 /* (dims, 4 * n4) */
#define FREQUENCY_Y  1 /* (dims, frequencies, 2, 4 * n4); DX: the gradient of y */
#define FREQUENCY_DX 2 /* (dims, 4 * n4) */
