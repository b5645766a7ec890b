/* reference/loss.c - losses over the real rows of a batch, and what is counted beside them.
 *   softmax_xent: 1/rows sum_b -log softmax(z[b])[t[b]], in nats    mse: mean of (y - target)^2 over the real rows
 *   argmax: the first largest of each row    count_correct: how many real rows have it at t[b] */
#include "reference/families.h"

#include <math.h>

/* log softmax(z)[k] = z[k] - max - log_sum: with the largest z taken out, nothing overflows and nothing cancels. */
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

/* Elements of the real rows. */
static size_t real(const vkt_ref_call *c)
{
    const vkt_shape s = c->in[0].shape;
    return vkt_ref_count(s) / s.dim[0] * c->rows;
}

static void mse_forward(const vkt_ref_call *c)
{
    const size_t n = real(c);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += pow(c->in[0].f[i] - c->in[1].f[i], 2);
    c->out[0].f[0] = sum / (double)n;
}

static void mse_backward(const vkt_ref_call *c)
{
    const size_t n = real(c);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][0] * 2 * (c->in[0].f[i] - c->in[1].f[i]) / (double)n;
}

const vkt_ref_op vkt_ref_mse = { "mse", 1, mse_forward, mse_backward };

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
