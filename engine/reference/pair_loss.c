/* reference/pair_loss.c - losses of y and a target, element by element, over the real rows of a batch. */
#include "reference/families.h"

#include <math.h>

/* The arguments of a term. A term is the loss of one element. */
typedef struct pair {
    double y, t;
    double weight;   /* bce_logits: factor of -t * log(sigmoid(y)) */
    double constant; /* relative_l2: the y in the divisor. The gradient treats this y as a constant */
} pair;

/* One term and its derivative with respect to y. */
typedef struct term {
    double value, slope;
} term;

static double sign(double d)
{
    return d > 0 ? 1 : d < 0 ? -1 : d;
}

static term mse(const vkt_pair_loss_attr *a, pair p)
{
    (void)a;
    return (term){ pow(p.y - p.t, 2), 2 * (p.y - p.t) };
}

static term l1(const vkt_pair_loss_attr *a, pair p)
{
    (void)a;
    return (term){ fabs(p.y - p.t), sign(p.y - p.t) };
}

static term huber(const vkt_pair_loss_attr *a, pair p)
{
    const double d = p.y - p.t, delta = (double)a->beta;
    if (fabs(d) <= delta) return (term){ d * d / 2, d };
    return (term){ delta * (fabs(d) - delta / 2), delta * sign(d) };
}

static term smooth_l1(const vkt_pair_loss_attr *a, pair p)
{
    const term h = huber(a, p);
    return (term){ h.value / (double)a->beta, h.slope / (double)a->beta };
}

static term bce(const vkt_pair_loss_attr *a, pair p)
{
    (void)a;
    return (term){ -p.t * fmax(log(p.y), -100) - (1 - p.t) * fmax(log1p(-p.y), -100),
                   (p.y - p.t) / fmax(p.y * (1 - p.y), 1e-12) };
}

static term bce_logits(const vkt_pair_loss_attr *a, pair p)
{
    (void)a;
    const double z = p.y, s = 1 / (1 + exp(-z)), minus_log_s = z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
    return (term){ p.weight * p.t * minus_log_s + (1 - p.t) * (minus_log_s + z),
                   (1 - p.t) * s - p.weight * p.t / (1 + exp(z)) };
}

static term kl_div(const vkt_pair_loss_attr *a, pair p)
{
    const double t = a->log_target ? exp(p.t) : p.t, log_t = a->log_target ? p.t : t != 0 ? log(t) : 0;
    return (term){ t * (log_t - p.y), -t };
}

static term relative_l2(const vkt_pair_loss_attr *a, pair p)
{
    const double d = p.y - p.t, size = p.constant * p.constant + (double)a->beta;
    return (term){ d * d / size, 2 * d / size };
}

typedef term (*term_fn)(const vkt_pair_loss_attr *a, pair p);

static bool is_each(const vkt_ref_call *c)
{
    return ((const vkt_pair_loss_attr *)c->attr)->reduction == VKT_LOSS_NONE;
}

/* Returns the divisor of the sum of the terms. */
static double divisor(const vkt_ref_call *c)
{
    const vkt_pair_loss_attr *a = c->attr;
    const size_t elements = vkt_ref_count(c->in[0].shape) / c->in[0].shape.dim[0];
    if (a->reduction == VKT_LOSS_SUM || a->reduction == VKT_LOSS_NONE) return 1;
    return a->reduction == VKT_LOSS_MEAN ? (double)(c->rows * elements) : c->rows;
}

static term term_at(const vkt_ref_call *c, term_fn fn, size_t i)
{
    const bool weighted = c->n_in > 2 && c->in[2].f;
    const double *constant = c->constant ? c->constant : c->in[0].f;
    return fn(c->attr, (pair){ .y = c->in[0].f[i],
                               .t = c->in[1].f[i],
                               .weight = weighted ? c->in[2].f[i % vkt_ref_count(c->in[2].shape)] : 1,
                               .constant = constant[i] });
}

static void forward(const vkt_ref_call *c, term_fn fn)
{
    const size_t n = vkt_ref_count(c->in[0].shape) / c->in[0].shape.dim[0] * c->rows;
    const bool each = is_each(c);
    double sum = 0;
    for (size_t i = 0; each && i < vkt_ref_count(c->in[0].shape); i++)
        c->out[0].f[i] = i < n ? term_at(c, fn, i).value : 0;
    for (size_t i = 0; !each && i < n; i++) sum += term_at(c, fn, i).value;
    if (!each) c->out[0].f[0] = sum / divisor(c);
}

static void backward(const vkt_ref_call *c, term_fn fn)
{
    const size_t n = vkt_ref_count(c->in[0].shape) / c->in[0].shape.dim[0] * c->rows;
    for (size_t i = 0; i < n; i++) {
        const double d = c->dout[0][is_each(c) ? i : 0] * term_at(c, fn, i).slope / divisor(c);
        if (c->din[0]) c->din[0][i] += d;
        if (c->din[1]) c->din[1][i] -= d; /* only for mse, l1, smooth_l1 and huber, which depend on y - t alone */
    }
}

#define PAIR_LOSS(name)                                \
    static void name##_forward(const vkt_ref_call *c)  \
    {                                                  \
        forward(c, name);                              \
    }                                                  \
    static void name##_backward(const vkt_ref_call *c) \
    {                                                  \
        backward(c, name);                             \
    }                                                  \
    const vkt_ref_op vkt_ref_##name = { #name, 1, name##_forward, name##_backward };

PAIR_LOSS(mse)
PAIR_LOSS(l1)
PAIR_LOSS(smooth_l1)
PAIR_LOSS(huber)
PAIR_LOSS(bce)
PAIR_LOSS(bce_logits)
PAIR_LOSS(kl_div)
PAIR_LOSS(relative_l2)
