/* ops/step/update.c - vkt_update and what belongs to it: defaults and presets, groups and freezing, the clock's rates.
 */
#include "ops/ops.h"

#include <math.h>

#include "base/fixed.h"

#include "abi/update.abi.h"

_Static_assert(UPDATE_BLOCK * sizeof(float) == VKT_ALIGN_BYTES, "each parameter starts at a block of its own");
_Static_assert((int)VKT_ROLE_PUBLISHED - (int)VKT_ROLE_PARAM == (int)VKT_PART_PUBLISHED &&
                   VKT_PART_PUBLISHED + 1 == VKT_ARENAS,
               "roles and parts of a store have one order");

/* ---- defaults ---- */

/* By kind; [1] with `keras`. Zero: the optimizer has none. */
typedef struct defaults {
    double beta1, beta2, alpha, momentum_decay;
    float weight_decay, initial_accumulator, eps, lr;
} defaults;

static const defaults table[VKT_OPTIMIZER_KIND_COUNT][2] = {
    [VKT_SGD] = { { .lr = 1e-3f }, { .lr = 1e-2f } },
    [VKT_ADAM] = { { .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8f, .lr = 1e-3f },
                   { .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7f, .lr = 1e-3f } },
    [VKT_ADAMW] = { { .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 1e-2f, .eps = 1e-8f, .lr = 1e-3f },
                    { .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 4e-3f, .eps = 1e-7f, .lr = 1e-3f } },
    [VKT_NADAM] = { { .beta1 = 0.9, .beta2 = 0.999, .momentum_decay = 4e-3, .eps = 1e-8f, .lr = 2e-3f },
                    { .beta1 = 0.9, .beta2 = 0.999, .momentum_decay = 1, .eps = 1e-7f, .lr = 1e-3f } },
    [VKT_RMSPROP] = { { .alpha = 0.99, .eps = 1e-8f, .lr = 1e-2f }, { .alpha = 0.9, .eps = 1e-7f, .lr = 1e-3f } },
    [VKT_ADAGRAD] = { { .eps = 1e-10f, .lr = 1e-2f }, { .initial_accumulator = 0.1f, .eps = 1e-7f, .lr = 1e-3f } },
};

static bool is_kind(vkt_optimizer_kind kind)
{
    return (unsigned)kind < VKT_OPTIMIZER_KIND_COUNT;
}

/* Replaces each zero by the default of the kind, and each VKT_ZERO by zero. */
static void fill_in(vkt_optimizer *o)
{
    const defaults *d = &table[o->kind][o->keras];
    float *const plain[] = { &o->momentum, &o->dampening, &o->lr_decay, &o->clip_norm, &o->clip_value };
    for (size_t i = 0; i < VKT_COUNT(plain); i++) *plain[i] = vkt_or_f32(*plain[i], 0);
    o->weight_decay = vkt_or_f32(o->weight_decay, d->weight_decay);
    if (o->kind == VKT_ADAMW) o->decoupled = true;
    o->beta1 = vkt_or(o->beta1, d->beta1);
    o->beta2 = vkt_or(o->beta2, d->beta2);
    o->alpha = vkt_or(o->alpha, d->alpha);
    o->momentum_decay = vkt_or(o->momentum_decay, d->momentum_decay);
    o->initial_accumulator = vkt_or_f32(o->initial_accumulator, d->initial_accumulator);
    o->eps = vkt_or_f32(o->eps, d->eps);
    if (o->micro_batches == 0) o->micro_batches = 1;
    for (int i = 0; i < VKT_PARAM_GROUPS; i++) {
        o->groups[i].lr_factor = vkt_or_f32(o->groups[i].lr_factor, 1);
        o->groups[i].weight_decay = vkt_or_f32(o->groups[i].weight_decay, 0);
    }
}

vkt_optimizer vkt_optimizer_preset(vkt_optimizer_kind kind, vkt_preset preset)
{
    const bool keras = preset != VKT_PRESET_TORCH;
    vkt_optimizer o = { .kind = kind, .keras = keras, .decoupled = keras }; /* Keras' weight_decay is, for every kind */
    if (preset == VKT_PRESET_TF_KERAS && kind == VKT_NADAM) o.momentum_decay = 4e-3;
    if (is_kind(kind)) fill_in(&o);
    return o;
}

float vkt_optimizer_lr(vkt_optimizer_kind kind, vkt_preset preset)
{
    return is_kind(kind) ? table[kind][preset != VKT_PRESET_TORCH].lr : 0;
}

/* ---- what is refused ---- */

static bool is_size(float x)
{
    return x >= 0 && isfinite(x);
}

static bool is_fraction(double x)
{
    return x >= 0 && x < 1;
}

static vkt_result check_sgd(const vkt_host *h, const vkt_optimizer *o)
{
    if (!isfinite(o->dampening)) return vkt_fail(h, VKT_E_ARG, "sgd: want a finite dampening");
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return vkt_fail(h, VKT_E_ARG, "sgd: nesterov wants momentum > 0 and dampening 0, got %g and %g",
                        (double)o->momentum, (double)o->dampening);
    if (o->keras && o->dampening != 0) return vkt_fail(h, VKT_E_ARG, "sgd: Keras' has no dampening");
    return VKT_OK;
}

/* What only some kinds have. */
static vkt_result check_kind(const vkt_host *h, const vkt_optimizer *o)
{
    if (!is_size(o->momentum)) return vkt_fail(h, VKT_E_ARG, "update: want momentum >= 0, got %g", (double)o->momentum);
    if (o->kind == VKT_SGD) return check_sgd(h, o);
    if (!is_fraction(o->beta1) || !is_fraction(o->beta2))
        return vkt_fail(h, VKT_E_ARG, "update: want betas in [0,1), got %g and %g", o->beta1, o->beta2);
    if (!is_fraction(o->alpha)) return vkt_fail(h, VKT_E_ARG, "update: want alpha in [0,1), got %g", o->alpha);
    if (!(o->momentum_decay >= 0 && o->momentum_decay <= 1000)) /* 0.96^1000 is 2^-59: see base/fixed.h */
        return vkt_fail(h, VKT_E_ARG, "update: want momentum_decay from 0 to 1000, got %g", o->momentum_decay);
    if (!is_size(o->lr_decay) || !is_size(o->initial_accumulator))
        return vkt_fail(h, VKT_E_ARG, "update: want lr_decay and initial_accumulator >= 0, got %g and %g",
                        (double)o->lr_decay, (double)o->initial_accumulator);
    if (o->keras && o->lr_decay != 0) return vkt_fail(h, VKT_E_ARG, "adagrad: Keras' has no lr_decay");
    if (!(o->eps > 0) || isinf(o->eps)) return vkt_fail(h, VKT_E_ARG, "update: want eps > 0, got %g", (double)o->eps);
    return VKT_OK;
}

static vkt_result check(const vkt_host *h, const vkt_optimizer *o)
{
    if (!is_kind(o->kind)) return vkt_fail(h, VKT_E_ARG, "update: unknown kind %d", (int)o->kind);
    if (o->amsgrad && o->kind != VKT_ADAM && o->kind != VKT_ADAMW)
        return vkt_fail(h, VKT_E_ARG, "update: amsgrad wants the kind VKT_ADAM or VKT_ADAMW, got %d", (int)o->kind);
    if (!is_size(o->weight_decay))
        return vkt_fail(h, VKT_E_ARG, "update: want weight_decay >= 0, got %g", (double)o->weight_decay);
    if (!is_size(o->clip_norm) || !is_size(o->clip_value) || (o->clip_norm != 0 && o->clip_value != 0))
        return vkt_fail(h, VKT_E_ARG, "update: want clip_norm or clip_value > 0, or neither, got %g and %g",
                        (double)o->clip_norm, (double)o->clip_value);
    for (int i = 0; i < VKT_PARAM_GROUPS; i++)
        if (!is_size(o->groups[i].lr_factor) || !is_size(o->groups[i].weight_decay))
            return vkt_fail(h, VKT_E_ARG, "update: group %d: want lr_factor and weight_decay >= 0, got %g and %g", i,
                            (double)o->groups[i].lr_factor, (double)o->groups[i].weight_decay);
    return check_kind(h, o);
}

/* ---- groups and freezing ---- */

typedef struct mark {
    bool freeze;
    uint8_t group;
} mark;

static vkt_result mark_params(vkt_graph *g, const char *pattern, mark m, const char *what)
{
    size_t found = 0;
    for (size_t i = 0; i < g->n_params; i++) {
        vkt_value *v = &g->values[g->params[i]];
        if (v->state || !vkt_name_matches(pattern, v->name)) continue;
        found++;
        if (m.freeze)
            v->frozen = true;
        else
            v->group = m.group;
    }
    return found ? VKT_OK : vkt_fail(&g->host, VKT_E_NOT_FOUND, "%s: no parameter is named '%s'", what, pattern);
}

vkt_result vkt_set_group(vkt_graph *g, const char *pattern, uint32_t group)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, pattern);
    vkt_result r = g->status;
    if (r == VKT_OK && g->has_optimizer)
        r = vkt_fail(&g->host, VKT_E_STATE, "set_group: groups are told before vkt_update");
    if (r == VKT_OK && group >= VKT_PARAM_GROUPS)
        r = vkt_fail(&g->host, VKT_E_ARG, "set_group: want a group below %d, got %u", VKT_PARAM_GROUPS, group);
    if (r == VKT_OK) r = mark_params(g, pattern, (mark){ .group = (uint8_t)(group + 1) }, "set_group");
    vkt_graph_error(g, r);
    return r;
}

vkt_result vkt_freeze(vkt_graph *g, const char *pattern)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, pattern);
    vkt_result r = g->status;
    if (r == VKT_OK && g->arena[VKT_PART_GRADIENT].id)
        r = vkt_fail(&g->host, VKT_E_STATE, "freeze: parameters are frozen before vkt_backward");
    if (r == VKT_OK) r = mark_params(g, pattern, (mark){ .freeze = true }, "freeze");
    vkt_graph_error(g, r);
    return r;
}

/* Makes the table of groups of abi/update.abi.h; null if all parameters have the same settings. */
static vkt_tensor make_groups(vkt_graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_params; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        any |= vkt_is_fixed(v) || v->group;
    }
    if (!any) return (vkt_tensor){ 0 };
    const uint64_t blocks = g->arena_bytes / VKT_ALIGN_BYTES;
    float(*pairs)[2] = vkt_alloc_array(&g->host, blocks, sizeof *pairs);
    if (!pairs) {
        vkt_graph_error(g, vkt_fail_nomem(&g->host, "parameter groups", blocks * sizeof *pairs));
        return (vkt_tensor){ 0 };
    }
    for (size_t i = 0; i < g->n_params; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        const vkt_optimizer *o = &g->optimizer;
        const vkt_param_group own = { 1, o->weight_decay }, *p = v->group ? &o->groups[v->group - 1] : &own;
        const uint64_t first = v->arena_offset_bytes / VKT_ALIGN_BYTES,
                       n = vkt_round_up(v->bytes, VKT_ALIGN_BYTES) / VKT_ALIGN_BYTES;
        for (uint64_t b = first; b < first + n; b++) {
            pairs[b][0] = vkt_is_fixed(v) ? -1 : p->lr_factor;
            pairs[b][1] = p->weight_decay;
        }
    }
    const vkt_tensor t = vkt_graph_const(g, "groups", VKT_F32, vkt_shape2((uint32_t)blocks, 2), pairs);
    vkt_free(&g->host, pairs);
    return t;
}

/* ---- vkt_update ---- */

vkt_clock_rates vkt_optimizer_rates(const vkt_optimizer *o)
{
    const bool moments = o->kind == VKT_ADAM || o->kind == VKT_ADAMW || o->kind == VKT_NADAM;
    if (!moments) return (vkt_clock_rates){ 0 };
    return (vkt_clock_rates){ .beta1 = vkt_fixed_from_double(o->beta1),
                              .beta2 = vkt_fixed_from_double(o->beta2),
                              .decay = o->kind == VKT_NADAM ? vkt_fixed_from_double(pow(0.96, o->momentum_decay)) : 0 };
}

static const struct {
    const vkt_op *op;
    uint32_t moments; /* room for them in the op's inputs */
} rows[VKT_OPTIMIZER_KIND_COUNT] = {
    [VKT_SGD] = { &vkt_op_sgd, 1 },    [VKT_ADAM] = { &vkt_op_adam, 3 },       [VKT_ADAMW] = { &vkt_op_adam, 3 },
    [VKT_NADAM] = { &vkt_op_adam, 3 }, [VKT_RMSPROP] = { &vkt_op_rmsprop, 3 }, [VKT_ADAGRAD] = { &vkt_op_adagrad, 1 }
};

vkt_result vkt_optimizer_check(const vkt_host *h, const vkt_optimizer *o, const vkt_op *op)
{
    VKT_TRY(check(h, o));
    return rows[o->kind].op == op
               ? VKT_OK
               : vkt_fail(h, VKT_E_ARG, "%s: kind %d is updated by %s", op->name, (int)o->kind, rows[o->kind].op->name);
}

static vkt_result update(vkt_graph *g, const vkt_optimizer *o)
{
    VKT_TRY(g->status);
    if (!o) return vkt_fail(&g->host, VKT_E_ARG, "update: want an optimizer, got NULL");
    if (g->has_optimizer) return vkt_fail(&g->host, VKT_E_STATE, "update: this graph has its update already");
    if (!g->arena[VKT_PART_GRADIENT].id)
        return vkt_fail(&g->host, VKT_E_STATE, "update: there are no gradients; call vkt_backward first");
    g->optimizer = *o;
    if (is_kind(o->kind)) fill_in(&g->optimizer);
    VKT_TRY(check(&g->host, &g->optimizer)); /* before it is a kind of `rows` */
    g->has_optimizer = true;
    static const vkt_role roles[] = { VKT_ROLE_MOMENT1, VKT_ROLE_MOMENT2, VKT_ROLE_MOMENT3 };
    const uint32_t n = rows[o->kind].moments, present = vkt_optimizer_moments(&g->optimizer);
    vkt_tensor in[7] = { vkt_graph_arena(g, VKT_ROLE_PARAM), vkt_graph_arena(g, VKT_ROLE_GRAD) };
    for (uint32_t i = 0; i < n; i++)
        if (present >> i & 1) in[2 + i] = vkt_graph_arena(g, roles[i]);
    in[2 + n] = g->groups = make_groups(g);
    if (g->optimizer.micro_batches > 1) in[3 + n] = vkt_graph_arena(g, VKT_ROLE_GRAD_SUM);
    vkt_apply(g, rows[o->kind].op, in, 4 + n, &g->optimizer, NULL);
    return g->status;
}

vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o)
{
    VKT_WANT(NULL, g);
    const vkt_result r = update(g, o);
    if (r != VKT_OK) vkt_graph_error(g, r);
    return r;
}
