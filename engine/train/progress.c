/* train/progress.c - shows a line for each epoch, and a progress bar if the stream is a terminal that can rewrite lines
 * (vkt_terminal_rewrites). On other streams, a long epoch shows a line once a minute.
 *
 * The line with the bar is rewritten in place. It is shorter than the width of the terminal, because each redraw of a
 * wrapped line would leave a line behind. Each redraw reads the width of the terminal, so no signal handler is needed
 * for a resized window. The output has no colours, so NO_COLOR has no effect. */
#include <math.h>
#include <stdarg.h>

#include "base/terminal.h"
#include "train/trainer.h"

struct vkt_progress {
    vkt_host host;
    FILE *out;
    bool rewrites, unicode;
    bool open;       /* the last line is a bar, and has no newline yet */
    double drawn;    /* vkt_fit_progress.seconds at the last drawing */
    uint32_t epochs; /* 0: on_batch has not been called yet */
    double lr;       /* learning rate of the last epoch; 0: no epoch has ended yet */
    char unit[16];
    double per_batch; /* number of units (for instance tokens) in a batch; 0: the rate is in batches per second */
};

enum { BAR = 24, SHORTEST_BAR = 8, PART_ROOM = 64 };

/* Writes a time, for instance "0:07" or "1:02:03". */
static void clock_text(double seconds, char out[24])
{
    const unsigned s = seconds > 0 && seconds < 1e8 ? (unsigned)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, 24, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 24, "%u:%02u", s / 60, s % 60);
}

/* Writes a loss, for instance "0.1234". A large loss has the form "1.235e+30". */
static const char *loss_text(double loss, char out[24])
{
    snprintf(out, 24, fabs(loss) < 1e6 ? "%.4f" : "%.4g", loss);
    return out;
}

/* ---- the bar ---- */

/* The parts of the line, in the order in which they are written. The bar is between HEAD and BATCHES, but does not
 * count as a part. THE_BAR represents the bar in the list given_up. */
enum { HEAD, BATCHES, TIMES, RATE, LOSS, ACCURACY, PARTS, THE_BAR };

/* The parts that are left out on a narrow terminal, in the order in which they are left out. Before the first part is
 * left out, the bar shrinks to SHORTEST_BAR columns. The head is never left out; if it is too long, it is truncated. */
static const int given_up[] = { RATE, TIMES, THE_BAR, ACCURACY, LOSS, BATCHES };

static void write_parts(const vkt_progress *p, const vkt_fit_progress *f, char parts[PARTS][PART_ROOM])
{
    char left[24], spent[24], loss[24];
    const double rate = f->seconds > 0 ? f->batch / f->seconds : 0;
    clock_text(f->seconds, spent);
    clock_text(rate > 0 ? (f->batches - f->batch) / rate : 0, left);
    snprintf(parts[HEAD], PART_ROOM, "%s %u/%u", f->validating ? "check" : "epoch", f->epoch, f->epochs);
    snprintf(parts[BATCHES], PART_ROOM, " %u/%u", f->batch, f->batches);
    snprintf(parts[TIMES], PART_ROOM, "  %s<%s", spent, left);
    if (p->per_batch > 0)
        snprintf(parts[RATE], PART_ROOM, "  %.0f %s/s", rate * p->per_batch, p->unit);
    else
        snprintf(parts[RATE], PART_ROOM, "  %.1f it/s", rate);
    snprintf(parts[LOSS], PART_ROOM, "  loss %s", loss_text(f->loss, loss));
    if (!isnan(f->accuracy)) snprintf(parts[ACCURACY], PART_ROOM, "  acc %.4f", f->accuracy);
}

/* Empties parts until the line fits into `room` columns. Returns the number of columns of the bar; 0: no bar. */
static uint32_t fit_parts(char parts[PARTS][PART_ROOM], uint32_t room)
{
    uint32_t used = 0, bar = SHORTEST_BAR + 1; /* columns of the bar and of the blank before it */
    for (int i = 0; i < PARTS; i++) used += (uint32_t)strlen(parts[i]);
    for (size_t i = 0; i < VKT_COUNT(given_up) && used + bar > room; i++) {
        if (given_up[i] == THE_BAR) {
            bar = 0;
        } else {
            used -= (uint32_t)strlen(parts[given_up[i]]);
            *parts[given_up[i]] = 0;
        }
    }
    return bar ? VKT_MIN(BAR, room - used - 1) : 0;
}

static void put_bar(const vkt_progress *p, const vkt_fit_progress *f, uint32_t columns)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    uint32_t filled = (uint32_t)((uint64_t)f->batch * columns * 8 / f->batches);
    if (!p->unicode) filled &= ~7u;
    fputc(' ', p->out);
    for (uint32_t i = 0; i < filled / 8; i++) fputs(p->unicode ? "█" : "#", p->out);
    fputs(filled / 8 < columns ? eighths[filled % 8] : "", p->out);
    for (uint32_t i = (filled + 7) / 8; i < columns; i++) fputs(p->unicode ? "·" : ".", p->out);
}

static void draw(vkt_progress *p, const vkt_fit_progress *f)
{
    char parts[PARTS][PART_ROOM] = { "" };
    const uint32_t columns = vkt_terminal_columns(p->out), room = columns > 1 ? columns - 1 : 1;
    write_parts(p, f, parts);
    const uint32_t bar = fit_parts(parts, room);
    fprintf(p->out, "\r%.*s", (int)room, parts[HEAD]);
    if (bar) put_bar(p, f, bar);
    for (int i = HEAD + 1; i < PARTS; i++) fputs(parts[i], p->out);
    fputs("\x1b[K", p->out); /* erases the rest of a longer old line */
    fflush(p->out);
    p->open = true;
}

/* Writes the parts, without a bar, as one line. Writes at most one such line in MINUTE seconds. After the last batch,
 * writes nothing, because the line of the epoch follows soon. */
static void draw_rarely(vkt_progress *p, const vkt_fit_progress *f)
{
    const double MINUTE = 60;
    char parts[PARTS][PART_ROOM] = { "" };
    if (f->seconds < p->drawn) p->drawn = 0; /* a validation begins */
    if (f->batch == f->batches || f->seconds - p->drawn < MINUTE) return;
    p->drawn = f->seconds;
    write_parts(p, f, parts);
    for (int i = HEAD; i < PARTS; i++) fputs(parts[i], p->out);
    fputc('\n', p->out);
    fflush(p->out);
}

static void on_batch(void *user, const vkt_fit_progress *f)
{
    vkt_progress *p = user;
    p->epochs = f->epochs;
    if (!p->rewrites) {
        draw_rarely(p, f);
        return;
    }
    const bool last = f->batch == f->batches;
    if (!last && f->batch > 1 && f->seconds - p->drawn < 0.05 && f->seconds >= p->drawn)
        return; /* there are at most 20 drawings a second between the first and the last batch */
    p->drawn = f->seconds;
    draw(p, f);
}

/* ---- the line of an epoch ---- */

enum { FIELDS = 7 + VKT_MAX_METRICS };

typedef struct record {
    char fields[FIELDS][PART_ROOM];
    size_t n;
} record;

static void add_field(record *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->fields[l->n++], PART_ROOM, format, args);
    va_end(args);
}

/* Writes the fields side by side. If the terminal has no more columns, continues on the next line. If `columns` is 0,
 * `out` is no terminal, and all fields are on one line. */
static void put_record(FILE *out, const record *l, uint32_t columns)
{
    uint32_t column = 0;
    for (size_t i = 0; i < l->n; i++) {
        const uint32_t length = (uint32_t)strlen(l->fields[i]);
        const bool breaks = columns && i && column + 2 + length > columns;
        if (breaks) column = 0;
        fprintf(out, "%s%s", breaks ? "\n  " : i ? "  " : "", l->fields[i]);
        column += length + (i ? 2 : 0);
    }
    fputc('\n', out);
    fflush(out);
}

static bool on_epoch(void *user, const vkt_epoch_record *r, bool best)
{
    vkt_progress *p = user;
    char text[24];
    record l = { .n = 0 };
    if (p->epochs)
        add_field(&l, "epoch %u/%u", r->epoch, p->epochs);
    else
        add_field(&l, "epoch %u", r->epoch);
    add_field(&l, "%.1f s", r->seconds);
    add_field(&l, "loss %s", loss_text(r->train_loss, text));
    if (!isnan(r->train_acc)) add_field(&l, "acc %.4f", r->train_acc);
    if (!isnan(r->val_loss)) add_field(&l, "val_loss %s", loss_text(r->val_loss, text));
    if (!isnan(r->val_acc)) add_field(&l, "val_acc %.4f", r->val_acc);
    for (uint32_t i = 0; i < r->n_metrics; i++)
        if (!isnan(r->metrics[i].value)) add_field(&l, "%s %.4f", r->metrics[i].name, r->metrics[i].value);
    if (p->lr != 0 && r->lr != p->lr) add_field(&l, "lr %.3g", r->lr);
    char *last = l.fields[l.n - 1]; /* there are at least three fields */
    if (best) snprintf(last + strlen(last), PART_ROOM - strlen(last), "  *");
    if (p->open) fputs("\r\x1b[K", p->out);
    put_record(p->out, &l, vkt_terminal_columns(p->out));
    p->lr = r->lr;
    p->drawn = 0;
    p->open = false;
    return false;
}

vkt_result vkt_progress_create(const vkt_host *host, FILE *stream, vkt_progress **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, stream);
    const vkt_host h = vkt_host_resolve(host);
    *out = vkt_alloc(&h, sizeof **out);
    if (!*out) return vkt_fail_nomem(&h, "a progress bar", sizeof **out);
    **out = (vkt_progress){
        .host = h, .out = stream, .rewrites = vkt_terminal_rewrites(stream), .unicode = vkt_terminal_unicode()
    };
    return VKT_OK;
}

void vkt_progress_destroy(vkt_progress **pp)
{
    if (!pp || !*pp) return;
    const vkt_host h = (*pp)->host;
    if ((*pp)->open) fputc('\n', (*pp)->out); /* an interrupted fit leaves a bar without a newline */
    vkt_free(&h, *pp);
    *pp = NULL;
}

void vkt_progress_set_unit(vkt_progress *p, const char *unit, double per_batch)
{
    if (!p || !unit) return;
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    p->per_batch = per_batch;
}

vkt_fit_callbacks vkt_progress_callbacks(vkt_progress *p)
{
    if (!p) return (vkt_fit_callbacks){ 0 };
    return (vkt_fit_callbacks){ .user = p, .on_batch = on_batch, .on_epoch = on_epoch };
}
