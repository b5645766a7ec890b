/* reference/mlp.c - a fully connected network, sample by sample:
 *   h[0] = x,  h[l] = max(w[l] h[l-1] + b[l], 0);  the last layer has no max
 *   mlp: y = the last h
 *   mlp_mse: the mean of (y - target)^2 over the real rows and all outputs
 * If vkt_ref_call.f16 is set, the outputs of hidden layers are rounded to f16, and so are the gradients with respect to
 * the outputs of all layers. */
#include "reference/families.h"

#include "base/half.h"

typedef struct network {
    const vkt_ref_call *c;
    uint32_t layers, params, width[VKT_MLP_MAX_LAYERS + 1];
    double h[VKT_MLP_MAX_LAYERS + 1][VKT_MLP_MAX_WIDTH]; /* values of one sample */
} network;

static network network_of(const vkt_ref_call *c)
{
    const vkt_mlp_attr *a = c->attr;
    network n = { .c = c, .layers = a->layers, .params = a->params, .width = { c->in[0].shape.dim[1] } };
    for (uint32_t l = 0; l < n.layers; l++) n.width[l + 1] = c->in[n.params + 2 * l].shape.dim[0];
    return n;
}

static double *weight(const network *n, uint32_t l)
{
    return n->c->in[n->params + 2 * l].f;
}

/* Returns the bias of layer l; NULL if the layer has no bias. */
static double *bias(const network *n, uint32_t l)
{
    return n->params + 2 * l + 1 < n->c->n_in ? n->c->in[n->params + 2 * l + 1].f : NULL;
}

/* Returns v as an operand of a product: rounded to f16 if c->f16 is set. */
static double operand(const network *n, double v)
{
    return n->c->f16 ? (double)vkt_f32_from_half(vkt_half_from_f32((float)v)) : v;
}

static const double *run(network *n, size_t sample)
{
    for (uint32_t i = 0; i < n->width[0]; i++) n->h[0][i] = n->c->in[0].f[sample * n->width[0] + i];
    for (uint32_t l = 0; l < n->layers; l++)
        for (uint32_t o = 0; o < n->width[l + 1]; o++) {
            double sum = bias(n, l) ? bias(n, l)[o] : 0;
            for (uint32_t i = 0; i < n->width[l]; i++) sum += weight(n, l)[o * n->width[l] + i] * n->h[l][i];
            n->h[l + 1][o] = l + 1 == n->layers ? sum : sum < 0 ? 0 : operand(n, sum);
        }
    return n->h[n->layers];
}

/* Adds the gradients of one sample to din. dy is the gradient with respect to the sample's y. The last call of `run`
 * must have been for this sample. */
static void run_back(const network *n, size_t sample, const double *dy)
{
    double d[2][VKT_MLP_MAX_WIDTH];
    for (uint32_t o = 0; o < n->width[n->layers]; o++) d[n->layers % 2][o] = operand(n, dy[o]);
    for (uint32_t l = n->layers; l-- > 0;) {
        const double *above = d[(l + 1) % 2];
        double *below = d[l % 2], *dw = n->c->din[n->params + 2 * l];
        double *db = bias(n, l) ? n->c->din[n->params + 2 * l + 1] : NULL;
        memset(below, 0, sizeof d[0]);
        for (uint32_t o = 0; o < n->width[l + 1]; o++) {
            if (db) db[o] += above[o];
            for (uint32_t i = 0; i < n->width[l]; i++) {
                if (dw) dw[o * n->width[l] + i] += above[o] * n->h[l][i];
                if (l == 0 || n->h[l][i] > 0) below[i] += above[o] * weight(n, l)[o * n->width[l] + i];
            }
        }
        for (uint32_t i = 0; l && i < n->width[l]; i++) below[i] = operand(n, below[i]);
    }
    for (uint32_t i = 0; n->c->din[0] && i < n->width[0]; i++) n->c->din[0][sample * n->width[0] + i] += d[0][i];
}

static void mlp_forward(const vkt_ref_call *c)
{
    network n = network_of(c);
    const uint32_t out = n.width[n.layers];
    for (size_t b = 0; b < c->in[0].shape.dim[0]; b++) memcpy(c->out[0].f + b * out, run(&n, b), out * sizeof(double));
}

static void mlp_backward(const vkt_ref_call *c)
{
    network n = network_of(c);
    for (size_t b = 0; b < c->in[0].shape.dim[0]; b++) {
        run(&n, b);
        run_back(&n, b, c->dout[0] + b * n.width[n.layers]);
    }
}

const vkt_ref_op vkt_ref_mlp = { "mlp", 1, mlp_forward, mlp_backward };

static void mse_forward(const vkt_ref_call *c)
{
    network n = network_of(c);
    const uint32_t out = n.width[n.layers];
    double sum = 0;
    for (size_t b = 0; b < c->rows; b++) {
        const double *y = run(&n, b), *t = c->in[1].f + b * out;
        for (uint32_t o = 0; o < out; o++) sum += (y[o] - t[o]) * (y[o] - t[o]);
    }
    c->out[0].f[0] = sum / ((double)c->rows * out);
}

static void mse_backward(const vkt_ref_call *c)
{
    network n = network_of(c);
    const uint32_t out = n.width[n.layers];
    const double factor = c->dout[0][0] * 2 / ((double)c->rows * out);
    for (size_t b = 0; b < c->rows; b++) {
        const double *y = run(&n, b), *t = c->in[1].f + b * out;
        double dy[VKT_MLP_MAX_WIDTH];
        for (uint32_t o = 0; o < out; o++) dy[o] = factor * (y[o] - t[o]);
        run_back(&n, b, dy);
    }
}

const vkt_ref_op vkt_ref_mlp_mse = { "mlp_mse", 1, mse_forward, mse_backward };
