/* record/need.c - computes the least memory with which a graph runs. */
#include "record/record.h"

#include "abi/step.abi.h"

/* BLOCK_BYTES is the smallest standard size of a block of device memory (gpu/memory.c). TYPES is the largest number of
 * memory types that the buffers use. */
enum { BLOCK_BYTES = 1 << 20, TYPES = 3 };

/* Returns an upper limit for the bytes of blocks that a buffer needs if vkt_ctx_params.block_bytes is BLOCK_BYTES. A
 * buffer larger than half a block has a block of its own. Smaller buffers share blocks. A shared block is at least half
 * full, unless it is the last block of its memory type. For the last blocks, vkt_program_needs adds TYPES blocks. */
static uint64_t in_blocks(uint64_t bytes)
{
    return bytes > BLOCK_BYTES / 2 ? bytes : 2 * bytes;
}

/* Adds a buffer of `bytes` bytes and memory class `cls` to *sum and to the totals of *n. */
static void add(vkt_memory_needs *n, uint64_t *sum, vkt_mem_class cls, uint64_t bytes)
{
    const uint64_t rounded = vkt_round_up(bytes, VKT_ALIGN_BYTES);
    *sum += rounded;
    n->bytes[cls] += rounded;
    n->total_bytes += rounded;
    n->cap_bytes += in_blocks(rounded);
}

static void add_program(const vkt_program *p, vkt_memory_needs *n)
{
    const vkt_graph *g = p->g;
    uint64_t *sum = &n->program_bytes;
    add(n, sum, VKT_MEM_SCRATCH, p->plan.const_bytes);
    for (size_t i = 0; i < p->plan.n_blocks; i++) add(n, sum, VKT_MEM_ACTIVATIONS, p->plan.block_bytes[i]);
    for (size_t i = 1; i < g->n_values; i++) {
        const vkt_value *v = &p->lowered.values[i];
        if (v->role == VKT_ROLE_INPUT && !v->alias) add(n, sum, VKT_MEM_ACTIVATIONS, v->bytes);
    }
    if (g->step.id) {
        add(n, sum, VKT_MEM_STAGING, STEP_ALL_WORDS * 4);
        add(n, sum, VKT_MEM_STAGING, RING_WORDS * RING_ALL * 4);
    }
    if (g->clock.id && g->n_params == 0) add(n, sum, VKT_MEM_STAGING, CLOCK_WORDS * 4);
    if (g->metrics.id) add(n, sum, VKT_MEM_STAGING, METRIC_WORDS * RING_ALL * 4);
}

static void add_store(const vkt_graph *g, vkt_memory_needs *n)
{
    if (g->n_params == 0) return;
    for (int i = 0; i < VKT_ARENAS; i++)
        if (i == 0 || g->arena[i].id) add(n, &n->store_bytes, vkt_store_class((vkt_store_part)i), g->arena_bytes);
    add(n, &n->store_bytes, VKT_MEM_STAGING, CLOCK_WORDS * 4);
}

/* Sets out[0] and out[1] to `array` and `other` of the vkt_binding of value i. Without a vkt_binding for the value,
 * out[0] is the array of vkt_external_array, or the copy of that array in `ctx`. NULL: there is no such array. */
static void arrays_at(const vkt_ctx *ctx, const vkt_graph *g, const vkt_program_params *params, uint32_t i,
                      const vkt_array *out[2])
{
    out[0] = g->values[i].array ? vkt_array_in(g->values[i].array, ctx) : NULL;
    out[1] = NULL;
    for (uint32_t k = 0; params && k < params->n_arrays; k++)
        if (params->arrays[k].tensor.id == i) {
            out[0] = params->arrays[k].array;
            out[1] = params->arrays[k].other;
        }
}

/* Adds the arrays of the graph. An array that several values use counts once. An array in memory of the application
 * does not count. An external value without an array counts as an array of the value's size. */
static vkt_result add_arrays(const vkt_ctx *ctx, const vkt_graph *g, const vkt_program_params *params,
                             vkt_memory_needs *n)
{
    const vkt_array **seen = vkt_alloc_array(&g->host, 2 * g->n_values, sizeof(vkt_array *)), *a[2];
    size_t n_seen = 0;
    if (!seen) return vkt_fail_nomem(&g->host, "a plan", 2 * g->n_values * sizeof(vkt_array *));
    for (uint32_t i = 1; i < g->n_values; i++) {
        const vkt_value *v = &g->values[i];
        if (v->role != VKT_ROLE_EXTERNAL || v->alias) continue;
        arrays_at(ctx, g, params, i, a);
        for (int side = 0; side < 2; side++) {
            size_t k = 0;
            if (side && !a[side]) continue;
            while (a[side] && k < n_seen && seen[k] != a[side]) k++;
            if (a[side] && k < n_seen) continue;
            if (a[side]) seen[n_seen++] = a[side];
            const uint64_t bytes = a[side] ? a[side]->buffer->block_bytes : vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
            n->array_bytes += bytes;
            n->cap_bytes += in_blocks(bytes);
        }
    }
    vkt_free(&g->host, seen);
    return VKT_OK;
}

vkt_result vkt_program_needs(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params, vkt_memory_needs *out)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, g);
    VKT_WANT(&ctx->host, out);
    *out = (vkt_memory_needs){ 0 };
    vkt_memory_needs n = { .cap_bytes = TYPES * BLOCK_BYTES };
    vkt_program *p;
    VKT_TRY(vkt_program_plan_least(ctx, g, params, &p));
    add_program(p, &n);
    add_store(g, &n);
    add(&n, &n.staging_bytes, VKT_MEM_STAGING, VKT_RING_FIRST);
    add(&n, &n.staging_bytes, VKT_MEM_STAGING, VKT_RING_FIRST / 2);
    const vkt_result r = add_arrays(ctx, g, params, &n);
    if (r == VKT_OK) *out = n;
    vkt_program_destroy(&p);
    return r;
}
