/* plan/plan.h - the order in which the dispatches of a lowered graph run, the memory of its values, and the barriers.
 * All of this is decided before the program allocates device memory.
 *
 * Dispatches run in stages. Dispatches of one stage need no barrier between them. Between two stages there may be a
 * barrier. In a plan that keeps the graph's order, each stage has one dispatch. In a plan with another order
 * (schedule.c), a stage may have several dispatches. The live range of a value is a range of stages: from the first
 * stage that touches the value to the last stage that touches it. A kept value (vkt_value.keep) is live in the whole
 * program. Two values may share bytes if their live ranges do not overlap. Then no stage uses both values, so the
 * sharing needs no barrier within a stage.
 *
 * Packed values are activations and scratch: pack.c finds their offsets in a few buffers, the activation blocks. */
#ifndef VKT_PLAN_H
#define VKT_PLAN_H

#include "ir/ir.h"

/* The memory of a value: a range of one arena or buffer. */
typedef struct vkt_region {
    vkt_role role;  /* the arena or buffer; ACTIVATION is used for activations and scratch */
    uint32_t index; /* ACTIVATION: index of the activation block, which is one buffer; else the id of the root value
                     * (vkt_root) */
    uint64_t offset_bytes;
    uint64_t bytes;
} vkt_region;

typedef struct vkt_live_range {
    uint32_t first, last; /* stages, both inclusive; first > last: no dispatch touches the value */
} vkt_live_range;

/* The bindings that a dispatch reads, and those that it writes. Bit i stands for binding i. */
typedef struct vkt_access {
    uint32_t reads, writes;
} vkt_access;
typedef vkt_access (*vkt_access_fn)(const vkt_dispatch *d);

/* The kind of hazard that makes a barrier necessary. */
typedef enum vkt_hazard { VKT_RAW = 0, VKT_WAR, VKT_WAW } vkt_hazard;
typedef struct vkt_barrier {
    uint32_t before; /* index of the dispatch that follows the barrier */
    vkt_hazard hazard;
    uint32_t value; /* id of the value in which dispatch `before` has the hazard */
    uint32_t other; /* index of the earlier dispatch for which the barrier waits */
} vkt_barrier;

typedef struct vkt_plan {
    vkt_host host;
    size_t n;           /* number of values: those of the graph, and those that the lowering and vkt_recompute add */
    vkt_region *region; /* by value id */
    uint32_t *owner;    /* owner[v]: id of the value whose memory value v uses. In most cases this is the root of v
                         * (vkt_root). But if the producer of the root overwrites an input, the owner of this input is
                         * also the owner of v */
    vkt_live_range *live_range; /* live_range[v]: the live range of all values whose owner is v */
    uint32_t *stage;            /* stage[d]: the stage of dispatch d; stage[0] is 0, and stage[d] >= stage[d - 1] */
    uint64_t *block_bytes;      /* sizes of the activation blocks */
    size_t n_blocks;
    uint64_t const_bytes;       /* size of the buffer of constants */
    uint64_t packed_bytes;      /* sum of the sizes of the activation blocks */
    uint64_t lower_bound_bytes; /* largest number of bytes that are live in one stage; no packing needs less */
    uint64_t input_bytes;
    vkt_barrier *barriers;
    size_t n_barriers, cap_barriers;
    size_t emitted_barriers; /* number of barriers of the graph's order, after vkt_run_early */
    uint64_t work;           /* cost of making the plan: number of loop iterations of packing, barriers and schedule */
} vkt_plan;

typedef struct vkt_plan_options {
    uint64_t max_block_bytes; /* largest size of an activation block */
    uint64_t guard_bytes;     /* unused bytes behind each packed value: 0, except in tests and at debug level 4. If
                               * it is not 0, the packing lets no two values share memory */
    uint64_t more_bytes;      /* how many more bytes of packed values an order with fewer barriers may need; 0: none */
    uint64_t most_bytes;      /* more_bytes is used only if packed values, constants, inputs and more_bytes together
                               * have at most this size */
    bool in_place; /* outputs may overwrite inputs if the op descriptor allows this, even if guard_bytes is not 0 */
    vkt_access_fn access;
} vkt_plan_options;

/* Lowers the peak of memory: inserts dispatches of `cheap` ops (vkt_op.cheap) into e->list a second time, in front of
 * a late reader of their outputs. So the outputs of the first run are not live at the peak. Call this function before
 * the plan is made. *again gets the number of inserted dispatches. After VKT_E_NOMEM the list is still valid, and
 * vkt_lower_free frees it. */
vkt_result vkt_recompute(vkt_emit *e, vkt_access_fn access, uint32_t *again);

/* Moves the dispatches of `early` ops (vkt_op.early) towards the start of the list, each behind the last node on which
 * it depends. vkt_plan_make calls this function. */
void vkt_run_early(vkt_emit *e, vkt_access_fn access);

/* Makes the plan and puts e->list into the planned order. The planned order is the graph's order with `early` ops
 * moved, or a better order (schedule.c). An order is better if it needs no more barriers and no more memory than the
 * graph's order. It is also better if it needs fewer barriers, and at most `more_bytes` more memory. On VKT_OK the
 * caller frees *out with vkt_plan_free. VKT_E_DEVICE_MEMORY: a value is larger than max_block_bytes. VKT_E_NOMEM: the
 * host has no memory. */
vkt_result vkt_plan_make(vkt_emit *e, const vkt_plan_options *o, vkt_plan *out);
void vkt_plan_free(vkt_plan *p);
/* Appends a readable table of the packed values and their memory. */
void vkt_plan_text(const vkt_plan *p, const vkt_emit *lowered, vkt_text *t);

/* Splits a list of n dispatches into parts that take at most limit_ns each. Dispatch i takes ns[i]. A dispatch that
 * alone takes longer than limit_ns is a part of its own. Each part ends at the end of a stage. Only if one stage takes
 * longer than limit_ns, a part may end inside this stage. ends[k] is the index of the last dispatch of part k, plus 1.
 * Returns the number of parts. */
uint32_t vkt_split_submissions(const uint64_t *ns, const uint32_t *stage, uint32_t n, uint64_t limit_ns,
                               uint32_t *ends);

/* ---- shared by the files of plan/ ---- */

static inline bool vkt_is_packed(const vkt_value *v)
{
    return v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_SCRATCH;
}
static inline bool vkt_live_ranges_overlap(vkt_live_range a, vkt_live_range b)
{
    return a.first <= b.last && b.first <= a.last;
}
/* Returns whether two ranges may overlap. Returns true for ranges of two external values, because the application may
 * bind the same array to both values. */
bool vkt_regions_overlap(vkt_region a, vkt_region b);
/* Returns the range of a binding. Its size is rounded up to a multiple of 16 bytes, like the size of the descriptor. */
vkt_region vkt_region_of(const vkt_plan *p, const vkt_bind *b);

/* A value for vkt_pack, which computes its `block` and `offset`. */
typedef struct vkt_packed {
    uint32_t id, block;
    uint64_t bytes, offset;
    vkt_live_range live_range;
} vkt_packed;
/* pack.c: finds memory for `n` values. Fills block and offset of each value, and block_bytes, n_blocks, packed_bytes
 * and lower_bound_bytes of *p. */
vkt_result vkt_pack(vkt_packed *list, size_t n, const vkt_plan_options *o, vkt_plan *p);

/* hazard.c: fills p->barriers for the dispatches in list order. */
vkt_result vkt_find_barriers(const vkt_emit *e, vkt_access_fn access, vkt_plan *p);

/* schedule.c: finds an order with few stages. If possible, at most `budget_bytes` of packed values are live at any
 * time. p is the plan of the list in its present order. order[i] gets the present index of the dispatch at position i
 * of the new order. stage[i] gets the stage of this dispatch. The function adds its cost to *work (vkt_plan.work). */
vkt_result vkt_plan_schedule(const vkt_emit *e, const vkt_plan *p, vkt_access_fn access, uint64_t budget_bytes,
                             uint32_t *order, uint32_t *stage, uint64_t *work);

#endif
