/* ops/conv/shared.c - convolutions for GPUs, by tiles in shared memory: see shaders/conv/shared.comp and
 * conv/dw_shared.comp. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"
#include "ops/product/gemm.h"

#include "abi/abi.h"
#include "abi/conv2d_dw_shared.abi.h"
#include "abi/conv2d_pack_rows.abi.h"
#include "abi/conv2d_shared.abi.h"

static bool in_one_binding(const vkt_emit *e, vkt_tensor t)
{
    return vkt_lowered_value(e, t)->bytes <= e->lim->max_storage_range_bytes;
}

static vkt_conv2d_tilings tilings_of(const vkt_emit *e, vkt_blocks_job *job, uint64_t most_slices)
{
    job->tile = vkt_wanted_tile(e);
    vkt_conv2d_tilings c = { .pays = e->lim->traits->shared_pays, .coop_pays = job->m >= 16 && job->n >= 16 };
    c.can_shared = vkt_blocks_plan(e->lim, job, most_slices, &c.shared);
    if (c.can_shared) c.waste = vkt_blocks_waste(&c.shared, job);
    c.can_coop = vkt_blocks_plan_coop(e, *job, most_slices, &c.coop);
    return c;
}

static uint32_t taps_of(const vkt_conv2d_size *z)
{
    return z->kernel[0] * z->kernel[1];
}

/* Returns true if each tap of each output pixel reads an element of x, and none reads padding. */
static bool reads_inside(const vkt_conv2d_size *z)
{
    for (int i = 0; i < 2; i++) {
        const uint64_t last =
            (uint64_t)(z->out[i] - 1) * z->a.stride[i] + (uint64_t)(z->kernel[i] - 1) * z->a.dilation[i];
        if (z->a.pad[i] || last >= z->in[i]) return false;
    }
    return true;
}

/* ---- y and dx ---- */

/* Returns true if it is certain that no tap of y (or of dx) is outside the source. For dx, the function returns true
 * only if the kernel is 1x1, the strides are 1 and there is no padding. */
static bool is_inside(const vkt_conv_job *j)
{
    const vkt_conv2d_size *z = j->z;
    return reads_inside(z) && (!j->transposed || (taps_of(z) == 1 && z->a.stride[0] == 1 && z->a.stride[1] == 1 &&
                                                  z->in[0] == z->out[0] && z->in[1] == z->out[1]));
}

/* The sizes of the weights of one group of the convolution. rows: destination channels. depth: source channels. */
typedef struct weights {
    uint32_t rows, taps, depth;
} weights;

static weights weights_of(const vkt_conv_job *j)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t out = z->out_channels / z->a.groups, in = z->channels / z->a.groups;
    return (weights){ .rows = j->transposed ? in : out, .taps = taps_of(z), .depth = j->transposed ? out : in };
}

/* Returns true if w is stored as (K,M), and the product can read w without a packed copy (pack_weights). The kernels
 * pad K to a multiple of 4, but w has no padding. So w.depth, which is K here, must be a multiple of 4. */
static bool reads_along_m(const vkt_conv_job *j, bool in_16)
{
    const weights w = weights_of(j);
    return j->transposed && w.taps == 1 && w.rows % 4 == 0 && w.depth % 4 == 0 && !in_16;
}

/* Returns true if w is stored as (M,K), and the product can read w without a packed copy. Products of 16 bits always
 * read a packed copy, in 16 bits. */
static bool reads_along_k(const vkt_conv_job *j, bool in_16)
{
    const weights w = weights_of(j);
    return !j->transposed && w.taps == 1 && w.depth % 4 == 0 && !in_16;
}

/* Returns the product of one group of the convolution. M: destination channels. N: pixels of all samples, with the
 * padding of the batch. K: taps times source channels, which are padded to a multiple of 4. */
static vkt_blocks_job job_of(const vkt_conv_job *j)
{
    const vkt_conv2d_size *z = j->z;
    const weights w = weights_of(j);
    const uint32_t *dst = j->transposed ? z->in : z->out;
    return (vkt_blocks_job){ .m = w.rows,
                             .n = (uint64_t)dst[0] * dst[1] * z->n4 * 4,
                             .k = (uint64_t)w.taps * vkt_round_up(w.depth, 4),
                             .count = z->a.groups };
}

/* Copies the weights in the order in which the products read them. The copy is in the program's 16-bit type if `in_16`,
 * else in f32. */
static vkt_tensor pack_weights(vkt_emit *e, const vkt_conv_job *j, const vkt_blocks_job *job, bool in_16)
{
    const weights w = weights_of(j);
    const uint32_t o_step = (j->transposed ? w.rows : w.depth) * w.taps;
    const vkt_conv2d_pack_rows_push push = { .vec4s = (uint32_t)(job->m * job->k / 4),
                                             .depth = w.depth,
                                             .depth_vec4s = vkt_div_up(w.depth, 4),
                                             .taps = w.taps,
                                             .w_group = w.rows * w.depth * w.taps,
                                             .w_row = j->transposed ? w.taps : o_step,
                                             .w_depth = j->transposed ? o_step : w.taps };
    const vkt_tensor packed =
        vkt_scratch_stored(e, "weights", job->m * job->k * job->count, in_16 ? e->precision : VKT_PRECISION_F32);
    const vkt_bind bind[] = { [PACK_ROWS_W] = VKT_WHOLE(j->w), [PACK_ROWS_A] = VKT_WHOLE(packed) };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_pack) };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = VKT_K_CONV2D_PACK_ROWS,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { vkt_groups(push.vec4s, spec[0], e->lim->traits->items_pack), job->count, 1 } });
    return packed;
}

/* Returns true if the tiles keep at least half of the device busy when no sum is split into slices. */
static bool is_half_busy(const vkt_limits *lim, const vkt_blocks *b, uint64_t count)
{
    return 2 * b->tiles * count >= vkt_tiles_wanted(lim, b->spec[BLOCKS_SPEC_LANES]);
}

vkt_conv2d_tilings vkt_conv_shared_plan(const vkt_emit *e, const vkt_conv_job *j)
{
    vkt_blocks_job job = job_of(j);
    if (!in_one_binding(e, j->from) || !in_one_binding(e, j->w) || !in_one_binding(e, j->to) || job.n > UINT32_MAX ||
        4 * job.m * job.k * job.count > e->lim->max_storage_range_bytes)
        return (vkt_conv2d_tilings){ .can_shared = false };
    /* If the tiles keep half of the device busy, sums are not split into slices, because one more dispatch would have
     * to add the slices. */
    const vkt_conv2d_tilings whole = tilings_of(e, &job, 1);
    if (!whole.can_shared || is_half_busy(e->lim, &whole.shared, job.count)) return whole;
    return tilings_of(e, &job, e->lim->max_storage_range_bytes / 4 / (job.m * job.n * job.count));
}

/* Emits y or dx as the sum of its slices. For each slice, `part` has a partial sum of each element. */
static void sum_slices(vkt_emit *e, const vkt_conv_job *j, const vkt_blocks_job *job, uint32_t slices, vkt_tensor part)
{
    vkt_gemm_sum_emit(e, &(vkt_gemm_sum){ .part = VKT_WHOLE(part),
                                          .c = VKT_WHOLE(j->to),
                                          .n = (uint32_t)(job->m * job->n * job->count),
                                          .columns = (uint32_t)job->n,
                                          .slices = slices });
}

void vkt_conv_shared_emit(vkt_emit *e, const vkt_conv_job *j, const vkt_blocks *tiling)
{
    const vkt_conv2d_size *z = j->z;
    const vkt_blocks_job job = job_of(j);
    const uint32_t *src = j->transposed ? z->out : z->in;
    const bool in_16 = tiling->coop && !tiling->split;
    const bool along_m = reads_along_m(j, in_16), packs = !along_m && !reads_along_k(j, in_16);
    const vkt_tensor w = packs ? pack_weights(e, j, &job, in_16) : j->w;
    const bool sliced = tiling->slices > 1;
    const vkt_tensor part = sliced ? vkt_scratch(e, "slices", 4 * job.m * job.n * job.count * tiling->slices) : j->to;
    const vkt_conv2d_shared_push push = { .rows = (uint32_t)job.m,
                                          .columns = (uint32_t)job.n,
                                          .K = (uint32_t)job.k,
                                          .src_height = src[0],
                                          .src_width = src[1],
                                          .pad_h = z->a.pad[0],
                                          .pad_w = z->a.pad[1],
                                          .dilation_h = z->a.dilation[0],
                                          .dilation_w = z->a.dilation[1],
                                          .w_group = (uint32_t)(job.m * job.k),
                                          .bias = j->bias.id != 0,
                                          .slice = tiling->slice,
                                          .part = sliced ? (uint32_t)(job.m * job.n * job.count) : 0 };
    const vkt_bind bind[] = { [CONV2D_SHARED_W] = VKT_WHOLE(w),
                              [CONV2D_SHARED_SRC] = VKT_WHOLE(j->from),
                              [CONV2D_SHARED_BIAS] = VKT_WHOLE(j->bias.id ? j->bias : j->w),
                              [CONV2D_SHARED_DST] = VKT_WHOLE(part) };
    uint32_t spec[CONV2D_SHARED_SPECS];
    memcpy(spec, tiling->spec, sizeof tiling->spec);
    spec[BLOCKS_SPEC_WHOLE] = vkt_blocks_whole(tiling, job.m, job.n, job.k);
    spec[CONV2D_SHARED_SPEC_DEPTH] = weights_of(j).depth;
    spec[CONV2D_SHARED_SPEC_KERNEL_W] = z->kernel[1];
    spec[CONV2D_SHARED_SPEC_N4] = z->n4;
    spec[CONV2D_SHARED_SPEC_WIDTH] = j->transposed ? z->in[1] : z->out[1];
    spec[CONV2D_SHARED_SPEC_STRIDE_H] = z->a.stride[0];
    spec[CONV2D_SHARED_SPEC_STRIDE_W] = z->a.stride[1];
    spec[CONV2D_SHARED_SPEC_ALONG_M] = along_m;
    spec[CONV2D_SHARED_SPEC_INSIDE] = is_inside(j);
    static const vkt_kernel_id kernels[4][2] = { { VKT_K_CONV2D_SHARED, VKT_K_CONV2D_SHARED_DX },
                                                 { VKT_K_CONV2D_COOP, VKT_K_CONV2D_COOP_DX },
                                                 { VKT_K_CONV2D_SPLIT, VKT_K_CONV2D_SPLIT_DX },
                                                 { VKT_K_CONV2D_BFLOAT, VKT_K_CONV2D_BFLOAT_DX } };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = (uint16_t)kernels[vkt_blocks_kernel(tiling)][j->transposed],
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { tiling->tiles, tiling->slices, z->a.groups } });
    if (sliced) sum_slices(e, j, &job, tiling->slices, part);
}

/* ---- dw and db ---- */

/* Returns the product of one group of the convolution. M: output channels. N: weights of an output channel and, for db,
 * one column whose elements are 1. K: pixels of all samples, with the padding of the batch. */
static vkt_blocks_job dw_job_of(const vkt_conv_dw_job *j)
{
    const vkt_conv2d_size *z = j->z;
    return (vkt_blocks_job){ .m = z->out_channels / z->a.groups,
                             .n = (uint64_t)z->channels / z->a.groups * taps_of(z) + (j->db.id != 0),
                             .k = (uint64_t)z->out[0] * z->out[1] * z->n4 * 4,
                             .count = z->a.groups };
}

vkt_conv2d_tilings vkt_conv_dw_shared_plan(const vkt_emit *e, const vkt_conv_dw_job *j)
{
    vkt_blocks_job job = dw_job_of(j);
    const uint64_t most = e->lim->max_storage_range_bytes / 4 / vkt_conv2d_slices_of(e, j->dw, j->db).floats;
    /* SHARED and COOP read a dy with the size of y. j->dy itself is smaller if it is the gradient of a pooling's output
     * (parts.h). */
    const uint64_t dy_bytes = job.count * job.m * job.k * vkt_element_bytes(vkt_lowered_value(e, j->dy));
    if (!in_one_binding(e, j->x) || dy_bytes > e->lim->max_storage_range_bytes || !in_one_binding(e, j->dw) ||
        job.k > UINT32_MAX)
        return (vkt_conv2d_tilings){ .can_shared = false };
    return tilings_of(e, &job, most);
}

void vkt_conv_dw_shared_emit(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_blocks *tiling)
{
    const vkt_conv2d_size *z = j->z;
    const vkt_blocks_job job = dw_job_of(j);
    vkt_conv2d_slices slices = vkt_conv2d_slices_of(e, j->dw, j->db);
    slices.n = tiling->slices;
    if (slices.n > 1) slices.t = vkt_scratch(e, "slices", 4 * slices.floats * slices.n);
    const vkt_conv2d_dw_shared_push push = { .rows = (uint32_t)job.m,
                                             .columns = (uint32_t)job.n - (j->db.id != 0),
                                             .bias = j->db.id != 0,
                                             .plane = (uint32_t)job.k,
                                             .slice = tiling->slice,
                                             .depth = z->channels / z->a.groups,
                                             .src_height = z->in[0],
                                             .src_width = z->in[1],
                                             .stride_h = z->a.stride[0],
                                             .stride_w = z->a.stride[1],
                                             .pad_h = z->a.pad[0],
                                             .pad_w = z->a.pad[1],
                                             .dilation_h = z->a.dilation[0],
                                             .dilation_w = z->a.dilation[1],
                                             .part = (uint32_t)slices.floats };
    const vkt_tensor dw = slices.t.id ? slices.t : j->dw, db = slices.t.id || !j->db.id ? dw : j->db;
    vkt_bind bind[] = { [CONV2D_DW_SHARED_DY] = VKT_WHOLE(j->dy),
                        [CONV2D_DW_SHARED_X] = VKT_WHOLE(j->x),
                        [CONV2D_DW_SHARED_DW] = VKT_WHOLE(dw),
                        [CONV2D_DW_SHARED_DB] = VKT_WHOLE(db) };
    if (slices.t.id && j->db.id) bind[CONV2D_DW_SHARED_DB].offset_bytes = 4 * slices.bias_start;
    uint32_t spec[CONV2D_DW_SHARED_SPECS];
    memcpy(spec, tiling->spec, sizeof tiling->spec);
    spec[CONV2D_DW_SHARED_SPEC_TAPS] = taps_of(z);
    spec[CONV2D_DW_SHARED_SPEC_KERNEL_W] = z->kernel[1];
    spec[CONV2D_DW_SHARED_SPEC_N4] = z->n4;
    spec[CONV2D_DW_SHARED_SPEC_WIDTH] = z->out[1];
    spec[CONV2D_DW_SHARED_SPEC_INSIDE] = reads_inside(z);
    spec[BLOCKS_SPEC_WHOLE] = vkt_blocks_whole(tiling, job.m, job.n, job.k);
    if (j->db.id) spec[BLOCKS_SPEC_WHOLE] &= ~BLOCKS_WHOLE_N; /* a kernel with BLOCKS_WHOLE_N has no column of ones */
    static const vkt_kernel_id kernels[4] = { VKT_K_CONV2D_DW_SHARED, VKT_K_CONV2D_DW_COOP, VKT_K_CONV2D_DW_SPLIT,
                                              VKT_K_CONV2D_DW_BFLOAT };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = (uint16_t)kernels[vkt_blocks_kernel(tiling)],
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { tiling->tiles, tiling->slices, z->a.groups } });
    if (slices.t.id) vkt_conv2d_sum_slices(e, &slices, j->dw, j->db);
}
