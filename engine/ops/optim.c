/* ops/optim.c - optimizers over the whole parameter arena: param, grad, moments, step -> param and moments, in place.
 *
 * Arenas are windows of one size: parameter i, its gradient and its moments lie at the same offset, and padding between
 * parameters is zero in all four (zero gradient and zero moments keep it zero), so one elementwise kernel serves any
 * number of parameters.
 *
 * Where the loss is scaled, two dispatches come first: one looks for gradients that are not finite, one settles the
 * optimizer's clock and the next scale. The update takes the scale out again, or does nothing. */
#include "ops/ops.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/adam.abi.h"
#include "abi/loss_scale.abi.h"
#include "abi/overflow.abi.h"
#include "abi/sgd.abi.h"

/* Both rows: `moments` inputs follow param and grad, all of one shape; param and the moments come out in place. */
static vkt_result infer(vkt_infer *f, uint32_t moments)
{
    const vkt_shape s = vkt_in(f, 0)->shape;
    for (uint32_t i = 0; i < 2 + moments; i++) {
        const vkt_value *v = vkt_in(f, i);
        char want[80], got[80];
        VKT_REQUIRE(f, vkt_has(f, i) && v->dtype == VKT_F32 && v->layout == VKT_ROWS && vkt_shape_equal(v->shape, s),
                    v->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want input %u f32 %s by rows, got %s %s",
                    f->n->op->name, i, vkt_shape_text(s, want), vkt_dtype_name(v->dtype),
                    vkt_shape_text(v->shape, got));
    }
    VKT_REQUIRE(f, vkt_shape_elements(s) % 4 == 0, VKT_E_SHAPE, "%s: want an arena of whole vec4s, got %llu elements",
                f->n->op->name, (unsigned long long)vkt_shape_elements(s));
    vkt_out_alias(f, 0, VKT_ROWS, s);
    for (uint32_t i = 0; i < moments; i++) vkt_out_alias(f, 2 + i, VKT_ROWS, s);
    return VKT_OK;
}

/* One dispatch for each window that a binding can hold. The push block starts with n4; bindings in the mask `windows`
 * move with the window. */
static void emit_windows(const vkt_node *n, vkt_emit *e, uint16_t kernel, vkt_bind *bind, uint32_t n_bind,
                         uint32_t windows, void *push, size_t push_bytes)
{
    const uint64_t total = vkt_node_in(n, 0)->bytes,
                   most = e->lim->max_storage_range_bytes & ~(uint64_t)(VKT_ALIGN_BYTES - 1);
    const uint32_t lanes = e->lim->cpu ? e->lim->subgroup_size : 128;
    const uint32_t max_groups = e->lim->cpu ? 256 : 4096, per_lane = e->lim->cpu ? 16 : 2;
    for (uint64_t at = 0; at < total; at += most) {
        const uint64_t bytes = VKT_MIN(total - at, most);
        for (uint32_t i = 0; i < n_bind; i++)
            if (windows >> i & 1 && bind[i].t.id) {
                bind[i].offset_bytes = at;
                bind[i].bytes = bytes;
            }
        const uint32_t n4 = (uint32_t)(bytes / 16), spec[] = { lanes, e->scaled };
        memcpy(push, &n4, sizeof n4);
        vkt_dispatch_add(e, kernel, bind, n_bind, push, push_bytes, spec, VKT_COUNT(spec),
                         VKT_MIN(vkt_groups(n4, lanes, per_lane), max_groups), 1, 1);
    }
}

static void settle_step(const vkt_node *n, vkt_emit *e)
{
    if (!e->scaled) return;
    const vkt_tensor grad = n->in[1], step = n->in[n->n_in - 1];
    vkt_overflow_push push;
    vkt_bind look[] = { [OVERFLOW_GRAD] = VKT_WHOLE(grad), [OVERFLOW_STEP] = VKT_WHOLE(step) };
    emit_windows(n, e, VKT_K_OVERFLOW, look, VKT_COUNT(look), 1u << OVERFLOW_GRAD, &push, sizeof push);
    const vkt_bind bind[] = { [LOSS_SCALE_CLOCK] = VKT_WHOLE(e->g->clock), [LOSS_SCALE_STEP] = VKT_WHOLE(step) };
    const uint32_t spec[] = { 1 };
    vkt_dispatch_add(e, VKT_K_LOSS_SCALE, bind, VKT_COUNT(bind), NULL, 0, spec, VKT_COUNT(spec), 1, 1, 1);
}

/* ---- sgd: param, grad, buf (absent without momentum), step ---- */

static vkt_result sgd_infer(vkt_infer *f)
{
    const vkt_optimizer *o = f->n->attr;
    return infer(f, o->momentum != 0);
}

static void sgd_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    const bool momentum = o->momentum != 0;
    vkt_sgd_push push = { .weight_decay = o->weight_decay,
                          .momentum = o->momentum,
                          .keep = (float)(1.0 - (double)o->dampening),
                          .nesterov = o->nesterov };
    vkt_bind bind[] = {
        [SGD_PARAM] = VKT_WHOLE(n->in[0]), [SGD_GRAD] = VKT_WHOLE(n->in[1]),      [SGD_BUF] = VKT_WHOLE(n->in[2]),
        [SGD_STEP] = VKT_WHOLE(n->in[3]),  [SGD_PARAM_OUT] = VKT_WHOLE(n->in[0]), [SGD_BUF_OUT] = VKT_WHOLE(n->in[2])
    };
    if (!momentum) bind[SGD_BUF].t = bind[SGD_BUF_OUT].t = (vkt_tensor){ 0 };
    settle_step(n, e);
    emit_windows(n, e, momentum ? VKT_K_SGD_MOMENTUM : VKT_K_SGD, bind, momentum ? VKT_COUNT(bind) : SGD_BUF_OUT,
                 ~(1u << SGD_STEP), &push, sizeof push);
}

static void sgd_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_shape1(4 * vkt_rng_range(r, 1, 1500));
    vkt_optimizer o = { .kind = VKT_SGD, .weight_decay = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 0.1f) : 0 };
    if (vkt_rng_range(r, 0, 2)) o.momentum = vkt_rng_uniform(r, 0.1f, 0.99f);
    if (o.momentum != 0 && vkt_rng_range(r, 0, 1))
        o.nesterov = true;
    else
        o.dampening = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 1) : 0;
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    if (o.momentum != 0) vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_attr(c, &o, sizeof o);
}

static double sgd_flops(const vkt_node *n)
{
    const vkt_optimizer *o = n->attr;
    return vkt_elements_in(n, 0) * (2 + 2 * (o->weight_decay != 0) + 3 * (o->momentum != 0) + 2 * o->nesterov);
}

static const vkt_field sgd_fields[] = { VKT_FIELD(vkt_optimizer, weight_decay, F32, 1, 0),
                                        VKT_FIELD(vkt_optimizer, momentum, F32, 1, 0),
                                        VKT_FIELD(vkt_optimizer, dampening, F32, 1, 0),
                                        VKT_FIELD(vkt_optimizer, nesterov, BOOL, 1, 0),
                                        { .name = NULL } };

const vkt_op vkt_op_sgd = {
    .name = "sgd",
    .min_in = 2,
    .max_in = 3,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = sgd_infer,
    .emit = sgd_emit,
    .sample = sgd_sample,
    .rel_tol = 1e-6f,
    .abs_tol = 1e-6f,
    .tol_why = "at most 8 roundings of terms no larger than the largest result: 8 * 2^-24 = 5e-7",
    .flops = sgd_flops,
    .fields = sgd_fields,
    .formula = "g += wd p; buf = t == 1 ? g : mom buf + (1 - damp) g; p -= lr (nesterov ? g + mom buf : buf)",
};

/* ---- adam: param, grad, moment1, moment2, step ---- */

static vkt_result adam_infer(vkt_infer *f)
{
    return infer(f, 2);
}

static void adam_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    vkt_adam_push push = { .weight_decay = o->weight_decay,
                           .beta1 = (float)o->beta1,
                           .one_minus_beta1 = (float)(1.0 - o->beta1),
                           .beta2 = (float)o->beta2,
                           .one_minus_beta2 = (float)(1.0 - o->beta2),
                           .eps = o->eps,
                           .keras = o->keras };
    vkt_bind bind[] = { [ADAM_PARAM] = VKT_WHOLE(n->in[0]),       [ADAM_GRAD] = VKT_WHOLE(n->in[1]),
                        [ADAM_MOMENT1] = VKT_WHOLE(n->in[2]),     [ADAM_MOMENT2] = VKT_WHOLE(n->in[3]),
                        [ADAM_STEP] = VKT_WHOLE(n->in[4]),        [ADAM_PARAM_OUT] = VKT_WHOLE(n->in[0]),
                        [ADAM_MOMENT1_OUT] = VKT_WHOLE(n->in[2]), [ADAM_MOMENT2_OUT] = VKT_WHOLE(n->in[3]) };
    settle_step(n, e);
    emit_windows(n, e, VKT_K_ADAM, bind, VKT_COUNT(bind), ~(1u << ADAM_STEP), &push, sizeof push);
}

static void adam_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_shape1(4 * vkt_rng_range(r, 1, 1500));
    const vkt_optimizer o = { .kind = VKT_ADAM,
                              .weight_decay = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 0.1f) : 0,
                              .beta1 = (double)vkt_rng_uniform(r, 0.5f, 0.95f),
                              .beta2 = (double)vkt_rng_uniform(r, 0.9f, 0.9999f),
                              .eps = vkt_rng_range(r, 0, 1) ? 1e-8f : 1e-3f,
                              .keras = vkt_rng_range(r, 0, 1) != 0 };
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_f32(c, VKT_ROWS, s, 1e-3f, 1);
    vkt_case_attr(c, &o, sizeof o);
}

/* Both moments 3 each and a square; root, division, sum, division, product and difference of the step. */
static double adam_flops(const vkt_node *n)
{
    const vkt_optimizer *o = n->attr;
    return vkt_elements_in(n, 0) * (13 + 2 * (o->weight_decay != 0));
}

static const vkt_field adam_fields[] = { VKT_FIELD(vkt_optimizer, kind, U32, 1, VKT_ADAM),
                                         VKT_FIELD(vkt_optimizer, weight_decay, F32, 1, 0),
                                         VKT_FIELD(vkt_optimizer, beta1, F64, 1, 0.9),
                                         VKT_FIELD(vkt_optimizer, beta2, F64, 1, 0.999),
                                         VKT_FIELD(vkt_optimizer, eps, F32, 1, 1e-8f),
                                         VKT_FIELD(vkt_optimizer, keras, BOOL, 1, 0),
                                         { .name = NULL } };

const vkt_op vkt_op_adam = {
    .name = "adam",
    .min_in = 4,
    .max_in = 4,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_optimizer),
    .infer = adam_infer,
    .emit = adam_emit,
    .sample = adam_sample,
    .rel_tol = 2e-6f,
    .abs_tol = 2e-6f,
    .tol_why =
        "m and v: 3 roundings each, v a sum of terms >= 0; the step: two square roots and three divisions of 3 ulp "
        "each (Vulkan spec) and 4 roundings, below 20 ulp = 1.2e-6 of the step",
    .flops = adam_flops,
    .fields = adam_fields,
    .formula = "m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)",
};

/* ---- vkt_update ---- */

static bool is_fraction(double x)
{
    return x >= 0 && x < 1;
}

/* Fills in defaults; VKT_E_ARG names what does not fit. */
static vkt_result resolve(vkt_graph *g, const vkt_optimizer *from, vkt_optimizer *o)
{
    const vkt_host *h = &g->host;
    *o = *from;
    if (o->kind != VKT_SGD && o->kind != VKT_ADAM)
        return vkt_fail(h, VKT_E_ARG, "update: unknown kind %d", (int)o->kind);
    if (!(o->weight_decay >= 0) || isinf(o->weight_decay))
        return vkt_fail(h, VKT_E_ARG, "update: want weight_decay >= 0, got %g", (double)o->weight_decay);
    if (o->kind == VKT_SGD) {
        if (!(o->momentum >= 0) || isinf(o->momentum))
            return vkt_fail(h, VKT_E_ARG, "sgd: want momentum >= 0, got %g", (double)o->momentum);
        if (!isfinite(o->dampening)) return vkt_fail(h, VKT_E_ARG, "sgd: want a finite dampening");
        if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
            return vkt_fail(h, VKT_E_ARG, "sgd: nesterov wants momentum > 0 and dampening 0, got %g and %g",
                            (double)o->momentum, (double)o->dampening);
        return VKT_OK;
    }
    if (o->beta1 == 0) o->beta1 = 0.9;
    if (o->beta2 == 0) o->beta2 = 0.999;
    if (o->eps == 0) o->eps = o->keras ? 1e-7f : 1e-8f;
    if (!is_fraction(o->beta1) || !is_fraction(o->beta2))
        return vkt_fail(h, VKT_E_ARG, "adam: want betas in [0,1), got %g and %g", o->beta1, o->beta2);
    if (!(o->eps > 0) || isinf(o->eps)) return vkt_fail(h, VKT_E_ARG, "adam: want eps > 0, got %g", (double)o->eps);
    return VKT_OK;
}

static vkt_result update(vkt_graph *g, const vkt_optimizer *o)
{
    VKT_TRY(g->status);
    if (!o) return vkt_fail(&g->host, VKT_E_ARG, "update: want an optimizer, got NULL");
    if (g->has_optimizer) return vkt_fail(&g->host, VKT_E_STATE, "update: this graph has its update already");
    if (!g->arena[VKT_ROLE_GRAD - VKT_ROLE_PARAM].id)
        return vkt_fail(&g->host, VKT_E_STATE, "update: there are no gradients; call vkt_backward first");
    VKT_TRY(resolve(g, o, &g->optimizer));
    g->has_optimizer = true;
    const bool adam = o->kind == VKT_ADAM, moment1 = adam || o->momentum != 0;
    const vkt_tensor none = { 0 };
    const vkt_tensor in[] = { vkt_graph_arena(g, VKT_ROLE_PARAM), vkt_graph_arena(g, VKT_ROLE_GRAD),
                              moment1 ? vkt_graph_arena(g, VKT_ROLE_MOMENT1) : none,
                              adam ? vkt_graph_arena(g, VKT_ROLE_MOMENT2) : none };
    vkt_apply(g, adam ? &vkt_op_adam : &vkt_op_sgd, in, 2u + moment1 + adam, &g->optimizer, NULL);
    return g->status;
}

vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o)
{
    const vkt_result r = update(g, o);
    if (r != VKT_OK) vkt_graph_error(g, r);
    return r;
}
