/* ops/conv/conv2d.h - a convolution's sizes, and the dispatches that compute it and its gradients. For conv2d.c,
 * conv_transpose2d.c and linear.c: a linear layer over BATCH_LAST rows is a 1x1 convolution of 1x1 pictures. All pure,
 * as emit is; errors go to e->status. */
#ifndef VKT_CONV2D_H
#define VKT_CONV2D_H

#include "ops/ops.h"

/* x [C][H][W][N'], w (O,C/G,R,S), y [O][P][Q][N']: pairs are along H and W, n4 = N' / 4. */
typedef struct vkt_conv2d_size {
    uint32_t n4, channels, out_channels;
    uint32_t in[2], kernel[2], out[2];
    vkt_conv2d_attr a;
} vkt_conv2d_size;

/* Of x (N,C,H,W) and y (N,O,P,Q). */
vkt_conv2d_size vkt_conv2d_size_of(const vkt_value *x, const vkt_value *y, const uint32_t kernel[2],
                                   const vkt_conv2d_attr *a);
/* For infer: input i, called `name`, is f32 (N,C,H,W) with the batch last. */
vkt_result vkt_conv2d_want_picture(vkt_infer *f, uint32_t i, const char *name);
/* For infer: the attributes are legal for any picture. */
vkt_result vkt_conv2d_check_attr(vkt_infer *f, const vkt_conv2d_attr *a);
/* For infer: the attributes are legal, inputs x, w and, if there, bias go together; out: P and Q. */
vkt_result vkt_conv2d_check(vkt_infer *f, const vkt_conv2d_attr *a, uint32_t out[2]);
/* (in + 2 pad - dil (k-1) - 1) / stride + 1; 0 when the kernel is larger than the padded picture. */
uint32_t vkt_conv2d_out_size(const vkt_conv2d_attr *a, int axis, uint32_t in, uint32_t kernel);

/* y = x * w + bias; bias may be {0}. */
void vkt_emit_conv2d(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor w, vkt_tensor bias, vkt_tensor y);
/* dx of dy; bias, which a transposed convolution has, may be {0}. */
void vkt_emit_conv2d_dx(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor dy, vkt_tensor w, vkt_tensor bias,
                        vkt_tensor dx);
/* dw and db of x and dy; db may be {0}. With an index, dy is the gradient of y's max pooling over disjoint cells. */
typedef struct vkt_conv2d_dw_product {
    const vkt_conv2d_size *z;
    vkt_tensor x, dy, dw, db;
    vkt_tensor index;
    uint32_t cell[2];
} vkt_conv2d_dw_product;
void vkt_emit_conv2d_dw(vkt_emit *e, const vkt_conv2d_dw_product *whole);

/* The same by Fourier transforms (conv/fft.c). */
typedef enum vkt_conv2d_which { VKT_CONV2D_Y, VKT_CONV2D_DX, VKT_CONV2D_DW } vkt_conv2d_which;
/* The variants of this kind that can compute it; *preferred is set to one that is expected to win on this device. */
uint64_t vkt_conv2d_fft_variants(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product,
                                 vkt_variant *preferred);
bool vkt_conv2d_is_fft(vkt_variant v);
/* Of one of them that can compute it: its time, in products of the tiled kernels. */
double vkt_conv2d_fft_cost(const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v);
/* y of x, or `transposed` dx of dy. */
void vkt_emit_conv2d_fft(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, bool transposed, vkt_tensor from,
                         vkt_tensor w, vkt_tensor bias, vkt_tensor to);
void vkt_emit_conv2d_fft_dw(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, vkt_tensor x, vkt_tensor dy,
                            vkt_tensor dw, vkt_tensor db);

/* The same, but for dw, by Winograd's F(2x2,3x3) (conv/winograd.c). */
bool vkt_conv2d_can_winograd(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed);
/* If it can: whether it is expected to win on this device over `other`, the best of all others, and over tiles. */
bool vkt_conv2d_winograd_pays(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed, vkt_variant other);
void vkt_emit_conv2d_winograd(vkt_emit *e, const vkt_conv2d_size *z, bool transposed, vkt_tensor from, vkt_tensor w,
                              vkt_tensor bias, vkt_tensor to);

/* Products of `pixels` outputs, all samples', with their share of w (O,C/G,R,S); taps in the padding count. */
double vkt_conv2d_flops(double pixels, vkt_shape w, bool bias);

/* A convolution with so few products an element that it is a direct one (conv/direct.comp) on every device, unless
 * products of transforms, which want channels by four, win there. */
bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2]);
/* Makes n, a max pooling of what `conv` and, with `relu`, a relu make, one node with them, if there is a kernel for it
 * (conv/fused_max_pool.c). Nobody else may read what is in between. */
bool vkt_conv2d_take_max_pool(vkt_graph *g, vkt_node *n, const vkt_node *conv, bool relu);

/* What backward does for a node whose inputs are x, w and, if there, bias: dx[0..2], as they are wanted. */
void vkt_conv2d_backward(vkt_graph *g, const vkt_node *n, const vkt_conv2d_attr *a, vkt_tensor dy, vkt_tensor *dx);
/* The gradients as nodes: dx (N,C,H,W) for `in` = {H, W}; dw (O,C/G,R,S) for `kernel` = {R, S}, and, with `bias`, db.
 */
vkt_tensor vkt_conv2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor w, const vkt_conv2d_attr *a, const uint32_t in[2]);
vkt_tensor vkt_conv2d_dw(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a, const uint32_t kernel[2],
                         bool bias, vkt_tensor *db);
/* The same where dy, which nobody reads so far, is made by a max pooling's gradient (conv/fused_unpool.c); else {0}. */
vkt_tensor vkt_conv2d_dw_unpool(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a,
                                const uint32_t kernel[2], bool bias, vkt_tensor *db);

#endif
