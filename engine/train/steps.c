/* train/steps.c - see steps.h. */
#include "train/steps.h"

#include <math.h>

#include "train/trainer.h"

/* A block has the results of one step on one rank: this header, and then one vkt_shard_result for each run. */
typedef struct header {
    uint32_t wants_stop, unused[3];
} header;
_Static_assert(sizeof(header) == sizeof(vkt_shard_result), "a header has the size of a result");

static uint32_t runs_of(const vkt_shards *s)
{
    return s->own * s->parts;
}

/* Returns the block of rank `rank` for a pending step. */
static vkt_shard_result *block_of(const vkt_shards *s, uint64_t step, uint32_t rank)
{
    const size_t block = 1 + (size_t)runs_of(s);
    return s->results + (step % VKT_STEPS_PENDING * s->ranks + rank) * block;
}

uint32_t vkt_steps_rows(const vkt_trainer *t)
{
    const vkt_shards *s = &t->shards;
    return s->count ? s->count * s->parts * s->rows : t->feed.batch;
}

uint32_t vkt_steps_of_epoch(const vkt_trainer *t)
{
    return vkt_div_up(t->feed.n, vkt_steps_rows(t));
}

uint32_t vkt_steps_most_rows(const vkt_trainer *t)
{
    const vkt_shards *s = &t->shards;
    if (s->ranks <= 1) return 0;
    const uint64_t part = (uint64_t)s->own * s->parts * s->rows; /* number of this rank's samples in a whole step */
    const uint64_t steps = vkt_div_up(vkt_dataset_rows(t->params.train), s->count * s->parts * s->rows);
    return (uint32_t)VKT_MIN(steps * part, vkt_dataset_rows(t->params.train));
}

/* ---- an epoch ---- */

/* Returns the number of samples of step `batch` of an epoch; 0: the epoch has no such step. */
static uint32_t rows_of_step(const vkt_trainer *t, uint32_t batch)
{
    const uint64_t rows = vkt_steps_rows(t), first = batch * rows;
    return first < t->feed.n ? (uint32_t)VKT_MIN(rows, t->feed.n - first) : 0;
}

/* Computes which samples of a step this rank has: *count samples, from index *first on. The step has `rows` samples. */
static void own_rows(const vkt_shards *s, uint32_t rows, uint32_t *first, uint32_t *count)
{
    const uint64_t shard = (uint64_t)s->parts * s->rows;
    *first = (uint32_t)VKT_MIN(s->first * shard, (uint64_t)rows);
    *count = (uint32_t)VKT_MIN((s->first + s->own) * shard, (uint64_t)rows) - *first;
}

/* Stores the number of terms of each step of the epoch, of all ranks together. */
static void sum_terms(vkt_trainer *t)
{
    for (uint32_t b = 0, rows; t->shards.terms && (rows = rows_of_step(t, b)) != 0; b++)
        t->shards.terms[b] = vkt_feed_terms(&t->feed, (uint64_t)b * vkt_steps_rows(t), rows);
}

/* Moves this rank's samples to the front of the epoch's order, and sets the length of the feed to their number. */
static void keep_own_rows(vkt_trainer *t)
{
    uint32_t *order = t->feed.host_order, n = 0;
    for (uint32_t b = 0, rows; (rows = rows_of_step(t, b)) != 0; b++) {
        uint32_t first, count;
        own_rows(&t->shards, rows, &first, &count);
        memmove(order + n, order + (size_t)b * vkt_steps_rows(t) + first, count * sizeof *order);
        n += count;
    }
    t->feed.length = n;
}

vkt_result vkt_steps_begin(vkt_trainer *t, uint32_t epoch, uint32_t skip)
{
    vkt_feed *f = &t->feed;
    const vkt_shards *s = &t->shards;
    if (t->params.no_shuffle)
        vkt_order_identity(f->host_order, f->n);
    else
        vkt_shuffle(f->host_order, f->n, t->params.seed, epoch);
    f->length = f->n;
    if (s->count) {
        sum_terms(t);
        keep_own_rows(t);
    }
    t->steps.batch = skip;
    return vkt_feed_start(f, s->count ? skip * runs_of(s) : skip, (vkt_pass){ t->params.seed, epoch });
}

/* ---- a step without shards ---- */

static vkt_result submit_plain(vkt_trainer *t, double lr, bool *submitted)
{
    vkt_batch b;
    VKT_TRY(vkt_feed_next(&t->feed, t->program, &b));
    *submitted = b.rows != 0;
    if (b.rows == 0) return VKT_OK;
    const vkt_run run = { .lr = (float)lr, .rows = b.rows, .first = b.first, .terms = b.terms };
    VKT_TRY(vkt_program_run(t->program, &run, &t->steps.run));
    vkt_feed_used(&t->feed, t->steps.run);
    return VKT_OK;
}

static vkt_result take_plain(vkt_trainer *t, vkt_step_result *out)
{
    vkt_metrics m;
    const vkt_steps *s = &t->steps;
    VKT_TRY(vkt_program_metrics(t->program, s->run - (s->submitted - s->arrived - 1), &m));
    *out = (vkt_step_result){ .loss = (double)m.loss * m.terms,
                              .correct = (double)m.correct,
                              .rows = m.rows,
                              .terms = m.terms,
                              .t = m.t,
                              .finite = isfinite(m.loss) };
    return VKT_OK;
}

/* ---- a step of shards ---- */

/* Exchanges the gradients of all submitted steps. */
static vkt_result exchange_all(vkt_shards *s)
{
    while (s->x.done < s->x.begun) VKT_TRY(vkt_exchange_step(&s->x));
    return VKT_OK;
}

/* Collects the next result of a pending step: waits for the oldest run of this step that is not collected, and stores
 * the result of this run. */
static vkt_result collect(vkt_trainer *t, uint64_t step)
{
    vkt_pending_step *p = &t->shards.pending[step % VKT_STEPS_PENDING];
    vkt_metrics m;
    VKT_TRY(vkt_program_metrics(t->program, p->run + p->collected, &m));
    block_of(&t->shards, step, t->shards.rank)[1 + p->collected] =
        (vkt_shard_result){ .loss = m.loss, .correct = m.correct, .rows = m.rows, .terms = m.terms };
    p->collected++;
    return VKT_OK;
}

/* A program keeps the results of its last VKT_RUN_RING runs. If the next submission would overwrite a result that is
 * not collected yet, collects this result. The next submission is a run of step `step`, and `submitted` runs of this
 * step are submitted already. */
static vkt_result make_room(vkt_trainer *t, uint64_t step, uint32_t submitted)
{
    const uint32_t runs = runs_of(&t->shards);
    uint64_t first = t->steps.arrived; /* oldest step with results that are not collected */
    while (first < step && t->shards.pending[first % VKT_STEPS_PENDING].collected == runs) first++;
    uint64_t open = submitted - (first == step ? t->shards.pending[step % VKT_STEPS_PENDING].collected : 0);
    for (uint64_t k = first; k < step; k++) open += runs - t->shards.pending[k % VKT_STEPS_PENDING].collected;
    return open < VKT_RUN_RING ? VKT_OK : collect(t, first);
}

/* Submits all runs that compute this rank's shards of a step. The step has `rows` samples. A run has sections
 * (record/marks.h). values[i] gets the value that the timeline semaphore has when section i of the last run is done. */
static vkt_result submit_shards(vkt_trainer *t, uint32_t rows, uint64_t *values)
{
    vkt_shards *s = &t->shards;
    const uint64_t step = t->steps.submitted;
    vkt_pending_step *p = &s->pending[step % VKT_STEPS_PENDING];
    uint32_t first, left;
    own_rows(s, rows, &first, &left);
    p->collected = 0;
    for (uint32_t i = 0; i < runs_of(s); i++) {
        vkt_batch b = { 0 };
        uint64_t run;
        if (left) VKT_TRY(vkt_feed_next(&t->feed, t->program, &b));
        VKT_TRY(make_room(t, step, i));
        const vkt_shard_run words = { .shard = i / s->parts,
                                      .part = i % s->parts,
                                      .draw = s->first * s->parts + i + 1 };
        const bool last = i + 1 == runs_of(s);
        const vkt_run shard = { .rows = b.rows, .first = b.first, .terms = b.terms };
        VKT_TRY(vkt_program_run_sections(t->program, &shard, &words, NULL, last ? values : NULL, &run));
        s->torn = true;
        if (i == 0) p->run = run;
        if (left) vkt_feed_used(&t->feed, run);
        left -= b.rows;
    }
    return VKT_OK;
}

/* Submits a step of shards. If the gradients of the previous step are not exchanged yet, then exchanges them while the
 * device computes the shards. In two cases this exchange must come before the submission: if a step has many runs, or
 * if the first runs of a program still measure times (vkt_program_is_measured). In both cases the submission may wait
 * for a run that cannot end before the exchange of the previous step. */
static vkt_result submit_sharded(vkt_trainer *t, double lr, bool *submitted)
{
    vkt_shards *s = &t->shards;
    const uint32_t rows = rows_of_step(t, t->steps.batch);
    *submitted = rows != 0;
    if (rows == 0) return VKT_OK;
    const bool measured = vkt_program_is_measured(t->program) && vkt_program_is_measured(s->update);
    if (runs_of(s) > VKT_MIN(VKT_FEED_SLOTS, VKT_RUN_RING / 2) || !measured) VKT_TRY(exchange_all(s));
    const uint64_t before = s->x.begun;
    VKT_TRY(submit_shards(t, rows, vkt_exchange_values(&s->x)));
    const vkt_run run = { .lr = (float)lr, .rows = rows, .terms = s->terms ? s->terms[t->steps.batch] : 0 };
    VKT_TRY(vkt_exchange_update(&s->x, s->update, &run, &s->pending[t->steps.submitted % VKT_STEPS_PENDING].update));
    s->torn = false;
    return s->x.done < before ? vkt_exchange_step(&s->x) : VKT_OK;
}

/* Adds the results of all runs of all ranks, in the order of the shards. */
static void add_results(const vkt_trainer *t, uint64_t step, vkt_step_result *out)
{
    const vkt_shards *s = &t->shards;
    *out = (vkt_step_result){ .finite = true };
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        for (uint32_t i = 0; i < runs_of(s); i++) {
            const vkt_shard_result *r = &block_of(s, step, rank)[1 + i];
            if (r->rows == 0) continue; /* a run without samples has no loss */
            out->loss += (double)r->loss * r->terms;
            out->correct += (double)r->correct;
            out->rows += r->rows;
            out->terms += r->terms;
            out->finite = out->finite && isfinite(r->loss);
        }
}

static vkt_result take_sharded(vkt_trainer *t, vkt_step_result *out)
{
    vkt_shards *s = &t->shards;
    const uint64_t step = t->steps.arrived;
    const vkt_pending_step *p = &s->pending[step % VKT_STEPS_PENDING];
    VKT_TRY(exchange_all(s));
    while (p->collected < runs_of(s)) VKT_TRY(collect(t, step));
    *(header *)(void *)block_of(s, step, s->rank) = (header){ .wants_stop = s->wants_stop };
    if (s->ranks > 1)
        VKT_TRY(vkt_all_gather(t->params.dist.transport, block_of(s, step, 0),
                               (1 + (size_t)runs_of(s)) * sizeof(vkt_shard_result)));
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        s->all_stop |= ((const header *)(const void *)block_of(s, step, rank))->wants_stop != 0;
    add_results(t, step, out);
    vkt_metrics m;
    VKT_TRY(vkt_program_metrics(s->update, p->update, &m));
    out->t = m.t;
    return VKT_OK;
}

/* ---- a step of either kind ---- */

vkt_result vkt_steps_submit(vkt_trainer *t, double lr, bool *submitted)
{
    VKT_TRY((t->shards.count ? submit_sharded : submit_plain)(t, lr, submitted));
    t->steps.submitted += *submitted;
    t->steps.batch += *submitted;
    return VKT_OK;
}

vkt_result vkt_steps_take(vkt_trainer *t, vkt_step_result *out)
{
    VKT_TRY((t->shards.count ? take_sharded : take_plain)(t, out));
    t->steps.arrived++;
    const uint32_t every = t->params.dist.check_every ? t->params.dist.check_every : 100;
    return t->shards.ranks > 1 && out->t % every == 0 ? vkt_ranks_compare_weights(t, out->t) : VKT_OK;
}

vkt_result vkt_steps_exchange(vkt_trainer *t)
{
    return exchange_all(&t->shards);
}

uint32_t vkt_steps_open(const vkt_trainer *t)
{
    return (uint32_t)(t->steps.submitted - t->steps.arrived);
}

bool vkt_steps_stop(vkt_trainer *t, bool wish)
{
    t->shards.wants_stop |= wish;
    return t->shards.ranks > 1 ? t->shards.all_stop : wish;
}

void vkt_steps_fail(vkt_trainer *t, vkt_result r)
{
    vkt_shards *s = &t->shards;
    if (!s->count || r == VKT_OK) return;
    if (t->steps.submitted) s->broken = s->ranks > 1 || s->x.done < s->x.begun;
    vkt_exchange_abandon(&s->x);
    /* If `broken` is false, the weights are those of the last complete step: this fit has submitted no step, or there
     * is one rank and no submitted update waits for an exchange. If shards of a further step have changed the states
     * (running statistics), restores the states of the last complete step. Then the next fit continues after the last
     * complete step. */
    if (!s->broken && s->torn) s->broken = vkt_shards_restore_states(t) != VKT_OK;
    s->torn = false;
    if (r != VKT_E_PEER && s->ranks > 1)
        t->params.dist.transport->fault(t->params.dist.transport->user, vkt_result_text(r));
}
