/* train/run_dir.c - one folder for all files of a run; see vktrain/run_dir.h. */
#include "vktrain/run_dir.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/paths.h"
#include "base/system.h"
#include "train/trainer.h"
#include "vktrain/events.h"

/* Constants that say what this build can write. VKT_HAS_CAIRO, for instance, is 1 if the build uses cairo
 * (CMakeLists.txt). */
enum { HAS_JSON = VKT_HAS_JANSSON, HAS_PLOTS = VKT_HAS_CAIRO, HAS_IMAGES = VKT_HAS_CAIRO && VKT_HAS_PNG };

enum { IMAGE = VKT_RUN_FILE_COUNT /* a temporary PNG file of the plot, for TensorBoard only */, PATHS };

struct vkt_run_dir {
    vkt_host h;
    char *folder, *paths[PATHS];
    bool omitted[PATHS], resumes;
    FILE *log;
    /* All members below are valid only during a fit. */
    vkt_trainer *t;
    vkt_events *events;
    vkt_fit_callbacks caller;
    uint32_t epochs;
    bool failed, stopped; /* failed: a file could not be written. stopped: the caller's `stop` has returned true */
    bool has_best;        /* this fit has written the weights of the best epoch */
};

/* ---- the folder ---- */

static vkt_result fail(const vkt_host *h, const char *path, const char *what, int error)
{
    char text[128];
    return vkt_fail(h, VKT_E_IO, "%s cannot be %s: %s", path, what, vkt_error_text(error, text));
}

/* Makes the folder and the folders above it. */
static vkt_result make_folders(const vkt_run_dir *d)
{
    bool is_folder = false;
    vkt_folder_make_above(d->folder, false);
    int error = vkt_folder_make(d->folder, false);
    if (error == EEXIST && vkt_path_is_folder(d->folder, &is_folder) == 0) error = is_folder ? 0 : ENOTDIR;
    return error ? fail(&d->h, d->folder, "made", error) : VKT_OK;
}

static vkt_result open_log(vkt_run_dir *d, const char *title)
{
    const char *path = d->paths[VKT_RUN_LOG];
    const int error = vkt_file_append(path, &d->log);
    if (error == EWOULDBLOCK)
        return vkt_fail(&d->h, VKT_E_STATE,
                        "another program runs in this folder (it holds %s): wait for it, or name another folder", path);
    if (error) return fail(&d->h, path, "opened", error);
    setvbuf(d->log, NULL, _IOLBF, BUFSIZ);
    char when[32];
    vkt_time_text((int64_t)(vkt_wall_ns() / 1000000000u), when);
    fprintf(d->log, "==== %s%s%s\n", when, title ? ": " : "", title ? title : "");
    return VKT_OK;
}

static vkt_result open_folder(vkt_run_dir *d, const char *folder, const char *title)
{
    static const char *const names[PATHS] = { "checkpoint.ckpt", "best.safetensors", "results.json", "history.csv",
                                              "history.svg",     "options.json",     "log.txt",      ".history.png" };
    d->folder = vkt_strdup(&d->h, folder);
    if (!d->folder) return vkt_fail_nomem(&d->h, "a path", strlen(folder));
    for (int i = 0; i < PATHS; i++) {
        vkt_text path = { .h = &d->h };
        vkt_text_add(&path, "%s/%s", folder, names[i]);
        VKT_TRY(vkt_text_detach(&path, &d->paths[i]));
    }
    VKT_TRY(make_folders(d));
    VKT_TRY(open_log(d, title));
    d->resumes = vkt_path_exists(d->paths[VKT_RUN_CHECKPOINT]);
    return VKT_OK;
}

vkt_result vkt_run_dir_open(const vkt_host *host, const char *folder, const char *title, vkt_run_dir **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    if (!*folder) return vkt_fail(&h, VKT_E_ARG, "want a folder, got ''");
    vkt_run_dir *d = vkt_alloc(&h, sizeof *d);
    if (!d) return vkt_fail_nomem(&h, "a run's folder", sizeof *d);
    d->h = h;
    d->omitted[VKT_RUN_RESULTS] = !HAS_JSON;
    d->omitted[VKT_RUN_PLOT] = !HAS_PLOTS;
    const vkt_result r = open_folder(d, folder, title);
    if (r == VKT_OK)
        *out = d;
    else
        vkt_run_dir_destroy(&d);
    return r;
}

void vkt_run_dir_destroy(vkt_run_dir **pd)
{
    if (!pd || !*pd) return;
    vkt_run_dir *d = *pd;
    const vkt_host h = d->h;
    *pd = NULL;
    if (d->log && fclose(d->log) != 0) (void)fail(&h, d->paths[VKT_RUN_LOG], "written", errno);
    for (int i = 0; i < PATHS; i++) vkt_text_release(&d->paths[i]);
    vkt_free(&h, d->folder);
    vkt_free(&h, d);
}

const char *vkt_run_dir_path(const vkt_run_dir *d, vkt_run_file file)
{
    return d && (unsigned)file < VKT_RUN_FILE_COUNT ? d->paths[file] : NULL;
}

bool vkt_run_dir_resumes(const vkt_run_dir *d)
{
    return d && d->resumes;
}

void vkt_run_dir_omit(vkt_run_dir *d, vkt_run_file file)
{
    if (d && (unsigned)file < VKT_RUN_FILE_COUNT) d->omitted[file] = true;
}

void vkt_run_dir_log(vkt_run_dir *d, const char *text)
{
    if (d && text) fputs(text, d->log);
}

/* ---- TensorBoard ---- */

/* If `r` is a failure, closes the event file. The training continues without this file. */
static void keep_events(vkt_run_dir *d, vkt_result r)
{
    if (r == VKT_OK) return;
    vkt_log_line(&d->h, VKT_LOG_ERROR, "TensorBoard gets no more events of this run");
    d->failed = true;
    vkt_events_destroy(&d->events);
}

/* Adds a text as a Markdown code block (between fences), so that TensorBoard shows it unchanged. */
static vkt_result add_text(vkt_run_dir *d, const char *tag, const char *kind, const char *text)
{
    vkt_text fenced = { .h = &d->h };
    vkt_text_add(&fenced, "```%s\n%s\n```\n", kind, text);
    const vkt_result r =
        fenced.failed ? vkt_fail_nomem(&d->h, "a text", fenced.len) : vkt_events_text(d->events, tag, 0, fenced.s);
    vkt_text_free(&fenced);
    return r;
}

/* Converts planes (3,H,W) to pixels (H,W,3), and adds these as an image. */
static vkt_result add_image(vkt_run_dir *d, const vkt_dataset *image, uint64_t step)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(image, chw);
    const size_t plane = (size_t)chw[1] * chw[2];
    const uint8_t *from = vkt_dataset_features(image);
    uint8_t *pixels = vkt_alloc_array(&d->h, plane, 3);
    if (!pixels) return vkt_fail_nomem(&d->h, "an image", 3 * plane);
    for (size_t i = 0; i < 3 * plane; i++) pixels[i] = from[i % 3 * plane + i / 3];
    const vkt_result r = vkt_events_image(d->events, "history", step, pixels, chw[1], chw[2], 3);
    vkt_free(&d->h, pixels);
    return r;
}

/* Adds the plot of the run. vkt_trainer_plot can only write a file, so this function reads the plot from a temporary
 * file. */
static void add_plot(vkt_run_dir *d)
{
    vkt_dataset *image = NULL;
    vkt_result r = vkt_trainer_plot(d->t, d->paths[IMAGE]);
    if (r == VKT_OK) r = vkt_image_read(&d->h, d->paths[IMAGE], 0, 0, &image);
    if (r == VKT_OK) r = add_image(d, image, d->t->history.n);
    vkt_dataset_destroy(&image);
    (void)vkt_path_remove(d->paths[IMAGE]);
    keep_events(d, r);
}

static vkt_result begin_events(vkt_run_dir *d, const char *options)
{
    const size_t done = d->t->history.n;
    VKT_TRY(vkt_events_create(&d->h, d->folder, done, &d->events));
    VKT_TRY(add_text(d, "options", "json", options));
    VKT_TRY(add_text(d, "summary", "", vkt_trainer_summary(d->t)));
    VKT_TRY(vkt_events_flush(d->events));
    /* Adds the last epoch again. If the run was killed after the checkpoint of this epoch, the older event file may
     * lack the epoch. If the older file has the epoch, TensorBoard shows only the copy in the new file. */
    if (done) keep_events(d, vkt_events_epoch(d->events, &d->t->history.records[done - 1]));
    return VKT_OK;
}

/* ---- the fit ---- */

static void keep(vkt_run_dir *d, vkt_result r)
{
    d->failed |= r != VKT_OK;
}

static vkt_result begin(vkt_run_dir *d, const char *options)
{
    char *settings = NULL;
    if (!options && HAS_JSON) VKT_TRY(vkt_trainer_settings(d->t, &settings));
    const char *text = options ? options : settings; /* NULL: the caller passed no options, and this build writes no
                                                      * JSON */
    vkt_result r = VKT_OK;
    if (text && !d->omitted[VKT_RUN_OPTIONS]) r = vkt_file_write(&d->h, d->paths[VKT_RUN_OPTIONS], text, strlen(text));
    if (r == VKT_OK) r = begin_events(d, text ? text : "");
    vkt_text_release(&settings);
    return r;
}

static void on_batch(void *user, const vkt_fit_progress *p)
{
    const vkt_run_dir *d = user;
    if (d->caller.on_batch) d->caller.on_batch(d->caller.user, p);
}

static bool on_epoch(void *user, const vkt_epoch_record *r, bool best)
{
    vkt_run_dir *d = user;
    const bool stop = d->caller.on_epoch && d->caller.on_epoch(d->caller.user, r, best);
    fprintf(d->log, "epoch %u/%u  %.1f s  loss %.4g", r->epoch, d->epochs, r->seconds, r->train_loss);
    if (!isnan(r->train_acc)) fprintf(d->log, "  acc %.4f", r->train_acc);
    if (!isnan(r->val_loss)) fprintf(d->log, "  val_loss %.4g", r->val_loss);
    if (!isnan(r->val_acc)) fprintf(d->log, "  val_acc %.4f", r->val_acc);
    fprintf(d->log, "  lr %.3g%s\n", r->lr, best ? "  *" : "");
    if (!d->omitted[VKT_RUN_HISTORY]) /* a failure is logged, and end() writes the file again */
        (void)vkt_trainer_write_history(d->t, d->paths[VKT_RUN_HISTORY]);
    if (best && !d->omitted[VKT_RUN_WEIGHTS]) {
        const vkt_result saved = vkt_trainer_save(d->t, d->paths[VKT_RUN_WEIGHTS]);
        d->has_best = saved == VKT_OK;
        keep(d, saved);
    }
    if (d->events) keep_events(d, vkt_events_epoch(d->events, r));
    return stop;
}

static bool on_step(void *user)
{
    vkt_run_dir *d = user;
    /* With several ranks, the fit ends only some batches after the caller's `stop` has returned true. During these
     * batches, `stopped` stays true, and the caller's `stop` is not called again. */
    d->stopped = d->stopped || (d->caller.stop && d->caller.stop(d->caller.user));
    return d->stopped;
}

static void write_results(vkt_run_dir *d)
{
    char *text = NULL;
    vkt_result r = vkt_trainer_results(d->t, &text);
    if (r == VKT_OK) r = vkt_file_write(&d->h, d->paths[VKT_RUN_RESULTS], text, strlen(text));
    vkt_text_release(&text);
    keep(d, r);
}

/* Writes the files that a run folder gets at the end of a fit. `r` is the result of the fit. */
static void end(vkt_run_dir *d, vkt_result r)
{
    const bool error = r != VKT_OK && r != VKT_E_DIVERGED && r != VKT_E_CHECKPOINT;
    const bool best = vkt_trainer_best_epoch(d->t) != 0, served = best && !error && !d->t->interrupted;
    if (!d->omitted[VKT_RUN_WEIGHTS] && r != VKT_E_DEVICE_LOST && (served || (!best && r != VKT_E_DIVERGED)))
        keep(d, vkt_trainer_save(d->t, d->paths[VKT_RUN_WEIGHTS]));
    /* The best epoch may come from a checkpoint of another folder. Then this folder has no file of it yet. */
    if (!d->omitted[VKT_RUN_WEIGHTS] && best && !served && !d->has_best)
        keep(d, vkt_trainer_save_best(d->t, d->paths[VKT_RUN_WEIGHTS]));
    if (!d->omitted[VKT_RUN_HISTORY]) keep(d, vkt_trainer_write_history(d->t, d->paths[VKT_RUN_HISTORY]));
    if (!d->omitted[VKT_RUN_PLOT] && d->t->history.n) keep(d, vkt_trainer_plot(d->t, d->paths[VKT_RUN_PLOT]));
    if (!d->omitted[VKT_RUN_RESULTS]) write_results(d);
    if (d->events && HAS_IMAGES && d->t->history.n) add_plot(d);
    d->failed |= fflush(d->log) != 0 || ferror(d->log);
}

vkt_result vkt_run_dir_fit(vkt_run_dir *d, vkt_trainer *t, const vkt_fit_params *params, const char *options)
{
    VKT_WANT(NULL, d);
    VKT_WANT(&d->h, t);
    vkt_fit_params p = params ? *params : (vkt_fit_params){ .epochs = 1 };
    const bool resumes = p.checkpoint ? vkt_path_exists(p.checkpoint) : d->resumes;
    if (!p.checkpoint) p.checkpoint = d->paths[VKT_RUN_CHECKPOINT];
    if (resumes && t->at.t == 0 && t->at.batch == 0 && t->history.n == 0) VKT_TRY(vkt_trainer_resume(t, p.checkpoint));
    d->t = t;
    d->caller = p.callbacks;
    d->epochs = p.epochs ? p.epochs : 1;
    d->failed = d->stopped = d->has_best = false;
    p.callbacks = (vkt_fit_callbacks){ .user = d, .on_batch = on_batch, .on_epoch = on_epoch, .stop = on_step };
    const uint64_t submitted = t->submitted;
    vkt_result r = begin(d, options);
    if (r == VKT_OK) {
        r = vkt_trainer_fit(t, &p);
        if (r == VKT_OK || (t->first_step_ns && t->submitted > submitted)) end(d, r);
    }
    vkt_events_destroy(&d->events);
    return r == VKT_OK && d->failed ? VKT_E_CHECKPOINT : r;
}
