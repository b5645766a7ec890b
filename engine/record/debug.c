/* record/debug.c - VKT_DEBUG for a program (vktrain/core.h): level 2 logs the GPU time of each kernel, and level 4
 * finds the first NaN of a run. This file also has the functions by which tests check guards (debug.h). */
#include "record/debug.h"

#include <math.h>
#include <stdio.h>

/* ---- level 2: GPU time per kernel ---- */

vkt_result vkt_debug_start(vkt_program *p)
{
    const size_t n = p->lowered.n;
    p->debug.ns = vkt_alloc_array(&p->ctx->host, 3 * n, sizeof *p->debug.ns);
    return p->debug.ns ? VKT_OK : vkt_fail_nomem(&p->ctx->host, "timestamps", 3 * n * sizeof *p->debug.ns);
}

static vkt_result add_times(vkt_program *p)
{
    const size_t n = p->lowered.n;
    uint64_t *marks = p->debug.ns + n;
    VKT_TRY(vkt_timer_read(p->ctx, &p->timer, marks));
    for (size_t i = 0; i < n; i++) p->debug.ns[i] += marks[2 * i + 1] - marks[2 * i];
    p->debug.runs++;
    return VKT_OK;
}

typedef struct kernel_sum {
    uint32_t dispatches;
    uint64_t ns;
} kernel_sum;

/* Logs one line per kernel. The kernel with the longest time comes first. */
static void log_times(const vkt_program *p)
{
    kernel_sum sums[VKT_K_END] = { { 0 } };
    uint64_t all = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        kernel_sum *s = &sums[p->lowered.list[i].kernel];
        s->dispatches++;
        s->ns += p->debug.ns[i];
        all += p->debug.ns[i];
    }
    const double per_run = 1e-6 / (double)p->debug.runs;
    vkt_log_line(&p->ctx->host, VKT_LOG_DEBUG, "%s: %.3f ms of GPU time a run, over %llu runs", p->name,
                 (double)all * per_run, (unsigned long long)p->debug.runs);
    for (;;) {
        int longest = -1;
        for (int k = 0; k < VKT_K_END; k++)
            if (sums[k].dispatches && (longest < 0 || sums[k].ns > sums[longest].ns)) longest = k;
        if (longest < 0) return;
        const kernel_sum s = sums[longest];
        const char *name =
            longest == VKT_K_NONE ? "shaders of the application" : vkt_kernel_get((vkt_kernel_id)longest)->name;
        vkt_log_line(&p->ctx->host, VKT_LOG_DEBUG, "%s: %10.3f ms %5.1f %%  %s x %u", p->name, (double)s.ns * per_run,
                     all ? 100.0 * (double)s.ns / (double)all : 0.0, name, s.dispatches);
        sums[longest].dispatches = 0;
    }
}

void vkt_debug_end(vkt_program *p)
{
    if (p->debug.runs) log_times(p);
    vkt_free(&p->ctx->host, p->debug.ns);
}

/* ---- level 4: the first NaN ---- */

/* Returns whether some dispatch uses t, and t is an f32 activation or an f32 value in a part of the store. No dispatch
 * uses the values of a dead node, so they have no live range. */
static bool is_computed(const vkt_program *p, vkt_tensor t)
{
    if (!t.id || p->g->values[t.id].dtype != VKT_F32) return false;
    const vkt_live_range live_range = p->plan.live_range[p->plan.owner[t.id]];
    if (live_range.first > live_range.last) return false;
    switch (p->g->values[vkt_root(p->g, t)].role) {
    case VKT_ROLE_ACTIVATION:
    case VKT_ROLE_PARAM:
    case VKT_ROLE_GRAD:
    case VKT_ROLE_MOMENT1:
    case VKT_ROLE_MOMENT2:
    case VKT_ROLE_MOMENT3:
    case VKT_ROLE_GRAD_SUM:
    case VKT_ROLE_PUBLISHED: return true;
    default: return false;
    }
}

/* Finds the row-major index of t's first NaN. *at is the number of elements if t has none. */
static vkt_result first_nan(vkt_program *p, vkt_tensor t, uint64_t *at)
{
    const uint64_t n = vkt_shape_elements(p->g->values[t.id].shape);
    float *data = vkt_alloc_array(&p->ctx->host, (size_t)n, sizeof *data);
    if (!data) return vkt_fail_nomem(&p->ctx->host, "a look for NaN", (size_t)n * sizeof *data);
    const vkt_result r = vkt_program_fetch(p, t, data);
    for (*at = 0; r == VKT_OK && *at < n && !isnan(data[*at]);) ++*at;
    vkt_free(&p->ctx->host, data);
    return r;
}

/* Writes the index of an element, such as "[3,7]". For an element of an arena, writes the name of the parameter and the
 * index in this parameter instead, such as " of fc1.weight[3,7]". */
static void element_text(const vkt_program *p, vkt_tensor t, uint64_t at, char out[160])
{
    const vkt_graph *g = p->g;
    const uint32_t root = vkt_root(g, t);
    char index[80];
    snprintf(out, 160, "%s", vkt_index_text(g->values[t.id].shape, at, index));
    for (int a = 0; a < VKT_ARENAS; a++)
        for (size_t i = 0; g->arena[a].id && root == g->arena[a].id && i < g->n_params; i++) {
            const vkt_value *v = &g->values[g->params[i]];
            const uint64_t first = v->arena_offset_bytes / 4;
            if (at >= first && at - first < v->bytes / 4)
                snprintf(out, 160, " of %s%s", v->name, vkt_index_text(v->shape, at - first, index));
        }
}

static vkt_result check_value(vkt_program *p, const vkt_node *n, vkt_tensor t)
{
    uint64_t at = 0;
    VKT_TRY(first_nan(p, t, &at));
    const vkt_value *v = &p->g->values[t.id];
    if (at == vkt_shape_elements(v->shape)) return VKT_OK;
    char element[160];
    element_text(p, t, at, element);
    return vkt_fail(&p->ctx->host, VKT_E_NAN, "%s: run %llu: the first NaN was written by node %u, %s, to '%s'%s",
                    p->name, (unsigned long long)(p->runs - 1), n->index, n->op->name, v->name, element);
}

/* Looks for a NaN in each output that a node computes (see is_computed). At level 4, activations share no memory, so
 * each activation still has the numbers that its node wrote. */
static vkt_result check_values(vkt_program *p)
{
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const vkt_node *n = p->g->nodes[i];
        for (uint32_t k = 0; n->op->emit && k < n->n_out; k++)
            if (is_computed(p, n->out[k])) VKT_TRY(check_value(p, n, n->out[k]));
    }
    return VKT_OK;
}

vkt_result vkt_debug_run(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *run_index)
{
    VKT_TRY(vkt_run_submit(p, run, sync, p->debug.ns != NULL, run_index));
    VKT_TRY(vkt_program_wait(p));
    if (p->debug.ns) VKT_TRY(add_times(p));
    /* A shard without rows has a mean loss of 0 / 0. The trainer ignores this loss, and shard_sum the gradients. */
    const bool no_rows = p->shard && run && run->rows == 0;
    return p->debug.level >= 4 && !no_rows ? check_values(p) : VKT_OK;
}

/* ---- for tests ---- */

vkt_result vkt_program_poison(vkt_program *p, uint32_t word)
{
    for (size_t i = 0; i < p->plan.n_blocks; i++)
        VKT_TRY(vkt_fill(p->ctx, p->blocks[i], 0, p->plan.block_bytes[i], word));
    return VKT_OK;
}

vkt_result vkt_program_check_guards(vkt_program *p, uint32_t word, bool *intact, const char **bad)
{
    *intact = true;
    *bad = NULL;
    for (uint32_t i = 1; i < p->plan.n && *intact; i++) {
        const vkt_value *v = vkt_lowered_value(&p->lowered, (vkt_tensor){ i });
        const bool packed = v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_SCRATCH;
        if (!packed || v->alias || p->plan.live_range[i].first > p->plan.live_range[i].last) continue;
        const vkt_region at = p->plan.region[i];
        const uint64_t from = at.offset_bytes + vkt_round_up(v->bytes, 4);
        const uint64_t to = at.offset_bytes + vkt_round_up(v->bytes, VKT_ALIGN_BYTES) + p->options.guard_bytes;
        uint32_t words[2 * VKT_ALIGN_BYTES / 4];
        VKT_TRY(vkt_readback(p->ctx, p->blocks[at.index], from, words, to - from));
        for (uint64_t k = 0; k < (to - from) / 4; k++)
            if (words[k] != word) *intact = false;
        if (!*intact) *bad = v->name;
    }
    return VKT_OK;
}

vkt_result vkt_program_read_raw(vkt_program *p, vkt_tensor t, void *physical, uint64_t bytes)
{
    const vkt_value *v = &p->lowered.values[t.id];
    if (t.id == 0 || t.id >= p->g->n_values || bytes != v->bytes || bytes % 4)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: want the physical size of a value of this graph");
    const vkt_range at = vkt_range_of_value(p, t);
    return vkt_readback(p->ctx, (vkt_buffer *)(uintptr_t)at.buffer, at.offset_bytes, physical, bytes);
}
