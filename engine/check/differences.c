/* check/differences.c - see differences.h. */
#include "check/differences.h"

#include <math.h>

/* The h of the difference quotients. The error of central differences is h^2 * f''' / 6, plus a rounding error of
 * 1e-16 * f / h. With this h, both errors are about 1e-11 if f and f''' are about 1. */
#define STEP 1e-5
#define ALLOWED 1e-6 /* tolerance, relative to the input's largest gradient */
/* `moved` (below) writes products. Each product has a left difference quotient (from x - h to x) and a right one (from
 * x to x + h). A kink is near if the sum of |right - left| over all products is above BEND times the input's largest
 * gradient. */
#define BEND 1e-2

/* Adds `by` to element `at` of input i, and computes the subject's outputs. Multiplies each element of each output that
 * has a gradient (dout) by the element of dout with the same index. Writes the products to `weighted`. Restores the
 * input. */
static void moved(vkt_subject *s, uint32_t i, size_t at, double by, double *weighted)
{
    double *x = &s->in[i].ref.f[at];
    const double was = *x;
    *x = was + by;
    vkt_subject_forward(s);
    *x = was;
    for (uint32_t k = 0; k < s->n_out; k++)
        for (size_t e = 0; s->dout[k].t.id && e < vkt_side_count(&s->out[k]); e++)
            *weighted++ = s->out[k].ref.f[e] * s->dout[k].ref.f[e];
}

static size_t weighted_count(const vkt_subject *s)
{
    size_t n = 0;
    for (uint32_t k = 0; k < s->n_out; k++)
        if (s->dout[k].t.id) n += vkt_side_count(&s->out[k]);
    return n;
}

/* Compares the gradient of one element with (f(x + h) - f(x - h)) / (2 * h), unless a kink is near (BEND). f is the sum
 * of the n products that `moved` writes. `room` has memory for 3 * n numbers. */
static void check_element(vkt_subject *s, uint32_t i, size_t at, double scale, size_t n, double *room,
                          vkt_differences *d)
{
    double *minus = room, *here = room + n, *plus = here + n, quotient = 0, bend = 0;
    moved(s, i, at, -STEP, minus);
    moved(s, i, at, 0, here);
    moved(s, i, at, STEP, plus);
    for (size_t e = 0; e < n; e++) {
        quotient += (plus[e] - minus[e]) / (2 * STEP);
        bend += fabs(plus[e] - 2 * here[e] + minus[e]) / STEP;
    }
    d->tried++;
    if (bend > BEND * scale) {
        d->kinks++;
        return;
    }
    const double got = s->din[i].ref.f[at], excess = fabs(got - quotient) / (ALLOWED * scale);
    if (excess <= d->excess || isnan(d->excess)) return;
    d->excess = excess;
    d->input = i;
    d->at = at;
    d->got = got;
    d->quotient = quotient;
}

static double scale_of(const vkt_side *v)
{
    double most = 0;
    for (size_t i = 0; i < vkt_side_count(v); i++) most = fmax(most, fabs(v->ref.f[i]));
    return most > 0 ? most : 1;
}

vkt_result vkt_subject_differences(vkt_subject *s, uint32_t elements, vkt_differences *d)
{
    const size_t n = weighted_count(s);
    vkt_rng r = vkt_rng_make(s->seed, VKT_STREAM_TEST, 3, 0);
    const size_t n_constant = s->in[0].ref.f ? vkt_side_count(&s->in[0]) : 0;
    if (n == 0) return VKT_OK;
    double *room = vkt_alloc_array(&s->host, 3 * n + n_constant, sizeof *room), *constant = room + 3 * n;
    if (!room) return vkt_fail_nomem(&s->host, "difference quotients", (3 * n + n_constant) * sizeof *room);
    if (n_constant) {
        memcpy(constant, s->in[0].ref.f, n_constant * sizeof *constant);
        s->constant = constant;
    }
    vkt_subject_forward(s); /* the gradients of some ops read the outputs */
    vkt_subject_backward(s);
    for (uint32_t i = 0; i < s->c.n_in; i++) {
        if (!s->din[i].t.id) continue;
        const size_t count = vkt_side_count(&s->din[i]);
        const double scale = scale_of(&s->din[i]);
        for (uint32_t k = 0; k < elements; k++)
            check_element(s, i, vkt_rng_range(&r, 0, (uint32_t)count - 1), scale, n, room, d);
    }
    s->constant = NULL;
    vkt_free(&s->host, room);
    vkt_subject_forward(s);
    return VKT_OK;
}
