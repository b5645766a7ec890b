/* vktrain/optim.h - optimizers: how gradients move parameters. */
#ifndef VKTRAIN_OPTIM_H
#define VKTRAIN_OPTIM_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vkt_optimizer_kind { VKT_SGD = 0, VKT_ADAM } vkt_optimizer_kind;
/* Zero is torch's default except for lr, which the step carries. */
typedef struct vkt_optimizer {
    vkt_optimizer_kind kind;
    float weight_decay;        /* L2, added to the gradient */
    float momentum, dampening; /* SGD */
    bool nesterov;             /* SGD; needs momentum > 0 and dampening 0 */
    double beta1, beta2;       /* Adam; 0: 0.9 and 0.999 */
    float eps;                 /* Adam; 0: 1e-8 (torch) or 1e-7 (keras) */
    bool keras;                /* Adam as Keras writes it: eps is not rescaled by the bias correction */
} vkt_optimizer;
/* Appends the update of the whole parameter arena: one dispatch, whatever the number of parameters. After vkt_backward.
 *   torch SGD   g += wd p;  buf = t == 1 ? g : momentum buf + (1 - dampening) g;
 *               p -= lr (nesterov ? g + momentum buf : buf)
 *   torch Adam  g += wd p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *               p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *   keras Adam  m and v likewise;  p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)
 * (PyTorch documentation of SGD and Adam; Keras documentation of Adam; Kingma & Ba 2015.) */
VKT_API vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o);

#ifdef __cplusplus
}
#endif
#endif
