/* common/find_lr.c - see find_lr.h. */
#include "common/find_lr.h"

#include <math.h>
#include <stdio.h>

#include "common/message.h"
#include "common/stop.h"
#include "common/terminal.h"

enum { STEPS = 100, DECADES = 6, NEIGHBOURS = 5, LEAST = 4 };
#define BLOWN_UP 4.0 /* the test ends where the loss is so many times its lowest */

/* The measurements of a test. Losses arrive up to two batches late, so those of a step are added up under its number.
 */
typedef struct test {
    uint32_t per_step; /* batches of a step */
    uint64_t begun;    /* batches */
    uint32_t rows, batch;
    double before;      /* sum of the losses of this epoch's rows so far */
    double sums[STEPS]; /* of losses of rows */
    double seen[STEPS]; /* rows of it */
    bool ended;
    double lowest;
    uint32_t n; /* whole steps with a finite loss */
} test;

static uint32_t batches_a_step(const train_options *o)
{
    return o->optimizer.micro_batches ? o->optimizer.micro_batches : 1;
}

/* The factor of --lr in a batch. */
static double factor(void *user, uint64_t t)
{
    const uint32_t *per_step = user;
    const double step = (double)(t / *per_step);
    return pow(10, DECADES * fmin(step / (STEPS - 1), 1) - DECADES / 2.0);
}

void find_lr_prepare(const train_options *o, vkt_trainer_params *p)
{
    static uint32_t per_step; /* lives as long as the trainer */
    per_step = batches_a_step(o);
    p->schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_FUNCTION, .function = factor, .user = &per_step };
    p->validation = NULL;
    p->n_metrics = 0;
}

/* The mean loss of the steps from `from` to `to`, both included. */
static double mean(const test *x, uint32_t from, uint32_t to)
{
    double sum = 0;
    for (uint32_t i = from; i <= to; i++) sum += x->sums[i] / x->seen[i];
    return sum / (to - from + 1);
}

static void on_batch(void *user, const vkt_fit_progress *p)
{
    test *x = user;
    const uint64_t at = (uint64_t)(p->epoch - 1) * p->batches + p->batch - 1, step = at / x->per_step;
    const uint64_t first = (uint64_t)(p->batch - 1) * x->batch;
    const double rows = first + x->batch <= x->rows ? x->batch : (double)(x->rows - first);
    if (p->validating || x->ended || step >= STEPS) return;
    if (p->batch == 1) x->before = 0;
    const double sum = p->loss * ((double)first + rows); /* p->loss is the mean over the epoch so far */
    x->sums[step] += sum - x->before;
    x->seen[step] += rows;
    x->before = sum;
    x->ended = !isfinite(sum);
    if (x->ended || (at + 1) % x->per_step) return;
    x->n = (uint32_t)step + 1;
    const double now = mean(x, x->n > NEIGHBOURS ? x->n - 1 - NEIGHBOURS : 0, x->n - 1);
    x->ended = x->n > NEIGHBOURS && now > 0 && now > BLOWN_UP * x->lowest;
    if (!(now >= x->lowest)) x->lowest = now;
}

/* Asked after each batch. */
static bool is_over(void *user)
{
    test *x = user;
    return ++x->begun >= (uint64_t)STEPS * x->per_step || x->ended || stop_signal();
}

/* The step at which the smoothed loss falls fastest; n: it does not fall. */
static uint32_t steepest(const double *smoothed, uint32_t n)
{
    uint32_t lowest = 0, best = n;
    double slope = 0;
    for (uint32_t i = 1; i < n; i++)
        if (smoothed[i] < smoothed[lowest]) lowest = i;
    for (uint32_t i = 1; i < lowest; i++) /* the rates' logarithms are evenly spaced */
        if (smoothed[i + 1] - smoothed[i - 1] < slope) {
            slope = smoothed[i + 1] - smoothed[i - 1];
            best = i;
        }
    return best;
}

static vkt_result tell(const session *s, const test *x)
{
    double rates[STEPS], losses[STEPS], smoothed[STEPS];
    uint32_t per_step = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        rates[i] = (double)s->o.lr * factor(&per_step, i);
        losses[i] = mean(x, i, i);
        smoothed[i] = mean(x, i > NEIGHBOURS ? i - NEIGHBOURS : 0, i + NEIGHBOURS < x->n ? i + NEIGHBOURS : x->n - 1);
    }
    const uint32_t best = steepest(smoothed, x->n);
    if (!s->o.quiet) {
        printf("rates   %.2g to %.2g in %u steps%s\n", rates[0], rates[x->n - 1], x->n,
               x->n < STEPS ? ", where the loss blew up" : "");
        if (best < x->n)
            printf("try     --lr %.2g: there the smoothed loss falls fastest\n", rates[best]);
        else
            puts("try     another --lr: the loss falls at none of these");
    }
    return vkt_rates_plot(&s->host, rates, losses, smoothed, x->n, best < x->n ? rates[best] : NAN, s->o.find_lr);
}

vkt_result find_lr_run(const session *s, vkt_trainer *t)
{
    test x = { .per_step = batches_a_step(&s->o), .rows = vkt_dataset_rows(s->data.train), .lowest = INFINITY };
    x.batch = s->o.batch < x.rows ? s->o.batch : x.rows;
    const uint32_t batches = (x.rows + x.batch - 1) / x.batch;
    const vkt_fit_params fit = { .epochs = STEPS * x.per_step / batches + 1,
                                 .allow_nonfinite = true,
                                 .callbacks = { .user = &x, .on_batch = on_batch, .stop = is_over } };
    if (!s->o.quiet)
        terminal_printf(stdout, "looks for a learning rate: %d steps at most, which are forgotten\n", STEPS);
    const vkt_result r = vkt_trainer_fit(t, &fit);
    if (stop_signal()) {
        remark("ended by %s: %s is not written", stop_name(stop_signal()), s->o.find_lr);
        return VKT_OK;
    }
    if (r != VKT_OK && r != VKT_E_DIVERGED) return r;
    if (x.n < LEAST) {
        complain("--find-lr: the loss is not finite after %u steps: try a smaller --lr (it was %g)", x.n,
                 (double)s->o.lr);
        return VKT_E_DIVERGED;
    }
    return tell(s, &x);
}
