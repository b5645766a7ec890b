/* reference/attention.c - softmax(scale * q k^T) v for each head of q. The inputs are either q (..,H,T,D), k (..,K,S,D)
 * and v (..,K,S,D), or one tensor (B,T,(H + 2 K) D). A row of this tensor has H heads of q, then K heads of k, then K
 * heads of v, with D numbers for each head. Head h of q reads head h / (H / K) of k and v. If `causal` is set, query t
 * uses only the keys 0 to t. */
#include "reference/families.h"

#include <math.h>

/* The q, k or v of one head. Element d of its row t has the index first + t * step + d in input number `input`. */
typedef struct operand {
    size_t input, first, step;
} operand;

typedef struct head {
    size_t queries, keys, width, y, y_step; /* element d of row t of the result is at y + t * y_step + d */
    operand q, k, v;
} head;

static size_t count_heads(const vkt_ref_call *c)
{
    const vkt_attention_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    return vkt_ref_count(s) / s.dim[s.rank - 1] / s.dim[s.rank - 2] * a->heads;
}

static head head_of(const vkt_ref_call *c, size_t i)
{
    const vkt_attention_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    const size_t T = s.dim[s.rank - 2], row = s.dim[s.rank - 1];
    if (c->n_in > 1 && c->in[1].f) {
        const size_t S = c->in[1].shape.dim[s.rank - 2], at = i / a->group * S * row;
        return (head){ T, S, row, i * T * row, row, { 0, i * T * row, row }, { 1, at, row }, { 2, at, row } };
    }
    const size_t H = a->heads, K = H / a->group, width = row / (H + 2 * K), D = H * width;
    const size_t b = i / H, h = i % H, at = b * T * row, k = at + (H + h / a->group) * width;
    const operand of_k = { 0, k, row }, of_v = { 0, k + K * width, row };
    return (head){ T, T, width, b * T * D + h * width, D, { 0, at + h * width, row }, of_k, of_v };
}

static const double *row_of(const vkt_ref_call *c, const operand *o, size_t t)
{
    return c->in[o->input].f + o->first + t * o->step;
}

static double *gradient_of(const vkt_ref_call *c, const operand *o, size_t t)
{
    return c->din[o->input] ? c->din[o->input] + o->first + t * o->step : NULL;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Adds x * a to y; does nothing if y is NULL. */
static void add(double *y, double x, const double *a, size_t n)
{
    for (size_t i = 0; y && i < n; i++) y[i] += x * a[i];
}

static size_t seen_by(const vkt_ref_call *c, const head *h, size_t t)
{
    const vkt_attention_attr *a = c->attr;
    return a->causal && t + 1 < h->keys ? t + 1 : h->keys;
}

static double score(const vkt_ref_call *c, const head *h, size_t t, size_t s)
{
    const vkt_attention_attr *a = c->attr;
    return (double)a->scale * dot(row_of(c, &h->q, t), row_of(c, &h->k, s), h->width);
}

/* Computes the logarithm of the sum of exp(score) over the keys that query t uses. */
static double log_sum(const vkt_ref_call *c, const head *h, size_t t)
{
    double m = -INFINITY, sum = 0;
    for (size_t s = 0; s < seen_by(c, h, t); s++) m = fmax(m, score(c, h, t, s));
    for (size_t s = 0; s < seen_by(c, h, t); s++) sum += exp(score(c, h, t, s) - m);
    return m + log(sum);
}

static void forward(const vkt_ref_call *c)
{
    for (size_t i = 0; i < count_heads(c); i++) {
        const head h = head_of(c, i);
        for (size_t t = 0; t < h.queries; t++) {
            const double all = log_sum(c, &h, t);
            double *y = c->out[0].f + h.y + t * h.y_step;
            memset(y, 0, h.width * sizeof *y);
            for (size_t s = 0; s < seen_by(c, &h, t); s++)
                add(y, exp(score(c, &h, t, s) - all), row_of(c, &h.v, s), h.width);
        }
    }
}

/* Adds the gradients that come from one query. <a,b> is the dot product. The gradient of a weight p is <dy,v>. The mean
 * of these gradients over all keys, weighted with p, is <dy,y>. The gradient of a score is p * (<dy,v> - <dy,y>). */
static void backward_of_query(const vkt_ref_call *c, const head *h, size_t t)
{
    const double *dy = c->dout[0] + h->y + t * h->y_step, all = log_sum(c, h, t);
    double mean = c->stored ? dot(dy, c->stored + h->y + t * h->y_step, h->width) : 0;
    for (size_t s = 0; s < seen_by(c, h, t) && !c->stored; s++)
        mean += exp(score(c, h, t, s) - all) * dot(dy, row_of(c, &h->v, s), h->width);
    for (size_t s = 0; s < seen_by(c, h, t); s++) {
        const double p = exp(score(c, h, t, s) - all);
        const double ds = p * (dot(dy, row_of(c, &h->v, s), h->width) - mean);
        const double scale = (double)((const vkt_attention_attr *)c->attr)->scale;
        add(gradient_of(c, &h->q, t), scale * ds, row_of(c, &h->k, s), h->width);
        add(gradient_of(c, &h->k, s), scale * ds, row_of(c, &h->q, t), h->width);
        add(gradient_of(c, &h->v, s), p, dy, h->width);
    }
}

static void backward(const vkt_ref_call *c)
{
    for (size_t i = 0; i < count_heads(c); i++) {
        const head h = head_of(c, i);
        for (size_t t = 0; t < h.queries; t++) backward_of_query(c, &h, t);
    }
}

const vkt_ref_op vkt_ref_attention = { "attention", 1, forward, backward };
