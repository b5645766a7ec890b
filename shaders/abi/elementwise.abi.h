/* elementwise.abi.h - y = f(a), f(a, b) or f(a, b, c) over n elements. All tensors have the same layout. f is a function of
 * functions.abi.h.
 *
 * ELEMENTWISE_SPEC_PADDED: the tensor has rows of row4 vec4s, which run along the batch. In each row, the last vec4 has
 * `last` samples (1 to 3). The range of the dispatch starts begin4 vec4s behind the start of a row. Elements past the
 * batch become zero. */
VKT_PUSH(vkt_elementwise_push,
         VKT_U32(n) VKT_U32(row4) VKT_U32(begin4) VKT_U32(last)
         VKT_F32(p) VKT_F32(q)) /* parameters of a function of one operand */
#define ELEMENTWISE_A 0
#define ELEMENTWISE_B 1
#define ELEMENTWISE_C 2
#define ELEMENTWISE_Y 3
#define ELEMENTWISE_SPEC_FUNCTION 1
#define ELEMENTWISE_SPEC_PADDED   2
