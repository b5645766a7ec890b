/* elementwise.abi.h - y = f(a), f(a, b) or f(a, b, c) over n elements of one layout; f: functions.abi.h.
 *
 * ELEMENTWISE_SPEC_PADDED: elements are rows of row4 vec4s with the batch in them, `last` (1 to 3) of its samples in each row's
 * last vec4; a window starts begin4 vec4s into a row. What is behind the batch becomes zero. */
VKT_PUSH(vkt_elementwise_push,
         VKT_U32(n) VKT_U32(row4) VKT_U32(begin4) VKT_U32(last)
         VKT_F32(p) VKT_F32(q)) /* parameters of a function of one operand */
#define ELEMENTWISE_A 0
#define ELEMENTWISE_B 1
#define ELEMENTWISE_C 2
#define ELEMENTWISE_Y 3
#define ELEMENTWISE_SPEC_FUNCTION 1
#define ELEMENTWISE_SPEC_PADDED   2
