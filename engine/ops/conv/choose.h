/* ops/conv/choose.h - the dispatches of a convolution and of its gradients. By default, each call uses the cheapest
 * variant that the device and the sizes allow (vkt_pick). Users: conv2d.c, conv_transpose2d.c, fused_unpool.c and
 * linear.c. A linear layer over BATCH_LAST samples is a 1x1 convolution of 1x1 images. Errors go to e->status. */
#ifndef VKT_CONV_CHOOSE_H
#define VKT_CONV_CHOOSE_H

#include "ops/conv/parts.h"

/* Emits y = x * w + bias, a convolution; bias may be {0}. */
void vkt_emit_conv2d(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor w, vkt_tensor bias, vkt_tensor y);
/* Emits dx from dy. A transposed convolution also uses this function, with its input as `dy` and its output as `dx`.
 * Only a transposed convolution may have a bias; otherwise bias is {0}. */
void vkt_emit_conv2d_dx(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor dy, vkt_tensor w, vkt_tensor bias,
                        vkt_tensor dx);
/* Emits dw and db from x and dy; see vkt_conv2d_dw_product. */
void vkt_emit_conv2d_dw(vkt_emit *e, const vkt_conv2d_dw_product *product);

#endif
