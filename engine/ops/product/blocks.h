/* ops/product/blocks.h - splits a product for shaders/lib/blocks.glsl: chooses the tile of a work group, and slices of
 * the sum if there are few tiles. Users: the products (gemm_choose.c, gemm_shared.c) and convolutions
 * (conv/choose.c, conv/shared.c, conv/winograd.c) on GPUs. */
#ifndef VKT_BLOCKS_H
#define VKT_BLOCKS_H

#include "ops/ops.h"

#include "abi/blocks.abi.h"

/* `count` products of m x n elements. Each element is a sum over k. `coop`: the kernel uses cooperative matrices, of
 * f16 unless `bfloat` is true. The other flags need `coop`. `split`: each f32 element of an operand becomes two f16
 * (shaders/lib/blocks_split.glsl). `flexible`: the kernel uses cooperative matrices of flexible dimensions
 * (VK_NV_cooperative_matrix2), and each subgroup has one matrix of sums (shaders/lib/blocks_coop2.glsl). `bfloat`: the
 * matrices are of bf16. */
typedef struct vkt_blocks_job {
    uint64_t m, n, k, count;
    bool coop, split, flexible, bfloat;
    vkt_tile tile; /* the tile to use if the device can compute it; all 0: any tile */
} vkt_blocks_job;

/* A plan: how a kernel computes the products of a job (vkt_blocks_plan). */
typedef struct vkt_blocks {
    uint32_t spec[BLOCKS_SPECS]; /* specialization constants: blocks.abi.h has their indices. The constant
                                  * BLOCKS_SPEC_WHOLE is 0 or BLOCKS_UNROLLED: see vkt_blocks_whole */
    uint32_t tiles;              /* number of tiles of one product */
    uint32_t slice, slices;      /* `slices` slices along k, of length `slice`: a multiple of a tile's length */
    bool coop, split, flexible, bfloat;
} vkt_blocks;

/* Returns the index of the kernel in a list with four kernels: SHARED, COOP, COOP with `split`, COOP with `bfloat`. */
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
/* Returns tile i of the list of all tiles. If i is past the end of the list, all members of the result are 0. */
vkt_tile vkt_blocks_tile_at(uint32_t i);
/* Chooses the tile, and splits the sums into at most most_slices slices (0 or 1: no split). Returns false if loops
 * would be too long, or if a product has more than 2^32 - 1 tiles. With `coop`, also returns false if no tile consists
 * of whole cooperative matrices of the size that the device supports. */
bool vkt_blocks_plan(const vkt_limits *lim, const vkt_blocks_job *job, uint64_t most_slices, vkt_blocks *out);
/* Returns the value of BLOCKS_SPEC_WHOLE for a product of m x n sums over k: BLOCKS_UNROLLED as in the plan, and a bit
 * for each axis along which all tiles are whole. The bits of the axes are not in the plan, because the plan is for the
 * largest of the blocks into which a product may be split (gemm.h), and other blocks may be smaller. */
uint32_t vkt_blocks_whole(const vkt_blocks *b, uint64_t m, uint64_t n, uint64_t k);
/* Makes a plan for COOP, as vkt_blocks_plan does. Programs of f16 or bf16 round the operands to this type. Programs of
 * VKT_PRECISION_F32_SPLIT split the operands. Programs of f32 must not round operands, so the function also returns
 * false for these programs. */
bool vkt_blocks_plan_coop(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out);
/* Makes a plan for flexible matrices, as vkt_blocks_plan does. Returns false unless the program has
 * VKT_PRECISION_F16. */
bool vkt_blocks_plan_coop2(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out);

/* Returns the cost of a multiply-add by COOP. Returns VKT_COST_NEVER if the matrices are of bf16 and the trait
 * coop_bf16_pays is 0. */
double vkt_blocks_coop_cost(const vkt_traits *t, const vkt_blocks *b);

/* Returns how many elements the tiles compute for each element of the job's result (m x n). The elements of a tile that
 * are outside the result are wasted work. If the result has at least 16 rows and at least 16 columns, wasted work is
 * not counted: the function returns 1. */
double vkt_blocks_waste(const vkt_blocks *b, const vkt_blocks_job *job);

#endif
