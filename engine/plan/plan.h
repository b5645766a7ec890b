/* plan/plan.h - where every value of a lowered graph lives, decided before anything is allocated.
 *
 * A value's life is counted in dispatches: from the first that touches it to the last; kept values and inputs live
 * through the whole program. Values whose lives do not meet may share bytes. */
#ifndef VKT_PLAN_H
#define VKT_PLAN_H

#include "ir/ir.h"

/* The memory that a value is in. One range of one of these. */
typedef struct vkt_place {
    vkt_role role;  /* which arena or buffer: ACTIVATION stands for activations and scratch */
    uint32_t index; /* ACTIVATION: number of the block; else the id of the root value */
    uint64_t offset_bytes;
    uint64_t bytes;
} vkt_place;

typedef struct vkt_life {
    uint32_t first, last; /* dispatch numbers, both included; first > last: never touched */
} vkt_life;

typedef struct vkt_plan {
    vkt_host host;
    size_t n;              /* values: of the graph and of the lowering */
    vkt_place *place;      /* by value id */
    vkt_life *life;        /* of root values */
    uint64_t *block_bytes; /* sizes of the activation blocks */
    size_t n_blocks, cap_blocks;
    uint64_t const_bytes;                     /* one buffer of constants */
    uint64_t packed_bytes, lower_bound_bytes; /* what packing reaches; the most that is alive at one dispatch */
    uint64_t input_bytes;
} vkt_plan;

typedef struct vkt_plan_options {
    uint64_t max_block_bytes; /* no activation block is larger */
    uint64_t guard_bytes;     /* bytes left free behind every packed value; not 0: nothing shares memory (tests) */
} vkt_plan_options;

/* On VKT_OK the caller frees with vkt_plan_free. VKT_E_DEVICE_MEMORY: a value is larger than a block may be. */
vkt_result vkt_plan_make(const vkt_emit *lowered, const vkt_plan_options *o, vkt_plan *out);
void vkt_plan_free(vkt_plan *p);
/* Appends a readable table. */
void vkt_plan_text(const vkt_plan *p, const vkt_emit *lowered, vkt_text *t);

#endif
