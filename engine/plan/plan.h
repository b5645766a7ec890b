/* plan/plan.h - in what order the dispatches of a lowered graph run, where its values live and where barriers stand:
 * all decided before anything is allocated.
 *
 * Dispatches run in stages: those of one stage need no barrier between them, and a barrier stands between two stages. A
 * value's life is counted in stages, from the first that touches it to the last; kept values live through the whole
 * program. Values whose lives do not meet may share bytes, so sharing never asks for a barrier of its own. */
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
    uint32_t first, last; /* stages, both included; first > last: never touched */
} vkt_life;

/* What a kernel does with its bindings: bit i for binding i. */
typedef struct vkt_access {
    uint32_t reads, writes;
} vkt_access;
typedef vkt_access (*vkt_access_fn)(uint16_t kernel);

/* Why a barrier stands before a dispatch: the first hazard that asked for it. */
typedef enum vkt_hazard { VKT_RAW = 0, VKT_WAR, VKT_WAW } vkt_hazard;
typedef struct vkt_barrier {
    uint32_t before; /* dispatch number */
    vkt_hazard hazard;
    uint32_t value; /* id of the value at that dispatch */
    uint32_t other; /* the dispatch that it waits for */
} vkt_barrier;

typedef struct vkt_plan {
    vkt_host host;
    size_t n;              /* values: of the graph and of the lowering */
    vkt_place *place;      /* by value id */
    uint32_t *home;        /* by value id: whose memory it is; its root, or what that was computed in place of */
    vkt_life *life;        /* of homes */
    uint32_t *stage;       /* by dispatch, rising from 0 */
    uint64_t *block_bytes; /* sizes of the activation blocks */
    size_t n_blocks;
    uint64_t const_bytes;       /* one buffer of constants */
    uint64_t packed_bytes;      /* what packing reaches */
    uint64_t lower_bound_bytes; /* the most that is alive in one stage: no packing needs less */
    uint64_t input_bytes;
    vkt_barrier *barriers;
    size_t n_barriers, cap_barriers;
    size_t emitted_barriers; /* how many the order of the graph needs */
    uint64_t work; /* turns of the loops of the packing, of the barriers and of the schedule: what the plan cost */
} vkt_plan;

typedef struct vkt_plan_options {
    uint64_t max_block_bytes; /* no activation block is larger */
    uint64_t guard_bytes;     /* bytes left free behind every packed value; not 0: nothing shares memory (tests) */
    bool in_place;            /* outputs take the memory of inputs where a row allows it, also beside guards */
    vkt_access_fn access;
} vkt_plan_options;

/* Before the plan: where it lowers the peak of memory, dispatches of `cheap` rows are put into e->list again, so that
 * their outputs need not be kept. *again: how many dispatches. VKT_E_NOMEM leaves a list that is right, for
 * vkt_lower_free. */
vkt_result vkt_recompute(vkt_emit *e, vkt_access_fn access, uint32_t *again);

/* Plans, and puts e->list into the order that the plan is for: the graph's, or one of fewer barriers that takes no more
 * memory. On VKT_OK the caller frees with vkt_plan_free. VKT_E_DEVICE_MEMORY: a value is larger than a block may be. */
vkt_result vkt_plan_make(vkt_emit *e, const vkt_plan_options *o, vkt_plan *out);
void vkt_plan_free(vkt_plan *p);
/* Appends a readable table. */
void vkt_plan_text(const vkt_plan *p, const vkt_emit *lowered, vkt_text *t);

/* Cuts a list of n dispatches that take ns[i] into parts of at most limit_ns, unless one dispatch alone takes longer;
 * at the end of a stage where the part holds one. ends[k]: number of part k's last dispatch + 1. Returns how many
 * parts. */
uint32_t vkt_cut(const uint64_t *ns, const uint32_t *stage, uint32_t n, uint64_t limit_ns, uint32_t *ends);

/* ---- shared by the files of plan/ ---- */

static inline bool vkt_is_packed(const vkt_value *v)
{
    return v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_SCRATCH;
}
static inline bool vkt_lives_meet(vkt_life a, vkt_life b)
{
    return a.first <= b.last && b.first <= a.last;
}
/* Whether two places may have a byte in common. Two external values may be one piece of an application's memory. */
bool vkt_places_meet(vkt_place a, vkt_place b);
/* Where the bytes of a binding are, as bound: rounded up to 16 bytes. */
vkt_place vkt_place_of(const vkt_plan *p, const vkt_bind *b);

/* pack.c: offsets for `n` values. Fills block and offset, p->block_bytes, n_blocks, packed_bytes, lower_bound_bytes. */
typedef struct vkt_packed {
    uint32_t id, block;
    uint64_t bytes, offset;
    vkt_life life;
} vkt_packed;
vkt_result vkt_pack(vkt_packed *list, size_t n, const vkt_plan_options *o, vkt_plan *p);

/* hazard.c: fills p->barriers for the dispatches in the order of the list. */
vkt_result vkt_find_barriers(const vkt_emit *e, vkt_access_fn access, vkt_plan *p);

/* schedule.c: an order of few stages in which no more than `budget_bytes` of packed values are alive, if that can be.
 * p: the plan of the list as it is. order[i]: the dispatch that comes i-th; stage[i]: its stage. *work: is increased.
 */
vkt_result vkt_plan_schedule(const vkt_emit *e, const vkt_plan *p, vkt_access_fn access, uint64_t budget_bytes,
                             uint32_t *order, uint32_t *stage, uint64_t *work);

#endif
