/* swiglu.abi.h - see swiglu.comp. A dispatch computes n elements of y. */
VKT_PUSH(vkt_swiglu_push,
         VKT_U32(n)
         VKT_U32(row4) /* halves: vec4s of a row of y; two tensors: not used */
         VKT_U32(b)    /* halves: vec4s from an element of a to that of b, equal to row4; two tensors: 0 */
         VKT_U32(x) VKT_U32(y) VKT_U32(dx)) /* index of the first vec4 of a, of y or dy, and of da, each in its own binding */
#define SWIGLU_A  0
#define SWIGLU_B  1
#define SWIGLU_Y  2
#define SWIGLU_DY 3
#define SWIGLU_DA 4
#define SWIGLU_DB 5
#define SWIGLU_SPEC_HALVES 1 /* 1: a and b are the halves of the rows of one tensor; 0: two tensors */
