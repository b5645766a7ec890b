/* reference/norm.c - normalisations.
 *   batch_norm: xhat = (x - mean) / sqrt(var + eps) over real rows and positions of a channel, y = gamma xhat + beta
 *   (Ioffe & Szegedy 2015); batch_norm_given: mean and variance are inputs; running_stats: an exponential average */
#include "reference/families.h"

#include <math.h>

/* Statistics of channel k, and where its elements are: x is (N,C,positions). */
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
    channel ch = { .rows = c->rows < s.dim[0] ? c->rows : s.dim[0],
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
                c->out[0].f[i] = ch.gamma * (c->in[0].f[i] - ch.mean) * ch.scale + ch.beta;
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
        c->out[1].f[k] = (1 - m) * c->in[1].f[k] + m * factor * c->in[1].f[k];
    }
}

const vkt_ref_op vkt_ref_running_stats = { "running_stats", 2, running_forward, NULL };
