/* reference/linear_xent.c - the cross-entropy of labels whose logits are a linear layer of x:
 *   z[r,k] = sum_i x[r,i] w[k,i]
 *   loss = 1/norm sum over r of (log(sum_k exp(z[r,k])) - z[r,t[r]])
 * t[r] is the label of row r. Each sample has `group` rows, so row r is in sample r / group. A row is real if its
 * sample is one of the first vkt_ref_call.rows samples.
 * r runs over the real rows whose label is a class and not `ignore`. norm is the number of these rows, or 1 if the loss
 * is a sum. The second output is the number of these rows. The loss is NaN if a real row has a label that is neither a
 * class nor `ignore`.
 * The op linear_cross_entropy_dx also outputs gradients. `forward` does not compute these outputs. */
#include "reference/families.h"

#include <math.h>

static double weight(const vkt_ref_call *c, size_t k, size_t i)
{
    const vkt_linear_xent_attr *a = c->attr;
    const vkt_quantized_attr q = { .format = a->format, .rows = a->rows, .columns = a->columns };
    return a->format ? vkt_ref_quantized(&q, c->in[1].u, k, i) : c->in[1].f[k * a->columns + i];
}

static double logit(const vkt_ref_call *c, size_t r, size_t k)
{
    const size_t D = c->in[0].shape.dim[1];
    double z = 0;
    for (size_t i = 0; i < D; i++) z += c->in[0].f[r * D + i] * weight(c, k, i);
    return z;
}

static bool counts(const vkt_ref_call *c, size_t r)
{
    const vkt_linear_xent_attr *a = c->attr;
    return r / a->group < c->rows && c->in[2].u[r] != a->ignore && c->in[2].u[r] < a->rows;
}

static double number_of(const vkt_ref_call *c)
{
    double n = 0;
    for (size_t r = 0; r < c->in[0].shape.dim[0]; r++) n += counts(c, r);
    return n;
}

/* Returns log sum_k exp z[r,k]. The largest logit so far is subtracted first, so nothing overflows. */
static double log_sum(const vkt_ref_call *c, size_t r)
{
    const vkt_linear_xent_attr *a = c->attr;
    double most = logit(c, r, 0), sum = 1;
    for (size_t k = 1; k < a->rows; k++) {
        const double z = logit(c, r, k);
        if (z > most) {
            sum = sum * exp(most - z) + 1;
            most = z;
        } else {
            sum += exp(z - most);
        }
    }
    return most + log(sum);
}

static void forward(const vkt_ref_call *c)
{
    const vkt_linear_xent_attr *a = c->attr;
    double sum = 0;
    for (size_t r = 0; r < c->in[0].shape.dim[0]; r++) {
        const uint32_t label = c->in[2].u[r];
        if (counts(c, r)) sum += log_sum(c, r) - logit(c, r, label);
        if (r / a->group < c->rows && label != a->ignore && label >= a->rows) sum = (double)NAN;
    }
    c->out[1].f[0] = number_of(c);
    c->out[0].f[0] = a->sum ? sum : sum / number_of(c);
}

static void backward(const vkt_ref_call *c)
{
    const vkt_linear_xent_attr *a = c->attr;
    const size_t D = c->in[0].shape.dim[1];
    const double dloss = c->dout[0][0] / (a->sum ? 1 : number_of(c));
    for (size_t r = 0; r < c->in[0].shape.dim[0]; r++) {
        if (!counts(c, r)) continue;
        const double normal = log_sum(c, r);
        for (size_t k = 0; k < a->rows; k++) {
            const double dz = dloss * (exp(logit(c, r, k) - normal) - (k == c->in[2].u[r]));
            for (size_t i = 0; i < D; i++) {
                if (c->din[0]) c->din[0][r * D + i] += dz * weight(c, k, i);
                if (c->din[1]) c->din[1][k * D + i] += dz * c->in[0].f[r * D + i];
            }
        }
    }
}

const vkt_ref_op vkt_ref_linear_cross_entropy = { "linear_cross_entropy", 2, forward, backward, NULL };
const vkt_ref_op vkt_ref_linear_cross_entropy_dx = { "linear_cross_entropy_dx", 2, forward, backward, NULL };
