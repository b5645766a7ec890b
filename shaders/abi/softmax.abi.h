/* softmax.abi.h - softmax over one axis of [..][classes][inner]: a line is what one sum goes over. VECs are vec4s in kernels of
 * WIDTH 4: of neighbouring lines, or ALONG or with LINE of neighbouring classes. */
VKT_PUSH(vkt_softmax_push,
         VKT_U32(units)   /* lines, ALONG or with LINE; else VECs of lines */
         VKT_U32(classes) VKT_U32(inner) /* VECs from one class to the next; ALONG or with LINE 1 */
         VKT_U32(first) VKT_U32(queries) /* CAUSAL: line u is query (first + u) % queries, which sees as many classes and one */
         VKT_F32(scale))
#define SOFTMAX_SPEC_LOG    1
#define SOFTMAX_SPEC_CAUSAL 2
#define SOFTMAX_X  0 /* DX: y */
#define SOFTMAX_DY 1 /* DX */
#define SOFTMAX_Y  2 /* DX: dx */
