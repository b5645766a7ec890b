/* swiglu.abi.h - see swiglu.comp. A dispatch computes n elements of y. DX: n elements of da, and n of db. */
VKT_PUSH(vkt_swiglu_push,
         VKT_U32(n)
         VKT_U32(row4) /* with HALVES: vec4s of a row of y; otherwise not used */
         VKT_U32(b)    /* with HALVES: vec4s from a[i] to b[i], equal to row4; otherwise 0 */
         VKT_U32(x)    /* index of the dispatch's first vec4 of tensor a in SWIGLU_A */
         VKT_U32(y)    /* index of the dispatch's first vec4 in SWIGLU_Y or SWIGLU_DY */
         VKT_U32(dx))  /* index of the dispatch's first vec4 of da in SWIGLU_DA */
#define SWIGLU_A  0
#define SWIGLU_B  1
#define SWIGLU_Y  2
#define SWIGLU_DY 3
#define SWIGLU_DA 4
#define SWIGLU_DB 5
#define SWIGLU_SPEC_HALVES 1 /* 1: each row in SWIGLU_A is a row of a, then a row of b; 0: a and b are two tensors */
