/* ops/product/blocks.h - how products are split for shaders/lib/blocks.glsl: the tile of a work group, and slices of
 * the sum if there are few tiles. Users: the products (gemm_choose.c, gemm_shared.c) and convolutions (conv/shared.c,
 * conv/winograd.c) of GPUs. */
#ifndef VKT_BLOCKS_H
#define VKT_BLOCKS_H

#include "ops/ops.h"

#include "abi/blocks.abi.h"

/* `count` products of m x n elements, each a sum over k. `coop`: by cooperative matrices of f16. `split`: `coop`, with
 * each f32 operand as two f16 (shaders/lib/blocks_split.glsl). `flexible`: `coop`, with one matrix of sums for each
 * subgroup (shaders/lib/blocks_coop2.glsl). `bfloat`: `coop`, with matrices of bf16. */
typedef struct vkt_blocks_job {
    uint64_t m, n, k, count;
    bool coop, split, flexible, bfloat;
    vkt_tile tile; /* the tile to use if the device can compute it; all 0: any tile */
} vkt_blocks_job;

typedef struct vkt_blocks {
    uint32_t spec[BLOCKS_SPECS]; /* in the order of blocks.abi.h; in BLOCKS_SPEC_WHOLE only BLOCKS_UNROLLED is set */
    uint32_t tiles;              /* the tiles of one product */
    uint32_t slice, slices;      /* k of a slice, a multiple of a tile's k; number of slices */
    bool coop, split, flexible, bfloat;
} vkt_blocks;

/* Returns the kernel's index in a list of the kernels for SHARED, COOP, COOP with `split`, and COOP with `bfloat`. */
static inline uint32_t vkt_blocks_kernel(const vkt_blocks *b)
{
    return b->coop + b->split + 2u * b->bfloat;
}

/* Returns the tile of a plan. */
static inline vkt_tile vkt_blocks_tile(const vkt_blocks *b)
{
    return (vkt_tile){ (uint16_t)b->spec[BLOCKS_SPEC_BM], (uint16_t)b->spec[BLOCKS_SPEC_BN],
                       (uint16_t)b->spec[BLOCKS_SPEC_TM], (uint16_t)b->spec[BLOCKS_SPEC_TN] };
}
/* Returns tile number i of all tiles. If there are not so many, all members of the result are 0. */
vkt_tile vkt_blocks_tile_at(uint32_t i);
/* Chooses the tile, and splits the sums into at most most_slices slices (0 or 1: no split). Returns false if loops
 * would be too long, or if a product has more than 2^32 - 1 tiles. With `coop`, also returns false if no cooperative
 * matrices of the device fit into the tile. */
bool vkt_blocks_plan(const vkt_limits *lim, const vkt_blocks_job *job, uint64_t most_slices, vkt_blocks *out);
/* Returns the value of BLOCKS_SPEC_WHOLE for a product of this size: the axes along which all tiles are whole. A plan
 * does not have these bits, because a product may be computed in blocks of other sizes. */
uint32_t vkt_blocks_whole(const vkt_blocks *b, uint64_t m, uint64_t n, uint64_t k);
/* Splits like vkt_blocks_plan, for COOP. In programs of f16 or bf16, the operands have this type. In programs of
 * VKT_PRECISION_F32_SPLIT they are split. Also returns false in programs of f32, because these must not round
 * operands. */
bool vkt_blocks_plan_coop(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out);
/* Splits like vkt_blocks_plan_coop, for flexible matrices. Returns false unless the program has VKT_PRECISION_F16. */
bool vkt_blocks_plan_coop2(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out);

/* Returns the cost of a multiply-add by COOP, or VKT_COST_NEVER. */
double vkt_blocks_coop_cost(const vkt_traits *t, const vkt_blocks *b);

/* Returns how many elements the tiles compute for each element of the job's result (m x n). The elements of a tile that
 * are outside of the result are wasted work. Returns 1 if the result has 16 rows and 16 columns or more: then wasted
 * work is not counted. */
double vkt_blocks_waste(const vkt_blocks *b, const vkt_blocks_job *job);

#endif
