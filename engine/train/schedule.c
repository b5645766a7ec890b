/* train/schedule.c - see vktrain/schedule.h. */
#include "vktrain/schedule.h"

#include <math.h>

#include "base/base.h"

#define PI 3.14159265358979323846

static double warmup_from(const vkt_schedule *s)
{
    return vkt_or(s->warmup_from, s->kind == VKT_SCHEDULE_WARMUP_COSINE ? 0 : 1.0 / 3);
}

vkt_result vkt_schedule_check(const vkt_host *host, const vkt_schedule *s)
{
    VKT_WANT(host, s);
    const vkt_host resolved = vkt_host_resolve(host), *h = &resolved;
    const double gamma = vkt_or(s->gamma, 0), from = warmup_from(s), part = vkt_or(s->pct_start, 0.3);
    const double div = vkt_or(s->div_factor, 25), final = vkt_or(s->final_div_factor, 1e4);
    const bool scales = s->kind == VKT_SCHEDULE_STEP || s->kind == VKT_SCHEDULE_MULTI_STEP;
    if ((unsigned)s->kind >= VKT_SCHEDULE_KIND_COUNT)
        return vkt_fail(h, VKT_E_ARG, "schedule: unknown kind %d", (int)s->kind);
    if (!(from >= 0 && from <= 1)) return vkt_fail(h, VKT_E_ARG, "schedule: want warmup_from in [0, 1], got %g", from);
    if (scales && !(gamma >= 0 && isfinite(gamma)))
        return vkt_fail(h, VKT_E_ARG, "schedule: want gamma >= 0, got %g", gamma);
    if (s->kind == VKT_SCHEDULE_EXPONENTIAL && !(gamma > 0 && isfinite(gamma)))
        return vkt_fail(h, VKT_E_ARG, "schedule: exponential wants gamma > 0, got %g", gamma);
    if (s->kind == VKT_SCHEDULE_STEP && s->step_size == 0)
        return vkt_fail(h, VKT_E_ARG, "schedule: step wants step_size of at least 1");
    for (uint32_t i = 0; s->kind == VKT_SCHEDULE_MULTI_STEP && i < s->n_milestones; i++)
        if (s->n_milestones > VKT_COUNT(s->milestones) || (i && s->milestones[i] <= s->milestones[i - 1]))
            return vkt_fail(h, VKT_E_ARG, "schedule: want at most %zu rising milestones", VKT_COUNT(s->milestones));
    if ((s->kind == VKT_SCHEDULE_COSINE || s->kind == VKT_SCHEDULE_ONE_CYCLE) && s->total == 0)
        return vkt_fail(h, VKT_E_ARG, "schedule: cosine and one-cycle want a total of at least 1");
    if (s->kind == VKT_SCHEDULE_WARMUP_COSINE && s->total <= s->warmup)
        return vkt_fail(h, VKT_E_ARG, "schedule: want a total above the warm-up of %u, got %llu", s->warmup,
                        (unsigned long long)s->total);
    if (!(part >= 0 && part <= 1) || !(div > 0) || !(final > 0))
        return vkt_fail(h, VKT_E_ARG, "schedule: want pct_start in [0, 1] and factors above 0, got %g, %g, %g", part,
                        div, final);
    if (s->kind == VKT_SCHEDULE_FUNCTION && !s->function) return vkt_fail(h, VKT_E_ARG, "schedule: want a function");
    const double factor = vkt_or(s->plateau.factor, 0.1);
    if (s->kind == VKT_SCHEDULE_PLATEAU && !(factor > 0 && factor < 1))
        return vkt_fail(h, VKT_E_ARG, "schedule: want a plateau's factor in (0, 1), got %g", factor);
    return VKT_OK;
}

static double cosine(double from, double to, double part)
{
    return to + (from - to) * (1 + cos(PI * part)) / 2;
}

static double line(double from, double to, double part)
{
    return from + (to - from) * part;
}

/* Returns the rate of the one-cycle schedule. As in torch, the rise ends at t = pct_start * total - 1, and the fall
 * ends at t = total - 1. */
static double one_cycle(const vkt_schedule *s, double lr, double t)
{
    const double first = lr / vkt_or(s->div_factor, 25), last = first / vkt_or(s->final_div_factor, 1e4);
    const double end = (double)s->total - 1, peak = vkt_or(s->pct_start, 0.3) * (double)s->total - 1;
    double (*const anneal)(double, double, double) = s->linear ? line : cosine;
    if (t <= peak && peak > 0) return anneal(first, lr, t / peak);
    return anneal(lr, last, end > peak ? VKT_MIN((t - peak) / (end - peak), 1.0) : 1.0);
}

double vkt_schedule_lr(const vkt_schedule *s, double lr, uint64_t step)
{
    if (!s) return 0;
    if (step < s->warmup) {
        const double from = warmup_from(s);
        return lr * (from + (1 - from) * (double)step / s->warmup);
    }
    const uint64_t t = step - s->warmup;
    uint32_t passed = 0;
    switch (s->kind) {
    case VKT_SCHEDULE_STEP: return lr * pow(vkt_or(s->gamma, 0.1), (double)(t / s->step_size));
    case VKT_SCHEDULE_MULTI_STEP:
        while (passed < s->n_milestones && s->milestones[passed] <= t) passed++;
        return lr * pow(vkt_or(s->gamma, 0.1), passed);
    case VKT_SCHEDULE_WARMUP_COSINE:
        return cosine(lr, vkt_or(s->min_lr, 0), VKT_MIN((double)t / (double)(s->total - s->warmup), 1.0));
    case VKT_SCHEDULE_EXPONENTIAL: return lr * pow(s->gamma, (double)t);
    case VKT_SCHEDULE_COSINE: return cosine(lr, vkt_or(s->min_lr, 0), (double)t / (double)s->total);
    case VKT_SCHEDULE_ONE_CYCLE: return one_cycle(s, lr, (double)t);
    case VKT_SCHEDULE_FUNCTION: return lr * s->function(s->user, t);
    case VKT_SCHEDULE_CONSTANT:
    case VKT_SCHEDULE_PLATEAU:
    case VKT_SCHEDULE_KIND_COUNT: break;
    }
    return lr;
}

static bool is_better(const vkt_plateau *p, const vkt_plateau_state *s, double value)
{
    const double threshold = vkt_or(p->threshold, 1e-4), sign = p->maximise ? 1 : -1;
    if (isnan(value) || !s->seen) return isfinite(value); /* the first finite value is the best so far */
    const double by = p->form == VKT_PLATEAU_KERAS || p->absolute ? threshold : threshold * s->best;
    return p->maximise ? value > s->best + sign * by : value < s->best + sign * by;
}

bool vkt_plateau_next(const vkt_plateau *p, double lr, vkt_plateau_state *s, double value)
{
    if (!p || !s) return false;
    const bool keras = p->form == VKT_PLATEAU_KERAS, cooling = s->cooling > 0;
    const double min_lr = vkt_or(p->min_lr, 0);
    const uint32_t patience = p->patience == VKT_PATIENCE_NONE ? 0 : p->patience ? p->patience : 10;
    if (keras && cooling) { /* in Keras, the last epoch of the cooldown may already count as bad */
        s->cooling--;
        s->bad = 0;
    }
    if (is_better(p, s, value)) {
        s->best = value;
        s->seen = true;
        s->bad = 0;
    } else if (!keras || s->cooling == 0) {
        s->bad++;
    }
    if (!keras && cooling) {
        s->cooling--;
        s->bad = 0;
    }
    if (keras ? s->bad < VKT_MAX(patience, 1u) : s->bad <= patience) return false;
    s->bad = 0;
    const double now = lr * s->scale, next = fmax(now * vkt_or(p->factor, 0.1), min_lr);
    const bool lower = keras ? now > min_lr : now - next > vkt_or(p->eps, 1e-8);
    if (lower) s->scale = next / lr;
    if (lower || !keras) s->cooling = p->cooldown;
    return lower;
}
