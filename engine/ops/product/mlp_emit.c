/* ops/product/mlp_emit.c - emits a fully connected network. One kernel computes the whole network; the samples of the
 * batch are distributed over its work groups. A dispatch before this kernel packs the parameters (mlp_line.comp needs
 * no packing). If the kernel computes gradients, a dispatch after it adds up the gradients of all work groups, and with
 * VKT_MLP_MSE also their losses. See the first lines of shaders/product/mlp*.comp. */
#include "ops/product/mlp.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/lanes.abi.h"
#include "abi/mlp.abi.h"
#include "abi/mlp_line.abi.h"
#include "abi/mlp_pack.abi.h"
#include "abi/mlp_sum.abi.h"

enum { SUM_ROWS_LANES = 64 }; /* lanes of MLP_SUM_ROWS: a multiple of 4, at most 256 */

typedef struct job {
    const vkt_node *n;
    vkt_emit *e;
    vkt_mlp_pass pass;
    bool narrow, coop;
    uint32_t layers, lanes, tiles;
    uint32_t width[MLP_LAYERS + 1], widest;
    /* rows, cols, bias: where the rows, columns and bias of each layer start in PACKED, the buffer of the parameters
     * (abi/mlp_layout.abi.h). packed: size of PACKED. All in vec4s. */
    uint32_t rows[MLP_LAYERS], cols[MLP_LAYERS], bias[MLP_LAYERS], packed;
    /* part_at: where each layer starts in PART, the sums of gradients of a work group. part: size of PART. Both in
     * vec4s (for mlp_shared.comp in floats). */
    uint32_t part_at[MLP_LAYERS], part;
    uint32_t per_group, groups;
    uint32_t stage; /* MLP_SPEC_STAGE of mlp_shared.comp; 0: the network does not fit into shared memory, or another
                     * kernel computes it */
    vkt_tensor parts;
} job;

vkt_tensor vkt_mlp_grad(const vkt_node *n, uint32_t first, uint32_t i)
{
    const vkt_mlp_attr *a = n->attr;
    if (!(a->grads >> i & 1)) return (vkt_tensor){ 0 };
    return n->out[first + (uint32_t)__builtin_popcount(a->grads & ((1u << i) - 1))];
}

static job job_of(const vkt_node *n, vkt_emit *e, vkt_mlp_pass pass)
{
    const vkt_mlp_attr *a = n->attr;
    job j = { .n = n, .e = e, .pass = pass, .layers = a->layers, .lanes = vkt_subgroup(e->lim, VKT_K_MLP_MSE) };
    j.widest = j.width[0] = vkt_node_in(n, 0)->shape.dim[1];
    for (uint32_t l = 0; l < j.layers; l++) {
        const uint32_t K = j.width[l], M = vkt_value_of(n->g, vkt_mlp_weight(n, l))->shape.dim[0];
        const bool b_is_output = MLP_B_IS_OUTPUT(K, M, j.lanes);
        j.width[l + 1] = M;
        j.widest = VKT_MAX(j.widest, M);
        j.rows[l] = j.packed;
        j.cols[l] = j.rows[l] + M * vkt_div_up(K, 4);
        j.bias[l] = j.cols[l] + K * vkt_div_up(M, 4);
        j.packed = j.bias[l] + M;
        j.part_at[l] = j.part;
        j.part += (b_is_output ? K + 1 : M) * vkt_div_up(b_is_output ? M : K + 1, 4 * j.lanes) * j.lanes;
    }
    j.part += j.lanes; /* the loss */
    return j;
}

/* Distributes work over about `groups` work groups. The work has `units` parts of `rounds` iterations each. There are
 * fewer groups if there are fewer parts, or if a binding has no space for `group_bytes` bytes of each group. There are
 * more groups if a group would have more iterations than vkt_largest_loop. If the device cannot run so many groups,
 * sets the emission's error and returns false. */
static bool deal(job *j, uint32_t units, uint32_t groups, uint32_t rounds, uint64_t group_bytes)
{
    groups = (uint32_t)VKT_MAX(VKT_MIN(groups, j->e->lim->max_storage_range_bytes / group_bytes), 1u);
    j->per_group = (uint32_t)VKT_MIN(vkt_div_up(units, groups), VKT_MAX(vkt_largest_loop(j->e->lim) / rounds, 1u));
    j->groups = vkt_div_up(units, j->per_group);
    if (j->groups <= j->e->lim->max_groups) return true;
    vkt_emit_error(j->e, vkt_fail(&j->e->host, VKT_E_UNSUPPORTED, "%s: %u work groups; this device runs at most %u",
                                  j->e->node->op->name, j->groups, j->e->lim->max_groups));
    return false;
}

static vkt_tensor pack(job *j)
{
    const vkt_tensor packed = vkt_scratch(j->e, "packed", 16ull * j->packed);
    uint32_t biased = 0, most = 0;
    vkt_bind bind[MLP_PACK_OUT + 1];
    for (uint32_t l = 0; l < MLP_LAYERS; l++) {
        const vkt_tensor w = vkt_mlp_weight(j->n, l < j->layers ? l : 0);
        const vkt_tensor b = l < j->layers ? vkt_mlp_bias(j->n, l) : (vkt_tensor){ 0 };
        bind[MLP_PACK_W + l] = VKT_WHOLE(w);
        bind[MLP_PACK_B + l] = VKT_WHOLE(b.id ? b : w);
        if (b.id) biased |= 1u << l;
        if (l < j->layers) most = VKT_MAX(most, (l + 1 < j->layers ? j->rows[l + 1] : j->packed) - j->rows[l]);
    }
    bind[MLP_PACK_OUT] = VKT_WHOLE(packed);
    const vkt_mlp_pack_push push = { j->width[0], j->width[1], j->width[2], j->width[3], j->width[4], j->rows[0],
                                     j->rows[1],  j->rows[2],  j->rows[3],  j->cols[0],  j->cols[1],  j->cols[2],
                                     j->cols[3],  j->bias[0],  j->bias[1],  j->bias[2],  j->bias[3],  biased };
    const uint32_t spec[] = { vkt_lanes(j->e->lim, j->e->lim->traits->lanes_pack) };
    vkt_dispatch_add(
        j->e, &(vkt_launch){ .kernel = VKT_K_MLP_PACK,
                             VKT_LAUNCH_BIND(bind),
                             VKT_LAUNCH_PUSH(push),
                             VKT_LAUNCH_SPEC(spec),
                             .groups = { vkt_groups(most, spec[0], j->e->lim->traits->items_pack), j->layers, 1 } });
    return packed;
}

/* Returns an upper bound of the iterations of mlp.comp's loops for one block of samples. */
static uint32_t rounds_of_block(const job *j)
{
    uint32_t rounds = 8 + j->part / j->lanes;
    for (uint32_t l = 0; l <= j->layers; l++) rounds += j->tiles * (2 * j->width[l] + 2);
    return rounds;
}

/* Returns the push constants. `pitch`: VECs per feature. A VEC is a float or a vec4: see mlp_vec.glsl. */
static vkt_mlp_push push_of(const job *j, uint32_t pitch, uint32_t blocks)
{
    return (vkt_mlp_push){ .batch = vkt_node_in(j->n, 0)->shape.dim[0],
                           .pitch = pitch,
                           .blocks = blocks,
                           .per_group = j->per_group,
                           .rows1 = j->rows[0],
                           .rows2 = j->rows[1],
                           .rows3 = j->rows[2],
                           .rows4 = j->rows[3],
                           .cols1 = j->cols[0],
                           .cols2 = j->cols[1],
                           .cols3 = j->cols[2],
                           .cols4 = j->cols[3],
                           .bias1 = j->bias[0],
                           .bias2 = j->bias[1],
                           .bias3 = j->bias[2],
                           .bias4 = j->bias[3],
                           .part1 = j->part_at[0],
                           .part2 = j->part_at[1],
                           .part3 = j->part_at[2],
                           .part4 = j->part_at[3],
                           .part = j->part,
                           .zero = 0 };
}

static void fill_spec(const job *j, uint32_t spec[MLP_SPECS], uint32_t lanes, bool dx)
{
    spec[MLP_SPEC_LANES] = lanes;
    spec[MLP_SPEC_LAYERS] = j->layers;
    for (uint32_t l = 0; l <= MLP_LAYERS; l++) spec[MLP_SPEC_WIDTH + l] = j->width[l];
    spec[MLP_SPEC_WIDEST] = j->widest;
    spec[MLP_SPEC_TILES] = j->tiles;
    spec[MLP_SPEC_DX] = dx;
}

static void emit_network(job *j)
{
    static const uint16_t kernels[][2] = { [VKT_MLP_FORWARD] = { VKT_K_MLP_FORWARD, VKT_K_MLP_FORWARD_NARROW },
                                           [VKT_MLP_MSE] = { VKT_K_MLP_MSE, VKT_K_MLP_MSE_NARROW },
                                           [VKT_MLP_GRAD] = { VKT_K_MLP_GRAD, VKT_K_MLP_GRAD_NARROW } };
    const bool forward = j->pass == VKT_MLP_FORWARD;
    const vkt_value *x = vkt_node_in(j->n, 0);
    /* tile: number of samples in a tile. units: number of samples in a VEC. */
    const uint32_t tile = j->lanes * (j->narrow ? 1 : 8), units = j->narrow ? 1 : 4;
    j->tiles = j->narrow || forward ? 1 : VKT_MAX(j->e->lim->traits->mlp_samples / tile, 1u);
    const uint32_t pitch = vkt_phys_of(x).pitch / units, blocks = vkt_div_up(x->shape.dim[0], tile * j->tiles);
    uint32_t act_rows = 0;
    for (uint32_t l = 1; l <= j->layers; l++) act_rows += j->width[l] * (l < j->layers ? 2 : 1);
    const uint64_t act_bytes = 4ull * act_rows * tile * j->tiles, part_bytes = 16ull * j->part;
    if (!deal(j, blocks, j->e->lim->traits->groups_slices, rounds_of_block(j), VKT_MAX(act_bytes, part_bytes))) return;

    const vkt_tensor packed = pack(j);
    const vkt_tensor act = vkt_scratch(j->e, "activations", act_bytes * j->groups);
    const vkt_tensor dx = vkt_mlp_grad(j->n, j->pass == VKT_MLP_MSE, 0), none = { 0 };
    if (!forward) j->parts = vkt_scratch(j->e, "parts", part_bytes * j->groups);
    const vkt_bind bind[] = { [MLP_X] = VKT_WHOLE(j->n->in[0]),
                              [MLP_T] = VKT_WHOLE(forward ? none : j->n->in[1]),
                              [MLP_STEP] = VKT_WHOLE(j->pass == VKT_MLP_MSE ? j->n->in[j->n->n_in - 1] : none),
                              [MLP_PACKED] = VKT_WHOLE(packed),
                              [MLP_ACT] = VKT_WHOLE(j->narrow ? none : act),
                              [MLP_ACT_OUT] = VKT_WHOLE(act),
                              [MLP_PART] = VKT_WHOLE(j->narrow ? none : j->parts),
                              [MLP_PART_OUT] = VKT_WHOLE(j->parts),
                              [MLP_DLOSS] = VKT_WHOLE(j->pass == VKT_MLP_MSE ? j->n->in[VKT_MLP_IN_DLOSS] : none),
                              [MLP_OUT] = VKT_WHOLE(forward ? j->n->out[0]
                                                    : dx.id ? dx
                                                            : j->parts) };
    const vkt_mlp_push push = push_of(j, pitch, blocks);
    uint32_t spec[MLP_SPECS];
    fill_spec(j, spec, j->lanes, dx.id != 0);
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = kernels[j->pass][j->narrow],
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(push),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { j->groups, 1, 1 } });
}

/* Returns true if mlp_line.comp can compute the node. The node must be a loss over one layer, without dx, and the layer
 * must be so small that all its sums stay in registers. */
static bool is_line(const job *j)
{
    const bool dx = ((const vkt_mlp_attr *)j->n->attr)->grads & 1;
    return j->pass == VKT_MLP_MSE && j->layers == 1 && j->width[0] <= 8 && j->width[1] <= 4 &&
           j->width[0] * j->width[1] <= 16 && j->width[0] + 1 <= 4 * j->lanes && !dx;
}

static void emit_line(job *j)
{
    const vkt_value *x = vkt_node_in(j->n, 0);
    const vkt_tensor w = vkt_mlp_weight(j->n, 0), b = vkt_mlp_bias(j->n, 0);
    const uint32_t n4 = vkt_phys_of(x).pitch / 4;
    if (!deal(j, vkt_div_up(n4, j->lanes), j->e->lim->traits->groups_line, 1, 16ull * j->part)) return;
    j->parts = vkt_scratch(j->e, "parts", 16ull * j->part * j->groups);
    const vkt_bind bind[] = { [MLP_LINE_X] = VKT_WHOLE(j->n->in[0]),
                              [MLP_LINE_T] = VKT_WHOLE(j->n->in[1]),
                              [MLP_LINE_STEP] = VKT_WHOLE(j->n->in[j->n->n_in - 1]),
                              [MLP_LINE_W] = VKT_WHOLE(w),
                              [MLP_LINE_B] = VKT_WHOLE(b.id ? b : w),
                              [MLP_LINE_DLOSS] = VKT_WHOLE(j->n->in[VKT_MLP_IN_DLOSS]),
                              [MLP_LINE_PART] = VKT_WHOLE(j->parts) };
    const vkt_mlp_line_push push = { x->shape.dim[0], n4, j->per_group * j->lanes, j->part };
    const uint32_t spec[MLP_LINE_SPECS] = { [MLP_LINE_SPEC_LANES] = j->lanes,
                                            [MLP_LINE_SPEC_K] = j->width[0],
                                            [MLP_LINE_SPEC_M] = j->width[1],
                                            [MLP_LINE_SPEC_BIAS] = b.id != 0 };
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = VKT_K_MLP_LINE,
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(push),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { j->groups, 1, 1 } });
}

/* ---- mlp_shared.comp ---- */

/* Returns the size of the space for weights in shared memory, in vec4s. Activations and weights together have at most
 * `bytes` bytes. The space is for the largest matrix, or for a slice of its rows if the matrix does not fit. Later the
 * kernel uses the same memory for a vec2 of each lane (the losses). Returns 0 if there is no space for 8 rows, or for
 * the losses. */
static uint32_t stage_of(const job *j, uint32_t bytes)
{
    uint32_t rows = 0, least = MLP_SHARED_LANES / 2, all = 0;
    for (uint32_t l = 0; l <= j->layers; l++) rows += j->width[l];
    for (uint32_t l = 0; l < j->layers; l++) {
        const uint32_t K = j->width[l], M = j->width[l + 1], row = vkt_div_up(VKT_MAX(K, M), 4);
        least = VKT_MAX(least, 8 * row);
        all = VKT_MAX(all, VKT_MAX(K * vkt_div_up(M, 4), M * vkt_div_up(K, 4)));
    }
    const uint32_t act = 16 * MLP_SHARED_ROW * rows, most = act < bytes ? (bytes - act) / 1024 * 64 : 0;
    return most < least ? 0 : VKT_MIN(most, VKT_MAX((uint32_t)vkt_round_up(all, 64), least));
}

/* Changes the job so that mlp_shared.comp computes it. Two work groups of 32 KiB fit into the shared memory of most
 * cores, so a network uses more than 32 KiB only if it must. Returns false if the device cannot run the changed job. */
static bool share(job *j)
{
    const vkt_limits *lim = j->e->lim;
    const uint32_t most = lim->shared_bytes / 1024 * 1024;
    j->stage = stage_of(j, VKT_MIN(most, 32768u));
    if (!j->stage) j->stage = stage_of(j, most);
    return j->stage && lim->max_workgroup_lanes >= MLP_SHARED_LANES;
}

/* Changes the job so that cooperative matrices compute its products. Returns false if the device cannot run the changed
 * job. shaders/lib/mlp_coop.glsl declares the shared memory. Here the sizes of this memory's parts are in bytes. */
static bool share_coop(job *j)
{
    const vkt_limits *lim = j->e->lim;
    const vkt_coop *c = &lim->coop;
    const uint32_t unit = VKT_MAX(VKT_MAX(c->m, c->n), c->k), subgroups = MLP_SHARED_LANES / lim->subgroup_size;
    if (!unit || MLP_SHARED_SAMPLES % c->m || MLP_SHARED_SAMPLES % c->k || MLP_SHARED_LANES % lim->subgroup_size ||
        subgroups > SUBGROUPS_MAX || subgroups % (MLP_SHARED_SAMPLES / c->m) ||
        lim->max_workgroup_lanes < MLP_SHARED_LANES)
        return false;
    const uint32_t widest = (uint32_t)vkt_round_up(j->widest, unit), input = MLP_SHARED_SAMPLES * (2 * widest + 16);
    const uint32_t step = subgroups * c->m / MLP_SHARED_SAMPLES, own = vkt_div_up(widest / c->n, step);
    const uint32_t at_once = VKT_MAX(VKT_MIN(lim->subgroup_size * 16 / (c->m * c->n), own), 1u);
    const uint32_t sums = subgroups * c->m * (4 * c->n + 16);
    uint32_t act = 0, stage = VKT_MAX(8 * MLP_SHARED_LANES, sums);
    for (uint32_t l = 0; l <= j->layers; l++) {
        const uint32_t M = (uint32_t)vkt_round_up(j->width[l], unit);
        const uint32_t K = l ? (uint32_t)vkt_round_up(j->width[l - 1], unit) : 0;
        act += M * (2 * MLP_SHARED_SAMPLES + 16);
        if (l) stage = VKT_MAX(stage, VKT_MAX(M * (2 * K + 16), K * (2 * M + 16)));
    }
    const uint32_t others = (j->pass == VKT_MLP_FORWARD ? 0 : act) + input + 4 * widest;
    if (others + VKT_MAX(stage, at_once * sums) <= lim->shared_bytes) stage = VKT_MAX(stage, at_once * sums);
    j->stage = others + stage <= lim->shared_bytes ? stage / 8 : 0;
    return j->stage != 0;
}

/* Returns an upper bound of the iterations of mlp_shared.comp's loops for one block of samples. */
static uint32_t rounds_of_shared(const job *j)
{
    uint32_t rounds = 64;
    for (uint32_t l = 0; l < j->layers; l++) {
        const uint32_t K = j->width[l], M = j->width[l + 1];
        rounds += 4 * (K + M) + 2 * K * M / MLP_SHARED_LANES +
                  16 * (vkt_div_up(K, 4) * vkt_div_up(M, 4) / MLP_SHARED_LANES + 2);
    }
    return rounds;
}

static void emit_shared(job *j)
{
    static const uint16_t kernels[][2] = { [VKT_MLP_FORWARD] = { VKT_K_MLP_FORWARD_SHARED, VKT_K_MLP_FORWARD_COOP },
                                           [VKT_MLP_MSE] = { VKT_K_MLP_MSE_SHARED, VKT_K_MLP_MSE_COOP },
                                           [VKT_MLP_GRAD] = { VKT_K_MLP_GRAD_SHARED, VKT_K_MLP_GRAD_COOP } };
    const vkt_value *x = vkt_node_in(j->n, 0);
    const bool forward = j->pass == VKT_MLP_FORWARD, mse = j->pass == VKT_MLP_MSE;
    const uint32_t blocks = vkt_div_up(x->shape.dim[0], MLP_SHARED_SAMPLES);
    j->part = 0; /* from here on, j->part counts floats */
    for (uint32_t l = 0; l < j->layers; l++) {
        j->part_at[l] = j->part;
        j->part += j->width[l + 1] * (j->width[l] + 1);
    }
    j->part++; /* the loss */
    if (!deal(j, blocks, j->e->lim->traits->groups_slices, rounds_of_shared(j), 4ull * j->part)) return;
    const vkt_tensor packed = pack(j), dx = vkt_mlp_grad(j->n, mse, 0), none = { 0 };
    if (!forward) j->parts = vkt_scratch(j->e, "parts", 4ull * j->part * j->groups);
    const vkt_bind bind[] = { [MLP_X] = VKT_WHOLE(j->n->in[0]),
                              [MLP_T] = VKT_WHOLE(forward ? none : j->n->in[1]),
                              [MLP_STEP] = VKT_WHOLE(mse ? j->n->in[j->n->n_in - 1] : none),
                              [MLP_PACKED] = VKT_WHOLE(packed),
                              [MLP_PART_OUT] = VKT_WHOLE(j->parts),
                              [MLP_DLOSS] = VKT_WHOLE(mse ? j->n->in[VKT_MLP_IN_DLOSS] : none),
                              [MLP_OUT] = VKT_WHOLE(forward ? j->n->out[0]
                                                    : dx.id ? dx
                                                            : j->parts) };
    const vkt_mlp_push push = push_of(j, vkt_phys_of(x).pitch / 4, blocks);
    uint32_t spec[MLP_SPECS];
    fill_spec(j, spec, MLP_SHARED_LANES, dx.id != 0);
    spec[MLP_SPEC_STAGE] = j->stage;
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = kernels[j->pass][j->coop],
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(push),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { j->groups, 1, 1 } });
}

static void add_parts(job *j)
{
    const bool mse = j->pass == VKT_MLP_MSE;
    const uint32_t params = ((const vkt_mlp_attr *)j->n->attr)->params;
    const vkt_tensor any = j->n->out[0];
    uint32_t outputs = mse, most = 0;
    vkt_bind bind[MLP_SUM_B + MLP_LAYERS] = { [MLP_SUM_PART] = VKT_WHOLE(j->parts), [MLP_SUM_LOSS] = VKT_WHOLE(any) };
    for (uint32_t l = 0; l < MLP_LAYERS; l++) {
        const vkt_tensor dw = vkt_mlp_grad(j->n, mse, params + 2 * l), db = vkt_mlp_grad(j->n, mse, params + 2 * l + 1);
        bind[MLP_SUM_W + l] = VKT_WHOLE(dw.id ? dw : any);
        bind[MLP_SUM_B + l] = VKT_WHOLE(db.id ? db : any);
        outputs |= (uint32_t)(dw.id != 0) << (2 * l + 1) | (uint32_t)(db.id != 0) << (2 * l + 2);
        if (l < j->layers) most = VKT_MAX(most, (l + 1 < j->layers ? j->part_at[l + 1] : j->part) - j->part_at[l]);
    }
    const vkt_mlp_sum_push push = { j->width[0],   j->width[1],   j->width[2],   j->width[3],
                                    j->width[4],   j->part_at[0], j->part_at[1], j->part_at[2],
                                    j->part_at[3], j->part,       j->groups,     outputs };
    /* In one iteration, a work group of MLP_SUM computes `lanes` vec4s. A work group of MLP_SUM_ROWS computes lanes / 4
     * floats. */
    const uint32_t lanes = j->stage ? SUM_ROWS_LANES : j->lanes, units = vkt_div_up(most, j->stage ? lanes / 4 : lanes);
    const uint32_t spec[] = { lanes }, groups = j->e->lim->traits->groups_mlp_sum;
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = j->stage ? VKT_K_MLP_SUM_ROWS : VKT_K_MLP_SUM,
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(push),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { groups ? VKT_MIN(units, groups) : units, j->layers, 1 } });
}

void vkt_emit_mlp(const vkt_node *n, vkt_emit *e, vkt_mlp_pass pass)
{
    job j = job_of(n, e, pass);
    const bool shuffles = e->lim->traits->mlp_shuffles;
    const uint32_t wide = e->lim->traits->mlp_shared_width;
    const bool f16 = e->precision == VKT_PRECISION_F16; /* the variant COOP needs this: it rounds operands to f16 */
    /* vkt_pick prefers small costs. These costs are not times: only their order matters. */
    vkt_variant_cost candidates[VKT_V_COUNT] = { { VKT_V_WIDE, shuffles ? 1 : 2 }, { VKT_V_NARROW, shuffles ? 2 : 1 } };
    uint32_t n_candidates = 2;
    job coop = j;
    coop.coop = true;
    if (is_line(&j)) candidates[n_candidates++] = (vkt_variant_cost){ VKT_V_LINE, 0.5 };
    if (share(&j))
        candidates[n_candidates++] =
            (vkt_variant_cost){ VKT_V_SHARED, wide && j.widest >= wide ? 0.75 : VKT_COST_NEVER };
    if (f16 && share_coop(&coop))
        candidates[n_candidates++] =
            (vkt_variant_cost){ VKT_V_COOP, wide && j.widest >= wide ? 0.625 : VKT_COST_NEVER };
    const vkt_variant v = vkt_pick(e, candidates, n_candidates);
    j.narrow = v == VKT_V_NARROW;
    if (v == VKT_V_COOP)
        j = coop;
    else if (v != VKT_V_SHARED)
        j.stage = 0;
    if (j.stage)
        emit_shared(&j);
    else if (v == VKT_V_LINE)
        emit_line(&j);
    else
        emit_network(&j);
    if (pass != VKT_MLP_FORWARD && e->status == VKT_OK) add_parts(&j);
}
