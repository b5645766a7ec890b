/* reference/optim.c - one step of each optimizer, as documented by PyTorch and Keras. Clipping follows
 * torch.nn.utils.clip_grad_norm_ and clip_grad_value_. Averages of parameters follow
 * torch.optim.swa_utils.AveragedModel. */
#include "reference/families.h"

#include <math.h>

/* The numbers that a formula uses. Only lr depends on the element: each group of parameters has its own lr. */
typedef struct rule {
    const vkt_optimizer *o;
    double lr, t;
    double product, u, u_next; /* NAdam, with u_i = nadam_momentum(o, i): product = u_1 * .. * u_t, u = u_t,
                                * u_next = u_(t+1). The multiplication ends as soon as `product` is 1e-300 or less */
} rule;

static double nadam_momentum(const vkt_optimizer *o, double t)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, o->momentum_decay * t));
}

static rule rule_of(const vkt_optimizer *o, double lr, uint64_t t)
{
    rule r = { .o = o, .lr = lr, .t = (double)t, .product = 1 };
    if (o->kind != VKT_NADAM) return r;
    for (uint64_t i = 1; i <= t && r.product > 1e-300; i++) r.product *= nadam_momentum(o, (double)i);
    r.u = nadam_momentum(o, r.t);
    r.u_next = nadam_momentum(o, r.t + 1);
    return r;
}

/* ---- the formulas: each function updates the parameter *p; g is its gradient, and *m[i] is its moment i ---- */

static void sgd(const rule *r, double *p, double g, double *const m[3])
{
    const double momentum = (double)r->o->momentum;
    double d = r->o->keras ? r->lr * g : g;
    if (momentum != 0) {
        const bool first = r->t == 1 && !r->o->keras;
        *m[0] = first ? d : momentum * *m[0] + (1 - (double)r->o->dampening) * d;
        d = r->o->nesterov ? d + momentum * *m[0] : *m[0];
    }
    *p -= r->o->keras ? d : r->lr * d;
}

static void adam(const rule *r, double *p, double g, double *const m[3])
{
    const vkt_optimizer *o = r->o;
    const double c1 = 1 - pow(o->beta1, r->t), c2 = 1 - pow(o->beta2, r->t), eps = (double)o->eps;
    *m[0] += (1 - o->beta1) * (g - *m[0]);
    *m[1] = o->beta2 * *m[1] + (1 - o->beta2) * g * g;
    if (o->amsgrad) *m[2] = fmax(*m[2], *m[1]);
    const double v = o->amsgrad ? *m[2] : *m[1];
    if (o->kind == VKT_NADAM) {
        const double ahead = r->u_next * *m[0] / (1 - r->product * r->u_next) + (1 - r->u) * g / (1 - r->product);
        *p -= r->lr * ahead / (sqrt(v / c2) + eps);
    } else if (o->keras) {
        *p -= r->lr * sqrt(c2) / c1 * *m[0] / (sqrt(v) + eps);
    } else {
        *p -= r->lr * (*m[0] / c1) / (sqrt(v / c2) + eps);
    }
}

static void rmsprop(const rule *r, double *p, double g, double *const m[3])
{
    const vkt_optimizer *o = r->o;
    const double eps = (double)o->eps;
    *m[0] = o->alpha * *m[0] + (1 - o->alpha) * g * g;
    double v = *m[0], d;
    if (o->centered) {
        *m[2] = o->alpha * *m[2] + (1 - o->alpha) * g;
        v -= *m[2] * *m[2];
    }
    d = o->keras ? r->lr * g / sqrt(v + eps) : g / (sqrt(v) + eps);
    if (o->momentum != 0) d = *m[1] = (double)o->momentum * *m[1] + d;
    *p -= o->keras ? d : r->lr * d;
}

static void adagrad(const rule *r, double *p, double g, double *const m[3])
{
    const vkt_optimizer *o = r->o;
    const double eps = (double)o->eps, lr = r->lr / (1 + (r->t - 1) * (double)o->lr_decay);
    *m[0] += g * g;
    *p -= o->keras ? lr * g / sqrt(*m[0] + eps) : lr * g / (sqrt(*m[0]) + eps);
}

static bool is_frozen(const double *groups, uint64_t i)
{
    return groups && groups[i / 64 * 2] < 0;
}

double vkt_ref_norm(uint64_t n, const double *g, const double *groups)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!is_frozen(groups, i)) sum += g[i] * g[i];
    return sqrt(sum);
}

void vkt_ref_update(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g,
                    double *const moments[3], const double *groups)
{
    static void (*const move[])(const rule *, double *, double, double *const[3]) = {
        [VKT_SGD] = sgd,    [VKT_ADAM] = adam,       [VKT_ADAMW] = adam,
        [VKT_NADAM] = adam, [VKT_RMSPROP] = rmsprop, [VKT_ADAGRAD] = adagrad
    };
    const rule whole = rule_of(o, lr, t);
    const double clip = o->clip_norm != 0 ? (double)o->clip_norm / (vkt_ref_norm(n, g, groups) + 1e-6) : 1;
    for (uint64_t i = 0; i < n; i++) {
        rule r = whole;
        double decay = (double)o->weight_decay, d = clip < 1 ? clip * g[i] : g[i];
        double *m[3];
        if (is_frozen(groups, i)) continue;
        if (groups) {
            r.lr *= groups[i / 64 * 2];
            decay = groups[i / 64 * 2 + 1];
        }
        for (int k = 0; k < 3; k++) m[k] = moments[k] ? moments[k] + i : NULL;
        if (o->clip_value != 0) d = fmin(fmax(d, -(double)o->clip_value), (double)o->clip_value);
        if (o->decoupled)
            p[i] *= 1 - r.lr * decay;
        else
            d += decay * p[i];
        move[o->kind](&r, &p[i], d, m);
    }
}

/* ---- the ops of optimizers: param, grad, moments, parameter groups -> param, the moments that exist ---- */

static void forward(const vkt_ref_call *c, uint32_t n_moments)
{
    double *moments[3] = { NULL };
    const size_t n = vkt_ref_count(c->in[0].shape);
    uint32_t out = 0;
    memcpy(c->out[out++].f, c->in[0].f, n * sizeof(double));
    for (uint32_t i = 0; i < n_moments; i++) {
        if (!c->in[2 + i].f) continue;
        moments[i] = c->out[out++].f;
        memcpy(moments[i], c->in[2 + i].f, n * sizeof(double));
    }
    vkt_ref_update(c->attr, c->lr, c->t, n, c->out[0].f, c->in[1].f, moments, c->in[2 + n_moments].f);
}

static void forward1(const vkt_ref_call *c)
{
    forward(c, 1);
}

static void forward3(const vkt_ref_call *c)
{
    forward(c, 3);
}

const vkt_ref_op vkt_ref_op_sgd = { "sgd", 2, forward1, NULL };
const vkt_ref_op vkt_ref_op_adam = { "adam", 4, forward3, NULL };
const vkt_ref_op vkt_ref_op_rmsprop = { "rmsprop", 4, forward3, NULL };
const vkt_ref_op vkt_ref_op_adagrad = { "adagrad", 2, forward1, NULL };

/* ---- the op publish: published, param, parameter groups -> published ---- */

static void publish_forward(const vkt_ref_call *c)
{
    const vkt_publish_attr *a = c->attr;
    for (size_t i = 0; i < vkt_ref_count(c->in[0].shape); i++) {
        const bool copies = c->t <= 1 || is_frozen(c->in[2].f, i);
        c->out[0].f[i] = copies ? c->in[1].f[i] : a->decay * c->in[0].f[i] + (1 - a->decay) * c->in[1].f[i];
    }
}

const vkt_ref_op vkt_ref_op_publish = { "publish", 1, publish_forward, NULL };
