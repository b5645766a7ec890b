/* ops/conv/variants.h - the functions of the variants of a convolution and of its gradients. Most functions check
 * whether a variant can run, return its cost, or emit its dispatches. choose.c has the tables of the variants.
 *
 * The unit of cost is one multiply-add, for one sample of the batch, by conv/tile.comp on a CPU driver
 * (base/traits.def). */
#ifndef VKT_CONV_VARIANTS_H
#define VKT_CONV_VARIANTS_H

#include "ops/conv/parts.h"

/* ---- tile.c, span.c, direct.c: y and dx, part by part ---- */

/* Sets j->most, j->in_place and j->halves. Returns false if not even one channel fits into a binding. */
bool vkt_conv_tile_split(const vkt_emit *e, vkt_conv_job *j);
void vkt_conv_tile_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

bool vkt_conv_span_can(const vkt_emit *e, const vkt_conv_job *j);
/* Returns true if SPAN is faster than TILE on this device. The answer depends on how many destination channels a group
 * of the convolution has (j->rows), and on the height of the kernel. */
bool vkt_conv_span_pays(const vkt_limits *lim, const vkt_conv_job *j);
void vkt_conv_span_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

/* Returns true if direct.comp can unroll all channels_of_group * kernel[0] * kernel[1] products of an element. */
bool vkt_conv2d_is_shallow(uint32_t channels_of_group, const uint32_t kernel[2]);
void vkt_conv_direct_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);
/* Returns true if each part has all source channels of its groups of the convolution, and no loop is too long. These
 * channels and their weights must fit into storage bindings, because this kernel has no texel loads. (A texel buffer
 * may be larger: vkt_read_range.) */
bool vkt_conv_direct_shared_can(const vkt_emit *e, const vkt_conv_job *j);
void vkt_conv_direct_shared_emit(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p);

/* A convolution by DIRECT_SHARED, or a part of it. The job has `groups` groups of channels, each with `rows`
 * destination channels of `columns` vec4s. Each element of the destination is a sum of K products. */
typedef struct vkt_direct_job {
    uint32_t columns, rows, groups;
    uint64_t K;
    uint32_t most_rows; /* largest number of channels that a lane may compute: a power of two, at most 8 */
} vkt_direct_job;
/* The work groups of a vkt_direct_job (shaders/lib/direct_shared.glsl). A work group has `lanes` lanes; `across` of
 * them compute the same `rows` channels. */
typedef struct vkt_direct_tiles {
    uint32_t lanes, across, rows;
    uint32_t chunk, unroll;        /* chunk: taps in shared memory at a time. unroll: taps per iteration */
    uint32_t row_tiles, col_tiles; /* row_tiles: number of tiles over the destination channels of one group.
                                    * col_tiles: number of tiles over the columns */
    uint64_t rounds;               /* iterations of all loops of an invocation for one column tile */
} vkt_direct_tiles;
vkt_direct_tiles vkt_direct_tiles_of(const vkt_limits *lim, const vkt_direct_job *j);
/* Returns the number of work groups along the columns: one for each column tile, or fewer if the device needs fewer
 * (vkt_groups_wanted). With fewer work groups, each copy of the weights in shared memory serves several tiles. `rounds`
 * is the number of iterations per column tile. If a loop would be too long, returns 0 and sets the emission's error. */
uint64_t vkt_direct_strips(vkt_emit *e, const vkt_direct_tiles *t, uint32_t groups, uint64_t rounds);

/* ---- dw_tile.c, dw_direct_shared.c: dw and db. TILE: each lane has some sums of a tile. DIRECT, DIRECT_SHARED: each
 * lane has all sums of its work group, over some of the pixels ---- */

/* Sets j->most. Returns false if not even one channel fits into a binding. */
bool vkt_conv_dw_split(const vkt_emit *e, vkt_conv_dw_job *j);
bool vkt_conv_dw_direct_can(const vkt_conv_dw_job *j);
bool vkt_conv_dw_direct_shared_can(const vkt_emit *e, const vkt_conv_dw_job *j);
/* Emits the job by variant v: TILE, DIRECT or DIRECT_SHARED. */
void vkt_conv_dw_emit(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v);

/* The work groups of DIRECT_SHARED: tiles of rows x cols weights. */
typedef struct vkt_dw_direct_tiles {
    uint32_t lanes, rows, cols, row_tiles, col_tiles;
} vkt_dw_direct_tiles;
vkt_dw_direct_tiles vkt_dw_direct_tiles_of(const vkt_emit *e, const vkt_conv_dw_job *j);
/* Emits part p by DIRECT_SHARED. The part has whole groups of the convolution. */
void vkt_conv_dw_direct_shared_emit(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_conv_dw_part *p);

/* ---- shared.c: SHARED and COOP ---- */

vkt_conv2d_tilings vkt_conv_shared_plan(const vkt_emit *e, const vkt_conv_job *j);
void vkt_conv_shared_emit(vkt_emit *e, const vkt_conv_job *j, const vkt_blocks *tiling);
vkt_conv2d_tilings vkt_conv_dw_shared_plan(const vkt_emit *e, const vkt_conv_dw_job *j);
void vkt_conv_dw_shared_emit(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_blocks *tiling);

/* ---- fft.c: FFT8 .. FFT16 ---- */

typedef enum vkt_conv2d_which { VKT_CONV2D_Y, VKT_CONV2D_DX, VKT_CONV2D_DW } vkt_conv2d_which;
bool vkt_conv_fft_can(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v);
double vkt_conv_fft_cost(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v);
/* Emits y from x or, if `transposed`, dx from dy. */
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
