/* pad.abi.h - y is x with a fill value around x and between its elements. A dispatch computes a box of pc.n positions of y.
 * Position c of the box gets x at position (c_k - b_k) / g_k, if for each dimension k this quotient is an integer from 0 to
 * n_k - 1. Otherwise position c gets the fill value.
 *   b_k: position of element 0 of x in the box, modulo 2^32 (element 0 may be before the box)
 *   g_k: positions in y from one element of x to the next
 *   n_k: size of x along dimension k, in positions
 *   pc.x: index of x's position 0 in the binding of x, modulo 2^32 (position 0 may be before the binding)
 *   pc.y: index of the box's position 0 in the binding of y
 *   d, s: see lib/positions.glsl
 * All members count elements, or vec4s if the kernel moves vec4s. */
VKT_PUSH(vkt_pad_push,
         VKT_U32(n) VKT_U32(d1) VKT_U32(d2) VKT_U32(d3) VKT_U32(d4) VKT_U32(d5) VKT_U32(s0) VKT_U32(s1) VKT_U32(s2)
             VKT_U32(s3) VKT_U32(s4) VKT_U32(s5) VKT_U32(b0) VKT_U32(b1) VKT_U32(b2) VKT_U32(b3) VKT_U32(b4) VKT_U32(b5)
                 VKT_U32(n0) VKT_U32(n1) VKT_U32(n2) VKT_U32(n3) VKT_U32(n4) VKT_U32(n5) VKT_U32(g0) VKT_U32(g1)
                     VKT_U32(g2) VKT_U32(g3) VKT_U32(g4) VKT_U32(g5) VKT_U32(x) VKT_U32(y))
#define PAD_X 0
#define PAD_Y 1
#define PAD_SPEC_FILL 2 /* the fill value, as its 32 bits */
#define PAD_SPEC_GAPS 3 /* 0: every g_k is 1 */
