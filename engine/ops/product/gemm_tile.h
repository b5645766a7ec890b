/* ops/product/gemm_tile.h - a product by tiles in registers: its split into dispatches, and its operands. Users: gemm.c
 * and gemm_choose.c. */
#ifndef VKT_GEMM_TILE_H
#define VKT_GEMM_TILE_H

#include "ops/product/gemm.h"

/* The split of a product into blocks. A dispatch of gemm_tile computes one block: up to `batches` batches, `rows` rows
 * of C and `k` values of k. A block with several batches has all rows and all k. */
typedef struct vkt_gemm_split {
    uint32_t sg, mb, nb; /* sg: subgroup size. A tile has mb rows and nb columns */
    uint32_t batches, rows, k;
} vkt_gemm_split;

/* An operand that gemm_tile.comp can read. abi/gemm_tile.abi.h explains the members. */
typedef struct vkt_gemm_panels {
    vkt_bind bind;
    uint32_t base, step, k_step, panel, batch, last;
    bool rows; /* true: the four elements of a vec4 have neighbouring k. false: they have neighbouring rows of C (in A)
                * or neighbouring columns of C (in B) */
} vkt_gemm_panels;

/* Returns how many f32 one binding can always hold. A binding starts at a multiple of VKT_ALIGN_BYTES, so it may
 * include bytes before the first f32. */
static inline uint64_t vkt_gemm_capacity(const vkt_emit *e)
{
    return (e->lim->max_storage_range_bytes - VKT_ALIGN_BYTES) / 4;
}

/* Returns the number of elements from the first element of a block to its last one. The block has `batches` matrices
 * with `outer` rows of `inner` elements. */
static inline uint64_t vkt_gemm_span(const vkt_gemm_matrix *m, uint64_t batches, uint64_t outer, uint64_t inner)
{
    return (batches - 1) * m->batch + (outer - 1) * m->ld + inner;
}

/* A part of a product, or of an operand. It has `batches` batches from batch0 on, xn rows or columns of C from x0 on,
 * and kn values of k from k0 on. */
typedef struct vkt_gemm_part {
    uint32_t batch0, batches, x0, xn, k0, kn;
} vkt_gemm_part;

/* Returns the index of the block's first element in the tensor. */
static inline uint64_t vkt_gemm_start(const vkt_gemm_matrix *src, const vkt_gemm_part *b)
{
    return src->first + b->batch0 * src->batch + (uint64_t)(src->x_outer ? b->x0 : b->k0) * src->ld +
           (src->x_outer ? b->k0 : b->x0);
}

/* Chooses the tile and the size of the blocks into which the product is split. For each block, the bindings are large
 * enough, no loop is too long (vkt_rough_loop), and there are not too many work groups. Returns false if there is no
 * such size. */
bool vkt_gemm_split_of(const vkt_emit *e, const vkt_gemm *g, vkt_gemm_split *o);
/* Sets VKT_E_UNSUPPORTED in e, with a message that the rows of the product are too long for a binding. */
void vkt_gemm_unsupported(vkt_emit *e, const vkt_gemm *g);
/* Returns true if gemm_tile can read block b in the memory of `src`, without packing. This is the case if the block is
 * not quantized, its rows start and end at multiples of 4 elements, b->kn is a multiple of 4, and one binding can hold
 * the block. */
bool vkt_gemm_needs_no_packing(const vkt_emit *e, const vkt_gemm_matrix *src, const vkt_gemm_part *b);
/* Returns block b of the operand `src` in panels of `width` rows or columns of C. `placed`: a block that needs no
 * packing (vkt_gemm_needs_no_packing) stays in the memory of `src`. In all other cases this function emits the
 * dispatches that pack the block to `scratch`, or that unpack a quantized block to `scratch`. `scratch` is made at the
 * first use. It has `bytes` bytes, which are enough for every block. */
vkt_gemm_panels vkt_gemm_operand(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_matrix *src, const vkt_gemm_part *b,
                                 uint32_t width, bool placed, uint64_t bytes, vkt_tensor *scratch);
/* Emits the dispatch that computes the part `rows` of C from the panels a and b. */
void vkt_gemm_emit_tiles(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o, const vkt_gemm_panels *a,
                         const vkt_gemm_panels *b, const vkt_gemm_part *rows);

#endif
