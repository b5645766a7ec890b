/* ops/step/optimizer.h - settings of optimizers, and the op that updates by them. */
#ifndef VKT_OPTIMIZER_H
#define VKT_OPTIMIZER_H

#include "ops/ops.h"

/* Returns the name of a kind in checkpoints and in JSON, "sgd" for instance. NULL: the kind is not valid. */
const char *vkt_optimizer_name(vkt_optimizer_kind kind);
/* Replaces each zero by the default of the kind, and each VKT_ZERO by zero. If the kind is not valid, nothing changes.
 */
void vkt_optimizer_fill_in(vkt_optimizer *o);
/* Checks that the settings are legal; defaults must be filled in. Else VKT_E_ARG, logged. */
vkt_result vkt_optimizer_check(const vkt_host *h, const vkt_optimizer *o);
/* Returns the op that updates by a kind, which must be valid. *room: the number of moments that its inputs have room
 * for. */
const vkt_op *vkt_optimizer_op(vkt_optimizer_kind kind, uint32_t *room);

#endif
