/* ops/conv/fused_max_pool.c - a direct convolution and a max pooling, with or without a relu between them. vkt_backward
 * fuses them into one node:
 *
 * z = x * w + bias, as in conv2d      y[n,o,p,q] = max of z, or of max(z, 0), over the window of (p,q)
 *
 * The gradients need the index of each winner, but not z. So z is never stored. */
#include "ops/conv/conv2d.h"
#include "ops/conv/variants.h"
#include "ops/conv/pool.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_max_pool.abi.h"
#include "abi/conv2d_pool_shared.abi.h"
#include "abi/direct_tiles.abi.h"

/* Every device can bind this many bytes (Vulkan 1.3, maxStorageBufferRange). If x or y is larger, the nodes are not
 * fused: the fused kernel must bind all channels of x in a group, and a separate convolution can split them. */
#define MAX_BYTES (1ull << 27)
/* The most elements of a pooling window. One lane computes a window. With windows as large as images, too few lanes
 * would be busy. */
#define MAX_ELEMENTS 64u
/* The most products of a weight and a vec4 that an iteration may unroll. */
#define MAX_PRODUCTS 512u
/* The most channels that a lane of pool_shared.comp computes. For each channel, a lane needs twelve registers: the
 * sums, maxima and winners of four samples. */
#define SHARED_ROWS 4u

static vkt_pool2d_attr pool_of(const vkt_conv2d_max_pool_attr *a, const uint32_t z[2])
{
    return (vkt_pool2d_attr){ .kernel = { a->cell[0], a->cell[1] },
                              .stride = { a->cell[0], a->cell[1] },
                              .relu = a->relu,
                              .out = { z[0] / a->cell[0], z[1] / a->cell[1] } };
}

static vkt_result infer(vkt_infer *f)
{
    const vkt_conv2d_max_pool_attr *a = f->n->attr;
    uint32_t z[2];
    VKT_TRY(vkt_conv2d_check(f, &a->conv, z));
    VKT_REQUIRE(f, a->relu <= 1, VKT_E_ARG, "%s: want relu 0 or 1, got %u", f->n->op->name, a->relu);
    VKT_REQUIRE(f, a->cell[0] && a->cell[1] && z[0] >= a->cell[0] && z[1] >= a->cell[1], VKT_E_ARG,
                "%s: pooling windows of %u x %u do not fit into %u x %u", f->n->op->name, a->cell[0], a->cell[1], z[0],
                z[1]);
    const vkt_shape x = vkt_in(f, 0)->shape, w = vkt_in(f, 1)->shape;
    VKT_REQUIRE(f, vkt_conv2d_is_shallow(w.dim[1], w.dim + 2), VKT_E_ARG, "%s: %u x %u x %u products an element",
                f->n->op->name, w.dim[1], w.dim[2], w.dim[3]);
    const vkt_shape y = vkt_shape4(x.dim[0], w.dim[0], z[0] / a->cell[0], z[1] / a->cell[1]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, y);
    vkt_out(f, VKT_U32, VKT_BATCH_LAST, y);
    return VKT_OK;
}

/* ---- dispatches ---- */

typedef struct job {
    const vkt_node *n;
    const vkt_conv2d_max_pool_attr *a;
    vkt_conv2d_size z;         /* z.out: height and width of y */
    uint32_t z_size[2];        /* height and width of the convolution's output */
    uint32_t rows, depth;      /* output and input channels of a group of the convolution */
    uint64_t y_plane, x_plane; /* vec4s of a channel */
} job;

/* A part of the output. It has channels from several groups of the convolution: from group number `group` to number
 * group + groups - 1. In each of these groups, it has the channels row .. row + rows - 1 of the group. */
typedef struct part {
    uint32_t group, groups, row, rows;
} part;

static job job_of(const vkt_node *n)
{
    const vkt_conv2d_max_pool_attr *a = n->attr;
    job j = { .n = n,
              .a = a,
              .z = vkt_conv2d_size_of(vkt_node_in(n, 0), vkt_node_out(n, 0), vkt_node_in(n, 1)->shape.dim + 2,
                                      &a->conv) };
    for (int i = 0; i < 2; i++) j.z_size[i] = vkt_conv2d_out_size(&a->conv, i, j.z.in[i], j.z.kernel[i]);
    j.rows = j.z.out_channels / a->conv.groups;
    j.depth = j.z.channels / a->conv.groups;
    j.y_plane = (uint64_t)j.z.out[0] * j.z.out[1] * j.z.n4;
    j.x_plane = (uint64_t)j.z.in[0] * j.z.in[1] * j.z.n4;
    return j;
}

/* Computes the size of the first part, which fits into the bindings. No part is larger. Returns false if one of these
 * does not fit into a binding: a channel of y, its weights, or the channels of x of one group of the
 * convolution. */
static bool split(const vkt_emit *e, const job *j, part *out)
{
    const uint64_t groups = j->a->conv.groups, range = e->lim->max_storage_range_bytes;
    const uint64_t w_bytes = 4ull * j->depth * j->z.kernel[0] * j->z.kernel[1];
    const uint64_t rows =
        VKT_MIN(vkt_steps_in(range, 16 * j->y_plane, groups * j->rows), vkt_steps_in(range, w_bytes, groups * j->rows));
    const uint64_t depth = vkt_steps_in(vkt_read_range(e->lim), 16 * j->x_plane, groups * j->depth);
    *out = (part){ .groups = 1, .rows = vkt_conv2d_share(j->rows, rows, 1) };
    if (out->rows == j->rows) out->groups = (uint32_t)VKT_MIN(VKT_MIN(rows / j->rows, depth / j->depth), groups);
    return out->rows && depth >= j->depth;
}

/* Returns true if, along the axis, some pixel of z in a pooling window needs a pixel outside of x. */
static bool reaches_out(const job *j, int axis)
{
    const vkt_conv2d_attr *a = &j->a->conv;
    const uint64_t last = (uint64_t)(j->z.out[axis] * j->a->cell[axis] - 1) * a->stride[axis] +
                          (uint64_t)(j->z.kernel[axis] - 1) * a->dilation[axis];
    return a->pad[axis] > 0 || last >= j->z.in[axis];
}

/* Returns how many elements of a window one iteration computes. This is the largest divisor of the window's size that
 * keeps the code small. Few iterations are better, because between two iterations the maxima and winners of all rows
 * are stored and loaded again. */
static uint32_t unrolled(const job *j, uint32_t rows)
{
    const uint32_t elements = j->a->cell[0] * j->a->cell[1];
    const uint32_t each = rows * j->depth * j->z.kernel[0] * j->z.kernel[1];
    uint32_t n = elements;
    while (n > 1 && (elements % n != 0 || n * each > MAX_PRODUCTS)) n--;
    return n;
}

static void emit_part(vkt_emit *e, const job *j, const part *p)
{
    const vkt_conv2d_attr *a = &j->a->conv;
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_CONV2D_MAX_POOL), n4 = j->z.n4, width = j->z.out[1],
                   columns = (uint32_t)j->y_plane;
    const uint32_t *cell = j->a->cell, *kernel = j->z.kernel, taps = kernel[0] * kernel[1];
    const uint32_t tiles = vkt_div_up(p->rows, VKT_DIRECT_ROWS), iterations = cell[0] * cell[1] + 1;
    const uint32_t rows = vkt_div_up(p->rows, tiles);
    const uint32_t in_flight = vkt_div_up(vkt_groups_wanted(e->lim, lanes), tiles * p->groups);
    const uint32_t rounds = (uint32_t)VKT_MIN(vkt_div_up(vkt_div_up(columns, in_flight), lanes),
                                              VKT_MAX(vkt_largest_loop(e->lim) / 2 / iterations, 1u));
    const uint32_t strips = vkt_div_up(columns, rounds * lanes), o = p->group * j->rows + p->row;
    if (!vkt_conv2d_is_short(e, strips, (uint64_t)rounds * iterations + 1)) return;
    vkt_conv2d_max_pool_push push = { .columns = columns,
                                      .n4 = n4,
                                      .width = width,
                                      .z_width = j->z_size[1],
                                      .strip = rounds * lanes,
                                      .step_p = lanes / n4 / width,
                                      .step_q = lanes / n4 % width,
                                      .step_n = lanes % n4,
                                      .rows = p->rows,
                                      .dst_group = j->rows,
                                      .src_height = j->z.in[0],
                                      .src_width = j->z.in[1],
                                      .next_h = a->stride[0],
                                      .next_w = a->stride[1],
                                      .stride_h = a->stride[0] * cell[0],
                                      .stride_w = a->stride[1] * cell[1],
                                      .offset_h = -(int32_t)a->pad[0],
                                      .offset_w = -(int32_t)a->pad[1],
                                      .reach_h = (int32_t)a->dilation[0],
                                      .reach_w = (int32_t)a->dilation[1],
                                      .w_group = j->rows * j->depth * taps,
                                      .w_row = j->depth * taps,
                                      .w_depth = taps,
                                      .w_tap_h = kernel[1],
                                      .w_tap_w = 1,
                                      .bias_base = o };
    /* Without a bias, in[1] is bound as the bias, but the kernel does not read that binding. */
    const vkt_tensor *in = j->n->in, *out = j->n->out, bias = in[2].id ? in[2] : in[1];
    const uint64_t n_o = (p->groups - 1ull) * j->rows + p->rows, weights = (uint64_t)j->depth * taps;
    const vkt_bind bind[] = {
        [CONV_POOL_W] = vkt_bind_range(e, in[1], o * weights, n_o * weights, &push.w_base),
        [CONV_POOL_X] = vkt_conv2d_channels(e, in[0], j->x_plane, (uint64_t)p->group * j->depth,
                                            (uint64_t)p->groups * j->depth, &push.src_base),
        [CONV_POOL_BIAS] = VKT_WHOLE(bias),
        [CONV_POOL_Y] = vkt_conv2d_channels(e, out[0], j->y_plane, o, n_o, &push.y_base),
        [CONV_POOL_INDEX] = vkt_conv2d_channels(e, out[1], j->y_plane, o, n_o, &push.index_base),
    };
    const uint32_t spec[CONV_POOL_SPECS] = { [CONV_POOL_SPEC_LANES] = lanes,
                                             [CONV_POOL_SPEC_ROWS] = rows,
                                             [CONV_POOL_SPEC_CHANNELS] = j->depth,
                                             [CONV_POOL_SPEC_KERNEL_H] = kernel[0],
                                             [CONV_POOL_SPEC_KERNEL_W] = kernel[1],
                                             [CONV_POOL_SPEC_PAD] = reaches_out(j, 0) || reaches_out(j, 1),
                                             [CONV_POOL_SPEC_BIAS] = in[2].id != 0,
                                             [CONV_POOL_SPEC_R] = cell[0],
                                             [CONV_POOL_SPEC_S] = cell[1],
                                             [CONV_POOL_SPEC_RELU] = j->a->relu,
                                             [CONV_POOL_SPEC_UNROLL] = unrolled(j, rows) };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_MAX_POOL,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { strips, tiles, p->groups } });
}

/* Emits one part, like emit_part. The kernel keeps the weights in shared memory. */
static void emit_shared_part(vkt_emit *e, const job *j, const part *p)
{
    const vkt_conv2d_attr *a = &j->a->conv;
    const uint32_t *cell = j->a->cell, *kernel = j->z.kernel, taps = kernel[0] * kernel[1], K = j->depth * taps;
    const uint32_t columns = (uint32_t)j->y_plane, o = p->group * j->rows + p->row;
    const vkt_direct_job direct = { columns, p->rows, p->groups, K, SHARED_ROWS };
    const vkt_direct_tiles t = vkt_direct_tiles_of(e->lim, &direct);
    vkt_conv2d_pool_shared_push push = { .columns = columns,
                                         .z_width = j->z_size[1],
                                         .rows = p->rows,
                                         .dst_group = j->rows,
                                         .K = K,
                                         .taps = taps,
                                         .kernel_w = kernel[1],
                                         .src_height = j->z.in[0],
                                         .src_width = j->z.in[1],
                                         .next_h = a->stride[0],
                                         .next_w = a->stride[1],
                                         .stride_h = a->stride[0] * cell[0],
                                         .stride_w = a->stride[1] * cell[1],
                                         .offset_h = -(int32_t)a->pad[0],
                                         .offset_w = -(int32_t)a->pad[1],
                                         .reach_h = (int32_t)a->dilation[0],
                                         .reach_w = (int32_t)a->dilation[1],
                                         .w_group = j->rows * K,
                                         .w_row = K,
                                         .w_depth = taps,
                                         .w_tap_h = kernel[1],
                                         .w_tap_w = 1,
                                         .bias_base = o };
    /* Without a bias, in[1] is bound as the bias, but the kernel does not read that binding. */
    const vkt_tensor *in = j->n->in, *out = j->n->out, bias = in[2].id ? in[2] : in[1];
    const uint64_t n_o = (p->groups - 1ull) * j->rows + p->rows;
    const vkt_bind bind[] = {
        [POOL_SHARED_W] = vkt_bind_range(e, in[1], (uint64_t)o * K, n_o * K, &push.w_base),
        [POOL_SHARED_X] = vkt_conv2d_channels(e, in[0], j->x_plane, (uint64_t)p->group * j->depth,
                                              (uint64_t)p->groups * j->depth, &push.src_base),
        [POOL_SHARED_BIAS] = VKT_WHOLE(bias),
        [POOL_SHARED_Y] = vkt_conv2d_channels(e, out[0], j->y_plane, o, n_o, &push.y_base),
        [POOL_SHARED_INDEX] = vkt_conv2d_channels(e, out[1], j->y_plane, o, n_o, &push.index_base),
    };
    const uint32_t spec[POOL_SHARED_SPECS] = {
        [DIRECT_TILES_LANES] = t.lanes,
        [DIRECT_TILES_ACROSS] = t.across,
        [DIRECT_TILES_ROWS] = t.rows,
        [DIRECT_TILES_CHUNK] = t.chunk,
        [DIRECT_TILES_UNROLL] = t.unroll,
        [DIRECT_TILES_PAD] = reaches_out(j, 0) || reaches_out(j, 1) || K % t.unroll != 0,
        [DIRECT_TILES_BIAS] = in[2].id != 0,
        [DIRECT_TILES_N4] = j->z.n4,
        [DIRECT_TILES_WIDTH] = j->z.out[1],
        [POOL_SHARED_SPEC_R] = cell[0],
        [POOL_SHARED_SPEC_S] = cell[1],
        [POOL_SHARED_SPEC_RELU] = j->a->relu
    };
    const uint64_t strips = vkt_direct_strips(e, &t, p->groups, t.rounds * (cell[0] * cell[1] + 1ull));
    if (!strips) return;
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_POOL_SHARED,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { strips, t.row_tiles, p->groups } });
}

/* Returns true if DIRECT_SHARED is chosen. DIRECT_SHARED has the weights in shared memory; DIRECT has them in
 * registers. DIRECT_SHARED has no texel loads, so the source channels of a part must fit into one storage binding,
 * whose size limit may be smaller than that of a texel buffer. */
static bool is_shared(vkt_emit *e, const job *j, const part *most)
{
    const uint64_t channels = vkt_steps_in(e->lim->max_storage_range_bytes, 16 * j->x_plane, j->z.channels);
    const vkt_variant_cost candidates[] = { { VKT_V_DIRECT, 2 },
                                            { VKT_V_DIRECT_SHARED, e->lim->traits->shared_pays ? 1 : VKT_COST_NEVER } };
    return vkt_pick(e, candidates, channels / j->depth >= most->groups ? 2 : 1) == VKT_V_DIRECT_SHARED;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const job j = job_of(n);
    part most, p;
    if (!split(e, &j, &most)) {
        vkt_conv2d_too_large(e, &j.z);
        return;
    }
    const bool shared = is_shared(e, &j, &most);
    for (p.group = 0; p.group < j.a->conv.groups; p.group += most.groups)
        for (p.row = 0; p.row < j.rows; p.row += most.rows) {
            p.groups = VKT_MIN(most.groups, j.a->conv.groups - p.group);
            p.rows = VKT_MIN(most.rows, j.rows - p.row);
            if (shared)
                emit_shared_part(e, &j, &p);
            else
                emit_part(e, &j, &p);
        }
}

/* ---- graph ---- */

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_conv2d_max_pool_attr *a = n->attr;
    const vkt_shape x = vkt_tensor_shape(g, n->in[0]), w = vkt_tensor_shape(g, n->in[1]);
    uint32_t z[2];
    for (int i = 0; i < 2; i++) z[i] = vkt_conv2d_out_size(&a->conv, i, x.dim[2 + i], w.dim[2 + i]);
    const vkt_pool2d_attr pool = pool_of(a, z);
    const vkt_tensor dz = vkt_max_pool2d_dx(g, dy[0], n->out[1], &pool, vkt_shape4(x.dim[0], w.dim[0], z[0], z[1]));
    vkt_conv2d_backward(g, n, &a->conv, dz, dx);
}

/* Returns true if the windows are disjoint without gaps between them, have no dilation and no padding, are not clipped,
 * and have at most MAX_ELEMENTS elements. Sets cell to {R, S} in this case. */
static bool is_disjoint(const vkt_pool2d_attr *a, const uint32_t z[2], uint32_t cell[2])
{
    for (int i = 0; i < 2; i++) {
        cell[i] = a->adaptive ? z[i] / a->out[i] : a->kernel[i];
        if (a->adaptive ? z[i] % a->out[i] != 0 : a->stride[i] != a->kernel[i] || a->pad[i] != 0) return false;
        if (!a->adaptive && a->dilation[i] > 1) return false;
        if (cell[i] == 0 || z[i] / cell[i] != a->out[i]) return false; /* the last window is clipped */
    }
    return (uint64_t)cell[0] * cell[1] <= MAX_ELEMENTS;
}

bool vkt_conv2d_fuse_max_pool(vkt_graph *g, vkt_node *n, const vkt_node *conv, bool relu)
{
    if (conv->op != &vkt_op_conv2d) return false;
    const vkt_value *x = vkt_node_in(conv, 0), *y = vkt_node_out(n, 0);
    const vkt_shape w = vkt_node_in(conv, 1)->shape, z = vkt_node_out(conv, 0)->shape;
    vkt_conv2d_max_pool_attr a = { .conv = *(const vkt_conv2d_attr *)conv->attr, .relu = relu };
    if (!vkt_shape_equal(z, vkt_node_in(n, 0)->shape)) return false; /* reshapes between the nodes change the shape */
    if (!is_disjoint(n->attr, z.dim + 2, a.cell) || !vkt_conv2d_is_shallow(w.dim[1], w.dim + 2)) return false;
    /* With these sizes, a separate convolution may use Winograd or Fourier transforms. The fused op has neither. */
    if (w.dim[1] % 4 == 0 && w.dim[2] * w.dim[3] > 1) return false;
    if (x->bytes > MAX_BYTES || y->bytes > MAX_BYTES) return false;
    vkt_node_become(g, n, &vkt_op_conv2d_max_pool, conv->in, conv->n_in, &a);
    return true;
}

/* The inputs of a case are multiples of GRID from -1 to 1. A sum of up to 40 products of two such numbers is exact
 * while the sum is below 16. If sums were rounded, rounding errors could decide which of two equal elements of a window
 * is the winner, and the reference in double precision could have another winner. If the two largest elements are
 * equal, a difference quotient is not the gradient. GRID is so small that equal elements are rare. */
#define GRID (1.0f / 1024)

static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t batches[] = { 1, 3, 5, 16, 33, 64 };
    const uint32_t groups = vkt_rng_range(r, 0, 3) ? 1 : vkt_rng_range(r, 2, 3);
    const uint32_t channels = vkt_rng_range(r, 1, 4),
                   out_channels = vkt_rng_range(r, 1, vkt_rng_range(r, 0, 1) ? 5 : 19);
    vkt_conv2d_max_pool_attr a = { .conv = { .groups = groups }, .relu = vkt_rng_range(r, 0, 1) };
    uint32_t n = batches[vkt_rng_range(r, 0, VKT_COUNT(batches) - 1)], kernel[2], in[2];
    for (int i = 0; i < 2; i++) {
        a.conv.stride[i] = vkt_rng_range(r, 1, 2);
        a.conv.dilation[i] = vkt_rng_range(r, 1, 2);
        a.conv.pad[i] = vkt_rng_range(r, 0, 2);
        a.cell[i] = vkt_rng_range(r, 1, 3);
        kernel[i] = vkt_rng_range(r, 1, 3);
        in[i] = a.conv.stride[i] * (a.cell[i] - 1) + a.conv.dilation[i] * (kernel[i] - 1) + vkt_rng_range(r, 1, 9);
    }
    const uint64_t per_sample = (uint64_t)channels * out_channels * groups * in[0] * in[1] * kernel[0] * kernel[1];
    while (n > 1 && per_sample * n > 300000) n /= 2;
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape4(n, channels * groups, in[0], in[1]), -1, 1)->grid = GRID;
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(out_channels * groups, channels, kernel[0], kernel[1]), -1, 1)->grid = GRID;
    if (vkt_rng_range(r, 0, 2) == 0)
        vkt_case_absent(c);
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(out_channels * groups), -1, 1)->grid = GRID;
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts the operations for the pixels of z that are in a pooling window. A pixel costs its convolution and one
 * comparison, or two comparisons with relu. */
static double flops(const vkt_node *n)
{
    const vkt_conv2d_max_pool_attr *a = n->attr;
    const double pixels = vkt_elements_out(n, 0) * a->cell[0] * a->cell[1];
    return vkt_conv2d_flops(pixels, vkt_node_in(n, 1)->shape, n->in[2].id != 0) + pixels * (1 + a->relu);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_conv2d_max_pool_attr, conv.stride, U32, 2, 1),
                                    VKT_FIELD(vkt_conv2d_max_pool_attr, conv.pad, U32, 2, 0),
                                    VKT_FIELD(vkt_conv2d_max_pool_attr, conv.dilation, U32, 2, 1),
                                    VKT_FIELD(vkt_conv2d_max_pool_attr, conv.groups, U32, 1, 1),
                                    VKT_FIELD(vkt_conv2d_max_pool_attr, cell, U32, 2, 1),
                                    VKT_FIELD(vkt_conv2d_max_pool_attr, relu, U32, 1, 0),
                                    { .name = NULL } };

const vkt_op vkt_op_conv2d_max_pool = {
    .name = "conv2d_max_pool",
    .min_in = 2,
    .max_in = 3,
    .diff = 1u << 0 | 1u << 1 | 1u << 2,
    .attr_bytes = sizeof(vkt_conv2d_max_pool_attr),
    .infer = infer,
    .emit = emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0), /* the index stays in 32 bits */
    .backward = backward,
    .sample = sample,
    .rel_tol = 2e-5f,
    .abs_tol = 1e-5f,
    .tol_why = "as conv2d's: a maximum has no larger error than its operands",
    .flops = flops,
    .fields = fields,
    .formula = "y[n,o,p,q] = max of z, or of max(z, 0), over the pooling window of (p,q); z = conv2d(x, w, bias)",
};
