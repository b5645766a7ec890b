/* record/need.c - the least memory with which a graph runs. */
#include "record/record.h"

#include "abi/step.abi.h"

/* The smallest size of a block of device memory (gpu/memory.c), and the number of memory types that buffers may have.
 */
enum { BLOCK_BYTES = 1 << 20, TYPES = 3 };

/* Adds a buffer to *sum and to the totals. A buffer larger than half a block has a block of its own. Smaller buffers
 * share blocks. At least half of such a block is used, except in the last block of each memory type. */
static void add(vkt_memory_needs *n, uint64_t *sum, uint64_t bytes)
{
    const uint64_t rounded = vkt_round_up(bytes, VKT_ALIGN_BYTES);
    *sum += rounded;
    n->total_bytes += rounded;
    n->cap_bytes += rounded > BLOCK_BYTES / 2 ? rounded : 2 * rounded;
}

static void add_program(const vkt_program *p, vkt_memory_needs *n)
{
    const vkt_graph *g = p->g;
    uint64_t *sum = &n->program_bytes;
    add(n, sum, p->plan.const_bytes);
    for (size_t i = 0; i < p->plan.n_blocks; i++) add(n, sum, p->plan.block_bytes[i]);
    for (size_t i = 1; i < g->n_values; i++) {
        const vkt_value *v = &p->lowered.values[i];
        if (v->role == VKT_ROLE_INPUT && !v->alias) add(n, sum, v->bytes);
    }
    if (g->step.id) {
        add(n, sum, STEP_ALL_WORDS * 4);
        add(n, sum, RING_WORDS * RING_ALL * 4);
    }
    if (g->clock.id && g->n_params == 0) add(n, sum, CLOCK_WORDS * 4);
    if (g->metrics.id) add(n, sum, METRIC_WORDS * RING_ALL * 4);
}

static void add_store(const vkt_graph *g, vkt_memory_needs *n)
{
    if (g->n_params == 0) return;
    for (int i = 0; i < VKT_ARENAS; i++)
        if (i == 0 || g->arena[i].id) add(n, &n->store_bytes, g->arena_bytes);
    add(n, &n->store_bytes, CLOCK_WORDS * 4);
}

vkt_result vkt_program_needs(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params, vkt_memory_needs *out)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, g);
    VKT_WANT(&ctx->host, out);
    *out = (vkt_memory_needs){ .cap_bytes = TYPES * BLOCK_BYTES };
    vkt_program *p;
    VKT_TRY(vkt_program_plan_least(ctx, g, params, &p));
    add_program(p, out);
    add_store(g, out);
    add(out, &out->staging_bytes, VKT_RING_FIRST);
    add(out, &out->staging_bytes, VKT_RING_FIRST / 2);
    vkt_program_destroy(&p);
    return VKT_OK;
}
