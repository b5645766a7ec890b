/* ops/ops.h - the op descriptors of ops.def, builders that are not part of the public API, and functions that the ops
 * share. */
#ifndef VKT_OPS_H
#define VKT_OPS_H

#include "ir/attrs.h"
#include "ir/ir.h"
#include "kernel/ids.h"

#define VKT_OP(name) extern const vkt_op vkt_op_##name;
#include "ops/ops.def"
#undef VKT_OP

/* All op descriptors, NULL at the end. */
extern const vkt_op *const vkt_ops[];

/* Returns the sum of x over the dimensions that `shape` lacks, or whose size in `shape` is 1. `shape` must broadcast to
 * x's shape. If x has the shape `shape` already, the result is x itself. Otherwise it is a new value in VKT_ROWS. */
vkt_tensor vkt_sum_to(vkt_graph *g, vkt_tensor x, vkt_shape shape);
/* Return the maximum and the minimum of x, with the rules of vkt_sum_to for dimensions and layout. */
vkt_tensor vkt_max_to(vkt_graph *g, vkt_tensor x, vkt_shape shape);
vkt_tensor vkt_min_to(vkt_graph *g, vkt_tensor x, vkt_shape shape);
/* Checks that an op may write to `external`: vkt_external made this value, and no node uses the value yet. `op`: name
 * of the op in messages. */
vkt_result vkt_check_written(const vkt_graph *g, const char *op, vkt_tensor external);
/* Returns d where x = y, and d times 0 elsewhere, which is NaN if d is not finite. The result has x's shape and layout;
 * d and y broadcast to x. No gradient passes through the result. */
vkt_tensor vkt_where_equal(vkt_graph *g, vkt_tensor d, vkt_tensor x, vkt_tensor y);
/* If possible, replaces the op of the node `mse` by mlp_mse. The op mlp_mse also computes the layers before the loss,
 * and the gradients that start from dloss. */
void vkt_fuse_mlp_mse(vkt_graph *g, vkt_node *mse, vkt_tensor dloss);
/* The decay rates from which the optimizer's clock is computed, in the format of base/fixed.h. A rate that the
 * optimizer does not have is 0. */
typedef struct vkt_clock_rates {
    uint64_t beta1, beta2;
    uint64_t decay; /* NAdam: 0.96^momentum_decay */
} vkt_clock_rates;
vkt_clock_rates vkt_optimizer_rates(const vkt_optimizer *o);
/* Returns a mask of the optimizer's moments. Bit i: the optimizer has moment i + 1. */
uint32_t vkt_optimizer_moments(const vkt_optimizer *o);
/* Appends the node that advances the step state. The node runs before all other nodes, even if it is added after them.
 * There is one exception: nodes that gather the batch may run at the same time (trait early_batch). vkt_shard_sums
 * calls this function for a graph of shards, and record/ calls it for every other graph that uses a step. `update`: the
 * node also advances the optimizer's clock. If the loss is scaled, loss_scale.comp advances the clock instead. */
void vkt_step_advance(vkt_graph *g, bool update);

/* ---- a step that is split into shards (data parallel training: train/shards.c) ----
 * A graph of shards computes the gradients of a part of a batch, and adds them to the sum of this rank. The host passes
 * the index of the shard to each run (vkt_shard_run in record/marks.h). A second graph over the same store updates the
 * parameters by the sum over all ranks. */
typedef struct vkt_shard_params {
    uint32_t levels;      /* this rank has 2^levels shards */
    uint32_t parts;       /* number of runs that compute one shard */
    uint32_t draws;       /* number of runs that make one step, on all ranks together. Each run generates its own random
                           * numbers */
    bool bf16;            /* in the sum over shards, each summand of a gradient is rounded to bfloat16, but none of a
                           * state */
    const uint64_t *ends; /* the end of each bucket of the arena, as an offset in bytes: rising multiples of
                           * VKT_ALIGN_BYTES. The last offset is the arena's size */
    uint32_t n_ends;
} vkt_shard_params;
/* vkt_shard_plane_bytes returns the bytes of a rank's partial sums (0: there are none). vkt_shard_saved_bytes returns
 * the bytes of the graph's saved states (0: the graph changes no states). A state is a parameter without a gradient,
 * like a running mean: step/shard.c explains why it is saved. */
uint64_t vkt_shard_plane_bytes(const vkt_graph *g, const vkt_shard_params *p);
uint64_t vkt_shard_saved_bytes(const vkt_graph *g);
/* The external f32 vectors of a graph of shards, and of its update's graph. */
typedef struct vkt_shard_values {
    vkt_tensor sum;    /* as long as the arena. After the last run of a step: the sum over this rank's shards */
    vkt_tensor planes; /* the partial sums: vkt_shard_plane_bytes bytes; {0}: none */
    vkt_tensor saved;  /* the saved states: vkt_shard_saved_bytes bytes; {0}: none */
    vkt_tensor update; /* a value of the update's graph (vkt_update_by_sum), not of this graph: the sum over all ranks.
                        * It is bound to the same array as `sum` */
} vkt_shard_values;
/* Appends the sums of the gradients to the graph of shards g. Call it after vkt_backward. */
vkt_result vkt_shard_sums(vkt_graph *g, const vkt_shard_params *p, vkt_shard_values *out);
/* Appends the update as vkt_update does, but takes the gradients from `gradients`. */
vkt_result vkt_update_from(vkt_graph *g, const vkt_optimizer *o, vkt_tensor gradients);
/* Builds a graph that updates the parameters. `of` is the graph of shards, and g is an empty graph. The function
 * declares the parameters of `of` in g, and appends the update to g. Sets *sum to the external vector of gradients. The
 * update processes the buckets one after the other, the last one first. */
vkt_result vkt_update_by_sum(vkt_graph *g, const vkt_graph *of, const vkt_optimizer *o, const vkt_shard_params *p,
                             vkt_tensor *sum);

/* Between vkt_when_begin and vkt_when_end, dispatches may be conditional: dispatches added after vkt_when_above(e, n)
 * need to run only if the u32 at the start of `counter` is larger than n. In each run, a dispatch before
 * vkt_when_begin must write the counter. The commands of a step are recorded before the counter is known. So a kernel
 * writes the numbers of work groups of all conditional dispatches, and the device reads these numbers
 * (vkCmdDispatchIndirect). A conditional dispatch must not depend on data that a dispatch with a larger n has written
 * to scratch.
 *
 * The condition only saves time: the results must be the same if all dispatches run. If a submission has a time limit,
 * and the device has timestamps, the first two runs of a program run all dispatches, to measure how long they take
 * (record/parts.c). */
typedef struct vkt_when {
    vkt_tensor counter;
    size_t first; /* index of the first dispatch after vkt_when_begin */
} vkt_when;
vkt_when vkt_when_begin(vkt_emit *e, vkt_tensor counter);
void vkt_when_above(vkt_emit *e, uint32_t above);
void vkt_when_end(vkt_emit *e, const vkt_when *w);

/* Returns how many work groups n elements need, at least 1. A work group has `lanes` lanes, and a lane has `per_lane`
 * elements. */
static inline uint64_t vkt_groups(uint64_t n, uint32_t lanes, uint32_t per_lane)
{
    const uint64_t per_group = (uint64_t)lanes * per_lane;
    return n == 0 ? 1 : (n + per_group - 1) / per_group;
}
/* Returns the number of lanes of a work group for a trait's value (base/traits.h). A trait of 0 means one subgroup. */
static inline uint32_t vkt_lanes(const vkt_limits *lim, uint32_t trait)
{
    return trait ? trait : lim->subgroup_size;
}
/* Returns the number of lanes of a subgroup of `kernel` (with the flag SUBGROUP or SUBGROUPS in kernels.def). */
uint32_t vkt_subgroup(const vkt_limits *lim, uint16_t kernel);
/* Returns the number of lanes of a work group of `kernel`. The lanes of the work group share `loads` loads, and combine
 * their results (lib/lanes.glsl). The number starts with one subgroup, and is doubled while each lane still gets four
 * loads or more. The device and the trait `lanes_together` (0: one subgroup) limit the number. */
static inline uint32_t vkt_lanes_for(const vkt_limits *lim, uint16_t kernel, uint64_t loads)
{
    const uint32_t most = VKT_MIN(lim->max_workgroup_lanes, vkt_lanes(lim, lim->traits->lanes_together));
    uint32_t lanes = vkt_subgroup(lim, kernel);
    while (2 * lanes <= most && loads >= 8ull * lanes) lanes *= 2;
    return lanes;
}
/* Returns the number of work groups of `lanes` lanes that together have `waves` subgroups per core of the device. */
static inline uint32_t vkt_groups_of_waves(const vkt_limits *lim, uint32_t waves, uint32_t lanes)
{
    const uint64_t cores = lim->cores ? lim->cores : lim->traits->cores;
    const uint64_t wanted = (cores * waves * lim->subgroup_size + lanes - 1) / lanes;
    return (uint32_t)VKT_MAX(VKT_MIN(wanted, UINT32_MAX), 1u);
}
/* Returns how many work groups of `lanes` lanes keep the device busy if they mostly load and store. */
static inline uint32_t vkt_groups_wanted(const vkt_limits *lim, uint32_t lanes)
{
    const vkt_traits *t = lim->traits;
    return t->groups_wanted ? t->groups_wanted : vkt_groups_of_waves(lim, t->waves_loads, lanes);
}
/* Returns how many work groups of `lanes` lanes keep the device busy if they multiply tiles in shared memory. */
static inline uint32_t vkt_tiles_wanted(const vkt_limits *lim, uint32_t lanes)
{
    const vkt_traits *t = lim->traits;
    return t->groups_shared ? t->groups_shared : vkt_groups_of_waves(lim, t->waves_tiles, lanes);
}
/* A work group of `lanes` lanes loads rows of `tensors` tensors, and a row takes `loads` loads. Returns how many loads
 * of a row each lane keeps in registers. Returns 0 (no loads) if the loads of all tensors are too many for the trait
 * `row_held`. */
static inline uint32_t vkt_held(const vkt_limits *lim, uint64_t loads, uint32_t lanes, uint32_t tensors)
{
    const uint64_t held = (loads + lanes - 1) / lanes;
    return held * tensors <= lim->traits->row_held ? (uint32_t)held : 0;
}
/* Returns the largest number of iterations that all loops of one invocation may have together. */
static inline uint64_t vkt_largest_loop(const vkt_limits *lim)
{
    return lim->traits->largest_loop ? lim->traits->largest_loop : UINT32_MAX;
}
/* Returns five sixths of vkt_largest_loop, for kernels whose iterations are counted roughly. */
static inline uint64_t vkt_rough_loop(const vkt_limits *lim)
{
    return vkt_largest_loop(lim) / 6 * 5;
}
/* Returns the largest number of rows of a tile of a matrix product: four times the subgroup size, but not more than the
 * trait product_rows (for subgroups of 16 lanes: product_rows_16). */
static inline uint32_t vkt_product_rows(const vkt_limits *lim)
{
    const uint32_t sg = vkt_subgroup(lim, VKT_K_GEMM_TILE);
    return VKT_MIN(4 * sg, sg == 16 ? lim->traits->product_rows_16 : lim->traits->product_rows);
}
/* Returns the number of lanes of a work group of `kernel` that loops over `loads` loads, `passes` times. The number
 * starts with the result of vkt_lanes_for, and is doubled while an invocation would have more iterations than
 * vkt_largest_loop. A pass counts as loads / lanes + 2 iterations: one more for an iteration with fewer loads, and one
 * more for a loop around the pass. If the largest work group is too small, sets the emission's error. */
uint32_t vkt_lanes_for_passes(vkt_emit *e, uint16_t kernel, uint64_t loads, uint64_t passes);
/* Returns how many bytes one binding can hold, rounded down to a multiple of VKT_ALIGN_BYTES. If a larger tensor is
 * split into ranges of this size, each range starts at a multiple of VKT_ALIGN_BYTES. */
static inline uint64_t vkt_bind_range_bytes(const vkt_limits *lim)
{
    return lim->max_storage_range_bytes / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
}
/* Returns a number of elements that one binding holds. If a tensor with elements of 4 or of 2 bytes is split into
 * ranges of that many elements, each range starts at a multiple of VKT_ALIGN_BYTES. */
static inline uint64_t vkt_bind_range_elements(const vkt_limits *lim)
{
    return lim->max_storage_range_bytes / (2 * VKT_ALIGN_BYTES) * (2 * VKT_ALIGN_BYTES) / 4;
}
/* Returns the larger one of the size limits of a storage buffer and of a texel buffer, in bytes. This is the limit for
 * a binding that may be either of them (mask `texels` in kernels.def). */
static inline uint64_t vkt_read_range(const vkt_limits *lim)
{
    return VKT_MAX(lim->max_storage_range_bytes, 16 * lim->max_texel_elements);
}
/* Returns how many of n consecutive items of step_bytes bytes one binding of range_bytes bytes can hold. A binding must
 * start at an aligned offset, so it may include up to VKT_ALIGN_BYTES bytes before its first item. If a binding cannot
 * hold all n items, the result leaves space for these bytes. */
static inline uint64_t vkt_steps_in(uint64_t range_bytes, uint64_t step_bytes, uint64_t n)
{
    if (n <= range_bytes / step_bytes) return n;
    return range_bytes < VKT_ALIGN_BYTES ? 0 : (range_bytes - VKT_ALIGN_BYTES) / step_bytes;
}
/* Binds elements first .. first + count - 1 of t, from an aligned start. *base: the index of element `first` in the
 * binding. */
static inline vkt_bind vkt_bind_range(const vkt_emit *e, vkt_tensor t, uint64_t first, uint64_t count, uint32_t *base)
{
    const uint64_t size = vkt_element_bytes(vkt_lowered_value(e, t));
    const uint64_t start = first * size / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
    *base = (uint32_t)(first - start / size);
    return (vkt_bind){ .t = t, .offset_bytes = start, .bytes = (first + count) * size - start };
}
/* Returns the least n such that n * stride f32 elements have a multiple of VKT_ALIGN_BYTES bytes; 1 if `stride` is 0.
 * If the start of a range moves by a multiple of n strides, it keeps its alignment. */
static inline uint32_t vkt_bind_range_step(uint32_t stride)
{
    const uint32_t power = stride & (0u - stride); /* the largest power of two that divides `stride` */
    return stride == 0 || power >= VKT_ALIGN_BYTES / 4 ? 1 : VKT_ALIGN_BYTES / 4 / power;
}
/* The least cost of a node: the results of its op descriptor's functions `flops` and `bytes`. If the op has no function
 * `bytes`: every input is read once, and every output is written once. */
typedef struct vkt_cost {
    double flops, bytes;
} vkt_cost;
vkt_cost vkt_node_cost(const vkt_node *n);
/* Functions `flops` for op descriptors. */
double vkt_flops_none(const vkt_node *n);      /* counts nothing */
double vkt_flops_an_output(const vkt_node *n); /* counts one operation for each element of output 0 */
double vkt_flops_an_input(const vkt_node *n);  /* counts one operation for each element of input 0 */
double vkt_flops_of_scores(const vkt_node *n); /* counts four operations for each element of input 0. In a softmax:
                                                * maximum, difference, exponential and sum */
/* Return the number of elements of input or output i; 0 if it is absent. */
double vkt_elements_in(const vkt_node *n, uint32_t i);
double vkt_elements_out(const vkt_node *n, uint32_t i);
/* Binds a whole value. */
#define VKT_WHOLE(tensor) ((vkt_bind){ .t = (tensor) })
/* Binds `n` elements from element `at` on; {0} for the null tensor. */
static inline vkt_bind vkt_part(const vkt_emit *e, vkt_tensor t, uint64_t at, uint64_t n)
{
    const uint32_t size = vkt_element_bytes(vkt_lowered_value(e, t));
    return t.id ? (vkt_bind){ t, at * size, n * size } : (vkt_bind){ .bytes = 0 };
}

#endif
