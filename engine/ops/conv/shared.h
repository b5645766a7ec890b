/* ops/conv/shared.h - convolutions for GPUs, by tiles in shared memory (shaders/conv/shared.comp and
 * conv/dw_shared.comp). For conv/tile.c and
 * conv/dw_tile.c, which choose. */
#ifndef VKT_CONV2D_SHARED_H
#define VKT_CONV2D_SHARED_H

#include "ops/product/blocks.h"
#include "ops/conv/conv2d.h"

/* y of x, or, `transposed`, dx of dy; bias may be {0}. */
typedef struct vkt_conv2d_product {
    const vkt_conv2d_size *z;
    bool transposed;
    vkt_tensor src, w, bias, dst;
} vkt_conv2d_product;

/* How a product is made by SHARED, and by COOP where the program and the device allow it. */
typedef struct vkt_conv2d_cuts {
    vkt_blocks shared, coop;
    uint64_t usable;       /* those two, as far as they can be: no tensor is larger than a binding, no loop too long */
    vkt_variant preferred; /* of a GPU, if `pays` */
    bool pays;
} vkt_conv2d_cuts;

vkt_conv2d_cuts vkt_conv2d_shared_cut(const vkt_emit *e, const vkt_conv2d_product *c);
void vkt_conv2d_shared_emit(vkt_emit *e, const vkt_conv2d_product *c, const vkt_blocks *cut);

vkt_conv2d_cuts vkt_conv2d_dw_shared_cut(const vkt_emit *e, const vkt_conv2d_dw_product *c);
void vkt_conv2d_dw_shared_emit(vkt_emit *e, const vkt_conv2d_dw_product *c, const vkt_blocks *cut);

/* Partial sums of dw, and then of db from float bias_start on: n of them, each `floats` long, in t if there are
 * several.
 */
typedef struct vkt_conv2d_slices {
    vkt_tensor t;
    uint32_t n;
    uint64_t floats, bias_start;
} vkt_conv2d_slices;

/* All but t and n. */
static inline vkt_conv2d_slices vkt_conv2d_slices_of(const vkt_emit *e, vkt_tensor dw, vkt_tensor db)
{
    const uint64_t start = vkt_round_up(vkt_lowered_value(e, dw)->bytes, VKT_ALIGN_BYTES);
    const uint64_t end = start + (db.id ? vkt_round_up(vkt_lowered_value(e, db)->bytes, VKT_ALIGN_BYTES) : 0);
    return (vkt_conv2d_slices){ .floats = end / 4, .bias_start = start / 4 };
}
/* In conv/dw_tile.c. */
void vkt_conv2d_sum_slices(vkt_emit *e, const vkt_conv2d_slices *s, vkt_tensor dw, vkt_tensor db);

#endif
