/* train/find_lr.c - vkt_trainer_find_lr: the learning rate range test. It is a fit whose rate rises by the same factor
 * from step to step. */
#include <math.h>

#include "train/trainer.h"

enum { STEPS = VKT_LR_TEST_STEPS, DECADES = 6, NEIGHBOURS = 5, LEAST = 4 };
/* The test ends after STEPS steps, at a loss that is not finite, or when the mean loss of the last NEIGHBOURS + 1 steps
 * is too large. The mean is too large if it is above 0 and more than BLOWN_UP times the lowest mean so far. In the
 * first NEIGHBOURS steps, the mean is over all steps so far. Such a mean may become the lowest mean, but does not end
 * the test. */
#define BLOWN_UP 4.0

/* The measurements of a test. A step of the test has per_step batches. The result of a batch arrives up to two batches
 * late, but it is added to the sum of the step that has the batch. A term is an addend of the loss: see
 * vkt_dataset_params.terms. */
typedef struct test {
    const vkt_fit_callbacks *caller;
    uint32_t per_step;     /* batches per step */
    uint64_t begun;        /* number of batches that were submitted */
    const vkt_sums *epoch; /* sums of the current epoch, which the trainer updates */
    double before;         /* epoch->loss before the newest result */
    uint64_t terms_before; /* epoch->terms before the newest result */
    double sums[STEPS];    /* sums[i]: sum of the losses of all terms of step i */
    double seen[STEPS];    /* seen[i]: number of losses in sums[i] */
    bool ended, stopped;
    double lowest;
    uint32_t n; /* number of complete steps with a finite loss */
} test;

/* Returns the factor of the learning rate in a step: 1e-3 in the first step, rising to 1e3 in the last one. */
static double factor(uint64_t step)
{
    return pow(10, DECADES * fmin((double)step / (STEPS - 1), 1) - DECADES / 2.0);
}

static double factor_of_step(void *user, uint64_t step)
{
    (void)user;
    return factor(step);
}

/* Returns the mean loss of the steps from `from` to `to`, both included. */
static double mean(const test *x, uint32_t from, uint32_t to)
{
    double sum = 0;
    for (uint32_t i = from; i <= to; i++) sum += x->sums[i] / x->seen[i];
    return sum / (to - from + 1);
}

static void add_batch(test *x, const vkt_fit_progress *p)
{
    const uint64_t at = (uint64_t)(p->epoch - 1) * p->batches + p->batch - 1, step = at / x->per_step;
    if (x->ended || step >= STEPS) return;
    if (p->batch == 1) x->before = 0, x->terms_before = 0;
    x->sums[step] += x->epoch->loss - x->before;
    x->seen[step] += (double)(x->epoch->terms - x->terms_before);
    x->before = x->epoch->loss;
    x->terms_before = x->epoch->terms;
    x->ended = !isfinite(x->before);
    if (x->ended || (at + 1) % x->per_step) return;
    x->n = (uint32_t)step + 1;
    const double now = mean(x, x->n > NEIGHBOURS ? x->n - 1 - NEIGHBOURS : 0, x->n - 1);
    x->ended = x->n > NEIGHBOURS && now > 0 && now > BLOWN_UP * x->lowest;
    if (!(now >= x->lowest)) x->lowest = now;
}

static void on_batch(void *user, const vkt_fit_progress *p)
{
    test *x = user;
    add_batch(x, p);
    if (x->caller->on_batch) x->caller->on_batch(x->caller->user, p);
}

/* Returns whether the test is over. The fit calls this function after each batch that it submits. */
static bool is_over(void *user)
{
    test *x = user;
    x->stopped = x->caller->stop && x->caller->stop(x->caller->user);
    return ++x->begun >= (uint64_t)STEPS * x->per_step || x->ended || x->stopped;
}

/* Finds `lowest`, the step with the lowest smoothed loss. Among the steps 1 to lowest - 1, returns the step at which
 * the smoothed loss falls fastest. Returns n if the smoothed loss falls at none of these steps. */
static uint32_t steepest(const double *smoothed, uint32_t n)
{
    uint32_t lowest = 0, best = n;
    double slope = 0;
    for (uint32_t i = 1; i < n; i++)
        if (smoothed[i] < smoothed[lowest]) lowest = i;
    /* The logarithms of the rates are evenly spaced, so the slope is proportional to the difference of two losses. */
    for (uint32_t i = 1; i < lowest; i++)
        if (smoothed[i + 1] - smoothed[i - 1] < slope) {
            slope = smoothed[i + 1] - smoothed[i - 1];
            best = i;
        }
    return best;
}

static void results_of(const test *x, double lr, vkt_lr_test *out)
{
    out->n = x->n;
    out->stopped = x->stopped;
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t to = i + NEIGHBOURS < x->n ? i + NEIGHBOURS : x->n - 1;
        out->rates[i] = lr * factor(i);
        out->losses[i] = mean(x, i, i);
        out->smoothed[i] = mean(x, i > NEIGHBOURS ? i - NEIGHBOURS : 0, to);
    }
    const uint32_t best = steepest(out->smoothed, x->n);
    if (best < x->n) out->suggested = out->rates[best];
}

/* The members of a trainer that run() or the fit of the test changes, and that run() restores. */
typedef struct saved {
    vkt_schedule schedule;
    vkt_evaluator *validation;
    vkt_history history;
    vkt_position at;
    bool owes_checkpoint, diverged;
    uint32_t n_steps;
    float *best;
} saved;

static vkt_result run(vkt_trainer *t, test *x, float *best)
{
    const saved s = { t->params.schedule, t->validation, t->history, t->at,
                      t->owes_checkpoint, t->diverged,   t->n_steps, t->best };
    const uint32_t batches = vkt_steps_of_epoch(t);
    const vkt_fit_params fit = { .epochs = STEPS * x->per_step / batches + 1,
                                 .allow_nonfinite = true,
                                 .callbacks = { .user = x, .on_batch = on_batch, .stop = is_over } };
    t->params.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_FUNCTION, .function = factor_of_step, .user = x };
    t->validation = NULL; /* a validation would take time and change nothing */
    t->history = (vkt_history){ .h = s.history.h };
    t->at = (vkt_position){ .t = s.at.t, .epoch = 1, .best = NAN, .plateau.scale = 1 };
    t->owes_checkpoint = t->diverged = false;
    t->best = best;
    const vkt_result r = vkt_trainer_fit(t, &fit);
    vkt_history_free(&t->history);
    t->params.schedule = s.schedule;
    t->validation = s.validation;
    t->history = s.history;
    t->at = s.at;
    t->owes_checkpoint = s.owes_checkpoint;
    t->diverged = s.diverged;
    t->n_steps = s.n_steps;
    t->best = s.best;
    return r == VKT_E_DIVERGED ? VKT_OK : r;
}

vkt_result vkt_trainer_find_lr(vkt_trainer *t, const vkt_fit_callbacks *callbacks, vkt_lr_test *out)
{
    static const vkt_fit_callbacks none;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, out);
    const uint32_t micro = t->params.optimizer.micro_batches;
    test x = { .caller = callbacks ? callbacks : &none,
               .per_step = micro && !t->shards.count ? micro : 1,
               .epoch = &t->at.sums,
               .lowest = INFINITY };
    *out = (vkt_lr_test){ .suggested = NAN };
    if (t->shards.ranks > 1)
        return vkt_fail(&t->host, VKT_E_UNSUPPORTED,
                        "find_lr: want a trainer of one rank, got %u: find the rate on one", t->shards.ranks);
    vkt_snapshot kept;
    float *best = vkt_alloc_array(&t->host, vkt_store_elements(t->store), sizeof *best);
    vkt_result r = best ? VKT_OK : vkt_fail_nomem(&t->host, "a copy of the weights", vkt_store_elements(t->store) * 4);
    if (r == VKT_OK) {
        r = vkt_trainer_snapshot(t, &kept);
        if (r == VKT_OK) {
            const bool broken = t->shards.broken;
            r = run(t, &x, best);
            const vkt_result back = vkt_trainer_restore(t, &kept);
            if (back == VKT_OK) t->shards.broken = broken;
            if (r == VKT_OK) r = back;
        }
        vkt_snapshot_free(&t->host, &kept);
    }
    vkt_free(&t->host, best);
    if (r != VKT_OK) return r;
    results_of(&x, (double)t->params.lr, out);
    if (x.n < LEAST && !x.stopped)
        return vkt_fail(&t->host, VKT_E_DIVERGED,
                        "find_lr: the loss is not finite after %u steps: want a smaller learning rate, got %g", x.n,
                        (double)t->params.lr);
    return VKT_OK;
}
