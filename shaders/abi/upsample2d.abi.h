/* upsample2d.abi.h - resizes `channels` images from H x W to P x Q, N4 vec4s per pixel. Push constants x and y: the
 * index of the first vec4 of the tensor x (or dx), and of the tensor y (or dy), each in its own binding. Nearest: pixel
 * p is a copy of pixel floor(p * scale) of x, at most the last pixel. Bilinear: pixel p is interpolated at the source
 * point (p * up + offset) / below in x. A point outside x moves to the nearest pixel. `_h`: along the height, `_w`:
 * along the width. */
VKT_PUSH(vkt_upsample2d_push,
         VKT_U32(channels) VKT_U32(H) VKT_U32(W) VKT_U32(P) VKT_U32(Q) VKT_U32(x) VKT_U32(y)
         VKT_F32(scale_h) VKT_F32(scale_w)
         VKT_I32(up_h) VKT_I32(offset_h) VKT_I32(below_h) VKT_I32(up_w) VKT_I32(offset_w) VKT_I32(below_w))
#define UPSAMPLE_X 0
#define UPSAMPLE_Y 1
#define UPSAMPLE_SPEC_N4 1
