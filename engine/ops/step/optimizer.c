/* ops/step/optimizer.c - the settings of an optimizer: defaults, presets and checks. Also computes from the settings
 * which moments there are, and the decay rates of the clock (vkt_clock_rates in ops/ops.h). */
#include "ops/step/optimizer.h"

#include <math.h>

#include "base/fixed.h"

/* ---- defaults ---- */

/* The defaults of each kind: [0] those of torch, [1] those of Keras. A member is 0 if the default is 0, or if the kind
 * has no such setting. */
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

/* The names in checkpoints and in JSON. */
static const char *const names[VKT_OPTIMIZER_KIND_COUNT] = {
    [VKT_SGD] = "sgd",     [VKT_ADAM] = "adam",       [VKT_ADAMW] = "adamw",
    [VKT_NADAM] = "nadam", [VKT_RMSPROP] = "rmsprop", [VKT_ADAGRAD] = "adagrad"
};

static bool is_kind(vkt_optimizer_kind kind)
{
    return (unsigned)kind < VKT_OPTIMIZER_KIND_COUNT;
}

const char *vkt_optimizer_name(vkt_optimizer_kind kind)
{
    return is_kind(kind) ? names[kind] : NULL;
}

void vkt_optimizer_fill_in(vkt_optimizer *o)
{
    if (!is_kind(o->kind)) return;
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
    vkt_optimizer o = { .kind = kind, .keras = keras, .decoupled = keras }; /* Keras decouples weight_decay for every
                                                                             * kind */
    if (preset == VKT_PRESET_TF_KERAS && kind == VKT_NADAM) o.momentum_decay = 4e-3;
    vkt_optimizer_fill_in(&o);
    return o;
}

float vkt_optimizer_lr(vkt_optimizer_kind kind, vkt_preset preset)
{
    return is_kind(kind) ? table[kind][preset != VKT_PRESET_TORCH].lr : 0;
}

/* ---- checks ---- */

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

/* Checks the settings that only some kinds have. */
static vkt_result check_kind(const vkt_host *h, const vkt_optimizer *o)
{
    if (!is_size(o->momentum)) return vkt_fail(h, VKT_E_ARG, "update: want momentum >= 0, got %g", (double)o->momentum);
    if (o->kind == VKT_SGD) return check_sgd(h, o);
    if (!is_fraction(o->beta1) || !is_fraction(o->beta2))
        return vkt_fail(h, VKT_E_ARG, "update: want betas in [0,1), got %g and %g", o->beta1, o->beta2);
    if (!is_fraction(o->alpha)) return vkt_fail(h, VKT_E_ARG, "update: want alpha in [0,1), got %g", o->alpha);
    /* base/fixed.h stores 0.96^momentum_decay in 64 bits. Even 0.96^1000 is above 2^-59, so it does not become 0. */
    if (!(o->momentum_decay >= 0 && o->momentum_decay <= 1000))
        return vkt_fail(h, VKT_E_ARG, "update: want momentum_decay from 0 to 1000, got %g", o->momentum_decay);
    if (!is_size(o->lr_decay) || !is_size(o->initial_accumulator))
        return vkt_fail(h, VKT_E_ARG, "update: want lr_decay and initial_accumulator >= 0, got %g and %g",
                        (double)o->lr_decay, (double)o->initial_accumulator);
    if (o->keras && o->lr_decay != 0) return vkt_fail(h, VKT_E_ARG, "adagrad: Keras' has no lr_decay");
    if (!(o->eps > 0) || isinf(o->eps)) return vkt_fail(h, VKT_E_ARG, "update: want eps > 0, got %g", (double)o->eps);
    return VKT_OK;
}

vkt_result vkt_optimizer_check(const vkt_host *h, const vkt_optimizer *o)
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

/* ---- numbers that depend on the settings ---- */

uint32_t vkt_optimizer_moments(const vkt_optimizer *o)
{
    switch (o->kind) {
    case VKT_SGD: return o->momentum != 0;
    case VKT_RMSPROP: return 1u | (o->momentum != 0 ? 2u : 0) | (o->centered ? 4u : 0);
    case VKT_ADAGRAD: return 1u;
    case VKT_ADAM:
    case VKT_ADAMW:
    case VKT_NADAM: return 3u | (o->amsgrad ? 4u : 0);
    case VKT_OPTIMIZER_KIND_COUNT: break;
    }
    return 0; /* not a valid kind: vkt_optimizer_check reports it */
}

vkt_clock_rates vkt_optimizer_rates(const vkt_optimizer *o)
{
    const bool moments = o->kind == VKT_ADAM || o->kind == VKT_ADAMW || o->kind == VKT_NADAM;
    if (!moments) return (vkt_clock_rates){ 0 };
    return (vkt_clock_rates){ .beta1 = vkt_fixed_from_double(o->beta1),
                              .beta2 = vkt_fixed_from_double(o->beta2),
                              .decay = o->kind == VKT_NADAM ? vkt_fixed_from_double(pow(0.96, o->momentum_decay)) : 0 };
}
