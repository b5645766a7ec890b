/* common/session.c - see session.h. */
#include "common/session.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/report.h"
#include "common/terminal.h"

enum { INTERRUPTED = 130 };

/* ---- Ctrl-C: the step is finished and the checkpoint written ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static bool was_interrupted(void *user)
{
    (void)user;
    return interrupted != 0;
}

bool session_interrupted(void)
{
    return interrupted != 0;
}

/* ---- begin and end ---- */

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
    return 0;
}

uint64_t session_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void session_begin(session *s, const train_cli *cli, int argc, char **argv)
{
    s->start_ns = session_now_ns();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* in a file, too, lines and messages come in their order */
    train_options_parse(&s->o, cli, argc, argv);
    s->host = (vkt_host){ .log_level = s->o.quiet ? VKT_LOG_ERROR : VKT_LOG_WARN };
    if (s->o.list_devices) exit(list_devices(&s->host));
    signal(SIGINT, on_signal);
}

bool session_open(session *s)
{
    const vkt_ctx_params p = { .device = s->o.device, .max_device_bytes = s->o.memory_limit_bytes };
    if (vkt_ctx_create_wide(&p, &s->host, &s->ctx) != VKT_OK) return false;
    const vkt_device_info *device = vkt_ctx_device(s->ctx);
    if (!s->o.quiet) terminal_printf(stdout, "device  %u: %s, %s\n", device->index, device->name, device->driver);
    return true;
}

int session_end(session *s, vkt_result r)
{
    vkt_ctx_destroy(&s->ctx);
    json_decref(s->more);
    return r != VKT_OK ? 1 : interrupted ? INTERRUPTED : 0;
}

/* ---- what is printed ---- */

void session_print_data(const session *s, const char *source, const vkt_dataset *train, const vkt_dataset *check)
{
    uint32_t chw[3];
    if (s->o.quiet) return;
    vkt_dataset_sample_shape(train, chw);
    char checked[32] = "", classes[32] = "";
    if (check) snprintf(checked, sizeof checked, ", %u to check", vkt_dataset_rows(check));
    if (vkt_dataset_classes(train)) snprintf(classes, sizeof classes, ", %u classes", vkt_dataset_classes(train));
    terminal_printf(stdout, "data    %s: %u to learn from%s, %ux%ux%u%s\n", source, vkt_dataset_rows(train), checked,
                    chw[0], chw[1], chw[2], classes);
}

void session_print_memory(const session *s)
{
    vkt_memory_stats m;
    vkt_ctx_memory(s->ctx, &m);
    printf("memory  %.1f MiB of the device at most\n", (double)m.reserved_peak_bytes / (1 << 20));
}

static void print_outcome(const session *s, const vkt_trainer *t, const vkt_fit_params *p)
{
    uint32_t n, best = 0;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    const bool accuracy = n && !isnan(r[0].val_acc), loss = n && !isnan(r[0].val_loss);
    for (uint32_t i = 1; i < n; i++)
        if (accuracy ? r[i].val_acc > r[best].val_acc
            : loss   ? r[i].val_loss < r[best].val_loss
                     : r[i].train_loss < r[best].train_loss)
            best = i;
    if (n && n < p->epochs && !interrupted) printf("stopped early: no better epoch in %u\n", p->patience);
    if (n)
        printf("\nbest    epoch %u: %s %.4f\n", r[best].epoch,
               accuracy ? "validation accuracy"
               : loss   ? "validation loss"
                        : "loss",
               accuracy ? r[best].val_acc
               : loss   ? r[best].val_loss
                        : r[best].train_loss);
    if (!isnan(vkt_trainer_ms_per_step(t)))
        terminal_printf(stdout, "speed   %.1f ms per step, %.0f us of them on the host (medians)\n",
                        vkt_trainer_ms_per_step(t), vkt_trainer_host_us_per_step(t));
    session_print_memory(s);
}

/* ---- the run ---- */

vkt_result session_follow(const session *s, const vkt_fit_params *params, vkt_trainer *t)
{
    vkt_progress *progress = NULL;
    vkt_fit_params p = *params;
    vkt_result r = s->o.quiet ? VKT_OK : vkt_progress_create(NULL, stdout, &progress);
    if (r != VKT_OK) return r;
    if (progress) p.callbacks = vkt_progress_callbacks(progress);
    p.callbacks.stop = was_interrupted;
    r = vkt_trainer_fit(t, &p);
    vkt_progress_destroy(&progress);
    return r;
}

static vkt_result write_files(const session *s, vkt_trainer *t)
{
    const train_options *o = &s->o;
    vkt_result r = VKT_OK;
    if (r == VKT_OK && o->save) r = vkt_trainer_save(t, o->save);
    if (r == VKT_OK && o->history) r = vkt_trainer_write_history(t, o->history);
    if (r == VKT_OK && o->plot) r = vkt_trainer_plot(t, o->plot);
    if (r == VKT_OK && o->profile) r = vkt_trainer_profile(t, o->profile);
    if (r == VKT_OK && o->json && !write_report(o->json, s->ctx, t, precision_name(o->precision), s->start_ns, s->more))
        r = VKT_E_IO;
    return r;
}

/* One that ends with the run takes its length: of batches, as a trainer counts. */
static vkt_schedule schedule_of(const train_options *o, const vkt_dataset *train)
{
    vkt_schedule s = o->schedule;
    const uint64_t batches = ((uint64_t)vkt_dataset_rows(train) + o->batch - 1) / o->batch;
    if (s.kind == VKT_SCHEDULE_COSINE || s.kind == VKT_SCHEDULE_ONE_CYCLE) s.total = o->epochs * batches;
    return s;
}

vkt_result session_trainer(session *s, const vkt_trainer_params *params, vkt_trainer **t)
{
    const train_options *o = &s->o;
    vkt_trainer_params p = *params;
    p.batch = o->batch;
    p.optimizer = o->optimizer;
    p.lr = o->lr;
    if (o->has_schedule) p.schedule = schedule_of(o, p.train);
    p.seed = o->seed;
    p.stream = o->stream;
    p.recompute = o->recompute;
    p.precision = o->precision;
    p.ema_decay = o->ema_decay;
    p.profile = o->profile != NULL;
    vkt_result r = vkt_trainer_create(s->ctx, &p, t);
    if (r == VKT_OK && o->load) r = vkt_trainer_load(*t, o->load);
    if (r == VKT_OK && o->resume) r = vkt_trainer_resume(*t, o->resume);
    return r;
}

vkt_result session_fit(session *s, const vkt_fit_params *with, vkt_trainer *t)
{
    vkt_fit_params f = with ? *with : (vkt_fit_params){ .epochs = 0 };
    f.epochs = s->o.epochs;
    f.patience = s->o.patience;
    f.checkpoint = s->o.checkpoint;
    f.checkpoint_every = s->o.checkpoint_every;
    if (!s->o.quiet) {
        putchar('\n');
        terminal_print(stdout, vkt_trainer_summary(t));
        putchar('\n');
    }
    const vkt_result r = session_follow(s, &f, t);
    if (r != VKT_OK || interrupted) return r;
    if (!s->o.quiet) print_outcome(s, t, &f);
    return write_files(s, t);
}

vkt_result session_train(session *s, const vkt_trainer_params *params, const vkt_fit_params *with, vkt_trainer **t)
{
    const vkt_result r = session_trainer(s, params, t);
    return r == VKT_OK ? session_fit(s, with, *t) : r;
}
