/* ops/step/optim.c - the optimizers: each kind with its op, which updates the whole parameter arena. optim_common.c has
 * what they have in common. */
#include "ops/step/optim_common.h"

#include "kernel/ids.h"

#include "abi/adagrad.abi.h"
#include "abi/adam.abi.h"
#include "abi/rmsprop.abi.h"
#include "abi/sgd.abi.h"

/* For each kind of optimizer: the op that updates the parameters. */
static const struct {
    const vkt_op *op;
    uint32_t moments; /* the number of moments for which the op has inputs */
} rows[VKT_OPTIMIZER_KIND_COUNT] = {
    [VKT_SGD] = { &vkt_op_sgd, 1 },    [VKT_ADAM] = { &vkt_op_adam, 3 },       [VKT_ADAMW] = { &vkt_op_adam, 3 },
    [VKT_NADAM] = { &vkt_op_adam, 3 }, [VKT_RMSPROP] = { &vkt_op_rmsprop, 3 }, [VKT_ADAGRAD] = { &vkt_op_adagrad, 1 }
};

const vkt_op *vkt_optimizer_op(vkt_optimizer_kind kind, uint32_t *room)
{
    *room = rows[kind].moments;
    return rows[kind].op;
}

static vkt_result infer(vkt_infer *f)
{
    const vkt_op *op = f->n->op;
    const vkt_optimizer *o = f->n->attr;
    VKT_TRY(vkt_optimizer_check(&f->g->host, o));
    VKT_REQUIRE(f, rows[o->kind].op == op, VKT_E_ARG, "%s: kind %d is updated by %s", op->name, (int)o->kind,
                rows[o->kind].op->name);
    return vkt_optim_infer(f);
}

/* ---- sgd (moments: buf of sgd.comp if momentum is not 0, else none) ---- */

static void sgd_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    vkt_sgd_push push = { VKT_OPTIM_PUSH(o), .momentum = o->momentum, .keep = (float)(1.0 - (double)o->dampening),
                          .nesterov = o->nesterov, .keras = o->keras };
    vkt_optim_emit(n, e, o->momentum != 0 ? VKT_K_SGD_MOMENTUM : VKT_K_SGD, &push, sizeof push, 0);
}

static void sgd_sample(vkt_rng *r, vkt_case *c)
{
    vkt_optimizer o = { .kind = VKT_SGD, .keras = vkt_rng_range(r, 0, 1) != 0 };
    if (vkt_rng_range(r, 0, 2)) o.momentum = vkt_rng_uniform(r, 0.1f, 0.99f);
    if (o.momentum != 0 && vkt_rng_range(r, 0, 1))
        o.nesterov = true;
    else if (!o.keras)
        o.dampening = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 1) : 0;
    vkt_optim_sample(r, c, &o, (const float[][2]){ { -1, 1 } }, 1);
}

static double sgd_flops(const vkt_node *n)
{
    const vkt_optimizer *o = n->attr;
    return vkt_elements_in(n, 0) * (2 + vkt_optim_flops(o) + 3 * (o->momentum != 0) + 2 * o->nesterov);
}

static const vkt_field sgd_fields[] = { VKT_OPTIM_FIELDS(VKT_SGD),
                                        VKT_FIELD(vkt_optimizer, momentum, F32, 1, 0),
                                        VKT_FIELD(vkt_optimizer, dampening, F32, 1, 0),
                                        VKT_FIELD(vkt_optimizer, nesterov, BOOL, 1, 0),
                                        { .name = NULL } };

const vkt_op vkt_op_sgd = {
    .name = "sgd",
    .min_in = 2,
    .max_in = 5,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = infer,
    .emit = sgd_emit,
    .sample = sgd_sample,
    .rel_tol = 2e-6f,
    .abs_tol = 2e-6f,
    .tol_why =
        "at most 10 roundings of terms no larger than the largest result, 6e-7; where the norm is clipped, it has "
        "some 20 roundings more, of which the root leaves half",
    .flops = sgd_flops,
    .fields = sgd_fields,
    .formula = "buf = t == 1 ? g : mom buf + (1 - damp) g; p -= lr (nesterov ? g + mom buf : buf)",
};

/* ---- adam (moments: m and v; with amsgrad also the largest v) ---- */

static void adam_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    const bool nadam = o->kind == VKT_NADAM;
    vkt_adam_push push = { VKT_OPTIM_PUSH(o),
                           .beta1 = (float)o->beta1,
                           .one_minus_beta1 = (float)(1.0 - o->beta1),
                           .beta2 = (float)o->beta2,
                           .one_minus_beta2 = (float)(1.0 - o->beta2),
                           .eps = o->eps,
                           .keras = o->keras && !nadam }; /* NAdam has the same form with and without keras */
    vkt_optim_emit(n, e, o->amsgrad ? VKT_K_ADAM_AMSGRAD : VKT_K_ADAM, &push, sizeof push, nadam);
}

static void adam_sample(vkt_rng *r, vkt_case *c)
{
    vkt_optimizer o = { .kind = (vkt_optimizer_kind)vkt_rng_range(r, VKT_ADAM, VKT_NADAM), /* ADAM, ADAMW or NADAM */
                        .keras = vkt_rng_range(r, 0, 1) != 0,
                        .beta1 = (double)vkt_rng_uniform(r, 0.5f, 0.95f),
                        .beta2 = (double)vkt_rng_uniform(r, 0.9f, 0.9999f),
                        .momentum_decay = vkt_rng_range(r, 0, 1) ? 4e-3 : 1,
                        .eps = vkt_rng_range(r, 0, 1) ? 1e-8f : 1e-3f };
    o.amsgrad = o.kind != VKT_NADAM && vkt_rng_range(r, 0, 2) == 0;
    vkt_optim_sample(r, c, &o, (const float[][2]){ { -1, 1 }, { 1e-3f, 1 }, { 1e-3f, 1 } }, 3);
}

/* Counts per element: 3 operations for each of two moments, a square, and six operations of the step (root, division,
 * sum, division, product, difference). NAdam needs 2 more, amsgrad 1 more. */
static double adam_flops(const vkt_node *n)
{
    const vkt_optimizer *o = n->attr;
    return vkt_elements_in(n, 0) * (13 + vkt_optim_flops(o) + 2 * (o->kind == VKT_NADAM) + o->amsgrad);
}

static const vkt_field adam_fields[] = { VKT_OPTIM_FIELDS(VKT_ADAM),
                                         VKT_FIELD(vkt_optimizer, beta1, F64, 1, 0.9),
                                         VKT_FIELD(vkt_optimizer, beta2, F64, 1, 0.999),
                                         VKT_FIELD(vkt_optimizer, amsgrad, BOOL, 1, 0),
                                         VKT_FIELD(vkt_optimizer, momentum_decay, F64, 1, 4e-3),
                                         VKT_FIELD(vkt_optimizer, eps, F32, 1, 1e-8f),
                                         { .name = NULL } };

const vkt_op vkt_op_adam = {
    .name = "adam",
    .min_in = 4,
    .max_in = 7,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = infer,
    .emit = adam_emit,
    .sample = adam_sample,
    .rel_tol = 4e-6f,
    .abs_tol = 4e-6f,
    .tol_why =
        "m and v: 3 roundings each, v a sum of terms >= 0; the step: two square roots and five divisions of 3 ulp "
        "each (Vulkan spec) and 8 roundings, below 30 ulp = 1.8e-6 of the step; a norm that is clipped: 1.2e-6 more",
    .flops = adam_flops,
    .fields = adam_fields,
    .formula = "m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps); "
               "amsgrad: of the largest v",
};

/* ---- rmsprop (moments: mean square; buf of rmsprop.comp if momentum is not 0; mean gradient if centered) ---- */

static void rmsprop_emit(const vkt_node *n, vkt_emit *e)
{
    static const uint16_t kernels[2][2] = { { VKT_K_RMSPROP, VKT_K_RMSPROP_MOMENTUM },
                                            { VKT_K_RMSPROP_CENTERED, VKT_K_RMSPROP_CENTERED_MOMENTUM } };
    const vkt_optimizer *o = n->attr;
    vkt_rmsprop_push push = { VKT_OPTIM_PUSH(o),
                              .alpha = (float)o->alpha,
                              .one_minus_alpha = (float)(1.0 - o->alpha),
                              .momentum = o->momentum,
                              .eps = o->eps,
                              .keras = o->keras };
    vkt_optim_emit(n, e, kernels[o->centered][o->momentum != 0], &push, sizeof push, 0);
}

static void rmsprop_sample(vkt_rng *r, vkt_case *c)
{
    vkt_optimizer o = { .kind = VKT_RMSPROP,
                        .keras = vkt_rng_range(r, 0, 1) != 0,
                        .momentum = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0.1f, 0.99f) : 0,
                        .centered = vkt_rng_range(r, 0, 1) != 0,
                        .alpha = (double)vkt_rng_uniform(r, 0.8f, 0.99f),
                        .eps = vkt_rng_range(r, 0, 1) ? 1e-8f : 1e-3f };
    vkt_optim_sample(r, c, &o, (const float[][2]){ { 0.5f, 1 }, { -1, 1 }, { -0.5f, 0.5f } }, 3);
}

static double rmsprop_flops(const vkt_node *n)
{
    const vkt_optimizer *o = n->attr;
    return vkt_elements_in(n, 0) * (9 + vkt_optim_flops(o) + 2 * (o->momentum != 0) + 5 * o->centered);
}

static const vkt_field rmsprop_fields[] = { VKT_OPTIM_FIELDS(VKT_RMSPROP),
                                            VKT_FIELD(vkt_optimizer, momentum, F32, 1, 0),
                                            VKT_FIELD(vkt_optimizer, centered, BOOL, 1, 0),
                                            VKT_FIELD(vkt_optimizer, alpha, F64, 1, 0.99),
                                            VKT_FIELD(vkt_optimizer, eps, F32, 1, 1e-8f),
                                            { .name = NULL } };

const vkt_op vkt_op_rmsprop = {
    .name = "rmsprop",
    .min_in = 3,
    .max_in = 7,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = infer,
    .emit = rmsprop_emit,
    .sample = rmsprop_sample,
    .rel_tol = 4e-6f,
    .abs_tol = 4e-6f,
    .tol_why =
        "v - a^2 is at least a third of v in the samples: 6 roundings times 4, of which the root leaves half; a root "
        "and a division of 3 ulp each (Vulkan spec), 6 roundings: 24 ulp = 1.4e-6; a norm that is clipped: 1.2e-6",
    .flops = rmsprop_flops,
    .fields = rmsprop_fields,
    .formula = "v = a v + (1-a) g^2; buf = mom buf + g / (sqrt(v) + eps); p -= lr buf",
};

/* ---- adagrad (moments: sum of squares) ---- */

static void adagrad_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    vkt_adagrad_push push = { VKT_OPTIM_PUSH(o), .lr_decay = o->lr_decay, .eps = o->eps, .keras = o->keras };
    vkt_optim_emit(n, e, VKT_K_ADAGRAD, &push, sizeof push, 0);
}

static void adagrad_sample(vkt_rng *r, vkt_case *c)
{
    vkt_optimizer o = { .kind = VKT_ADAGRAD,
                        .keras = vkt_rng_range(r, 0, 1) != 0,
                        .eps = vkt_rng_range(r, 0, 1) ? 1e-10f : 1e-3f };
    if (!o.keras && vkt_rng_range(r, 0, 1)) o.lr_decay = vkt_rng_uniform(r, 0, 0.1f);
    vkt_optim_sample(r, c, &o, (const float[][2]){ { 1e-3f, 1 } }, 1);
}

static double adagrad_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * (7 + vkt_optim_flops(n->attr));
}

static const vkt_field adagrad_fields[] = { VKT_OPTIM_FIELDS(VKT_ADAGRAD),
                                            VKT_FIELD(vkt_optimizer, lr_decay, F32, 1, 0),
                                            VKT_FIELD(vkt_optimizer, eps, F32, 1, 1e-10f),
                                            { .name = NULL } };

const vkt_op vkt_op_adagrad = {
    .name = "adagrad",
    .min_in = 3,
    .max_in = 5,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = infer,
    .emit = adagrad_emit,
    .sample = adagrad_sample,
    .rel_tol = 4e-6f,
    .abs_tol = 4e-6f,
    .tol_why =
        "s: 2 roundings, a sum of terms >= 0; a root and two divisions of 3 ulp each (Vulkan spec) and 6 roundings: "
        "16 ulp = 1e-6 of the step; a norm that is clipped: 1.2e-6 more",
    .flops = adagrad_flops,
    .fields = adagrad_fields,
    .formula = "s += g^2; p -= lr / (1 + (t-1) lr_decay) g / (sqrt(s) + eps)",
};
