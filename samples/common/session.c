/* common/session.c - see session.h. */
#include "common/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/devices.h"
#include "common/find_lr.h"
#include "common/message.h"
#include "common/outputs.h"
#include "common/report.h"
#include "common/schedules.h"
#include "common/scores.h"
#include "common/stop.h"
#include "common/terminal.h"
#include "common/train_files.h"

static bool was_interrupted(void *user)
{
    (void)user;
    return stop_signal() != 0;
}

static bool found; /* the learning rate test of --find-lr has begun */

bool session_interrupted(void)
{
    return stop_signal() != 0 || found;
}

/* Prints a text, unless --quiet, and adds it to log.txt of --run. */
__attribute__((format(printf, 2, 3))) static void say(const session *s, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    vkt_run_dir_log(s->folder, text);
    if (!s->o.quiet) terminal_print(stdout, text);
}

static int list_devices(const vkt_host *host)
{
    enum { MOST = 32 };
    static vkt_device_info infos[MOST];
    uint32_t n;
    if (vkt_list_devices(host, infos, MOST, &n) != VKT_OK) return 1;
    for (uint32_t i = 0; i < n && i < MOST; i++)
        terminal_printf(stdout, "%u  %s, %s, %.1f GiB: %s%s%s\n", infos[i].index, infos[i].name, infos[i].driver,
                        (double)infos[i].memory_bytes / (1 << 30), infos[i].usable ? "usable" : "not usable",
                        *infos[i].reason ? "; " : "", infos[i].reason);
    if (n == 0) puts("no Vulkan device was found");
    devices_note(stdout, infos, n < MOST ? n : MOST);
    return 0;
}

uint64_t session_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- --run: the folder of the run ---- */

/* Is the log function of the session's host: writes to stderr and to log.txt. */
static void log_line(void *user, vkt_log_level level, const char *line)
{
    static const char *const names[] = { [VKT_LOG_ERROR] = "error: ",
                                         [VKT_LOG_WARN] = "warning: ",
                                         [VKT_LOG_INFO] = "info: ",
                                         [VKT_LOG_DEBUG] = "debug: " };
    const session *s = user;
    const size_t i = (size_t)level;
    message_log(NULL, level, line);
    vkt_run_dir_log(s->folder, i < sizeof names / sizeof *names && names[i] ? names[i] : "");
    vkt_run_dir_log(s->folder, line);
    vkt_run_dir_log(s->folder, "\n");
}

static bool is_file(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

/* Opens the folder of --run. Sets --checkpoint to a path in the folder. Each of --save, --history, --plot and --json
 * that is not given gets a path in the folder, too. If the folder has a checkpoint, sets --resume to this checkpoint
 * and drops --load. VKT_E_STATE: --resume names another file than this checkpoint. The other errors are those of
 * vkt_run_dir_open. */
static vkt_result open_folder(session *s, int argc, char **argv)
{
    train_options *o = &s->o;
    const struct {
        const char **option;
        vkt_run_file file;
    } files[] = { { &o->save, VKT_RUN_WEIGHTS },
                  { &o->history, VKT_RUN_HISTORY },
                  { &o->plot, VKT_RUN_PLOT },
                  { &o->json, VKT_RUN_RESULTS } };
    const vkt_host host = message_host("run");
    char title[4096] = "";
    for (int i = 0, at = 0; i < argc && at < (int)sizeof title; i++)
        at += snprintf(title + at, sizeof title - (size_t)at, "%s%s", i ? " " : "", argv[i]);
    const vkt_result r = vkt_run_dir_open(&host, o->run, title, &s->folder);
    if (r != VKT_OK) return r;
    vkt_run_dir_omit(s->folder, VKT_RUN_RESULTS); /* write_report writes a file with more members instead */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (*files[i].option)
            vkt_run_dir_omit(s->folder, files[i].file);
        else
            *files[i].option = vkt_run_dir_path(s->folder, files[i].file);
    o->checkpoint = vkt_run_dir_path(s->folder, VKT_RUN_CHECKPOINT);
    if (!vkt_run_dir_resumes(s->folder)) return VKT_OK;
    if (o->resume && !same_file(o->resume, o->checkpoint)) {
        complain("--resume: %s has a run of its own, %s: leave out --resume to go on with it, or name another folder",
                 o->run, o->checkpoint);
        return VKT_E_STATE;
    }
    o->resume = o->checkpoint;
    o->load = NULL; /* the checkpoint has the weights */
    return VKT_OK;
}

/* Returns `path` if the session must write this file. Returns NULL if `path` is NULL, or if the fit wrote the file to
 * the folder of --run. */
static const char *own_file(const session *s, const char *path, vkt_run_file file)
{
    return s->in_folder && path == vkt_run_dir_path(s->folder, file) ? NULL : path;
}

/* Opens the folder of --run on rank 0. The other ranks wait, and make the checkpoint's path from the folder's name. */
static vkt_result open_run(session *s, int argc, char **argv)
{
    static char checkpoint[4096];
    train_options *o = &s->o;
    vkt_result r = ranks_is_first(&s->ranks) ? open_folder(s, argc, argv) : VKT_OK;
    if (r != VKT_OK) ranks_fail(&s->ranks, r);
    if (r == VKT_OK) r = ranks_meet(&s->ranks);
    if (r != VKT_OK || ranks_is_first(&s->ranks)) return r;
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.ckpt", o->run);
    o->run = NULL;
    o->checkpoint = checkpoint;
    if (is_file(checkpoint)) {
        o->resume = checkpoint;
        o->load = NULL;
    }
    return VKT_OK;
}

/* ---- begin and end ---- */

void session_begin(session *s, const train_cli *cli, int argc, char **argv)
{
    s->start_ns = session_now_ns();
    s->argc = argc;
    s->argv = argv;
    s->test_loss = s->test_accuracy = NAN;

    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* the lines of stdout and stderr keep their order if both are one file */
    train_options_parse(&s->o, cli, argc, argv);
    s->host = (vkt_host){ .log = message_log, .log_level = s->o.quiet ? VKT_LOG_ERROR : VKT_LOG_WARN };
    if (s->o.list_devices) exit(list_devices(&s->host));
    stop_begin();
    outputs_begin();
    int status = !ranks_connect(&s->ranks, &s->o);
    if (!status && s->o.run) status = open_run(s, argc, argv) != VKT_OK;
    if (!status) status = train_inputs_try(&s->o);
    if (!status) status = train_files_try(&s->o);
    if (status) {
        ranks_fail(&s->ranks, VKT_E_IO); /* does nothing if open_run has reported an error */
        ranks_leave(&s->ranks, status);
        exit(status);
    }
    s->host.log = log_line;
    s->host.log_user = s;
}

/* Prints the devices of all ranks of this process. */
static void print_devices(const session *s)
{
    const ranks *r = &s->ranks;
    for (uint32_t i = 0; i <= r->n_more; i++) {
        const vkt_device_info *device = vkt_ctx_device(i ? r->more[i - 1] : s->ctx);
        say(s, "%s  %u: %s, %s\n", i ? "      " : "device", device->index, device->name, device->driver);
    }
    if (r->mpi) say(s, "ranks   %u processes\n", r->transport.ranks);
}

/* If vkt_device_limits.lacks_tuning is true, suggests vkt-bench --tune all, which takes about a minute. */
static void offer_tuning(const session *s)
{
    vkt_device_limits limits;
    vkt_ctx_limits(s->ctx, &limits);
    if (limits.lacks_tuning)
        say(s,
            "hint    vkt-bench --tune all measures this GPU's kernels in about a minute, and keeps the fastest ones\n");
}

bool session_open(session *s)
{
    char room[256];
    const vkt_ctx_params p = { .device = ranks_device(&s->ranks, &s->o, room),
                               .max_device_bytes = s->o.memory_limit_bytes };
    if (vkt_ctx_create_wide(&p, &s->host, &s->ctx) != VKT_OK) return false;
    if (ranks_open(&s->ranks, &s->o, &s->host) != VKT_OK) return false;
    if (!s->o.predict) print_devices(s);
    if (!s->o.predict) offer_tuning(s);
    return true;
}

int session_end(session *s, vkt_result r)
{
    ranks_close(&s->ranks);
    vkt_ctx_destroy(&s->ctx);
    vkt_run_dir_destroy(&s->folder);
    json_decref(s->more);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output cannot be written: %s", errno ? strerror(errno) : "an earlier write failed");
        if (r == VKT_OK) r = VKT_E_IO;
    }
    if (r != VKT_OK) complain_of_result(r);
    if (r != VKT_OK && !s->fitting) ranks_fail(&s->ranks, r);
    const int status = stop_signal() ? 128 + stop_signal() : r != VKT_OK;
    ranks_leave(&s->ranks, status);
    return status;
}

/* ---- output ---- */

void session_set_data(session *s, const session_data *data)
{
    uint32_t chw[3];
    s->data = *data;
    char shape[48], checked[40] = "", classes[32] = "";
    vkt_dataset_sample_shape(data->train, chw);
    if (vkt_dataset_sample_rank(data->train) == 1)
        snprintf(shape, sizeof shape, "%u numbers each", chw[2]);
    else
        snprintf(shape, sizeof shape, "%ux%ux%u", chw[0], chw[1], chw[2]);
    if (data->validation) snprintf(checked, sizeof checked, ", %u to validate on", vkt_dataset_rows(data->validation));
    if (vkt_dataset_classes(data->train))
        snprintf(classes, sizeof classes, ", %u classes", vkt_dataset_classes(data->train));
    say(s, "data    %s: %u to train on%s, %s%s\n", data->source, vkt_dataset_rows(data->train), checked, shape,
        classes);
}

void session_print_memory(const session *s)
{
    vkt_memory_stats m;
    vkt_ctx_memory(s->ctx, &m);
    say(s, "memory  %.1f MiB of device memory at the peak\n", (double)m.reserved_peak_bytes / (1 << 20));
}

/* Prints the best epoch, and its value of the monitor: a loss, an accuracy or a metric. */
static void print_best(const session *s, const vkt_trainer *t, vkt_monitor m)
{
    const vkt_epoch_record *r = vkt_trainer_best(t);
    if (!r) return;
    if (m == VKT_MONITOR_AUTO)
        m = !isnan(r->val_acc)    ? VKT_MONITOR_VAL_ACC
            : !isnan(r->val_loss) ? VKT_MONITOR_VAL_LOSS
                                  : VKT_MONITOR_TRAIN_LOSS;
    const double values[] = { [VKT_MONITOR_VAL_ACC] = r->val_acc,
                              [VKT_MONITOR_VAL_LOSS] = r->val_loss,
                              [VKT_MONITOR_TRAIN_ACC] = r->train_acc,
                              [VKT_MONITOR_TRAIN_LOSS] = r->train_loss,
                              [VKT_MONITOR_METRIC] = r->metrics[0].value };
    const char *const names[] = { [VKT_MONITOR_VAL_ACC] = "validation accuracy",
                                  [VKT_MONITOR_VAL_LOSS] = "validation loss",
                                  [VKT_MONITOR_TRAIN_ACC] = "accuracy",
                                  [VKT_MONITOR_TRAIN_LOSS] = "loss",
                                  [VKT_MONITOR_METRIC] = r->metrics[0].name };
    say(s, "\nbest    epoch %u: %s %.4f\n", r->epoch, names[m], values[m]);
}

/* Prints the bytes and the time that a step needs to exchange gradients. */
static void print_exchange(const session *s, const vkt_trainer *t)
{
    vkt_dist_stats d = { 0 };
    vkt_trainer_dist_stats(t, &d);
    if (!d.steps) return;
    const double n = (double)d.steps + 1; /* number of all steps: d.steps does not count the first step */
    say(s, "ranks   %u, %.2f MiB sent per step in %u buckets: %.2f ms, of which %.2f ms after the last gradient\n",
        d.ranks, (double)d.bytes / n / (1 << 20), d.buckets, d.exchange_ms / n, d.exposed_ms / n);
}

static void print_outcome(const session *s, const vkt_trainer *t, const vkt_fit_params *p, vkt_result fitted)
{
    uint32_t n;
    vkt_trainer_history(t, &n);
    if (n && n < p->epochs && !session_interrupted() && (fitted == VKT_OK || fitted == VKT_E_CHECKPOINT))
        say(s, "stopped early: no better epoch in %u\n", p->patience);
    print_best(s, t, p->monitor);
    const double ms = vkt_trainer_ms_per_step(t), us = vkt_trainer_host_us_per_step(t);
    if (!isnan(ms))
        say(s, "speed   %.*f ms per step, %.3f ms of it on the host (medians)\n", ms < 10 ? 3 : 1, ms, us / 1000);
    print_exchange(s, t);
    session_print_memory(s);
}

/* Returns whether the file s->o.save has the weights of the best epoch although a signal or an error ended the run.
 * This is so if there is a best epoch and the fit wrote the file to the folder of --run: write_files does not change
 * such a file. To any other file, write_files writes the weights of the last step. s->o.save must not be NULL. */
static bool keeps_best(const session *s, const vkt_trainer *t)
{
    return (session_interrupted() || s->failed) && vkt_trainer_best_epoch(t) &&
           !own_file(s, s->o.save, VKT_RUN_WEIGHTS);
}

/* Prints which weights the file of --save has after a signal or an error. Prints nothing if the file could not be
 * written. An older file of this name may still be there then. */
static void print_saved(const session *s, const vkt_trainer *t)
{
    if (s->not_saved || !is_file(s->o.save)) return;
    if (keeps_best(s, t))
        remark("%s has the weights of epoch %u, the best so far", s->o.save, vkt_trainer_best_epoch(t));
    else
        remark("%s has the weights so far", s->o.save);
}

/* After a signal, prints how many epochs are done and which weights are saved. Then prints the command that continues
 * the run, or why the run cannot continue. */
static void print_stop(const session *s, const vkt_trainer *t, bool resumable)
{
    const train_options *o = &s->o;
    uint32_t n;
    vkt_trainer_history(t, &n);
    fflush(stdout);
    remark("ended by %s after %u of %u epochs", stop_name(stop_signal()), n, o->epochs);
    print_saved(s, t);
    if (resumable && !is_file(o->checkpoint)) {
        remark("the run cannot continue, because no checkpoint could be written");
    } else if (resumable) {
        remark("this command continues the run:");
        fputs("  ", stderr);
        stop_print_command(stderr, s->argc, s->argv, o->run ? NULL : o->checkpoint);
    } else {
        remark("the run cannot continue, because no checkpoint was written: --checkpoint FILE writes them");
    }
}

/* ---- the run ---- */

vkt_result session_follow(const session *s, const vkt_fit_params *params, vkt_trainer *t)
{
    vkt_progress *progress = NULL;
    vkt_fit_params p = *params;
    vkt_result r = s->o.quiet ? VKT_OK : vkt_progress_create(NULL, stdout, &progress);
    if (r != VKT_OK) {
        ranks_fail(&s->ranks, r);
        return r;
    }
    if (progress && s->unit) vkt_progress_set_unit(progress, s->unit, s->per_batch);
    if (progress) p.callbacks = vkt_progress_callbacks(progress);
    p.callbacks.stop = was_interrupted;
    if (s->in_folder) {
        char *options = options_text(s, t);
        r = options ? vkt_run_dir_fit(s->folder, t, &p, options) : VKT_E_NOMEM;
        free(options);
        /* If the error came before the fit, the trainer has not reported it to the other ranks. */
        if (r != VKT_OK && r != VKT_E_CHECKPOINT && !vkt_trainer_first_step_ns(t)) ranks_fail(&s->ranks, r);
    } else {
        r = vkt_trainer_fit(t, &p);
    }
    vkt_progress_destroy(&progress);
    return r;
}

static void keep_first(vkt_result *r, vkt_result next)
{
    if (*r == VKT_OK) *r = next;
}

/* After an error, prints how far the run came, and which weights are saved. */
static void print_failure(const session *s, const vkt_trainer *t)
{
    uint32_t n;
    vkt_trainer_history(t, &n);
    fflush(stdout);
    complain("ended by an error after %u of %u epochs: %s", n, s->o.epochs, vkt_result_text(s->failed));
    if (s->o.save && s->failed == VKT_E_DEVICE_LOST && !keeps_best(s, t))
        complain("%s is not written: the weights were lost with the device", s->o.save);
    else
        print_saved(s, t);
}

/* Saves the weights that the trainer has. If there is no best epoch (no epoch had a finite loss), saves them only
 * after a signal or an error. */
static vkt_result save_weights(const session *s, vkt_trainer *t)
{
    if (vkt_trainer_best_epoch(t) || session_interrupted() || s->failed) return vkt_trainer_save(t, s->o.save);
    remark("%s is not written: no epoch had a finite loss", s->o.save);
    return VKT_OK;
}

/* Writes the files, except those that the fit wrote to the folder of --run. A plot needs at least one epoch. If the
 * device is lost, leaves out weights and profile. *r becomes the first error. */
static void write_files(session *s, vkt_trainer *t, vkt_result *r)
{
    const train_options *o = &s->o;
    uint32_t epochs;
    vkt_trainer_history(t, &epochs);
    fflush(stdout); /* if stdout is also a file of results, the results follow the printed lines */
    const bool lost = *r == VKT_E_DEVICE_LOST;
    const char *history = own_file(s, o->history, VKT_RUN_HISTORY), *plot = own_file(s, o->plot, VKT_RUN_PLOT);
    const vkt_result saved = own_file(s, o->save, VKT_RUN_WEIGHTS) && !lost ? save_weights(s, t) : VKT_OK;
    s->not_saved = saved != VKT_OK;
    keep_first(r, saved);
    if (history) keep_first(r, vkt_trainer_write_history(t, history));
    if (plot && epochs) keep_first(r, vkt_trainer_plot(t, plot));
    if (o->profile && !lost) keep_first(r, vkt_trainer_profile(t, o->profile));
    if (o->json && !write_report(s, t)) keep_first(r, VKT_E_IO);
}

/* Measures the test set. If the test set is the validation set, uses the loss and accuracy of the best epoch. Does
 * nothing after a signal, or if loss and accuracy are neither printed nor written (--quiet without --json). */
static vkt_result measure_test(session *s, vkt_trainer *t)
{
    const vkt_epoch_record *best = vkt_trainer_best(t);
    if (!s->data.test || session_interrupted() || (s->o.quiet && !s->o.json)) return VKT_OK;
    if (s->data.test != s->data.validation)
        return vkt_trainer_evaluate(t, s->data.test, &s->test_loss, &s->test_accuracy);
    if (best) s->test_loss = best->val_loss, s->test_accuracy = best->val_acc;
    return VKT_OK;
}

/* Returns the schedule of --schedule, otherwise the program's own. --warmup replaces the warm-up of this schedule. If
 * --schedule is cosine or one-cycle, the schedule ends after the steps of all epochs. */
static vkt_schedule schedule_of(const session *run, const vkt_trainer_params *p)
{
    const train_options *o = &run->o;
    vkt_schedule s = o->has_schedule ? o->schedule : p->schedule;
    if (o->has_schedule && (s.kind == VKT_SCHEDULE_COSINE || s.kind == VKT_SCHEDULE_ONE_CYCLE))
        s.total = ranks_steps(&run->ranks, o, vkt_dataset_rows(p->train));
    if (o->warmup) schedule_set_warmup(&s, o->warmup);
    return s;
}

vkt_result session_trainer(session *s, const vkt_trainer_params *params, vkt_trainer **t)
{
    const train_options *o = &s->o;
    vkt_trainer_params p = *params;
    p.batch = o->batch;
    p.optimizer = o->optimizer;
    p.lr = o->lr;
    p.schedule = schedule_of(s, &p);
    p.seed = o->seed;
    p.stream = o->stream;
    p.recompute = o->recompute;
    p.precision = o->precision;
    p.ema_decay = o->ema_decay;
    p.profile = o->profile != NULL;
    p.label_smoothing = (float)o->label_smoothing;
    ranks_set(&s->ranks, o, &p);
    if (o->find_lr) { /* the learning rate test does not validate */
        p.validation = NULL;
        p.n_metrics = 0;
    }
    float *weights = NULL;
    vkt_result r = o->class_weights ? class_weights_of(o->class_weights, p.train, &weights) : VKT_OK;
    p.class_weights = weights;
    if (r == VKT_OK) r = vkt_trainer_create(s->ctx, &p, t);
    free(weights);
    if (r == VKT_OK && o->load) r = vkt_trainer_load(*t, o->load);
    return r;
}

static void log_end(const session *s, const char *how, const char *what)
{
    char line[128];
    snprintf(line, sizeof line, "%s %s\n", how, what);
    vkt_run_dir_log(s->folder, line);
}

vkt_result session_finish(session *s, const vkt_fit_params *fit, vkt_trainer *t, vkt_result r, bool resumable)
{
    const bool failed = r != VKT_OK && r != VKT_E_DIVERGED && r != VKT_E_CHECKPOINT;
    if (failed && !vkt_trainer_first_step_ns(t)) return r; /* no step was made, so older files are kept */
    const bool stopped = session_interrupted() && r != VKT_E_DIVERGED && !failed;
    /* If the fit has failed, the trainer may not have the weights of the best epoch. */
    const bool has_best = vkt_trainer_best_epoch(t) && !failed;
    s->error = r;
    s->failed = failed ? r : VKT_OK;
    if (!s->o.quiet && stopped) putchar('\n'); /* ends the line of the progress bar */
    print_outcome(s, t, fit, r);
    if (has_best) keep_first(&r, measure_test(s, t));
    if (has_best && s->finish) keep_first(&r, s->finish(s, t));
    if (has_best && !stopped) keep_first(&r, scores_write(s, t, s->scored, s->scored_set));
    write_files(s, t, &r);
    if (stopped) log_end(s, "ended by", stop_name(stop_signal()));
    if (failed) log_end(s, "ended by an error:", vkt_result_text(s->failed));
    if (stopped) print_stop(s, t, resumable);
    if (failed) print_failure(s, t);
    return r;
}

static vkt_result resume(const session *s, vkt_trainer *t)
{
    const char *path = s->o.resume;
    const vkt_result r = vkt_trainer_resume(t, path);
    if (r != VKT_OK) return r;
    /* If --seed is given, `path` is a checkpoint in the folder of --run: --seed and --resume together are an error. */
    if (s->o.seed_given && s->o.seed != vkt_trainer_seed(t)) {
        complain("--seed: the run of %s has the seed %llu, got %llu: leave it out, or name another folder", path,
                 (unsigned long long)vkt_trainer_seed(t), (unsigned long long)s->o.seed);
        return VKT_E_STATE;
    }
    const vkt_fit_progress at = vkt_trainer_position(t);
    if (at.epoch > s->o.epochs)
        say(s, "resume  %s: %u epochs are done; a larger --epochs goes on\n", path, at.epoch - 1);
    else if (at.batch)
        say(s, "resume  %s: goes on in epoch %u of %u, after batch %u of %u\n", path, at.epoch, s->o.epochs, at.batch,
            at.batches);
    else
        say(s, "resume  %s: goes on with epoch %u of %u\n", path, at.epoch, s->o.epochs);
    return VKT_OK;
}

static void print_way_out(const session *s)
{
    const train_options *o = &s->o;
    remark("try a smaller --lr (it was %g), --clip-norm 1%s%s", (double)o->lr,
           o->precision == VKT_PRECISION_F16 || o->precision == VKT_PRECISION_BF16 ? ", --precision f32" : "",
           o->allow_nonfinite ? "" : "; --allow-nonfinite trains on");
}

static void print_summary(const session *s, const vkt_trainer *t)
{
    const char *line = vkt_trainer_summary(t);
    say(s, "\n");
    for (size_t n; *line; line += n) {
        n = strcspn(line, "\n");
        n += line[n] == '\n';
        say(s, "%.*s", (int)n, line);
    }
    say(s, "\n");
}

vkt_result session_fit(session *s, const vkt_fit_params *with, vkt_trainer *t)
{
    vkt_result r = ranks_meet(&s->ranks);
    if (r != VKT_OK) return r;
    ranks_wait(&s->ranks, 0);
    s->fitting = true;
    if (session_interrupted()) { /* nothing is trained yet, so older files are kept */
        remark("ended by %s before the first step: no file was written", stop_name(stop_signal()));
        ranks_stop(&s->ranks, stop_name(stop_signal()));
        return VKT_OK;
    }
    if (s->o.find_lr) {
        found = true;
        return find_lr_run(s, t);
    }
    vkt_fit_params f = with ? *with : (vkt_fit_params){ .epochs = 0 };
    f.epochs = s->o.epochs;
    f.patience = s->o.patience;
    if (s->o.monitor) f.monitor = s->o.monitor;
    f.allow_nonfinite = s->o.allow_nonfinite;
    f.checkpoint = s->o.checkpoint;
    f.checkpoint_every = s->o.checkpoint_every;
    r = s->o.resume ? resume(s, t) : VKT_OK;
    if (r != VKT_OK) {
        ranks_fail(&s->ranks, r);
        return r;
    }
    s->o.seed = vkt_trainer_seed(t); /* a checkpoint has its own seed */
    print_summary(s, t);
    s->in_folder = s->folder != NULL;
    r = session_follow(s, &f, t);
    if (r == VKT_E_DIVERGED) print_way_out(s);
    return session_finish(s, &f, t, r, f.checkpoint != NULL);
}

vkt_result session_train(session *s, const vkt_trainer_params *params, const vkt_fit_params *with, vkt_trainer **t)
{
    const vkt_result r = session_trainer(s, params, t);
    return r == VKT_OK ? session_fit(s, with, *t) : r;
}
