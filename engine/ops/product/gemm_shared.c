/* ops/product/gemm_shared.c - see gemm_shared.h, and shaders/product/gemm_shared.comp. */
#include "ops/product/gemm_shared.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/gemm_shared.abi.h"

/* Returns true if all rows of the matrix start and end at whole vec4s. `base`: index of the matrix's first element in
 * its binding. `inner`: the number of elements of a row. */
static bool in_vectors(const vkt_gemm_matrix *m, uint32_t base, uint32_t inner)
{
    return base % 4 == 0 && m->ld % 4 == 0 && m->batch % 4 == 0 && inner % 4 == 0;
}

static void emit_product(vkt_emit *e, const vkt_gemm_block *b, const vkt_blocks *tiling, const vkt_gemm_matrix *c,
                         vkt_bind to, uint32_t base, bool finish)
{
    const vkt_gemm *g = b->g;
    const vkt_gemm_shared_push push = { .M = b->m,
                                        .N = g->n,
                                        .K = b->k,
                                        .a_base = b->a_base,
                                        .a_ld = g->a.ld,
                                        .a_batch = (uint32_t)g->a.batch,
                                        .b_base = b->b_base,
                                        .b_ld = g->b.blocks ? g->b.blocks->row_bytes : g->b.ld,
                                        .b_batch = (uint32_t)g->b.batch,
                                        .c_base = base,
                                        .c_ld = c->ld,
                                        .c_batch = (uint32_t)c->batch,
                                        .slice = tiling->slice,
                                        .part = b->batches * b->m * g->n,
                                        .b_first = b->b_first };
    const bool bias = finish && b->bias.id;
    const vkt_bind bind[] = { [GEMM_SHARED_A] = b->a,
                              [GEMM_SHARED_B] = b->b,
                              [GEMM_SHARED_C] = to,
                              [GEMM_SHARED_BIAS] = bias ? VKT_WHOLE(b->bias) : b->a };
    uint32_t spec[GEMM_SHARED_SPECS];
    memcpy(spec, tiling->spec, sizeof tiling->spec);
    spec[BLOCKS_SPEC_WHOLE] = vkt_blocks_whole(tiling, b->m, g->n, b->k);
    spec[GEMM_SHARED_SPEC_A_BY_K] = g->a.x_outer;
    spec[GEMM_SHARED_SPEC_B_BY_K] = g->b.x_outer;
    spec[GEMM_SHARED_SPEC_VECTORS] =
        (in_vectors(&g->a, b->a_base, g->a.x_outer ? b->k : b->m) ? 1 : 0) |
        (!g->b.blocks && in_vectors(&g->b, b->b_base, g->b.x_outer ? b->k : g->n) ? 2 : 0) |
        (in_vectors(c, base, g->n) ? 4 : 0);
    spec[GEMM_SHARED_SPEC_ACCUMULATE] = finish && b->accumulate;
    spec[GEMM_SHARED_SPEC_BIAS] = bias;
    spec[GEMM_SHARED_SPEC_FORMAT] = g->b.blocks ? g->b.blocks->format : 0;
    static const vkt_kernel_id kernels[2][4] = {
        { VKT_K_GEMM_SHARED, VKT_K_GEMM_COOP, VKT_K_GEMM_SPLIT, VKT_K_GEMM_BFLOAT },
        { VKT_K_GEMM_QUANTIZED, VKT_K_GEMM_QUANTIZED_COOP, VKT_K_GEMM_QUANTIZED_SPLIT, VKT_K_GEMM_QUANTIZED_BFLOAT }
    };
    const vkt_kernel_id kernel =
        tiling->flexible ? VKT_K_GEMM_COOP2 : kernels[g->b.blocks != NULL][vkt_blocks_kernel(tiling)];
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = (uint16_t)kernel,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { tiling->tiles, tiling->slices, b->batches } });
}

static void emit_sum(vkt_emit *e, const vkt_gemm_block *b, uint32_t slices, vkt_tensor part)
{
    vkt_gemm_sum sum = { .part = VKT_WHOLE(part),
                         .c = b->c,
                         .n = b->batches * b->m * b->g->n,
                         .columns = b->g->n,
                         .slices = slices,
                         .c_base = b->c_base,
                         .accumulate = b->accumulate };
    if (b->bias.id) sum.bias = VKT_WHOLE(b->bias);
    vkt_gemm_sum_emit(e, &sum);
}

void vkt_gemm_shared_emit(vkt_emit *e, const vkt_gemm_block *b, const vkt_blocks *tiling)
{
    vkt_blocks own = *tiling;
    own.slices = (b->k + tiling->slice - 1) / tiling->slice; /* the last block along k may need fewer slices */
    if (own.slices == 1) {
        emit_product(e, b, &own, &b->g->c, b->c, b->c_base, true);
        return;
    }
    const uint64_t n = (uint64_t)b->batches * b->m * b->g->n;
    const vkt_tensor part = vkt_scratch(e, "slices", 4 * n * own.slices);
    const vkt_gemm_matrix dense = { .t = part, .ld = b->g->n, .batch = (uint64_t)b->m * b->g->n };
    emit_product(e, b, &own, &dense, VKT_WHOLE(part), 0, false);
    emit_sum(e, b, own.slices, part);
}
