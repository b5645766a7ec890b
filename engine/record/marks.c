/* record/marks.c - see marks.h. */
#include "record/marks.h"

#include "record/record.h"

vkt_result vkt_program_users(const vkt_program *p, vkt_tensor t, const uint64_t *ends, uint32_t n, uint32_t *first,
                             uint32_t *last)
{
    const uint32_t root = vkt_root(p->g, t);
    for (uint32_t i = 0; i < n; i++) first[i] = UINT32_MAX;
    for (uint32_t d = 0; d < p->lowered.n; d++)
        for (uint32_t b = 0; b < p->lowered.list[d].n_bind; b++) {
            const vkt_bind *x = &p->lowered.list[d].bind[b];
            if (x->t.id == 0 || x->t.id >= p->g->n_values || vkt_root(p->g, x->t) != root) continue;
            for (uint32_t i = 0; i < n; i++) {
                if (x->offset_bytes >= ends[i] || x->offset_bytes + x->bytes <= (i ? ends[i - 1] : 0)) continue;
                first[i] = VKT_MIN(first[i], d);
                last[i] = d;
            }
        }
    for (uint32_t i = 0; i < n; i++)
        if (first[i] == UINT32_MAX)
            return vkt_fail(&p->ctx->host, VKT_E_STATE, "%s: no dispatch uses bucket %u of %u", p->name, i, n);
    return VKT_OK;
}

vkt_result vkt_program_mark(vkt_program *p, const uint32_t *at, uint32_t n)
{
    if (p->runs) return vkt_fail(&p->ctx->host, VKT_E_STATE, "%s: want marks before the first run", p->name);
    for (uint32_t i = 0; i < n; i++)
        if (at[i] >= p->lowered.n || at[i] <= (i ? at[i - 1] : 0))
            return vkt_fail(&p->ctx->host, VKT_E_ARG, "%s: want marks that rise, below %zu dispatches, got %u", p->name,
                            p->lowered.n, at[i]);
    uint32_t *marks = vkt_alloc_array(&p->ctx->host, n + 1, sizeof *marks);
    if (!marks) return vkt_fail_nomem(&p->ctx->host, "marks", n * sizeof *marks);
    if (n) memcpy(marks, at, n * sizeof *marks);
    vkt_free(&p->ctx->host, p->marks);
    p->marks = marks;
    p->n_marks = n;
    return vkt_parts_mark(p);
}

bool vkt_program_is_measured(const vkt_program *p)
{
    return p->parts[0].n != 0;
}

/* Submits the command buffers of section i. *next is the index of the section's first command buffer, and becomes the
 * index of the next section's first command buffer. */
static vkt_result submit_section(vkt_program *p, vkt_series *s, uint32_t i, const VkSemaphoreSubmitInfo *wait,
                                 uint32_t *next, uint64_t *value)
{
    const uint32_t end = i < p->n_marks ? p->marks[i] : (uint32_t)p->lowered.n, first = *next;
    const bool pieces = !p->parts[0].n;
    while (*next < s->n && (pieces ? *next + 1 : p->ends[*next]) <= end) ++*next;
    const vkt_sync sync = { .waits = wait, .n_waits = 1 };
    uint64_t arrived; /* the barrier's timeline value. *value does not get it, because a barrier alone is no run */
    if (wait) VKT_TRY(vkt_submit_synced(p->ctx, p->arrival.cmd, &sync, p->name, &arrived));
    return vkt_series_submit(p->ctx, s, first, *next, NULL, p->name, value);
}

vkt_result vkt_program_run_sections(vkt_program *p, const vkt_run *run, const vkt_shard_run *words,
                                    const VkSemaphoreSubmitInfo *waits, uint64_t *values, uint64_t *run_index)
{
    const bool whole = p->debug.level >= 2; /* VKT_DEBUG measures whole runs, and waits for their end */
    p->shard = words;
    uint64_t value = 0;
    vkt_result r = vkt_check_idle(p);
    if (r == VKT_OK && p->given.series.n)
        r = vkt_fail(&p->ctx->host, VKT_E_STATE, "%s: run_values are not for runs in sections", p->name);
    if (r == VKT_OK && whole) {
        r = vkt_debug_run(p, run, NULL, run_index);
        value = p->ctx->compute.submitted;
        for (uint32_t i = 0; i <= p->n_marks && values; i++) values[i] = value;
        p->shard = NULL;
        return r;
    }
    if (r == VKT_OK) r = vkt_run_begin(p, run);
    p->shard = NULL;
    vkt_series *s = vkt_parts_now(p);
    for (uint32_t i = 0, next = 0; i <= p->n_marks && r == VKT_OK; i++) {
        r = submit_section(p, s, i, waits ? &waits[i] : NULL, &next, &value);
        if (values) values[i] = value;
    }
    if (value) vkt_run_end(p, value, run_index); /* a run counts even if only some of its sections were submitted */
    return r;
}
