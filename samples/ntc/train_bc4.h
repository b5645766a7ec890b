/* ntc/train_bc4.h - encodes the latents of a training as BC4 blocks. */
#ifndef NTC_TRAIN_BC4_H
#define NTC_TRAIN_BC4_H

#include "ntc/set.h"
#include "vktrain/graph.h"

/* Encodes the latents of a grid as BC4 blocks, and replaces them by the decoded blocks. The latents are the parameter
 * `name` of the store. A second call changes nothing. VKT_E_NOMEM, VKT_E_NOT_FOUND, or the errors of the store. */
vkt_result ntc_encode_latents(vkt_store *store, const char *name, const ntc_grid *g);

#endif
