/* train/fit.c - the loop: epochs of steps, validation, early stopping. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

/* One call of vkt_trainer_fit. */
typedef struct fit {
    vkt_trainer *t;
    const vkt_fit_params *p;
    uint32_t epochs;
    uint64_t run;                /* newest run of the program */
    uint64_t submitted, arrived; /* steps of this call */
    uint64_t epoch_start_ns, last_ns;
    uint64_t last_cpu_ns; /* of this thread without its waits, as the last step's result was there */
    bool interrupted;     /* callbacks.stop said so */
    double median_ms;     /* of the steps up to the last look */
} fit;

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double median(const vkt_trainer *t, const float *times)
{
    const uint32_t n = VKT_MIN(t->n_steps, (uint32_t)VKT_STEP_TIMES);
    if (n == 0) return NAN;
    float *sorted = t->sorted;
    memcpy(sorted, times, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    return n % 2 ? (double)sorted[n / 2] : ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]) / 2;
}

double vkt_trainer_ms_per_step(const vkt_trainer *t)
{
    if (!t) return 0;
    return median(t, t->step_ms);
}

double vkt_trainer_host_us_per_step(const vkt_trainer *t)
{
    if (!t) return 0;
    return median(t, t->host_us);
}

double vkt_trainer_data_wait_us_per_step(const vkt_trainer *t)
{
    if (!t) return 0;
    return t->submitted ? (double)vkt_feed_waited_ns(&t->feed) * 1e-3 / (double)t->submitted : NAN;
}

static uint64_t busy_ns(const vkt_trainer *t)
{
    vkt_wait_stats waits;
    vkt_ctx_waits(t->ctx, &waits);
    return vkt_thread_cpu_ns() - waits.cpu_ns;
}

static void note_time(fit *f)
{
    vkt_trainer *t = f->t;
    const uint64_t now = vkt_now_ns();
    if (!t->first_step_ns) t->first_step_ns = now;
    if (f->last_ns) {
        const uint32_t i = t->n_steps++ % VKT_STEP_TIMES;
        t->step_ms[i] = (float)((double)(now - f->last_ns) * 1e-6);
        t->host_us[i] = (float)((double)(busy_ns(t) - f->last_cpu_ns) * 1e-3);
    }
    f->last_ns = now;
}

static void tell_batch(const fit *f)
{
    const vkt_trainer *t = f->t;
    const vkt_fit_callbacks *c = &f->p->callbacks;
    if (!c->on_batch) return;
    const vkt_sums *s = &t->at.sums;
    const vkt_fit_progress progress = { .epoch = t->at.epoch,
                                        .epochs = f->epochs,
                                        .batch = t->at.batch,
                                        .batches = vkt_div_up(t->feed.n, t->feed.batch),
                                        .loss = vkt_sums_loss(s),
                                        .accuracy = vkt_sums_accuracy(s, &t->head),
                                        .seconds = (double)(vkt_now_ns() - f->epoch_start_ns) * 1e-9,
                                        .ms_per_step = f->median_ms };
    c->on_batch(c->user, &progress);
}

/* Takes the result of the oldest step that has not arrived; waits for it. */
static vkt_result take_one(fit *f)
{
    vkt_trainer *t = f->t;
    vkt_metrics m;
    VKT_TRY(vkt_program_metrics(t->program, f->run - (f->submitted - f->arrived - 1), &m));
    f->arrived++;
    t->at.sums.loss += (double)m.loss * m.rows;
    t->at.sums.correct += (double)m.correct;
    t->at.sums.rows += m.rows;
    t->at.batch++;
    t->at.t = m.t; /* a skipped step does not count */
    note_time(f);
    tell_batch(f);
    f->last_cpu_ns = busy_ns(t); /* a callback's time is the application's */
    return VKT_OK;
}

static vkt_result drain(fit *f)
{
    while (f->arrived < f->submitted) VKT_TRY(take_one(f));
    return VKT_OK;
}

/* One that could not be written is the next fit's first task: there may be no step left to write it after. */
static vkt_result checkpoint(fit *f)
{
    const vkt_result r = vkt_trainer_checkpoint(f->t, f->p->checkpoint);
    f->t->owes_checkpoint = r != VKT_OK;
    return r;
}

/* A checkpoint describes the state between two steps: everything submitted must have arrived. */
static vkt_result maybe_checkpoint(fit *f)
{
    vkt_trainer *t = f->t;
    const uint64_t every = f->p->checkpoint_every, epoch = vkt_div_up(t->feed.n, t->feed.batch);
    const uint64_t done = (t->at.epoch - 1) * epoch + t->at.batch + (f->submitted - f->arrived);
    if (!f->p->checkpoint || !every || done % every) return VKT_OK;
    VKT_TRY(drain(f));
    VKT_TRY(checkpoint(f));
    f->last_ns = vkt_now_ns(); /* the file's time is not the next step's */
    f->last_cpu_ns = busy_ns(t);
    return VKT_OK;
}

/* The rate of step `batch` of this epoch. */
static double rate_of(const vkt_trainer *t, uint64_t batch)
{
    const vkt_schedule *s = &t->params.schedule;
    const uint64_t batches = vkt_div_up(t->feed.n, t->feed.batch), epoch = t->at.epoch - 1;
    const bool by_epoch = s->by_epoch || s->kind == VKT_SCHEDULE_PLATEAU;
    return vkt_schedule_lr(s, (double)t->params.lr, by_epoch ? epoch : epoch * batches + batch) * t->at.plateau.scale;
}

static vkt_result run_steps(fit *f)
{
    vkt_trainer *t = f->t;
    if (t->params.no_shuffle)
        vkt_order_identity(t->feed.host_order, t->feed.n);
    else
        vkt_shuffle(t->feed.host_order, t->feed.n, t->params.seed, t->at.epoch);
    VKT_TRY(vkt_feed_start(&t->feed, t->at.batch, (vkt_pass){ t->params.seed, t->at.epoch }));
    f->epoch_start_ns = vkt_now_ns();
    f->last_ns = 0;
    const vkt_fit_callbacks *c = &f->p->callbacks;
    for (;;) {
        vkt_batch b;
        VKT_TRY(vkt_feed_next(&t->feed, t->program, &b));
        if (b.rows == 0) return drain(f);
        const double lr = rate_of(t, t->at.batch + (f->submitted - f->arrived));
        VKT_TRY(vkt_program_run(t->program, &(vkt_run){ .lr = (float)lr, .rows = b.rows, .first = b.first }, &f->run));
        vkt_feed_used(&t->feed, f->run);
        f->submitted++;
        t->submitted++;
        /* Results are read two steps late; the very first one at once, for the latency that is reported. */
        if (f->submitted - f->arrived > 2 || !t->first_step_ns) VKT_TRY(take_one(f));
        VKT_TRY(maybe_checkpoint(f));
        f->interrupted = c->stop && c->stop(c->user);
        if (f->interrupted) return drain(f);
    }
}

/* What was submitted has changed the weights. So it counts also where something failed since: another fit goes on
 * behind it. */
static vkt_result train_epoch(fit *f)
{
    const vkt_result r = run_steps(f);
    if (r != VKT_OK && r != VKT_E_DEVICE_LOST) (void)drain(f);
    vkt_feed_stop(&f->t->feed);
    return r;
}

/* The value that `m` names, and whether more of it is better. */
static double monitored(const vkt_trainer *t, vkt_monitor m, const vkt_epoch_record *r, bool *more)
{
    if (m == VKT_MONITOR_AUTO)
        m = !t->validation ? VKT_MONITOR_TRAIN_LOSS : t->head.correct.id ? VKT_MONITOR_VAL_ACC : VKT_MONITOR_VAL_LOSS;
    *more = m == VKT_MONITOR_VAL_ACC || m == VKT_MONITOR_TRAIN_ACC;
    switch (m) {
    case VKT_MONITOR_VAL_ACC: return r->val_acc;
    case VKT_MONITOR_VAL_LOSS: return r->val_loss;
    case VKT_MONITOR_TRAIN_ACC: return r->train_acc;
    default: return r->train_loss;
    }
}

static bool is_better(const fit *f, double now, bool more)
{
    const double best = f->t->at.best, delta = f->p->min_delta;
    return !isnan(now) && (isnan(best) || (more ? now > best + delta : now < best - delta));
}

/* Lets a plateau look at the epoch. */
static void follow(vkt_trainer *t, const vkt_epoch_record *r)
{
    const vkt_schedule *s = &t->params.schedule;
    if (s->kind != VKT_SCHEDULE_PLATEAU) return;
    const double loss = t->validation ? r->val_loss : r->train_loss, acc = t->validation ? r->val_acc : r->train_acc;
    if (vkt_plateau_next(&s->plateau, (double)t->params.lr, &t->at.plateau, s->plateau.maximise ? acc : loss))
        vkt_say(&t->host, VKT_LOG_INFO, "epoch %u: the learning rate goes down to %g", r->epoch,
                (double)t->params.lr * t->at.plateau.scale);
}

static vkt_result finish_epoch(fit *f, bool *stop)
{
    vkt_trainer *t = f->t;
    vkt_position *at = &t->at;
    vkt_epoch_record r = { .epoch = at->epoch,
                           .train_loss = vkt_sums_loss(&at->sums),
                           .train_acc = vkt_sums_accuracy(&at->sums, &t->head),
                           .val_loss = NAN,
                           .val_acc = NAN,
                           .lr = rate_of(t, 0) };
    f->median_ms = vkt_trainer_ms_per_step(t);
    if (t->validation) {
        vkt_fit_progress progress = { .epoch = at->epoch, .epochs = f->epochs, .ms_per_step = f->median_ms };
        VKT_TRY(vkt_evaluator_run(t->validation, &f->p->callbacks, &progress, &r.val_loss, &r.val_acc));
    }
    r.seconds = (double)(vkt_now_ns() - f->epoch_start_ns) * 1e-9;
    bool more;
    const double now = monitored(t, f->p->monitor, &r, &more);
    const bool best = is_better(f, now, more);
    /* What may fail comes before what changes: then another fit finishes this epoch once more, not twice. */
    if (best) VKT_TRY(vkt_trainer_get(t, vkt_trainer_served(t), t->weights));
    VKT_TRY(vkt_history_add(&t->history, &r));
    follow(t, &r);
    at->since_best = best ? 0 : at->since_best + 1;
    if (best) {
        memcpy(t->best, t->weights, vkt_store_elements(t->store) * sizeof *t->best);
        at->best = now;
        at->best_epoch = at->epoch;
    }
    at->stopped = f->p->patience && at->since_best >= f->p->patience;
    at->epoch++;
    at->batch = 0;
    at->sums = (vkt_sums){ 0 };
    const vkt_result written = f->p->checkpoint ? checkpoint(f) : VKT_OK;
    *stop = at->stopped;
    if (f->p->callbacks.on_epoch) *stop |= f->p->callbacks.on_epoch(f->p->callbacks.user, &r, best);
    return written;
}

vkt_result vkt_trainer_fit(vkt_trainer *t, const vkt_fit_params *params)
{
    VKT_WANT(NULL, t);
    const vkt_fit_params none = { 0 };
    fit f = { .t = t, .p = params ? params : &none };
    f.epochs = f.p->epochs ? f.p->epochs : 1;
    if ((unsigned)f.p->monitor > VKT_MONITOR_TRAIN_LOSS || !(f.p->min_delta >= 0))
        return vkt_fail(&t->host, VKT_E_ARG, "fit: want a vkt_monitor and min_delta >= 0, got %d and %g",
                        (int)f.p->monitor, f.p->min_delta);
    if (t->owes_checkpoint && f.p->checkpoint) VKT_TRY(checkpoint(&f));
    bool stop = t->at.stopped;
    while (!stop && t->at.epoch <= f.epochs) {
        VKT_TRY(train_epoch(&f));
        if (f.interrupted) return f.p->checkpoint ? checkpoint(&f) : VKT_OK;
        VKT_TRY(finish_epoch(&f, &stop));
    }
    return t->at.best_epoch ? vkt_trainer_put(t, VKT_PART_VALUE, t->best) : VKT_OK;
}
