/* train/fit.c - the training loop: epochs of steps, validation, early stopping. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

/* The fit of one rank, during one call of vkt_trainer_fit. */
typedef struct fit {
    vkt_trainer *t;
    const vkt_fit_params *p;
    uint32_t epochs;
    uint64_t epoch_start_ns, last_ns;
    uint64_t last_cpu_ns; /* CPU time of this thread, without waits; read after the last reported step or checkpoint */
    bool in_steps;        /* this rank is training epochs, so other ranks may wait for a message of this rank */
    bool refused;         /* check_params refuses the params of some rank; all ranks know this, and none trains */
    bool interrupted;     /* the fit ends because callbacks.stop returned true, on this rank or on another one */
    vkt_monitor monitor;  /* the monitor in use; never AUTO */
    bool nonfinite;       /* a loss or a weight of this epoch is not finite; diverged() has logged this on rank 0 */
    vkt_result written;   /* VKT_OK; VKT_E_CHECKPOINT after a checkpoint could not be written */
    double median_ms;     /* median time of a step, at the end of the last complete epoch; 0: there is none yet */
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

static void report_batch(const fit *f)
{
    const vkt_trainer *t = f->t;
    const vkt_fit_callbacks *c = &f->p->callbacks;
    if (!c->on_batch) return;
    const vkt_sums *s = &t->at.sums;
    const vkt_fit_progress progress = { .epoch = t->at.epoch,
                                        .epochs = f->epochs,
                                        .batch = t->at.batch,
                                        .batches = vkt_steps_of_epoch(t),
                                        .loss = vkt_sums_loss(s),
                                        .accuracy = vkt_sums_accuracy(s, &t->head),
                                        .seconds = (double)(vkt_now_ns() - f->epoch_start_ns) * 1e-9,
                                        .ms_per_step = f->median_ms };
    c->on_batch(c->user, &progress);
}

/* Returns the learning rate of batch `batch` of an epoch. Epochs are counted from 1, batches from 0. With shards, a
 * batch here is the batch of a whole step. A schedule counts steps: without shards, k micro-batches are one step. */
static double rate_of(const vkt_trainer *t, uint32_t epoch, uint64_t batch)
{
    const vkt_schedule *s = &t->params.schedule;
    const uint64_t batches = vkt_steps_of_epoch(t), before = epoch - 1;
    const bool by_epoch = s->by_epoch || s->kind == VKT_SCHEDULE_PLATEAU;
    const uint32_t micro = t->shards.count ? 1 : VKT_MAX(1u, t->params.optimizer.micro_batches);
    const uint64_t at = by_epoch ? before : (before * batches + batch) / micro;
    return vkt_schedule_lr(s, (double)t->params.lr, at) * t->at.plateau.scale;
}

/* Logs that `what` is not finite. Returns VKT_E_DIVERGED, or VKT_OK if the caller allows it (allow_nonfinite). Later
 * calls in the same epoch do nothing and return VKT_OK. */
static vkt_result diverged(fit *f, const char *what)
{
    const vkt_trainer *t = f->t;
    /* over: t->at is already the start of the next epoch, but `what` belongs to the epoch that has just ended. */
    const bool allowed = f->p->allow_nonfinite, over = t->at.batch == 0 && t->at.epoch > 1;
    const uint32_t batches = vkt_steps_of_epoch(t), epoch = t->at.epoch - over;
    const uint32_t batch = over ? batches : t->at.batch;
    if (f->nonfinite) return VKT_OK;
    f->nonfinite = true;
    if (t->shards.rank > 0) return allowed ? VKT_OK : VKT_E_DIVERGED; /* all ranks find a divergence; rank 0 logs it */
    vkt_log_line(&t->host, allowed ? VKT_LOG_WARN : VKT_LOG_ERROR,
                 "fit: epoch %u, batch %u of %u (step %llu): %s is not a finite number, at learning rate %g. %s. Try a "
                 "lower learning rate, a warm-up or a smaller clip_norm%s",
                 epoch, batch, batches, (unsigned long long)t->at.t, what, rate_of(t, epoch, batch ? batch - 1 : 0),
                 allowed ? "Training goes on; this epoch is not the best one, and no checkpoint is written of it"
                         : "Training stops (allow_nonfinite goes on)",
                 vkt_stores_16_bits(t->params.precision) ? ", or precision f32" : "");
    return allowed ? VKT_OK : VKT_E_DIVERGED;
}

/* Waits for the result of the oldest open step, and adds it to the sums of the epoch. In VKT_PRECISION_F16, a step may
 * be skipped because its gradients overflow. A skipped step whose loss is finite is no divergence. */
static vkt_result await_step(fit *f)
{
    vkt_trainer *t = f->t;
    vkt_step_result r;
    VKT_TRY(vkt_steps_take(t, &r));
    t->at.sums.loss += r.loss;
    t->at.sums.correct += r.correct;
    t->at.sums.rows += r.rows;
    t->at.sums.terms += r.terms;
    t->at.batch++;
    t->at.t = r.t; /* a skipped step does not count */
    note_time(f);
    report_batch(f);
    f->last_cpu_ns = busy_ns(t); /* host_us does not include the CPU time of on_batch */
    return r.finite ? VKT_OK : diverged(f, "the loss");
}

static vkt_result drain(fit *f)
{
    while (vkt_steps_open(f->t)) VKT_TRY(await_step(f));
    return VKT_OK;
}

/* Writes a checkpoint. If the file cannot be written, training goes on and the next checkpoint tries again. If the last
 * checkpoint of a fit cannot be written, the next fit first writes it, if it still can (owes_checkpoint). If a loss of
 * the epoch or a weight is not finite, writes nothing, so the last good checkpoint stays. */
static vkt_result checkpoint(fit *f)
{
    if (!f->p->checkpoint || f->nonfinite) return VKT_OK;
    const vkt_result r = vkt_trainer_checkpoint(f->t, f->p->checkpoint);
    if (r == VKT_E_DIVERGED) return diverged(f, "a weight");
    f->t->owes_checkpoint = r != VKT_OK;
    if (r != VKT_E_IO && r != VKT_E_NOT_FOUND) return r;
    vkt_log_line(&f->t->host, VKT_LOG_WARN,
                 "fit: training goes on without this checkpoint; the next one is tried again");
    f->written = VKT_E_CHECKPOINT;
    return VKT_OK;
}

/* Writes a checkpoint at a position that all ranks have reached. Before that, compares the weights of the ranks, and
 * fails if they differ. Weights that a faulty device has changed must not replace the weights of a good checkpoint. */
static vkt_result checkpoint_of_all(fit *f)
{
    vkt_trainer *t = f->t;
    if (f->p->checkpoint && t->shards.ranks > 1) VKT_TRY(vkt_ranks_compare_weights(t, t->at.t));
    return checkpoint(f);
}

/* Writes a checkpoint if one is due. A checkpoint has the state between two steps, so this function first waits for all
 * submitted steps. */
static vkt_result maybe_checkpoint(fit *f)
{
    vkt_trainer *t = f->t;
    const uint64_t every = f->p->checkpoint_every, epoch = vkt_steps_of_epoch(t);
    const uint64_t done = (t->at.epoch - 1) * epoch + t->at.batch + vkt_steps_open(t);
    if (!f->p->checkpoint || !every || done % every) return VKT_OK;
    VKT_TRY(drain(f));
    VKT_TRY(checkpoint_of_all(f));
    f->last_ns = vkt_now_ns(); /* the time of writing the file does not count as time of the next step */
    f->last_cpu_ns = busy_ns(t);
    return VKT_OK;
}

static vkt_result run_steps(fit *f)
{
    vkt_trainer *t = f->t;
    VKT_TRY(vkt_steps_begin(t, t->at.epoch, t->at.batch));
    f->epoch_start_ns = vkt_now_ns();
    f->last_ns = 0;
    const vkt_fit_callbacks *c = &f->p->callbacks;
    for (;;) {
        bool submitted;
        const double lr = rate_of(t, t->at.epoch, t->at.batch + vkt_steps_open(t));
        VKT_TRY(vkt_steps_submit(t, lr, &submitted));
        if (!submitted) return drain(f);
        t->submitted++;
        /* A step's result is read after the next two steps are submitted, or earlier if drain() reads all results. The
         * very first result of a trainer is read at once, to measure the latency of the first step. With several ranks,
         * reading a result is an exchange, so all ranks must read a result after the same steps. So each rank reads the
         * first result of each fit at once, even if this rank has trained before. */
        const bool first = t->shards.ranks > 1 ? t->steps.arrived == 0 : !t->first_step_ns;
        if (vkt_steps_open(t) > 2 || first) VKT_TRY(await_step(f));
        VKT_TRY(maybe_checkpoint(f));
        /* c->stop may read the weights, and such a read waits for the newest step. With shards, the device ends this
         * step only after the exchange of the gradients, so the exchange comes first. */
        if (c->stop) VKT_TRY(vkt_steps_exchange(t));
        f->interrupted = vkt_steps_stop(t, c->stop && c->stop(c->user));
        if (f->interrupted) return drain(f);
    }
}

/* Trains one epoch. After a failure, submitted steps still change the weights. So this function reads the results of
 * these steps if it can, and the next fit continues after these steps. */
static vkt_result train_epoch(fit *f)
{
    const vkt_result r = run_steps(f);
    const bool alone = f->t->shards.ranks == 1; /* with several ranks, drain would wait for steps that the other ranks
                                                 * no longer submit. But after a divergence, all ranks drain */
    if (r != VKT_OK && r != VKT_E_DEVICE_LOST && (alone || r == VKT_E_DIVERGED)) (void)drain(f);
    vkt_feed_stop(&f->t->feed);
    return r;
}

/* ---- after an epoch ---- */

static const char *const monitor_names[] = { "auto", "val_acc", "val_loss", "train_acc", "train_loss", "metric" };

static bool is_accuracy(vkt_monitor m)
{
    return m == VKT_MONITOR_VAL_ACC || m == VKT_MONITOR_TRAIN_ACC;
}

static bool grows(const vkt_trainer *t, vkt_monitor m)
{
    return m == VKT_MONITOR_METRIC ? !t->metrics[0].less_is_better : is_accuracy(m);
}

static double monitored(vkt_monitor m, const vkt_epoch_record *r)
{
    switch (m) {
    case VKT_MONITOR_METRIC: return r->metrics[0].value;
    case VKT_MONITOR_VAL_ACC: return r->val_acc;
    case VKT_MONITOR_VAL_LOSS: return r->val_loss;
    case VKT_MONITOR_TRAIN_ACC: return r->train_acc;
    default: return r->train_loss;
    }
}

/* Sets *monitor to p->monitor; for AUTO, chooses a monitor. Refuses params that do not fit the trainer, for instance a
 * monitor whose value the trainer does not measure. */
static vkt_result check_params(const vkt_trainer *t, const vkt_fit_params *p, vkt_monitor *monitor)
{
    vkt_monitor m = p->monitor;
    const bool accuracy = t->head.correct.id != 0;
    if (m == VKT_MONITOR_METRIC && !t->params.n_metrics)
        return vkt_fail(&t->host, VKT_E_ARG, "fit: VKT_MONITOR_METRIC wants metrics in the trainer's params, got none");
    if ((unsigned)m > VKT_MONITOR_METRIC || !(p->min_delta >= 0))
        return vkt_fail(&t->host, VKT_E_ARG, "fit: want a vkt_monitor and min_delta >= 0, got %d and %g", (int)m,
                        p->min_delta);
    if (m == VKT_MONITOR_AUTO)
        m = !t->validation ? VKT_MONITOR_TRAIN_LOSS : accuracy ? VKT_MONITOR_VAL_ACC : VKT_MONITOR_VAL_LOSS;
    if ((m == VKT_MONITOR_VAL_ACC || m == VKT_MONITOR_VAL_LOSS || m == VKT_MONITOR_METRIC) && !t->validation)
        return vkt_fail(&t->host, VKT_E_ARG,
                        "fit: monitor %s wants a validation set, the trainer has none: give it one, or monitor "
                        "train_loss",
                        monitor_names[m]);
    if (is_accuracy(m) && !accuracy)
        return vkt_fail(&t->host, VKT_E_ARG, "fit: monitor %s wants an accuracy, the model has none: monitor a loss",
                        monitor_names[m]);
    *monitor = m;
    return VKT_OK;
}

/* Sets the fit's monitor. If the monitor has changed, sets at.best to the value that the new monitor has for the best
 * epoch. */
static void use_monitor(fit *f, vkt_monitor m)
{
    vkt_trainer *t = f->t;
    if (t->at.monitor != m && t->at.best_epoch && t->at.best_epoch <= t->history.n) {
        t->at.best = monitored(m, &t->history.records[t->at.best_epoch - 1]);
        vkt_log_line(&t->host, VKT_LOG_WARN, "fit: the monitor was %s and is %s: epoch %u is the best so far, with %g",
                     monitor_names[t->at.monitor], monitor_names[m], t->at.best_epoch, t->at.best);
    }
    t->at.monitor = f->monitor = m;
}

static bool is_better(const fit *f, double now)
{
    const double best = f->t->at.best, delta = f->p->min_delta;
    return !isnan(now) && (isnan(best) || (grows(f->t, f->monitor) ? now > best + delta : now < best - delta));
}

/* Passes the epoch's loss to the plateau schedule. If plateau.maximise is set, passes the accuracy instead. Does
 * nothing for other schedules. */
static void follow(vkt_trainer *t, const vkt_epoch_record *r)
{
    const vkt_schedule *s = &t->params.schedule;
    if (s->kind != VKT_SCHEDULE_PLATEAU) return;
    const double loss = t->validation ? r->val_loss : r->train_loss, acc = t->validation ? r->val_acc : r->train_acc;
    const double value = !isfinite(loss) ? NAN : s->plateau.maximise ? acc : loss;
    if (vkt_plateau_next(&s->plateau, (double)t->params.lr, &t->at.plateau, value))
        vkt_log_line(&t->host, VKT_LOG_INFO, "epoch %u: the learning rate goes down to %g", r->epoch,
                     (double)t->params.lr * t->at.plateau.scale);
}

/* Validates, and fills in the epoch's record. If the epoch is the best so far, sets *best to true, and copies the
 * weights to t->weights (the averaged weights, if they exist: vkt_trainer_served). */
static vkt_result look_at_epoch(fit *f, vkt_epoch_record *r, bool *best)
{
    vkt_trainer *t = f->t;
    const vkt_position *at = &t->at;
    *r = (vkt_epoch_record){ .epoch = at->epoch,
                             .train_loss = vkt_sums_loss(&at->sums),
                             .train_acc = vkt_sums_accuracy(&at->sums, &t->head),
                             .val_loss = NAN,
                             .val_acc = NAN,
                             .lr = rate_of(t, at->epoch, 0) };
    f->median_ms = vkt_trainer_ms_per_step(t);
    if (t->validation) {
        vkt_fit_progress progress = { .epoch = at->epoch, .epochs = f->epochs, .ms_per_step = f->median_ms };
        vkt_own_metrics_begin(t);
        const vkt_result run = vkt_evaluator_run(t->validation, &f->p->callbacks, &progress, &r->val_loss, &r->val_acc);
        VKT_TRY(vkt_own_metrics_end(t, run, r));
    }
    r->seconds = (double)(vkt_now_ns() - f->epoch_start_ns) * 1e-9;
    vkt_result d = VKT_OK;
    if (!isfinite(r->train_loss) || (t->validation && !isfinite(r->val_loss)))
        d = diverged(f, isfinite(r->train_loss) ? "the loss of the validation set" : "the loss of the epoch");
    *best = !f->nonfinite && is_better(f, monitored(f->monitor, r));
    if (*best) VKT_TRY(vkt_trainer_get(t, vkt_trainer_served(t), t->weights));
    if (*best && !vkt_trainer_is_finite(t, t->weights)) {
        *best = false;
        d = diverged(f, "a weight");
    }
    return d;
}

static vkt_result finish_epoch(fit *f, bool *stop)
{
    vkt_trainer *t = f->t;
    vkt_position *at = &t->at;
    vkt_epoch_record r;
    bool best = false;
    /* If one of the next two calls fails, t->at stays in this epoch, so the next fit finishes the epoch. But after a
     * divergence (VKT_E_DIVERGED), this function itself finishes the epoch. */
    const vkt_result finite = look_at_epoch(f, &r, &best);
    if (finite != VKT_OK && finite != VKT_E_DIVERGED) return finite;
    VKT_TRY(vkt_history_add(&t->history, &r));
    follow(t, &r);
    at->since_best = best ? 0 : at->since_best + 1;
    if (best) {
        memcpy(t->best, t->weights, vkt_store_elements(t->store) * sizeof *t->best);
        at->best = monitored(f->monitor, &r);
        at->best_epoch = at->epoch;
    }
    at->stopped = f->p->patience && at->since_best >= f->p->patience;
    at->epoch++;
    at->batch = 0;
    at->sums = (vkt_sums){ 0 };
    const vkt_result written = checkpoint_of_all(f);
    *stop = at->stopped;
    if (f->p->callbacks.on_epoch) *stop |= f->p->callbacks.on_epoch(f->p->callbacks.user, &r, best);
    if (finite != VKT_OK || written != VKT_OK) return finite != VKT_OK ? finite : written;
    return vkt_ranks_any(t, *stop, stop);
}

/* Returns the error for a fit without a best epoch. The error is VKT_E_STATE if the caller's monitored metric is
 * NaN in each epoch, although at least one epoch has finite losses. Otherwise the error is VKT_E_DIVERGED. */
static vkt_result fail_without_best(const fit *f)
{
    const vkt_trainer *t = f->t;
    bool unmeasured = f->monitor == VKT_MONITOR_METRIC, finite = false;
    for (size_t i = 0; i < t->history.n; i++) {
        const vkt_epoch_record *e = &t->history.records[i];
        if (!vkt_epoch_is_finite(e, t->validation != NULL)) continue;
        finite = true;
        unmeasured = unmeasured && isnan(monitored(f->monitor, e));
    }
    const vkt_result r = finite && unmeasured ? VKT_E_STATE : VKT_E_DIVERGED;
    if (f->t->shards.rank > 0) return r; /* rank 0 logs the error */
    if (r == VKT_E_STATE)
        return vkt_fail(&t->host, VKT_E_STATE,
                        "fit: no epoch is the best: the monitor, metric '%s', is NaN in each epoch with a finite loss",
                        t->metrics[0].name);
    return vkt_fail(&t->host, VKT_E_DIVERGED, "fit: no epoch has a finite loss and finite weights: none is the best");
}

/* Returns VKT_E_STATE if weights or optimizer state are not finite. */
static vkt_result check_state(fit *f)
{
    static const char *const names[VKT_ARENAS] = { [VKT_PART_VALUE] = "weights",
                                                   [VKT_PART_MOMENT1] = "first moments",
                                                   [VKT_PART_MOMENT2] = "second moments",
                                                   [VKT_PART_MOMENT3] = "third moments",
                                                   [VKT_PART_GRADIENT_SUM] = "sums of gradients",
                                                   [VKT_PART_PUBLISHED] = "averaged weights" };
    vkt_trainer *t = f->t;
    for (int part = 0; part < VKT_ARENAS; part++) {
        if (!names[part] || !vkt_store_has(t->store, (vkt_store_part)part)) continue;
        VKT_TRY(vkt_trainer_get(t, (vkt_store_part)part, t->weights));
        if (vkt_trainer_is_finite(t, t->weights)) continue;
        if (t->shards.rank > 0) return VKT_E_STATE; /* rank 0 logs the error */
        return vkt_fail(&t->host, VKT_E_STATE,
                        "fit: the run has diverged, and its %s are not finite: resume a checkpoint or load weights "
                        "first (vkt_trainer_resume, vkt_trainer_load), or set allow_nonfinite",
                        names[part]);
    }
    return VKT_OK;
}

/* Continues after a divergence. VKT_E_STATE if weights or optimizer state are not finite, unless the caller allows it
 * (allow_nonfinite). If the run diverged before the end of an epoch, this epoch begins again, because the sums of its
 * losses may not be finite. */
static vkt_result go_on(fit *f)
{
    vkt_trainer *t = f->t;
    if (!f->p->allow_nonfinite) VKT_TRY(check_state(f));
    t->diverged = false;
    t->at.batch = 0;
    t->at.sums = (vkt_sums){ 0 };
    return VKT_OK;
}

/* Warns if the last batches of the fit are too few for a step of micro-batches. */
static vkt_result warn_of_rest(const vkt_trainer *t)
{
    vkt_accumulation rest = { 0 };
    if (t->shards.count || t->params.optimizer.micro_batches < 2) return VKT_OK;
    VKT_TRY(vkt_store_get_accumulation(t->store, &rest));
    if (rest.batches && t->steps.submitted)
        vkt_log_line(&t->host, VKT_LOG_WARN,
                     "fit: batches at the end that have changed no parameter yet: %u; a step has %u micro-batches",
                     rest.batches, t->params.optimizer.micro_batches);
    return VKT_OK;
}

/* Trains epochs up to the last one, or until the run stops, is interrupted or fails. */
static vkt_result train(fit *f)
{
    vkt_trainer *t = f->t;
    if (t->owes_checkpoint) VKT_TRY(checkpoint(f));
    if (t->at.stopped && t->at.epoch <= f->epochs)
        vkt_log_line(&t->host, VKT_LOG_WARN, "fit: nothing is trained: the run has stopped early, after epoch %u",
                     t->at.epoch - 1);
    if (t->diverged && !t->at.stopped && t->at.epoch <= f->epochs) VKT_TRY(go_on(f));
    f->in_steps = true;
    for (bool stop = t->at.stopped; !stop && t->at.epoch <= f->epochs;) {
        f->nonfinite = false;
        VKT_TRY(train_epoch(f));
        if (f->interrupted) return checkpoint_of_all(f);
        VKT_TRY(finish_epoch(f, &stop));
    }
    f->in_steps = false;
    VKT_TRY(warn_of_rest(t));
    return t->history.n && !t->at.best_epoch ? fail_without_best(f) : VKT_OK;
}

/* Gives the trainer the weights of the best epoch. If these are not the weights of the last step, a missing checkpoint
 * of that step cannot be written any more. */
static vkt_result put_best(vkt_trainer *t)
{
    const bool newest = t->at.best_epoch == t->at.epoch - 1 && t->at.batch == 0;
    if (!newest || vkt_trainer_served(t) != VKT_PART_VALUE) t->owes_checkpoint = false;
    return vkt_trainer_put(t, VKT_PART_VALUE, t->best);
}

/* Checks the params of all ranks. VKT_E_ARG if this rank's params are refused; VKT_E_STATE if only the params of other
 * ranks are. */
static vkt_result check_params_of_all(fit *f, vkt_monitor *monitor)
{
    bool refused;
    const vkt_result mine = check_params(f->t, f->p, monitor);
    VKT_TRY(vkt_ranks_any(f->t, mine != VKT_OK, &refused));
    f->refused = refused;
    if (mine != VKT_OK || !refused) return mine;
    if (f->t->shards.rank > 0) return VKT_E_STATE; /* rank 0 logs the error */
    return vkt_fail(&f->t->host, VKT_E_STATE, "fit: want the same params in all ranks, got wrong ones in another rank");
}

static vkt_result fit_rank(fit *f)
{
    vkt_trainer *t = f->t;
    vkt_monitor monitor = VKT_MONITOR_AUTO; /* gcc 12 does not see that check_params sets it */
    VKT_TRY(check_params_of_all(f, &monitor));
    use_monitor(f, monitor);
    VKT_TRY(vkt_ranks_compare(t, f->p));
    const vkt_result r = train(f);
    const bool ended = (r == VKT_OK && !f->interrupted) || r == VKT_E_DIVERGED;
    if (r == VKT_E_DIVERGED) {
        t->owes_checkpoint = false; /* the missing checkpoint cannot be written any more: its state is lost */
        t->diverged = true;
    }
    /* A fit with allow_nonfinite may end with a state that is not finite, also if `stop` ends it. The next fit without
     * allow_nonfinite must check this state (go_on). */
    if (f->nonfinite) {
        t->diverged = true;
        t->owes_checkpoint = false;
    }
    t->interrupted = f->interrupted;
    if (ended && t->at.best_epoch) VKT_TRY(put_best(t));
    return r != VKT_OK ? r : f->written;
}

/* Runs the fit of this rank. The other ranks run theirs at the same time, in other threads or processes. */
static vkt_result fit_alone(vkt_trainer *t, const vkt_fit_params *params)
{
    fit f = { .t = t, .p = params };
    f.epochs = params->epochs ? params->epochs : 1;
    t->steps = (vkt_steps){ 0 };
    t->shards.wants_stop = t->shards.all_stop = t->interrupted = false;
    const vkt_result r = fit_rank(&f);
    /* Passes the result to vkt_steps_fail, with four exceptions. Refused params: all ranks know this. VKT_E_DIVERGED:
     * each rank finds the divergence itself. VKT_E_STATE outside of the steps: each rank finds the reason itself (the
     * ranks differ, a state is not finite, or no epoch is the best). VKT_E_CHECKPOINT: the fit has not ended early. */
    if (!f.refused && r != VKT_E_DIVERGED && r != VKT_E_CHECKPOINT && (f.in_steps || r != VKT_E_STATE))
        vkt_steps_fail(t, r);
    return r;
}

vkt_result vkt_trainer_fit(vkt_trainer *t, const vkt_fit_params *params)
{
    VKT_WANT(NULL, t);
    vkt_fit_params p = params ? *params : (vkt_fit_params){ 0 };
    p.min_delta = vkt_or(p.min_delta, 0);
    vkt_monitor monitor = VKT_MONITOR_AUTO; /* gcc 12 does not see that check_params sets it */
    if (t->shards.broken)
        return vkt_fail(&t->host, VKT_E_STATE,
                        "fit: the last fit ended in the middle of a step: resume its checkpoint (vkt_trainer_resume)");
    if (!t->replicas) return fit_alone(t, &p);
    /* Checks the params before any rank begins, because a rank that fails alone ends the run of all ranks. */
    VKT_TRY(check_params(t, &p, &monitor));
    return vkt_replicas_fit(t, &p, fit_alone);
}
