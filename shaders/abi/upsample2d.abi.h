/* upsample2d.abi.h - resizes `channels` images from H x W to P x Q, N4 vec4s per pixel. Along one axis:
 *   nearest: pixel p of y is a copy of pixel floor(p * scale) of x, at most the last pixel
 *   bilinear: pixel p of y is interpolated at the point (p * up + offset) / below of x. A point outside x moves to x's edge
 * A member with `_h` is for the height, and a member with `_w` is for the width.
 * pc.x: index, in the binding of x or dx, of the dispatch's first vec4. pc.y: this index in the binding of y or dy. */
VKT_PUSH(vkt_upsample2d_push,
         VKT_U32(channels) VKT_U32(H) VKT_U32(W) VKT_U32(P) VKT_U32(Q) VKT_U32(x) VKT_U32(y)
         VKT_F32(scale_h) VKT_F32(scale_w)
         VKT_I32(up_h) VKT_I32(offset_h) VKT_I32(below_h) VKT_I32(up_w) VKT_I32(offset_w) VKT_I32(below_w))
#define UPSAMPLE_X 0
#define UPSAMPLE_Y 1
#define UPSAMPLE_SPEC_N4 1
