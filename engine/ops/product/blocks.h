/* ops/product/blocks.h - how products are cut for shaders/lib/blocks.glsl: the tile of a work group, and slices of the
 * sum where there are few tiles. For gemm_shared.c and conv/shared.c. */
#ifndef VKT_BLOCKS_H
#define VKT_BLOCKS_H

#include "ops/ops.h"

#include "abi/blocks.abi.h"

/* `count` products of m x n elements, sums of k each. `coop`: by cooperative matrices of f16. */
typedef struct vkt_blocks_job {
    uint64_t m, n, k, count;
    bool coop;
} vkt_blocks_job;

typedef struct vkt_blocks {
    uint32_t spec[BLOCKS_SPECS]; /* as blocks.abi.h numbers them */
    uint32_t tiles;              /* of one product */
    uint32_t slice, slices;      /* k of a slice, a multiple of BLOCKS_K; how many */
    bool coop;
} vkt_blocks;

/* Cuts the sums into at most that many slices, 0 and 1: not at all. False where loops would be too long, or
 * the device has no cooperative matrices that fit. */
bool vkt_blocks_cut(const vkt_limits *lim, const vkt_blocks_job *job, uint64_t most_slices, vkt_blocks *out);
/* The same for COOP, in programs of VKT_PRECISION_F16: whoever asks for that gets operands rounded to it, nobody else
 * does. False in all others. */
bool vkt_blocks_cut_coop(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out);

/* Whether a device takes these tiles of its own accord: a GPU, if at least a quarter of the smallest is wanted. */
static inline bool vkt_blocks_pay(const vkt_limits *lim, uint64_t m, uint64_t n)
{
    return !lim->cpu && m >= 16 && n >= 16;
}

#endif
