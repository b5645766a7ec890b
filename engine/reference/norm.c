/* reference/norm.c - normalisations.
 *   batch_norm: y = gamma * xhat + beta, xhat = (x - mean) / sqrt(var + eps), with mean and var of a channel over the
 *   real rows and all positions; y is 0 in the other rows (Ioffe & Szegedy 2015)
 *   batch_norm_given: the formula of batch_norm, but for all rows, and with mean and var as inputs
 *   running_stats: an exponential average of mean and var
 *   row_norm: the formula of batch_norm, with mean and var of one group of channels of one sample (Ba et al. 2016;
 *   Wu & He 2018). With `rms`, the formula has mean = 0 (Zhang & Sennrich 2019) */
#include "reference/families.h"

#include <math.h>

/* The statistics of channel k, and the sizes that give the index of an element. x is (N,C,positions). Only the first
 * `rows` samples of x are normalised. */
typedef struct channel {
    size_t rows, channels, positions, k;
    double mean, scale, gamma, beta; /* scale: 1 / sqrt(var + eps) */
} channel;

static size_t element(const channel *c, size_t row, size_t position)
{
    return (row * c->channels + c->k) * c->positions + position;
}

static double or_else(const vkt_ref_tensor *v, size_t i, double otherwise)
{
    return v->f ? v->f[i] : otherwise;
}

static channel channel_of(const vkt_ref_call *c, size_t k, bool given)
{
    const vkt_batch_norm_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    const uint32_t affine = given ? 3 : 1;
    channel ch = { .rows = c->rows < s.dim[0] && !given ? c->rows : s.dim[0],
                   .channels = s.dim[1],
                   .positions = vkt_ref_count(s) / s.dim[0] / s.dim[1],
                   .k = k,
                   .gamma = or_else(&c->in[affine], k, 1),
                   .beta = or_else(&c->in[affine + 1], k, 0) };
    if (given) {
        ch.mean = c->in[1].f[k];
        ch.scale = 1 / sqrt(c->in[2].f[k] + (double)a->eps);
        return ch;
    }
    const double n = (double)(ch.rows * ch.positions);
    double var = 0;
    for (size_t b = 0; b < ch.rows; b++)
        for (size_t p = 0; p < ch.positions; p++) ch.mean += c->in[0].f[element(&ch, b, p)] / n;
    for (size_t b = 0; b < ch.rows; b++)
        for (size_t p = 0; p < ch.positions; p++) var += pow(c->in[0].f[element(&ch, b, p)] - ch.mean, 2) / n;
    ch.scale = 1 / sqrt(var + (double)a->eps);
    return ch;
}

static void forward(const vkt_ref_call *c, bool given)
{
    for (size_t k = 0; k < c->in[0].shape.dim[1]; k++) {
        const channel ch = channel_of(c, k, given);
        for (size_t b = 0; b < c->in[0].shape.dim[0]; b++)
            for (size_t p = 0; p < ch.positions; p++) {
                const size_t i = element(&ch, b, p);
                c->out[0].f[i] = b < ch.rows ? ch.gamma * (c->in[0].f[i] - ch.mean) * ch.scale + ch.beta : 0;
            }
    }
}

static void backward(const vkt_ref_call *c, bool given)
{
    for (size_t k = 0; k < c->in[0].shape.dim[1]; k++) {
        const channel ch = channel_of(c, k, given);
        const double n = (double)(ch.rows * ch.positions);
        double dbeta = 0, dgamma = 0;
        for (size_t b = 0; b < ch.rows; b++)
            for (size_t p = 0; p < ch.positions; p++) {
                const size_t i = element(&ch, b, p);
                dbeta += c->dout[0][i];
                dgamma += c->dout[0][i] * (c->in[0].f[i] - ch.mean) * ch.scale;
            }
        double *const *affine = c->din + (given ? 3 : 1);
        if (affine[0]) affine[0][k] += dgamma;
        if (affine[1]) affine[1][k] += dbeta;
        if (!c->din[0]) continue;
        for (size_t b = 0; b < ch.rows; b++)
            for (size_t p = 0; p < ch.positions; p++) {
                const size_t i = element(&ch, b, p);
                const double xhat = (c->in[0].f[i] - ch.mean) * ch.scale;
                const double through = given ? 0 : (dbeta + xhat * dgamma) / n;
                c->din[0][i] += ch.gamma * ch.scale * (c->dout[0][i] - through);
            }
    }
}

static void batch_forward(const vkt_ref_call *c)
{
    forward(c, false);
}

static void batch_backward(const vkt_ref_call *c)
{
    backward(c, false);
}

static void given_forward(const vkt_ref_call *c)
{
    forward(c, true);
}

static void given_backward(const vkt_ref_call *c)
{
    backward(c, true);
}

const vkt_ref_op vkt_ref_batch_norm = { "batch_norm", 1, batch_forward, batch_backward };
const vkt_ref_op vkt_ref_batch_norm_given = { "batch_norm_given", 1, given_forward, given_backward };

static void running_forward(const vkt_ref_call *c)
{
    const vkt_running_stats_attr *a = c->attr;
    const double n = (double)(c->rows < a->batch ? c->rows : a->batch) * a->positions, m = (double)a->momentum;
    const double factor = a->unbiased && n > 1 ? n / (n - 1) : 1;
    for (size_t k = 0; k < vkt_ref_count(c->in[0].shape); k++) {
        c->out[0].f[k] = (1 - m) * c->in[0].f[k] + m * c->in[2].f[k];
        c->out[1].f[k] = (1 - m) * c->in[1].f[k] + m * factor * c->in[3].f[k];
    }
}

const vkt_ref_op vkt_ref_running_stats = { "running_stats", 2, running_forward, NULL };

/* ---- row_norm ---- */

/* A row of x, and its statistics. A row is one group of channels of one sample. The row has `run` elements, from index
 * `first` of x on. */
typedef struct row {
    const vkt_row_norm_attr *a;
    size_t run, first, group; /* group: index of the group in the sample */
    double mean, scale;
} row;

static row row_of(const vkt_ref_call *c, size_t r)
{
    const vkt_row_norm_attr *a = c->attr;
    row w = { .a = a, .run = (size_t)a->channels * a->inner, .group = r % a->groups };
    w.first = r * w.run;
    const double *x = c->in[0].f + w.first, n = (double)w.run;
    double var = 0;
    for (size_t k = 0; k < w.run && !a->rms; k++) w.mean += x[k] / n;
    for (size_t k = 0; k < w.run; k++) var += (x[k] - w.mean) * (x[k] - w.mean) / n;
    w.scale = 1 / sqrt(var + (double)a->eps);
    return w;
}

static size_t row_channel(const row *w, size_t k)
{
    return w->group * w->a->channels + k / w->a->inner;
}

static size_t rows_of(const vkt_ref_call *c)
{
    const vkt_row_norm_attr *a = c->attr;
    return vkt_ref_count(c->in[0].shape) / a->channels / a->inner;
}

static void row_forward(const vkt_ref_call *c)
{
    for (size_t r = 0; r < rows_of(c); r++) {
        const row w = row_of(c, r);
        for (size_t k = 0; k < w.run; k++) {
            const size_t i = w.first + k, at = row_channel(&w, k);
            c->out[0].f[i] = or_else(&c->in[1], at, 1) * (c->in[0].f[i] - w.mean) * w.scale + or_else(&c->in[2], at, 0);
        }
    }
}

static void row_backward(const vkt_ref_call *c)
{
    for (size_t r = 0; r < rows_of(c); r++) {
        const row w = row_of(c, r);
        double sum = 0, along = 0; /* sum: the sum of gamma * dy; along: the sum of gamma * dy * xhat */
        for (size_t k = 0; k < w.run; k++) {
            const size_t i = w.first + k, at = row_channel(&w, k);
            const double dy = c->dout[0][i], xhat = (c->in[0].f[i] - w.mean) * w.scale;
            sum += dy * or_else(&c->in[1], at, 1);
            along += dy * or_else(&c->in[1], at, 1) * xhat;
            if (c->din[1]) c->din[1][at] += dy * xhat;
            if (c->din[2]) c->din[2][at] += dy;
        }
        if (w.a->rms) sum = 0; /* no mean is subtracted */
        for (size_t k = 0; c->din[0] && k < w.run; k++) {
            const size_t i = w.first + k;
            const double d = c->dout[0][i] * or_else(&c->in[1], row_channel(&w, k), 1);
            const double xhat = (c->in[0].f[i] - w.mean) * w.scale;
            c->din[0][i] += w.scale * (d - (sum + xhat * along) / (double)w.run);
        }
    }
}

const vkt_ref_op vkt_ref_row_norm = { "row_norm", 1, row_forward, row_backward };
