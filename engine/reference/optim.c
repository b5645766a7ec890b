/* reference/optim.c - one step of an optimizer, after the PyTorch documentation of SGD and Adam and Keras' of Adam. */
#include "reference/families.h"

#include <math.h>

void vkt_ref_sgd(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g, double *buf)
{
    const double momentum = (double)o->momentum, dampening = (double)o->dampening;
    for (uint64_t i = 0; i < n; i++) {
        double d = g[i] + (double)o->weight_decay * p[i];
        if (momentum != 0) {
            buf[i] = t == 1 ? d : momentum * buf[i] + (1 - dampening) * d;
            d = o->nesterov ? d + momentum * buf[i] : buf[i];
        }
        p[i] -= lr * d;
    }
}

void vkt_ref_adam(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g, double *m,
                  double *v)
{
    const double c1 = 1 - pow(o->beta1, (double)t), c2 = 1 - pow(o->beta2, (double)t), eps = (double)o->eps;
    for (uint64_t i = 0; i < n; i++) {
        const double d = g[i] + (double)o->weight_decay * p[i];
        m[i] += (1 - o->beta1) * (d - m[i]);
        v[i] = o->beta2 * v[i] + (1 - o->beta2) * d * d;
        if (o->keras)
            p[i] -= lr * sqrt(c2) / c1 * m[i] / (sqrt(v[i]) + eps);
        else
            p[i] -= lr * (m[i] / c1) / (sqrt(v[i] / c2) + eps);
    }
}

/* ---- as ops: param, grad, moments -> param, moments ---- */

static void copy(double *to, const vkt_ref_tensor *from)
{
    memcpy(to, from->f, vkt_ref_count(from->shape) * sizeof *to);
}

static void sgd_forward(const vkt_ref_call *c)
{
    const vkt_optimizer *o = c->attr;
    double *buf = o->momentum != 0 ? c->out[1].f : NULL;
    copy(c->out[0].f, &c->in[0]);
    if (buf) copy(buf, &c->in[2]);
    vkt_ref_sgd(o, c->lr, c->t, vkt_ref_count(c->in[0].shape), c->out[0].f, c->in[1].f, buf);
}

const vkt_ref_op vkt_ref_op_sgd = { "sgd", 2, sgd_forward, NULL };

static void adam_forward(const vkt_ref_call *c)
{
    copy(c->out[0].f, &c->in[0]);
    copy(c->out[1].f, &c->in[2]);
    copy(c->out[2].f, &c->in[3]);
    vkt_ref_adam(c->attr, c->lr, c->t, vkt_ref_count(c->in[0].shape), c->out[0].f, c->in[1].f, c->out[1].f,
                 c->out[2].f);
}

const vkt_ref_op vkt_ref_op_adam = { "adam", 3, adam_forward, NULL };
