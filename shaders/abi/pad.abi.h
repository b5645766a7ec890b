/* pad.abi.h - y at place c, number n in all, is x at (c_k - b_k) / g_k where that is a place of x, which has n_k along
 * dimension k; else the fill. x and y: where place 0 of either is in its binding; the former may wrap around. See
 * lib/places.glsl for d and s. Everything is counted in elements, or in vec4s where the kernel moves those. */
VKT_PUSH(vkt_pad_push,
         VKT_U32(n) VKT_U32(d1) VKT_U32(d2) VKT_U32(d3) VKT_U32(d4) VKT_U32(d5) VKT_U32(s0) VKT_U32(s1) VKT_U32(s2)
             VKT_U32(s3) VKT_U32(s4) VKT_U32(s5) VKT_U32(b0) VKT_U32(b1) VKT_U32(b2) VKT_U32(b3) VKT_U32(b4) VKT_U32(b5)
                 VKT_U32(n0) VKT_U32(n1) VKT_U32(n2) VKT_U32(n3) VKT_U32(n4) VKT_U32(n5) VKT_U32(g0) VKT_U32(g1)
                     VKT_U32(g2) VKT_U32(g3) VKT_U32(g4) VKT_U32(g5) VKT_U32(x) VKT_U32(y))
#define PAD_X 0
#define PAD_Y 1
#define PAD_SPEC_FILL 2 /* its bits */
#define PAD_SPEC_GAPS 3 /* 0: every g_k is 1 */
