/* ops/product/attention_tiles.h - splits attention into tiles, and chooses the variant of the kernels: SHUFFLED
 * (shaders/lib/attention.glsl), SHARED (attention_shared.glsl), or COOP (attention_shared.glsl with
 * attention_coop.glsl). */
#ifndef VKT_ATTENTION_TILES_H
#define VKT_ATTENTION_TILES_H

#include "kernel/ids.h"
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/attention.abi.h"

/* The passes. FORWARD computes y by tiles of queries, and lse: the log sum exp of each row of scores. DQ computes dq by
 * tiles of queries, and delta: the sum of dy * y over each row of y. DKV computes dk and dv by tiles of keys. */
typedef enum vkt_attention_pass { VKT_ATTENTION_FORWARD, VKT_ATTENTION_DQ, VKT_ATTENTION_DKV } vkt_attention_pass;

/* Chooses one variant for all passes from `first` to `last`. `heads`: the number of heads of q in all samples of
 * a dispatch. pc->rows is the number of queries, and pc->others is the number of keys, also for VKT_ATTENTION_DKV. */
vkt_variant vkt_attention_pick(vkt_emit *e, vkt_attention_pass first, vkt_attention_pass last,
                               const vkt_attention_push *pc, uint64_t heads);
/* Emits a pass. `pc` is as for vkt_attention_pick. The function sets the push constants that depend on the tiles.
 * `bind` has ATTENTION_BINDINGS entries. Sets the emission's error if the loops would be too long for this device. */
void vkt_attention_emit(vkt_emit *e, vkt_attention_pass pass, vkt_variant v, const vkt_attention_push *pc,
                        uint64_t heads, const vkt_bind *bind);

#endif
