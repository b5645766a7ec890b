/* vktrain/optim.h - optimizers: how gradients move parameters. */
#ifndef VKTRAIN_OPTIM_H
#define VKTRAIN_OPTIM_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formulas: vkt_update. ORDER: cases as text and tuning files hold these numbers, so a new one goes to the end. Tests
 * draw a kind of Adam from VKT_ADAM to VKT_NADAM. */
typedef enum vkt_optimizer_kind {
    VKT_SGD = 0,             /* with momentum, dampening, Nesterov's form */
    VKT_ADAM,                /* weight decay is L2 */
    VKT_ADAMW,               /* weight decay is decoupled */
    VKT_NADAM,               /* Adam with Nesterov's momentum */
    VKT_RMSPROP,             /* plain, centered, with momentum */
    VKT_ADAGRAD,             /* the sum of all squares, no forgetting */
    VKT_OPTIMIZER_KIND_COUNT /* how many there are */
} vkt_optimizer_kind;

/* The settings that differ for the parameters of a group. VKT_ZERO is 0. */
#define VKT_PARAM_GROUPS 8 /* most groups of an optimizer */
typedef struct vkt_param_group {
    float lr_factor;    /* times the run's lr; 0: 1; VKT_ZERO: moments move, parameters do not */
    float weight_decay; /* in place of the optimizer's: 0 is none */
} vkt_param_group;

/* Zero is torch's default except for lr, which the step carries; VKT_ZERO is 0. */
typedef struct vkt_optimizer {
    vkt_optimizer_kind kind;   /* the formula */
    float weight_decay;        /* AdamW; 0: 0.01 (torch) or 0.004 (keras), VKT_ZERO: none. Others; 0: none */
    bool decoupled;            /* weight decay as AdamW's, for any kind; else it is L2, added to the gradient */
    bool keras;                /* the formula and defaults of Keras 3 where it differs */
    float momentum;            /* SGD, RMSprop */
    float dampening;           /* SGD */
    bool nesterov;             /* SGD; needs momentum > 0 and dampening 0 */
    bool centered;             /* RMSprop */
    double alpha;              /* RMSprop; 0: 0.99 (torch) or 0.9 (keras, as rho) */
    double beta1, beta2;       /* Adam, AdamW, NAdam; 0: 0.9 and 0.999; VKT_ZERO: 0 */
    bool amsgrad;              /* Adam, AdamW: divide by the largest v so far */
    double momentum_decay;     /* NAdam; 0: 0.004 (torch) or 1 (keras) */
    float lr_decay;            /* Adagrad */
    float initial_accumulator; /* Adagrad; 0: 0 (torch) or 0.1 (keras), VKT_ZERO: 0. vkt_store_create fills it in */
    float eps;                 /* all but SGD; 0: 1e-8, Adagrad 1e-10 (torch), or 1e-7 (keras) */
    float clip_norm;           /* > 0: gradients are scaled down where the norm of all of them together is larger */
    float clip_value;          /* > 0: each element of a gradient is kept within +-clip_value; not beside clip_norm */
    uint32_t micro_batches;    /* runs that make one step; 0: 1 */
    vkt_param_group groups[VKT_PARAM_GROUPS]; /* of parameters that vkt_set_group put there */
} vkt_optimizer;

/* Appends the update of the whole parameter arena: one dispatch, whatever the number of parameters. After vkt_backward.
 *   SGD      torch  buf = t == 1 ? g : momentum buf + (1 - dampening) g;  p -= lr (nesterov ? g + momentum buf : buf)
 *            keras  buf = momentum buf + lr g;  p -= nesterov ? lr g + momentum buf : buf
 *   Adam            m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *            torch  p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *            keras  p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)
 *            amsgrad  w = max(w, v) in place of v in the last formula: a third moment, 0 at first
 *   AdamW           Adam, and weight decay is decoupled
 *   NAdam           m and v as Adam's;  u_t = b1 (1 - 0.96^(momentum_decay t) / 2);  P = u_1 u_2 .. u_t;
 *                   p -= lr (u_(t+1) m / (1 - P u_(t+1)) + (1 - u_t) g / (1 - P)) / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *   RMSprop         v = alpha v + (1 - alpha) g^2;  a = centered ? alpha a + (1 - alpha) g : 0
 *            torch  buf = momentum buf + g / (sqrt(v - a^2) + eps);  p -= lr buf
 *            keras  buf = momentum buf + lr g / sqrt(v - a^2 + eps);  p -= buf
 *   Adagrad         s += g^2
 *            torch  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
 *            keras  p -= lr g / sqrt(s + eps)
 * Before that g is clipped, by value or by clip_norm / (norm + 1e-6) where that is below 1 (vkt_metrics.grad_norm is
 * the norm); then g += wd p, or p -= lr wd p where weight decay is decoupled. With micro_batches = k, a run only adds
 * its gradients, times its rows, to VKT_PART_GRADIENT_SUM; every k-th run then divides by all their rows, moves the
 * parameters and advances t. So a step is that of one batch with all rows, if the loss is a mean over rows. Clipping,
 * and the check for overflow in VKT_PRECISION_F16, come after the division; a step that is skipped drops all k.
 * (PyTorch documentation of SGD, Adam, AdamW, NAdam, RMSprop, Adagrad and clip_grad_norm_; Keras documentation of the
 * same; Kingma & Ba 2015; Loshchilov & Hutter 2019; Dozat 2016; Duchi et al. 2011;
 * Reddi, Kale & Kumar, On the Convergence of Adam and Beyond, 2018, for amsgrad.) */
VKT_API vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o);

/* Publishes the parameters in every run that completes a step, after its update: in a further part of the store,
 * VKT_PART_PUBLISHED, that programs read which are made so (vkt_program_params.published). Between two completed steps
 * (micro-batches, steps that are skipped) it stays as it is, so that inference between training runs sees whole steps.
 *   published = decay published + (1 - decay) p;  p itself after the first step, and always where decay is 0
 * With a decay, 0.999 for instance, that is the exponential moving average of the weights. Frozen parameters and
 * vkt_state (running statistics) are copied, not averaged. One dispatch, whatever the number of parameters. After
 * vkt_update, once in a graph (else VKT_E_STATE); VKT_E_ARG for a decay outside [0,1). (PyTorch documentation of
 * torch.optim.swa_utils.AveragedModel, which keeps buffers so too.) */
VKT_API vkt_result vkt_publish(vkt_graph *g, double decay);

/* ---- groups and freezing: of parameters that are declared, by name; '*' stands for any text ---------------------- */

/* Puts all parameters whose names match into group `group` of vkt_optimizer.groups, from 0; whoever is in none goes by
 * the optimizer's own numbers. The last call counts. Before vkt_update.
 *   vkt_set_group(g, "*.bias", 0);   with groups[0] = { .weight_decay = 0 }: no decay of biases
 * VKT_E_NOT_FOUND if no name matches. */
VKT_API vkt_result vkt_set_group(vkt_graph *g, const char *pattern, uint32_t group);
/* Freezes all parameters whose names match: they have no gradient, the update leaves them and their moments as they
 * are, and nothing is worked out for their sake. They need not influence the loss. Before vkt_backward; VKT_E_NOT_FOUND
 * if no name matches. Another graph over the same store may train what this one has frozen. */
VKT_API vkt_result vkt_freeze(vkt_graph *g, const char *pattern);

/* ---- presets ----------------------------------------------------------------------------------------------------- */

/* An optimizer with every default of that library filled in. AdamW has it in `kind`, Nadam is VKT_NADAM. */
VKT_API vkt_optimizer vkt_optimizer_preset(vkt_optimizer_kind kind, vkt_preset preset);
/* The library's default learning rate; for torch's SGD, which had none for long, 0.001 as in its documentation. */
VKT_API float vkt_optimizer_lr(vkt_optimizer_kind kind, vkt_preset preset);

#ifdef __cplusplus
}
#endif
#endif
