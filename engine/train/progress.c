/* train/progress.c - a progress bar on a terminal, one line an epoch elsewhere. */
#include <math.h>
#include <unistd.h>

#include "train/trainer.h"

struct vkt_progress {
    vkt_host host;
    FILE *out;
    bool terminal;
    double drawn; /* seconds of the epoch at the last drawing */
    uint32_t epochs;
    double lr; /* of the last epoch; 0: there was none */
};

enum { BAR = 24 };

/* "0:07", "1:02:03" */
static void clock_text(double seconds, char out[24])
{
    const unsigned s = seconds > 0 && seconds < 1e8 ? (unsigned)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, 24, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 24, "%u:%02u", s / 60, s % 60);
}

static void draw(vkt_progress *p, const vkt_fit_progress *f)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    const uint32_t filled = (uint32_t)((uint64_t)f->batch * BAR * 8 / f->batches);
    char eta[24], spent[24];
    const double rate = f->seconds > 0 ? f->batch / f->seconds : 0;
    clock_text(f->seconds, spent);
    clock_text(rate > 0 ? (f->batches - f->batch) / rate : 0, eta);
    fprintf(p->out, "\r\x1b[K%s %u/%u ", f->validating ? "check" : "epoch", f->epoch, f->epochs);
    for (uint32_t i = 0; i < filled / 8; i++) fputs("█", p->out);
    fputs(filled / 8 < BAR ? eighths[filled % 8] : "", p->out);
    for (uint32_t i = (filled + 7) / 8; i < BAR; i++) fputs("·", p->out);
    fprintf(p->out, " %u/%u  %s<%s  %.1f it/s  loss %.4f", f->batch, f->batches, spent, eta, rate, f->loss);
    if (!isnan(f->accuracy)) fprintf(p->out, "  acc %.4f", f->accuracy);
    fflush(p->out);
}

static void on_batch(void *user, const vkt_fit_progress *f)
{
    vkt_progress *p = user;
    p->epochs = f->epochs;
    if (!p->terminal) return;
    const bool last = f->batch == f->batches;
    if (!last && f->batch > 1 && f->seconds - p->drawn < 0.05 && f->seconds >= p->drawn)
        return; /* 20 drawings a second */
    p->drawn = f->seconds;
    draw(p, f);
}

static bool on_epoch(void *user, const vkt_epoch_record *r, bool best)
{
    vkt_progress *p = user;
    fprintf(p->out, "%sepoch %u/%u  %.1f s  loss %.4f", p->terminal ? "\r\x1b[K" : "", r->epoch, p->epochs, r->seconds,
            r->train_loss);
    if (!isnan(r->train_acc)) fprintf(p->out, "  acc %.4f", r->train_acc);
    if (!isnan(r->val_loss)) fprintf(p->out, "  val_loss %.4f", r->val_loss);
    if (!isnan(r->val_acc)) fprintf(p->out, "  val_acc %.4f", r->val_acc);
    if (p->lr != 0 && r->lr != p->lr) fprintf(p->out, "  lr %.3g", r->lr);
    p->lr = r->lr;
    fprintf(p->out, "%s\n", best ? "  *" : "");
    fflush(p->out);
    p->drawn = 0;
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
    **out = (vkt_progress){ .host = h, .out = stream, .terminal = isatty(fileno(stream)) == 1 };
    return VKT_OK;
}

void vkt_progress_destroy(vkt_progress **pp)
{
    if (!pp || !*pp) return;
    const vkt_host h = (*pp)->host;
    vkt_free(&h, *pp);
    *pp = NULL;
}

vkt_fit_callbacks vkt_progress_callbacks(vkt_progress *p)
{
    return (vkt_fit_callbacks){ .user = p, .on_batch = on_batch, .on_epoch = on_epoch };
}
