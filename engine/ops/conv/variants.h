/* ops/conv/variants.h - the variants of a convolution and of its gradients. Each has a check whether it can run, a
 * cost, and its dispatches. choose.c has the tables.
 *
 * The unit of cost is what conv/tile.comp takes on the same device for one multiply-add of one sample. */
#ifndef VKT_CONV_VARIANTS_H
#define VKT_CONV_VARIANTS_H

#include "ops/conv/parts.h"

/* ---- tile.c, span.c, direct.c: y and dx, part by part ---- */

/* Sets j->most, in_place and halves. Returns false if not even one channel fits into a binding. */
bool vkt_conv_tile_split(const vkt_emit *e, vkt_conv_job *j);
void vkt_conv_tile_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

bool vkt_conv_span_can(const vkt_emit *e, const vkt_conv_job *j);
/* Returns true if SPAN is faster than TILE on this device. The answer depends on the number of destination channels of
 * a group (j->rows) and on the height of the kernel. */
bool vkt_conv_span_pays(const vkt_limits *lim, const vkt_conv_job *j);
void vkt_conv_span_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

/* Returns true if the kernel can unroll all products of an element: channels_of_group * kernel[0] * kernel[1]. */
bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2]);
void vkt_conv_direct_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

/* ---- dw_tile.c: dw and db, by tiles (TILE) or with all sums of a work group in each lane (DIRECT) ---- */

/* Sets j->most. Returns false if not even one channel fits into a binding. */
bool vkt_conv_dw_split(const vkt_emit *e, vkt_conv_dw_job *j);
bool vkt_conv_dw_direct_can(const vkt_conv_dw_job *j);
void vkt_conv_dw_emit(vkt_emit *e, vkt_conv_dw_job *j, bool direct);

/* ---- shared.c: SHARED and COOP ---- */

vkt_conv2d_tilings vkt_conv_shared_plan(const vkt_emit *e, const vkt_conv_job *j);
void vkt_conv_shared_emit(vkt_emit *e, const vkt_conv_job *j, const vkt_blocks *tiling);
vkt_conv2d_tilings vkt_conv_dw_shared_plan(const vkt_emit *e, const vkt_conv_dw_job *j);
void vkt_conv_dw_shared_emit(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_blocks *tiling);

/* ---- fft.c: FFT8 .. FFT16 ---- */

typedef enum vkt_conv2d_which { VKT_CONV2D_Y, VKT_CONV2D_DX, VKT_CONV2D_DW } vkt_conv2d_which;
bool vkt_conv_fft_can(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v);
double vkt_conv_fft_cost(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v);
/* Computes y from x or, if `transposed`, dx from dy. */
void vkt_emit_conv2d_fft(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, bool transposed, vkt_tensor from,
                         vkt_tensor w, vkt_tensor bias, vkt_tensor to);
void vkt_emit_conv2d_fft_dw(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, vkt_tensor x, vkt_tensor dy,
                            vkt_tensor dw, vkt_tensor db);

/* ---- winograd.c: y and dx by F(2x2,3x3) ---- */

bool vkt_conv_winograd_can(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed);
double vkt_conv_winograd_cost(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed);
void vkt_emit_conv2d_winograd(vkt_emit *e, const vkt_conv2d_size *z, bool transposed, vkt_tensor from, vkt_tensor w,
                              vkt_tensor bias, vkt_tensor to);

#endif
