/* ops/step/optimizer.h - settings of optimizers, and the op that updates parameters by these settings. */
#ifndef VKT_OPTIMIZER_H
#define VKT_OPTIMIZER_H

#include "ops/ops.h"

/* Returns the name of a kind in checkpoints and in JSON, "sgd" for instance. NULL: the kind is not valid. */
const char *vkt_optimizer_name(vkt_optimizer_kind kind);
/* Replaces each zero by the default of the kind, and each VKT_ZERO by zero. Sets `decoupled` for AdamW. If the kind is
 * not valid, nothing changes. */
void vkt_optimizer_fill_in(vkt_optimizer *o);
/* Checks that the settings are legal; the defaults must be filled in before. If they are not legal, logs why and
 * returns VKT_E_ARG. */
vkt_result vkt_optimizer_check(const vkt_host *h, const vkt_optimizer *o);
/* Returns the op that updates parameters by the optimizer `kind`, which must be valid. Sets *room to the number of
 * moments for which the op has inputs. */
const vkt_op *vkt_optimizer_op(vkt_optimizer_kind kind, uint32_t *room);

#endif
