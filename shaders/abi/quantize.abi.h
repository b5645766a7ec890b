/* quantize.abi.h - see quantize.comp. A dispatch computes `n` elements from element `begin` of the tensor on. `begin` is
 * a multiple of 4, and so is `n`, except at the tensor's end. */
VKT_PUSH(vkt_quantize_push,
         VKT_U32(n) VKT_U32(begin)
         VKT_U32(steps) /* number of levels - 1 */
         VKT_U32(noise) /* 1: adds noise instead of rounding */
         VKT_U32(salt))
#define QUANTIZE_X    0
#define QUANTIZE_Y    1
#define QUANTIZE_STEP 2
#define QUANTIZE_DY   3
