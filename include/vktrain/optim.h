/* vktrain/optim.h - optimizers: the formulas that change parameters by their gradients. */
#ifndef VKTRAIN_OPTIM_H
#define VKTRAIN_OPTIM_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of an optimizer. The comment of vkt_update has the formulas. ORDER: test cases contain the values of the
 * enumerators, and tests choose a random kind from VKT_ADAM to VKT_NADAM, so add a new kind at the end. */
typedef enum vkt_optimizer_kind {
    VKT_SGD = 0,             /* optional: momentum, dampening, Nesterov's form */
    VKT_ADAM,                /* weight decay is L2, unless vkt_optimizer.decoupled is set */
    VKT_ADAMW,               /* weight decay is always decoupled */
    VKT_NADAM,               /* Adam with Nesterov's momentum */
    VKT_RMSPROP,             /* optional: centered, momentum */
    VKT_ADAGRAD,             /* divides by the root of the sum of all squared gradients so far */
    VKT_OPTIMIZER_KIND_COUNT /* number of kinds */
} vkt_optimizer_kind;

/* Settings for the parameters of one group (vkt_set_group). VKT_ZERO stands for the number 0. */
#define VKT_PARAM_GROUPS 8 /* maximum number of groups */
typedef struct vkt_param_group {
    float lr_factor;    /* factor of the run's learning rate; 0 means 1. VKT_ZERO: the parameters stay as they are, and
                         * only their moments change. (With `keras` and a momentum, the parameters still follow the
                         * momentum of earlier steps that had another factor) */
    float weight_decay; /* replaces the optimizer's weight decay; 0: no decay */
} vkt_param_group;

/* An optimizer. A member that is 0 selects the default of torch or, with `keras`, of Keras 3 (except `decoupled`).
 * VKT_ZERO stands for the number 0. The learning rate is no member: each run passes it (vkt_run.lr). */
typedef struct vkt_optimizer {
    vkt_optimizer_kind kind;   /* the formula */
    float weight_decay;        /* AdamW: 0 means 0.01 (torch) or 0.004 (keras). Other kinds: 0 means no decay. VKT_ZERO:
                                * no decay, for any kind */
    bool decoupled;            /* true: decoupled weight decay, for any kind. false: L2 (weight decay is added to the
                                * gradient), except for AdamW, which is always decoupled. Keras decouples all kinds, so
                                * vkt_optimizer_preset sets this member for Keras */
    bool keras;                /* use the formula and the default numbers of Keras 3 */
    float momentum;            /* of SGD and RMSprop */
    float dampening;           /* of SGD (torch) */
    bool nesterov;             /* of SGD: Nesterov's form; needs momentum > 0 and dampening 0 */
    bool centered;             /* of RMSprop: replace v by v - a^2, where a is the running mean of g (see vkt_update) */
    double alpha;              /* of RMSprop; 0 means 0.99 (torch) or 0.9 (keras, where its name is rho) */
    double beta1, beta2;       /* of Adam, AdamW and NAdam; 0 means 0.9 and 0.999 */
    bool amsgrad;              /* of Adam and AdamW: the largest v so far replaces v (see vkt_update) */
    double momentum_decay;     /* of NAdam, at most 1000; 0 means 0.004 (torch) or 1 (keras) */
    float lr_decay;            /* of Adagrad (torch) */
    float initial_accumulator; /* of Adagrad: first value of s (see vkt_update), set by vkt_store_create; 0 means
                                * 0 (torch) or 0.1 (keras) */
    float eps;                 /* of all kinds but SGD; 0 means 1e-8 (torch; Adagrad: 1e-10) or 1e-7 (keras) */
    float clip_norm;           /* > 0: all gradients are scaled down if their global norm is above clip_norm */
    float clip_value;          /* > 0: each element of a gradient is clamped to +-clip_value; not together with
                                * clip_norm */
    uint32_t micro_batches;    /* number of runs in one step; 0 counts as 1 */
    vkt_param_group groups[VKT_PARAM_GROUPS]; /* the groups that vkt_set_group refers to */
} vkt_optimizer;

/* Appends the update of all parameters that are not frozen. One dispatch changes all of them. If the parameters do not
 * fit into one binding, they are split into ranges that fit, with one dispatch for each range. Call vkt_update once in
 * a graph, after vkt_backward (else VKT_E_STATE). VKT_E_ARG: settings that make no sense. In the formulas p is a
 * parameter and g its gradient. t is the number of the step, from 1. lr is the run's learning rate times the lr_factor
 * of the group. b1 and b2 are beta1 and beta2. The moments m, v, w, a, s and buf are kept from step to step, for each
 * parameter.
 *   SGD      torch  buf = t == 1 ? g : momentum buf + (1 - dampening) g;  p -= lr (nesterov ? g + momentum buf : buf);
 *                   if momentum is 0: p -= lr g
 *            keras  buf = momentum buf + lr g;  p -= nesterov ? lr g + momentum buf : buf
 *   Adam            m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *            torch  p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *            keras  p -= lr * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
 *            amsgrad  w = max(w, v) replaces v in the formula of p; w is 0 at first
 *   AdamW           Adam with decoupled weight decay
 *   NAdam           m and v as in Adam;  u_t = b1 (1 - 0.96^(momentum_decay t) / 2);  P = u_1 * .. * u_t;
 *                   d = u_(t+1) * m / (1 - P * u_(t+1)) + (1 - u_t) * g / (1 - P);
 *                   p -= lr * d / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *   RMSprop         v = alpha v + (1 - alpha) g^2;  a = centered ? alpha a + (1 - alpha) g : 0
 *            torch  buf = momentum buf + g / (sqrt(v - a^2) + eps);  p -= lr buf
 *            keras  buf = momentum buf + lr g / sqrt(v - a^2 + eps);  p -= buf
 *   Adagrad         s += g^2
 *            torch  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
 *            keras  p -= lr g / sqrt(s + eps)
 * Before these formulas, g is clipped: by value, or by the factor clip_norm / (norm + 1e-6) if this factor is below 1
 * (vkt_metrics.grad_norm is the norm). After clipping, but before these formulas, the weight decay wd is applied:
 * g += wd * p, or p -= lr * wd * p if the decay is decoupled.
 *
 * If micro_batches is k > 1, a run multiplies its gradients by its number of rows, and adds them to the part
 * VKT_PART_GRADIENT_SUM. Every k-th run then divides this sum by the number of rows of all k runs, changes the
 * parameters and advances t. Such a step equals the step of one batch with all these rows, except for rounding, under
 * three conditions: the loss is a mean over rows, no op mixes rows (a batch norm mixes them), and no op uses random
 * numbers (a dropout uses them). If the loss is a mean over other terms, for instance over the labels that count in a
 * language model, set vkt_run.terms to the number of these terms in the run. This number then replaces the number of
 * rows of the run: as the factor of the run's gradients, as the run's addend in the divisor, and as the run's weight
 * when the running statistics of several shards are averaged. Clipping comes after the division. In VKT_PRECISION_F16
 * the sum of all k runs is checked for overflow. If the sum overflows, the step is skipped, and the gradients of all k
 * runs are dropped.
 *
 * (Sources: PyTorch documentation of SGD, Adam, AdamW, NAdam, RMSprop, Adagrad, clip_grad_norm_; Keras documentation of
 * these optimizers; Kingma & Ba 2015; Loshchilov & Hutter 2019; Dozat 2016; Duchi et al. 2011; Reddi, Kale & Kumar, On
 * the Convergence of Adam and Beyond, 2018, for amsgrad.) */
VKT_API vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o);

/* Copies or averages the parameters into another part of the store, VKT_PART_PUBLISHED, after the update. Programs made
 * with vkt_program_params.published read this part. A run changes the part only if the run completes a step. Runs of
 * earlier micro-batches, and skipped steps, do not change the part. So inference between training runs always sees a
 * whole step.
 *   published = decay published + (1 - decay) p;  at the end of step 1, or if decay is 0: published = p
 * A decay of 0.999, for instance, gives the exponential moving average of the weights. Frozen parameters and vkt_state
 * (running statistics) are copied, not averaged. The op takes one dispatch, or several if the parameters do not fit
 * into one binding. Call vkt_publish after vkt_update, once in a graph (else VKT_E_STATE). VKT_E_ARG for a decay
 * outside [0,1).
 * (PyTorch documentation of torch.optim.swa_utils.AveragedModel, which copies buffers too.) */
VKT_API vkt_result vkt_publish(vkt_graph *g, double decay);

/* ---- groups and freezing of declared parameters, by name; '*' stands for any text ----------------------------- */

/* Puts all parameters whose names match `pattern` into the group vkt_optimizer.groups[group]. A parameter in no group
 * uses the optimizer's own settings. If two calls match a parameter, the later call counts. Call vkt_set_group before
 * vkt_update (else VKT_E_STATE). For instance, this call removes the decay of biases:
 *   vkt_set_group(g, "*.bias", 0);                          with groups[0] = { .weight_decay = 0 }
 * VKT_E_NOT_FOUND if no name matches. VKT_E_ARG if `group` is not below VKT_PARAM_GROUPS. */
VKT_API vkt_result vkt_set_group(vkt_graph *g, const char *pattern, uint32_t group);
/* Freezes all parameters whose names match `pattern`. Frozen parameters have no gradient, and the update does not
 * change them or their moments. A node is left out if only gradients of frozen parameters need it. vkt_backward returns
 * VKT_E_ARG for a parameter that does not influence the loss, unless the parameter is frozen. Call vkt_freeze before
 * vkt_backward (else VKT_E_STATE). VKT_E_NOT_FOUND if no name matches. Another graph over the same store may train
 * parameters that this graph freezes. */
VKT_API vkt_result vkt_freeze(vkt_graph *g, const char *pattern);

/* ---- presets ----------------------------------------------------------------------------------------------------- */

/* Returns an optimizer of this kind, with all defaults of the preset's library filled in. */
VKT_API vkt_optimizer vkt_optimizer_preset(vkt_optimizer_kind kind, vkt_preset preset);
/* Returns the default learning rate of the preset's library. For SGD of torch this is 0.001, the default in PyTorch's
 * documentation. */
VKT_API float vkt_optimizer_lr(vkt_optimizer_kind kind, vkt_preset preset);

#ifdef __cplusplus
}
#endif
#endif
