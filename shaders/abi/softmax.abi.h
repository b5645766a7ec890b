/* softmax.abi.h - softmax over the classes of a tensor (outer, classes, inner). A line is the `classes` elements of one
 * softmax. In kernels of WIDTH 1, a VEC is one float. In kernels of WIDTH 4, a VEC is a vec4: one class of four neighbouring
 * lines, or with ALONG or LINE four neighbouring classes of one line. */
VKT_PUSH(vkt_softmax_push,
         VKT_U32(units)   /* number of lines; in kernels of WIDTH 4 without ALONG or LINE, lines / 4 */
         VKT_U32(classes) VKT_U32(inner) /* inner: VECs from one class to the next; 1 with ALONG or LINE */
         VKT_U32(first) VKT_U32(queries) /* CAUSAL: line u is query i = (first + u) % queries and uses classes 0 .. i */
         VKT_F32(scale))
#define SOFTMAX_SPEC_LOG    1
#define SOFTMAX_SPEC_CAUSAL 2
#define SOFTMAX_SPEC_HELD   3 /* with ALONG: VECs of the line that a lane holds in registers; 0: none */
#define SOFTMAX_X  0 /* x; with DX: y */
#define SOFTMAX_DY 1 /* only with DX */
#define SOFTMAX_Y  2 /* y; with DX: dx */
