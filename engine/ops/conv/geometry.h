/* ops/conv/geometry.h - the sizes of a convolution, and the checks that ops of convolutions share. The functions of
 * this file add no dispatches and no nodes. */
#ifndef VKT_CONV_GEOMETRY_H
#define VKT_CONV_GEOMETRY_H

#include "ops/ops.h"

/* The sizes of a convolution of x [C][H][W][N'] with w (O,C/G,R,S); the result is y [O][P][Q][N']. N' is N
 * rounded up to a multiple of 4, and n4 = N' / 4. Members with two elements are {along H, along W}. In the folder conv,
 * a tap is one of the R x S elements of a kernel, unless a comment says otherwise. */
typedef struct vkt_conv2d_size {
    uint32_t n4, channels, out_channels;
    uint32_t in[2], kernel[2], out[2];
    vkt_conv2d_attr a;
} vkt_conv2d_size;

/* Returns the sizes for x (N,C,H,W) and y (N,O,P,Q). */
vkt_conv2d_size vkt_conv2d_size_of(const vkt_value *x, const vkt_value *y, const uint32_t kernel[2],
                                   const vkt_conv2d_attr *a);
/* Checks, for infer, that input i, called `name`, is f32 (N,C,H,W), BATCH_LAST. */
vkt_result vkt_conv2d_want_image(vkt_infer *f, uint32_t i, const char *name);
/* Checks, for infer, that the attributes are legal for any image size. */
vkt_result vkt_conv2d_check_attr(vkt_infer *f, const vkt_conv2d_attr *a);
/* Checks, for infer, that the attributes are legal and that the inputs x, w and, if it is given, bias match. Sets out
 * to {P, Q}. */
vkt_result vkt_conv2d_check(vkt_infer *f, const vkt_conv2d_attr *a, uint32_t out[2]);
/* Returns (in + 2 * pad - dil * (kernel - 1) - 1) / stride + 1, where the division rounds down. Returns 0 if the kernel
 * with its dilation is larger than the padded image, or if the padded image or the result is larger than 2^31 - 1. */
uint32_t vkt_conv2d_out_size(const vkt_conv2d_attr *a, int axis, uint32_t in, uint32_t kernel);

/* Returns the number of floating-point operations of a convolution with w (O,C/G,R,S). `pixels` is the number of
 * elements of y, in all samples and channels. Taps in the padding count. */
double vkt_conv2d_flops(double pixels, vkt_shape w, bool bias);

#endif
