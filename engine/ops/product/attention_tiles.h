/* ops/product/attention_tiles.h - how the kernels of attention are split into tiles, and which variant computes them:
 * SHUFFLED (shaders/lib/attention.glsl), SHARED (shaders/lib/attention_shared.glsl), or COOP (with
 * attention_coop.glsl). */
#ifndef VKT_ATTENTION_TILES_H
#define VKT_ATTENTION_TILES_H

#include "kernel/ids.h"
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/attention.abi.h"

/* The kernels: y and lse by tiles of queries; dq and delta by tiles of queries; dk and dv by tiles of keys. */
typedef enum vkt_attention_pass { VKT_ATTENTION_FORWARD, VKT_ATTENTION_DQ, VKT_ATTENTION_DKV } vkt_attention_pass;

/* Chooses the variant of the passes first .. last for `heads` heads of q, of all samples. pc->rows is the number of
 * queries, and pc->others is the number of keys, also for VKT_ATTENTION_DKV. */
vkt_variant vkt_attention_pick(vkt_emit *e, vkt_attention_pass first, vkt_attention_pass last,
                               const vkt_attention_push *pc, uint64_t heads);
/* Emits a pass. `pc` is as for vkt_attention_pick. The function sets the push constants that depend on the tiles.
 * `bind` has ATTENTION_BINDINGS entries. Sets the emission's error if the loops would be too long for this device. */
void vkt_attention_emit(vkt_emit *e, vkt_attention_pass pass, vkt_variant v, const vkt_attention_push *pc,
                        uint64_t heads, const vkt_bind *bind);

#endif
