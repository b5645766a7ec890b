/* winograd.abi.h - see winograd_input.comp and winograd_output.comp. One vec4 has four neighbouring samples of the
 * batch. A column is one vec4 of one tile. A panel is WINOGRAD_SPEC_LANES consecutive columns. A transform is V in
 * winograd_input.comp, and m in winograd_output.comp. */
VKT_PUSH(vkt_winograd_push,
         VKT_U32(channels)                   /* channels of the image */
         VKT_U32(depth)                      /* channels per work group */
         VKT_U32(first)                      /* index of this dispatch's first column in a channel */
         VKT_U32(columns)                    /* columns of a channel: tiles * n4 */
         VKT_U32(n4)                         /* vec4s of a pixel */
         VKT_U32(tiles_w)                    /* tiles in a row of tiles */
         VKT_I32(origin_h) VKT_I32(origin_w) /* winograd_input: image row and column of the first tile's first pixel */
         VKT_U32(height) VKT_U32(width)      /* image size */
         VKT_U32(point)                      /* vec4s from one of the 16 elements of a transform to the next */
         VKT_U32(panel)                      /* vec4s from one panel of a transform to the next */
         VKT_U32(pitch))                     /* vec4s from one channel of a transform to the next */
#define WINOGRAD_IN   0
#define WINOGRAD_OUT  1
#define WINOGRAD_BIAS 2 /* winograd_output: (channels); any buffer if WINOGRAD_SPEC_BIAS is 0 */

#define WINOGRAD_SPEC_LANES 0
#define WINOGRAD_SPEC_BIAS  1
#define WINOGRAD_SPECS      2
