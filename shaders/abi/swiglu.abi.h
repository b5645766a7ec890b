/* swiglu.abi.h - see swiglu.comp. A dispatch computes n elements of y, in rows of row4 vec4s. The range starts begin4
 * vec4s behind the start of a row. */
VKT_PUSH(vkt_swiglu_push,
         VKT_U32(n) VKT_U32(row4) VKT_U32(begin4)
         VKT_U32(gap4) /* vec4s between two rows of a, and of b; with gaps, begin4 is 0 */
         VKT_U32(last) /* elements of a row's last vec4 that are real; those behind them are padding and become zero */
         VKT_U32(x)    /* index of the first vec4 in the binding of a */
         VKT_U32(b)    /* vec4s from an element of a to that of b, in bindings of the same range */
         VKT_U32(y) VKT_U32(dx)) /* first vec4 in the binding of y or dy, and of da */
#define SWIGLU_A  0
#define SWIGLU_B  1
#define SWIGLU_Y  2
#define SWIGLU_DY 3
#define SWIGLU_DA 4
#define SWIGLU_DB 5
#define SWIGLU_SPEC_ROWS   1 /* 1: there are several rows, because of gaps or padding; 0: everything is one row */
