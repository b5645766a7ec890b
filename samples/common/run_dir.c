/* common/run_dir.c - see run_dir.h. */
#include "common/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/message.h"
#include "common/report.h"
#include "common/stop.h"
#include "vktrain/events.h"

enum { FAILED = 1, PATH_ROOM = 4096 };

/* The files of this process, which has one run. */
static struct {
    char checkpoint[PATH_ROOM], save[PATH_ROOM], json[PATH_ROOM], history[PATH_ROOM], plot[PATH_ROOM],
        options[PATH_ROOM], log_path[PATH_ROOM], image[PATH_ROOM];
    FILE *log;
    vkt_events *events;
    bool failed; /* a file could not be written during the run */
} run;

/* ---- the folder ---- */

static int fail(const char *what, const char *path)
{
    complain("--run: %s %s: %s", path, what, strerror(errno));
    return FAILED;
}

/* Writes "<folder>/<name>" to `room`. NULL: it is too long. */
static const char *name_in(const char *folder, const char *name, char room[PATH_ROOM])
{
    return snprintf(room, PATH_ROOM, "%s/%s", folder, name) < PATH_ROOM ? room : NULL;
}

/* Makes the folder and the folders above it. */
static bool make_folders(const char *folder)
{
    char path[PATH_ROOM];
    struct stat st;
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0) return true;
    if (errno != EEXIST || stat(path, &st) != 0) return false;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode);
}

/* Opens log.txt and locks it, so that no other process writes to the folder at the same time. */
static int open_log(void)
{
    const int fd = open(run.log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return fail("cannot be opened", run.log_path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        complain("--run: another program runs in this folder (it holds %s): wait for it, or name another folder",
                 run.log_path);
        return FAILED;
    }
    run.log = fdopen(fd, "a");
    if (!run.log) return fail("cannot be opened", run.log_path);
    setvbuf(run.log, NULL, _IOLBF, BUFSIZ);
    return 0;
}

static void write_log_head(int argc, char **argv)
{
    char when[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
    fprintf(run.log, "==== %s:", when);
    for (int i = 0; i < argc; i++) fprintf(run.log, " %s", argv[i]);
    fputc('\n', run.log);
}

static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

int run_dir_begin(train_options *o, int argc, char **argv)
{
    const struct {
        const char **option, *name;
        char *room;
    } files[] = {
        { &o->checkpoint, "checkpoint.ckpt", run.checkpoint },
        { &o->save, "best.safetensors", run.save },
        { &o->json, "results.json", run.json },
        { &o->history, "history.csv", run.history },
        { &o->plot, "history.svg", run.plot },
    };
    if (strlen(o->run) > PATH_ROOM - 64 || !*o->run) {
        complain("--run: want a folder, got '%s'", o->run);
        return FAILED;
    }
    if (!make_folders(o->run)) return fail("cannot be made", o->run);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!*files[i].option) *files[i].option = name_in(o->run, files[i].name, files[i].room);
    name_in(o->run, "options.json", run.options);
    name_in(o->run, "log.txt", run.log_path);
    name_in(o->run, ".history.png", run.image);
    const int status = open_log();
    if (status) return status;
    write_log_head(argc, argv);
    if (access(o->checkpoint, F_OK) == 0) {
        if (o->resume && !same_file(o->resume, o->checkpoint)) {
            complain(
                "--resume: %s has a run of its own, %s: leave out --resume to go on with it, or name another folder",
                o->run, o->checkpoint);
            return FAILED;
        }
        o->resume = o->checkpoint;
        o->load = NULL; /* the checkpoint has the weights */
        o->goes_on = true;
    }
    return 0;
}

/* ---- log ---- */

void run_dir_say(const char *format, va_list args)
{
    if (run.log) vfprintf(run.log, format, args);
}

void run_dir_log(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    static const char *const names[] = {
        [VKT_LOG_ERROR] = "error", [VKT_LOG_WARN] = "warning", [VKT_LOG_INFO] = "info", [VKT_LOG_DEBUG] = "debug"
    };
    const size_t i = (size_t)level;
    const char *name = i < sizeof names / sizeof *names && names[i] ? names[i] : "";
    message_log(NULL, level, line);
    if (run.log) fprintf(run.log, "%s: %s\n", name, line);
}

/* ---- TensorBoard ---- */

/* Prints once that events cannot be written. The training continues without them. */
static void keep_events(vkt_result r)
{
    if (r == VKT_OK) return;
    complain("--run: TensorBoard gets no more events of this run");
    run.failed = true;
    vkt_events_destroy(&run.events);
}

/* Returns the text in the fences of a Markdown code block, so that TensorBoard shows it unchanged. */
static char *in_fences(const char *text, const char *kind)
{
    const size_t n = strlen(text) + strlen(kind) + 16;
    char *out = malloc(n);
    if (out) snprintf(out, n, "```%s\n%s\n```\n", kind, text);
    return out;
}

static vkt_result add_text(const char *tag, const char *kind, const char *text)
{
    char *fenced = text ? in_fences(text, kind) : NULL;
    const vkt_result r = fenced ? vkt_events_text(run.events, tag, 0, fenced) : VKT_E_NOMEM;
    free(fenced);
    return r;
}

/* Adds an image. Converts planes (3,H,W) to pixels (H,W,3). */
static vkt_result add_image(const vkt_dataset *d, uint64_t step)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(d, chw);
    const size_t plane = (size_t)chw[1] * chw[2];
    const uint8_t *from = vkt_dataset_features(d);
    uint8_t *pixels = malloc(3 * plane);
    for (size_t i = 0; pixels && i < plane; i++)
        for (size_t c = 0; c < 3; c++) pixels[3 * i + c] = from[c * plane + i];
    const vkt_result r =
        pixels ? vkt_events_image(run.events, "history", step, pixels, chw[1], chw[2], 3) : VKT_E_NOMEM;
    free(pixels);
    return r;
}

/* Adds the plot of the run so far. It goes through a file, because the library draws to files and reads images from
 * files. */
static void add_plot(const session *s, vkt_trainer *t)
{
    uint32_t epochs;
    vkt_dataset *image = NULL;
    vkt_trainer_history(t, &epochs);
    if (epochs == 0) return;
    vkt_result r = vkt_trainer_plot(t, run.image);
    if (r == VKT_OK) r = vkt_image_read(&s->host, run.image, 0, 0, &image);
    if (r == VKT_OK) r = add_image(image, epochs);
    vkt_dataset_destroy(&image);
    unlink(run.image);
    keep_events(r);
}

/* ---- the run ---- */

vkt_result run_dir_train(const session *s, vkt_trainer *t)
{
    if (!run.log) return VKT_OK;
    char *options = options_text(s, t);
    vkt_result r = options ? vkt_write_file(&s->host, run.options, options, strlen(options)) : VKT_E_NOMEM;
    uint32_t done;
    const vkt_epoch_record *records = vkt_trainer_history(t, &done);
    if (r == VKT_OK) r = vkt_events_create(&s->host, s->o.run, done, &run.events);
    if (r == VKT_OK) r = add_text("options", "json", options);
    if (r == VKT_OK) r = add_text("summary", "", vkt_trainer_summary(t));
    if (r == VKT_OK) r = vkt_events_flush(run.events);
    /* If a run was killed after its checkpoint, its events may lack the last epoch. If they have it, TensorBoard drops
     * it and shows the one of this file. */
    if (r == VKT_OK && done) keep_events(vkt_events_epoch(run.events, &records[done - 1]));
    free(options);
    return r;
}

void run_dir_epoch(const session *s, vkt_trainer *t, const vkt_epoch_record *r, bool best)
{
    if (!run.log) return;
    fprintf(run.log, "epoch %u/%u  %.1f s  loss %.4g", r->epoch, s->o.epochs, r->seconds, r->train_loss);
    if (!isnan(r->train_acc)) fprintf(run.log, "  acc %.4f", r->train_acc);
    if (!isnan(r->val_loss)) fprintf(run.log, "  val_loss %.4g", r->val_loss);
    if (!isnan(r->val_acc)) fprintf(run.log, "  val_acc %.4f", r->val_acc);
    fprintf(run.log, "  lr %.3g%s\n", r->lr, best ? "  *" : "");
    if (s->o.history == run.history) (void)vkt_trainer_write_history(t, run.history); /* logged, and tried again */
    if (best && run_dir_keeps_best(s)) run.failed |= vkt_trainer_save(t, run.save) != VKT_OK;
    if (run.events) keep_events(vkt_events_epoch(run.events, r));
}

bool run_dir_keeps_best(const session *s)
{
    return s->o.run && s->o.save == run.save;
}

vkt_result run_dir_end(const session *s, vkt_trainer *t)
{
    if (run.events) add_plot(s, t);
    vkt_events_destroy(&run.events);
    if (run.log && stop_signal()) fprintf(run.log, "ended by %s\n", stop_name(stop_signal()));
    if (run.log && s->failed) fprintf(run.log, "ended by an error: %s\n", vkt_result_text(s->failed));
    if (run.log) run.failed |= fclose(run.log) != 0;
    run.log = NULL;
    return run.failed ? VKT_E_IO : VKT_OK;
}
