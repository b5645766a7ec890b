/* reference/loss.c - losses of logits z and labels t over the real rows of a batch, and predictions. In nll,
 * z has log-probabilities instead of logits.
 *   softmax_xent: the mean over the real rows b of -log(softmax(z[b])[t[b]]), in nats
 *   cross_entropy, nll: see below
 *   argmax: the index of the first largest element of each row
 *   count_correct: the number of real rows b whose argmax is t[b] */
#include "reference/families.h"

#include <math.h>

/* Two terms of log softmax(z)[k] = z[k] - max - log_sum. max is the largest z. It is subtracted from z before exp, so
 * exp does not overflow. max and log_sum are not added up, because their sum may lose digits of log_sum. */
typedef struct normal {
    double max, log_sum;
} normal;

static normal normal_of(const double *z, size_t K)
{
    double max = z[0], sum = 0;
    for (size_t k = 1; k < K; k++) max = fmax(max, z[k]);
    for (size_t k = 0; k < K; k++) sum += exp(z[k] - max);
    return (normal){ max, log(sum) };
}

static void xent_forward(const vkt_ref_call *c)
{
    const size_t K = c->in[0].shape.dim[1];
    double sum = 0;
    for (size_t b = 0; b < c->rows; b++) {
        const double *z = c->in[0].f + b * K;
        const normal n = normal_of(z, K);
        sum += n.log_sum - (z[c->in[1].u[b]] - n.max);
    }
    c->out[0].f[0] = sum / c->rows;
}

static void xent_backward(const vkt_ref_call *c)
{
    const size_t K = c->in[0].shape.dim[1];
    for (size_t b = 0; b < c->rows; b++) {
        const double *z = c->in[0].f + b * K;
        const normal n = normal_of(z, K);
        for (size_t k = 0; k < K; k++) {
            const double p = exp(z[k] - n.max - n.log_sum);
            c->din[0][b * K + k] += c->dout[0][0] * (p - (k == c->in[1].u[b])) / c->rows;
        }
    }
}

const vkt_ref_op vkt_ref_softmax_xent = { "softmax_xent", 1, xent_forward, xent_backward };

/* ---- cross_entropy and nll: class weights, and a label that is ignored; label smoothing in cross_entropy only ---- */

static double weight(const vkt_ref_call *c, size_t k)
{
    return c->n_in > 2 && c->in[2].f ? c->in[2].f[k] : 1;
}

static size_t rows_of_labels(const vkt_ref_call *c)
{
    const vkt_cross_entropy_attr *a = c->attr;
    const size_t rows = (size_t)c->rows * a->group, all = c->in[0].shape.dim[0];
    return rows < all ? rows : all;
}

static double divisor(const vkt_ref_call *c)
{
    const vkt_cross_entropy_attr *a = c->attr;
    double sum = 0;
    for (size_t b = 0; b < rows_of_labels(c); b++)
        if (c->in[1].u[b] != a->ignore) sum += weight(c, c->in[1].u[b]);
    return a->sum || a->each ? 1 : sum;
}

/* Returns the factor of -log(p[k]) in the loss of row b. p[k] is the probability of class k. */
static double share(const vkt_ref_call *c, size_t b, size_t k)
{
    const vkt_cross_entropy_attr *a = c->attr;
    const uint32_t label = c->in[1].u[b];
    const double s = (double)a->smoothing, even = s / c->in[0].shape.dim[1];
    return label == a->ignore ? 0 : weight(c, k) * (even + (k == label ? 1 - s : 0));
}

/* If `each` is set, writes the loss of each row, and 0 for a row that is not real. Else writes the sum of the losses,
 * divided by the divisor. */
static void reduce(const vkt_ref_call *c, double (*loss)(const vkt_ref_call *c, size_t b))
{
    const vkt_cross_entropy_attr *a = c->attr;
    double sum = 0;
    for (size_t b = 0; b < c->in[0].shape.dim[0]; b++) {
        const double l = b < rows_of_labels(c) ? loss(c, b) : 0;
        sum += l;
        if (a->each) c->out[0].f[b] = l;
    }
    if (!a->each) c->out[0].f[0] = sum / divisor(c);
}

/* Returns the gradient with respect to the loss of row b. If `each` is set, this loss is element b of the output.
 * Otherwise the output is one number: the sum of the losses of all rows, divided by the divisor. */
static double dloss(const vkt_ref_call *c, size_t b)
{
    const vkt_cross_entropy_attr *a = c->attr;
    return a->each ? c->dout[0][b] : c->dout[0][0] / divisor(c);
}

static double cross_entropy_of(const vkt_ref_call *c, size_t b)
{
    const size_t K = c->in[0].shape.dim[1];
    const double *z = c->in[0].f + b * K;
    const normal n = normal_of(z, K);
    double sum = 0;
    for (size_t k = 0; k < K; k++) {
        const double q = share(c, b, k);
        if (q != 0) sum += q * (n.log_sum - (z[k] - n.max));
    }
    return sum;
}

static void cross_entropy_forward(const vkt_ref_call *c)
{
    reduce(c, cross_entropy_of);
}

static void cross_entropy_backward(const vkt_ref_call *c)
{
    const size_t K = c->in[0].shape.dim[1];
    for (size_t b = 0; b < rows_of_labels(c); b++) {
        const double *z = c->in[0].f + b * K, by = dloss(c, b);
        const normal n = normal_of(z, K);
        double all = 0;
        for (size_t k = 0; k < K; k++) all += share(c, b, k);
        for (size_t k = 0; k < K; k++)
            c->din[0][b * K + k] += by * (all * exp(z[k] - n.max - n.log_sum) - share(c, b, k));
    }
}

const vkt_ref_op vkt_ref_cross_entropy = { "cross_entropy", 1, cross_entropy_forward, cross_entropy_backward };

static double nll_of(const vkt_ref_call *c, size_t b)
{
    const size_t K = c->in[0].shape.dim[1];
    double sum = 0;
    for (size_t k = 0; k < K; k++) sum -= share(c, b, k) * c->in[0].f[b * K + k];
    return sum;
}

static void nll_forward(const vkt_ref_call *c)
{
    reduce(c, nll_of);
}

static void nll_backward(const vkt_ref_call *c)
{
    const size_t K = c->in[0].shape.dim[1];
    for (size_t b = 0; b < rows_of_labels(c); b++) {
        const double by = dloss(c, b);
        for (size_t k = 0; k < K; k++) c->din[0][b * K + k] -= by * share(c, b, k);
    }
}

const vkt_ref_op vkt_ref_nll = { "nll", 1, nll_forward, nll_backward };

static uint32_t largest(const double *z, uint32_t K)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < K; k++)
        if (z[k] > z[best]) best = k;
    return best;
}

static void argmax_forward(const vkt_ref_call *c)
{
    const vkt_shape s = c->in[0].shape;
    for (size_t b = 0; b < s.dim[0]; b++) c->out[0].u[b] = largest(c->in[0].f + b * s.dim[1], s.dim[1]);
}

const vkt_ref_op vkt_ref_argmax = { "argmax", 1, argmax_forward, NULL };

static void count_forward(const vkt_ref_call *c)
{
    const vkt_shape s = c->in[0].shape;
    uint32_t n = 0;
    for (size_t b = 0; b < c->rows; b++) n += largest(c->in[0].f + b * s.dim[1], s.dim[1]) == c->in[1].u[b];
    c->out[0].f[0] = n;
}

const vkt_ref_op vkt_ref_count_correct = { "count_correct", 1, count_forward, NULL };
