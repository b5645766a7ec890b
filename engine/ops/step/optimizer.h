/* ops/step/optimizer.h - settings of optimizers, and the op that updates by them. For update.c and optim.c. */
#ifndef VKT_OPTIMIZER_H
#define VKT_OPTIMIZER_H

#include "ops/ops.h"

/* Replaces each zero by the default of the kind, and each VKT_ZERO by zero. A kind that is none stays as it is. */
void vkt_optimizer_fill_in(vkt_optimizer *o);
/* Whether the settings, defaults filled in, are legal. VKT_E_ARG, logged. */
vkt_result vkt_optimizer_check(const vkt_host *h, const vkt_optimizer *o);
/* The op that updates by a kind, which is one, and *room: the moments that its inputs have room for. */
const vkt_op *vkt_optimizer_op(vkt_optimizer_kind kind, uint32_t *room);

#endif
