/* record/submit.c - one run: the words that the host writes for the run, its submission, and waiting for its end. */
#include "record/record.h"

#include "abi/step.abi.h"

_Static_assert(RING_SLOTS == VKT_RUN_RING, "the public header and the shaders agree on the ring");

vkt_result vkt_wait_run(vkt_program *p, uint64_t r)
{
    return vkt_wait(p->ctx, p->values[r % VKT_RUN_RING]);
}

vkt_result vkt_run_words(const vkt_program *p, const vkt_run *run, uint32_t *words)
{
    const vkt_shard_run *s = p->shard;
    if (run && !p->given.series.n && p->most_rows && run->rows > p->most_rows)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: want at most the batch of %u rows, got %u", p->most_rows,
                        run->rows);
    const float lr = run ? run->lr : 0.0f;
    memset(words, 0, RING_WORDS * sizeof *words);
    words[RING_ROWS] = run && run->rows ? run->rows : p->g->batch ? p->g->batch : ROWS_ALL;
    const uint32_t rows = words[RING_ROWS] != ROWS_ALL ? words[RING_ROWS] : VKT_MAX(p->most_rows, 1u);
    words[RING_WEIGHT] = run && run->terms ? run->terms : rows;
    words[RING_FIRST] = run ? run->first : 0;
    memcpy(&words[RING_LR], &lr, sizeof lr);
    if (!s) return VKT_OK;
    words[RING_ROWS] = run ? run->rows : 0;
    if (!words[RING_ROWS] || !run->terms) words[RING_WEIGHT] = words[RING_ROWS];
    words[RING_SHARD] = s->shard;
    words[RING_PART] = s->part;
    words[RING_DRAW] = s->draw;
    return VKT_OK;
}

vkt_result vkt_run_begin(vkt_program *p, const vkt_run *run)
{
    uint32_t words[RING_WORDS];
    const uint64_t r = p->runs;
    VKT_TRY(vkt_run_words(p, run, words));
    /* Run r uses the slots of the older run r - VKT_RUN_RING, in both rings of step.abi.h. */
    if (r >= VKT_RUN_RING) VKT_TRY(vkt_wait_run(p, r - VKT_RUN_RING));
    VKT_TRY(vkt_parts_prepare(p));
    p->side = run && run->swap && p->sides == 2;
    if (p->words) memcpy((uint32_t *)p->words->mapped + r % RING_SLOTS * RING_WORDS, words, sizeof words);
    return VKT_OK;
}

void vkt_run_end(vkt_program *p, uint64_t value, uint64_t *run_index)
{
    p->values[p->runs % VKT_RUN_RING] = value;
    if (run_index) *run_index = p->runs;
    p->runs++;
}

vkt_result vkt_check_idle(const vkt_program *p)
{
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    if (!p->budget.next) return VKT_OK;
    return vkt_fail(&p->ctx->host, VKT_E_STATE, "%s: a run that vkt_step_budget began is under way", p->name);
}

vkt_result vkt_run_submit(vkt_program *p, const vkt_run *run, const vkt_sync *sync, bool profiled, uint64_t *run_index)
{
    uint64_t value;
    VKT_TRY(vkt_check_idle(p));
    VKT_TRY(vkt_run_begin(p, run));
    vkt_series *s = profiled && p->parts[0].n ? &p->profiled[p->side] : vkt_parts_now(p);
    vkt_sync rest;
    VKT_TRY(vkt_given_submit(p, sync, &rest));
    VKT_TRY(vkt_series_submit(p->ctx, s, 0, s->n, &rest, p->name, &value));
    vkt_run_end(p, value, run_index);
    return VKT_OK;
}

vkt_result vkt_check_run(const vkt_program *p, uint64_t run_index)
{
    if (run_index >= p->runs || p->runs - run_index > VKT_RUN_RING)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: run %llu is none of the last %d of %llu",
                        (unsigned long long)run_index, VKT_RUN_RING, (unsigned long long)p->runs);
    return VKT_OK;
}

bool vkt_program_done(vkt_program *p, uint64_t run_index)
{
    if (!p) return false;
    return run_index < p->runs &&
           (p->runs - run_index > VKT_RUN_RING || vkt_reached(p->ctx, p->values[run_index % VKT_RUN_RING]));
}

vkt_result vkt_program_wait_run(vkt_program *p, uint64_t run_index)
{
    VKT_WANT(NULL, p);
    VKT_TRY(vkt_check_run(p, run_index));
    return vkt_wait_run(p, run_index);
}

vkt_result vkt_program_wait(vkt_program *p)
{
    VKT_WANT(NULL, p);
    return p->runs ? vkt_wait_run(p, p->runs - 1) : VKT_OK;
}
