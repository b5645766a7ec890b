/* reference/attention_cached.c - a cache of keys or values, and attention over the tokens in it.
 *   append             y is the cache, but y[h][first + t] = x[h][t]. Rows of x behind the end of y are left out
 *   attention_cached   y[h][t] = sum over s of w[s] v[s]. w is the softmax of scale q[t] k[s] over the keys s = 0 to
 *                      past + t, but at most all keys of the cache */
#include "reference/families.h"

#include <math.h>

static void append(const vkt_ref_call *c)
{
    const vkt_ref_tensor *x = &c->in[0], *cache = &c->in[1];
    const uint32_t rank = x->shape.rank;
    const size_t T = x->shape.dim[rank - 2], D = x->shape.dim[rank - 1], C = cache->shape.dim[rank - 2];
    const size_t first = c->in[2].u[0], planes = vkt_ref_count(x->shape) / T / D;
    memcpy(c->out[0].f, cache->f, planes * C * D * sizeof(double));
    for (size_t p = 0; p < planes; p++)
        for (size_t t = 0; t < T && first + t < C; t++)
            memcpy(c->out[0].f + (p * C + first + t) * D, x->f + (p * T + t) * D, D * sizeof(double));
}

const vkt_ref_op vkt_ref_append = { "append", 1, append, NULL };

/* Computes y, a row of D numbers, for one query and the first n keys. */
static void attend(double scale, const double *q, const double *k, const double *v, size_t n, size_t D, double *y)
{
    double most = -INFINITY, total = 0;
    memset(y, 0, D * sizeof *y);
    for (int pass = 0; pass < 2; pass++)
        for (size_t s = 0; s < n; s++) {
            double score = 0;
            for (size_t d = 0; d < D; d++) score += q[d] * k[s * D + d];
            score *= scale;
            if (pass == 0) {
                most = fmax(most, score);
                continue;
            }
            total += exp(score - most);
            for (size_t d = 0; d < D; d++) y[d] += exp(score - most) * v[s * D + d];
        }
    for (size_t d = 0; d < D; d++) y[d] /= total;
}

static void attention_cached(const vkt_ref_call *c)
{
    const vkt_attention_cached_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    const size_t T = s.dim[s.rank - 2], D = s.dim[s.rank - 1], C = c->in[1].shape.dim[s.rank - 2];
    const size_t heads = vkt_ref_count(s) / T / D, past = c->in[3].u[0];
    for (size_t h = 0; h < heads; h++)
        for (size_t t = 0; t < T; t++) {
            const size_t n = past + t + 1 < C ? past + t + 1 : C, at = h / a->group * C * D, row = (h * T + t) * D;
            attend((double)a->scale, c->in[0].f + row, c->in[1].f + at, c->in[2].f + at, n, D, c->out[0].f + row);
        }
}

const vkt_ref_op vkt_ref_attention_cached = { "attention_cached", 1, attention_cached, NULL };
