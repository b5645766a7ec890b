/* ops/norm/row_norm.c - layer, group and RMS normalisation. Each row of neighbouring elements is normalised alone.
 *
 *   x in ROWS is (samples, groups, channels, inner). A row is one group of one sample, with channels * inner elements
 *   y = gamma (x - mean) / sqrt(var + eps) + beta; RMS: mean is 0, and var is the mean of the squares
 *   layer norm and RMS norm: one group, and inner is 1; group norm: the channels C are split into groups
 *
 * If x, y, dy and dx each fit into a binding, the forward pass needs one dispatch. In this case, the backward pass
 * needs one dispatch for dx, and two for dgamma and dbeta. The first of these two computes sums over slices of the
 * samples, and the second one adds the sums of the slices. */
#include "ops/norm/norm.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_dw_sum.abi.h"
#include "abi/row_norm.abi.h"

/* ---- geometry ---- */

static uint32_t run_of(const vkt_row_norm_attr *a)
{
    return a->channels * a->inner;
}

static bool is_wide(const vkt_row_norm_attr *a)
{
    return run_of(a) % 4 == 0 && (a->inner == 1 || a->inner % 4 == 0);
}

/* Returns whether the kernels for whole vec4s are used. Only these kernels can read and write values in 16 bits. */
static bool is_half(const vkt_node *n)
{
    return is_wide(n->attr);
}

static uint64_t samples_of(const vkt_node *n)
{
    const vkt_row_norm_attr *a = n->attr;
    return vkt_shape_elements(vkt_node_in(n, 0)->shape) / run_of(a) / a->groups;
}

static vkt_row_norm_push push_of(const vkt_row_norm_attr *a)
{
    return (vkt_row_norm_push){
        .run = run_of(a), .groups = a->groups, .channels = a->channels, .inner = a->inner, .eps = a->eps
    };
}

/* Returns how many samples the bindings of x, y and dy hold at once. y and dy may be null. If a binding does not hold
 * one sample, sets the emission's error and returns 0. */
static uint64_t samples_at_once(const vkt_node *n, vkt_emit *e, vkt_tensor y, vkt_tensor dy)
{
    const vkt_row_norm_attr *a = n->attr;
    uint32_t size = vkt_element_bytes(vkt_lowered_value(e, n->in[0]));
    if (y.id) size = VKT_MAX(size, vkt_element_bytes(vkt_lowered_value(e, y)));
    if (dy.id) size = VKT_MAX(size, vkt_element_bytes(vkt_lowered_value(e, dy)));
    const uint64_t sample_bytes = (uint64_t)run_of(a) * a->groups * size;
    const uint64_t most = vkt_steps_in(e->lim->max_storage_range_bytes, sample_bytes, samples_of(n));
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: a sample of %llu bytes is larger than a binding of this device", n->op->name,
                                   (unsigned long long)sample_bytes));
    return most;
}

/* Emits the dispatches for y or dx, one range of samples at a time. */
static void emit_rows(const vkt_node *n, vkt_emit *e, uint16_t kernel, vkt_bind *bind, uint32_t n_bind)
{
    const vkt_row_norm_attr *a = n->attr;
    const vkt_tensor x = n->in[0], dy = bind[ROW_NORM_DY].t, y = n->out[0];
    const uint64_t most = samples_at_once(n, e, y, dy), samples = samples_of(n);
    const uint64_t sample = (uint64_t)run_of(a) * a->groups;
    const bool gradient = dy.id != 0;
    const bool gamma = bind[ROW_NORM_GAMMA].t.id != 0, beta = bind[ROW_NORM_BETA].t.id != 0;
    const bool split = a->inner > 1; /* the kernel loops over one channel after the other */
    const uint32_t loads = (split ? a->inner : a->channels) / (is_wide(a) ? 4 : 1);
    const uint32_t lanes = vkt_lanes_for_passes(e, kernel, loads, split ? 3ull * a->channels : 3);
    const uint32_t spec[] = { lanes,
                              [ROW_NORM_SPEC_HELD] = split ? 0 : vkt_held(e->lim, loads, lanes, gradient ? 2 : 1),
                              [ROW_NORM_SPEC_GAMMA] = gamma,
                              [ROW_NORM_SPEC_BETA] = beta,
                              [ROW_NORM_SPEC_RMS] = a->rms,
                              [ROW_NORM_SPEC_SPLIT] = split };
    vkt_row_norm_push pc = push_of(a);
    for (uint64_t s = 0; most && s < samples; s += most) {
        const uint64_t count = VKT_MIN(most, samples - s);
        pc.first = (uint32_t)(s * a->groups);
        pc.rows = (uint32_t)(count * a->groups);
        bind[ROW_NORM_X] = vkt_bind_range(e, x, s * sample, count * sample, &pc.x0);
        bind[ROW_NORM_Y] = vkt_bind_range(e, y, s * sample, count * sample, &pc.y0);
        if (gradient) bind[ROW_NORM_DY] = vkt_bind_range(e, dy, s * sample, count * sample, &pc.dy0);
        if (!gamma) bind[ROW_NORM_GAMMA] = bind[ROW_NORM_X]; /* the kernel does not read this binding */
        if (!beta && !gradient) bind[ROW_NORM_BETA] = bind[ROW_NORM_X];
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                           .bind = bind,
                                           .n_bind = n_bind,
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { pc.rows, 1, 1 } });
    }
}

/* ---- row_norm: x, gamma, beta -> y, scale = 1 / sqrt(var + eps), mean (RMS: no mean) ---- */

static vkt_result check(const vkt_infer *f)
{
    const vkt_row_norm_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0);
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && x->layout == VKT_ROWS, VKT_E_DTYPE, "%s: want f32 by rows, got %s",
                f->n->op->name, vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, a->eps >= 0 && !isinf(a->eps) && a->rms <= 1, VKT_E_ARG,
                "%s: want eps >= 0 and rms 0 or 1, got %g and %u", f->n->op->name, (double)a->eps, a->rms);
    const uint64_t all = vkt_shape_elements(x->shape);
    uint64_t sample = (uint64_t)a->groups * a->channels;
    if (!vkt_mul_u64(sample, a->inner, &sample)) sample = 0;
    VKT_REQUIRE(f, sample != 0 && all % sample == 0, VKT_E_SHAPE,
                "%s: want whole samples of %u groups of %u channels of %u, got %s", f->n->op->name, a->groups,
                a->channels, a->inner, vkt_shape_text(x->shape, text));
    VKT_REQUIRE(f, all <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", f->n->op->name);
    return VKT_OK;
}

static vkt_result infer(vkt_infer *f)
{
    VKT_TRY(check(f));
    const vkt_row_norm_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    VKT_TRY(vkt_norm_check_vector(f, 1, a->groups * a->channels, "gamma"));
    VKT_TRY(vkt_norm_check_vector(f, 2, a->groups * a->channels, "beta"));
    const vkt_shape rows = vkt_shape1((uint32_t)(vkt_shape_elements(x.shape) / run_of(a)));
    vkt_out(f, VKT_F32, VKT_ROWS, x.shape);
    vkt_out(f, VKT_F32, VKT_ROWS, rows);
    if (!a->rms) vkt_out(f, VKT_F32, VKT_ROWS, rows);
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_row_norm_attr *a = n->attr;
    vkt_bind bind[] = { [ROW_NORM_GAMMA] = VKT_WHOLE(n->in[1]),
                        [ROW_NORM_BETA] = VKT_WHOLE(n->in[2]),
                        [ROW_NORM_MEAN] = VKT_WHOLE(n->out[a->rms ? 1 : 2]),
                        [ROW_NORM_SCALE] = VKT_WHOLE(n->out[1]),
                        [ROW_NORM_DY] = { .bytes = 0 } };
    emit_rows(n, e, is_wide(a) ? VKT_K_ROW_NORM4 : VKT_K_ROW_NORM, bind, VKT_COUNT(bind));
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { n->in[0], dy[0], n->out[1], n->in[1], n->out[2] };
    vkt_tensor outs[VKT_MAX_OUT];
    if (!dy[0].id) return;
    if (vkt_wants_grad(g, n->in[0])) dx[0] = vkt_apply(g, &vkt_op_row_norm_dx, in, 5, n->attr, NULL);
    if (!vkt_wants_grad(g, n->in[1]) && !vkt_wants_grad(g, n->in[2])) return;
    vkt_apply(g, &vkt_op_row_norm_dw, (vkt_tensor[]){ in[0], in[1], in[2], in[4] }, 4, n->attr, outs);
    dx[1] = outs[0];
    dx[2] = outs[1];
}

static void sample(vkt_rng *r, vkt_case *c)
{
    vkt_row_norm_attr a = { .groups = 1, .channels = vkt_rng_range(r, 3, 90), .inner = 1, .eps = 1e-5f };
    if (vkt_rng_range(r, 0, 1)) a.channels = 4 * vkt_rng_range(r, 1, 70);
    if (vkt_rng_range(r, 0, 2) == 0) {
        a.groups = vkt_rng_range(r, 1, 5);
        a.inner = vkt_rng_range(r, 0, 1) ? 4 * vkt_rng_range(r, 1, 17) : vkt_rng_range(r, 3, 61);
        a.channels = vkt_rng_range(r, 1, 6);
    }
    a.rms = vkt_rng_range(r, 0, 3) == 0;
    const uint32_t samples = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, 1, 40) : vkt_rng_range(r, 100, 300);
    vkt_shape x = vkt_shape4(samples, a.groups, a.channels, a.inner);
    if (a.inner == 1) x = a.channels % 8 ? vkt_shape2(samples, a.channels) : vkt_shape3(samples, a.channels / 8, 8);
    vkt_case_f32(c, VKT_ROWS, x, -1, 3);
    for (uint32_t i = 0; i < 2; i++) /* gamma, beta */
        if (vkt_rng_range(r, 0, 3))
            vkt_case_f32(c, VKT_ROWS, vkt_shape1(a.groups * a.channels), i ? -1.0f : 0.5f, i ? 1 : 2);
        else
            vkt_case_absent(c);
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts for each element four operations of the statistics (sum, difference, square, sum), and four of y (difference,
 * two products, sum). */
static double flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * 8;
}

static const vkt_field fields[] = {
    VKT_FIELD(vkt_row_norm_attr, groups, U32, 1, 1), VKT_FIELD(vkt_row_norm_attr, channels, U32, 1, 1),
    VKT_FIELD(vkt_row_norm_attr, inner, U32, 1, 1),  VKT_FIELD(vkt_row_norm_attr, rms, U32, 1, 0),
    VKT_FIELD(vkt_row_norm_attr, eps, F32, 1, 1e-5), { .name = NULL }
};

const vkt_op vkt_op_row_norm = {
    .name = "row_norm",
    .min_in = 1,
    .max_in = 3,
    .cheap = true,
    .diff = 7,
    .attr_bytes = sizeof(vkt_row_norm_attr),
    .infer = infer,
    .emit = emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .half_when = is_half,
    .backward = backward,
    .sample = sample,
    .rel_tol = 4e-6f,
    .abs_tol = 1e-5f,
    .tol_why = "mean and deviation within some units of 2^-24 of numbers up to 3; rows of three numbers may lie close "
               "together, which divides that by a small deviation; gradients are differences of sums",
    .flops = flops,
    .fields = fields,
    .formula = "y = gamma (x - mean) / sqrt(var + eps) + beta, of rows; RMS: y = gamma x / sqrt(mean x^2 + eps) + beta"
};

/* ---- row_norm_dx: x, dy, scale, gamma, mean -> dx ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    VKT_TRY(check(f));
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, vkt_shape_equal(x.shape, vkt_in(f, 1)->shape), VKT_E_SHAPE, "%s: want a gradient of x's shape",
                f->n->op->name);
    vkt_out(f, VKT_F32, VKT_ROWS, x.shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_row_norm_attr *a = n->attr;
    vkt_bind bind[] = { [ROW_NORM_GAMMA] = VKT_WHOLE(n->in[3]),
                        [ROW_NORM_MEAN] = VKT_WHOLE(n->in[a->rms ? 2 : 4]),
                        [ROW_NORM_SCALE] = VKT_WHOLE(n->in[2]),
                        [ROW_NORM_DY] = VKT_WHOLE(n->in[1]) };
    emit_rows(n, e, is_wide(a) ? VKT_K_ROW_NORM_DX4 : VKT_K_ROW_NORM_DX, bind, VKT_COUNT(bind));
}

/* Counts for each element six operations of the two sums (one difference, three products, two additions), and five of
 * dx (two differences, three products). */
static double dx_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * 11;
}

const vkt_op vkt_op_row_norm_dx = { .name = "row_norm_dx",
                                    .min_in = 3,
                                    .max_in = 5,
                                    .attr_bytes = sizeof(vkt_row_norm_attr),
                                    .infer = dx_infer,
                                    .emit = dx_emit,
                                    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
                                    .half_when = is_half,
                                    .forward_only = true,
                                    .tested_by = "row_norm",
                                    .flops = dx_flops,
                                    .fields = fields,
                                    .formula = "dx = scale (gamma dy - mean(gamma dy) - xhat mean(gamma dy xhat))" };

/* ---- row_norm_dw: x, dy, scale, mean -> dgamma, dbeta ---- */

static vkt_result dw_infer(vkt_infer *f)
{
    VKT_TRY(check(f));
    const vkt_row_norm_attr *a = f->n->attr;
    VKT_REQUIRE(f, vkt_shape_equal(vkt_in(f, 0)->shape, vkt_in(f, 1)->shape), VKT_E_SHAPE,
                "%s: want a gradient of x's shape", f->n->op->name);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(a->groups * a->channels));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(a->groups * a->channels));
    return VKT_OK;
}

/* Returns the number of samples of a slice. A lane needs `iterations` iterations per sample. Usually a slice has 64
 * samples: enough work for a work group, and so few terms that rounding errors stay small. A slice has fewer samples if
 * each sample needs many iterations. One lane adds the results of all slices, so there must not be too many slices: if
 * the batch is large, a slice has more samples. */
static uint32_t slice_samples(const vkt_limits *lim, uint64_t samples, uint64_t iterations)
{
    const uint64_t loop = VKT_MIN(vkt_largest_loop(lim), 32768);
    const uint64_t short_loops = VKT_MIN(64, VKT_MAX(loop / iterations, 1));
    return (uint32_t)VKT_MAX(short_loops, samples / (loop / 4) + 1);
}

static void dw_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_row_norm_attr *a = n->attr;
    const bool along = a->inner > 1, wide = is_wide(a);
    const uint16_t kernels[2][2] = { { VKT_K_ROW_NORM_DW, VKT_K_ROW_NORM_DW4 },
                                     { VKT_K_ROW_NORM_DW_ALONG, VKT_K_ROW_NORM_DW_ALONG4 } };
    const uint32_t all = a->groups * a->channels, width = wide ? 4 : 1;
    const uint32_t lanes = along ? vkt_lanes_for_passes(e, kernels[along][wide], a->inner / width, 1)
                                 : vkt_subgroup(e->lim, kernels[along][wide]);
    const uint32_t spec[] = { lanes, [ROW_NORM_SPEC_RMS] = a->rms, [ROW_NORM_SPEC_GROUPED] = a->groups > 1 };
    const uint64_t most = samples_at_once(n, e, (vkt_tensor){ 0 }, n->in[1]), samples = samples_of(n);
    const uint64_t sample = (uint64_t)run_of(a) * a->groups;
    if (most == 0) return;
    vkt_row_norm_push pc = push_of(a);
    pc.slice_samples = slice_samples(e->lim, samples, along ? vkt_groups(a->inner, lanes, width) : 1);
    uint64_t slices = 0;
    for (uint64_t s = 0; s < samples; s += most)
        slices += vkt_div_up((uint32_t)VKT_MIN(most, samples - s), pc.slice_samples);
    const vkt_tensor part = vkt_scratch(e, "slices", slices * 2 * all * 4);
    for (uint64_t s = 0; s < samples; s += most) {
        const uint64_t count = VKT_MIN(most, samples - s);
        pc.first = (uint32_t)(s * a->groups);
        pc.rows = (uint32_t)(count * a->groups);
        pc.slices = vkt_div_up((uint32_t)count, pc.slice_samples);
        const vkt_bind bind[] = { [ROW_NORM_X] = vkt_bind_range(e, n->in[0], s * sample, count * sample, &pc.x0),
                                  [ROW_NORM_DY] = vkt_bind_range(e, n->in[1], s * sample, count * sample, &pc.dy0),
                                  [ROW_NORM_MEAN] = VKT_WHOLE(n->in[a->rms ? 2 : 3]),
                                  [ROW_NORM_SCALE] = VKT_WHOLE(n->in[2]),
                                  [ROW_NORM_PART] = VKT_WHOLE(part) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernels[along][wide],
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { along ? all : vkt_groups(all, lanes, width),
                                                       VKT_MIN(pc.slices, 1024u), 1 } });
        pc.first_slice += pc.slices;
    }
    const vkt_conv2d_dw_sum_push sum = { all, all, all, 2 * all, pc.first_slice };
    const uint32_t sum_spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_reduce) };
    const vkt_bind bind[] = {
        [DW_SUM_PART] = VKT_WHOLE(part), [DW_SUM_W] = VKT_WHOLE(n->out[0]), [DW_SUM_B] = VKT_WHOLE(n->out[1])
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = all % 4 ? VKT_K_CONV2D_DW_SUM : VKT_K_CONV2D_DW_SUM4,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(sum),
                                       .spec = sum_spec,
                                       .n_spec = 1,
                                       .groups = { vkt_groups(2 * (uint64_t)all, sum_spec[0], 4), 1, 1 } });
}

/* Counts for each element a difference, two products and two sums. */
static double dw_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * 5;
}

const vkt_op vkt_op_row_norm_dw = { .name = "row_norm_dw",
                                    .min_in = 3,
                                    .max_in = 4,
                                    .attr_bytes = sizeof(vkt_row_norm_attr),
                                    .infer = dw_infer,
                                    .emit = dw_emit,
                                    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1),
                                    .half_when = is_half,
                                    .forward_only = true,
                                    .tested_by = "row_norm",
                                    .flops = dw_flops,
                                    .fields = fields,
                                    .formula = "dgamma = sum of dy xhat, dbeta = sum of dy, over samples" };

/* ---- building ---- */

static vkt_tensor refuse(vkt_graph *g, vkt_result r)
{
    vkt_graph_error(g, r);
    return (vkt_tensor){ 0 };
}

static vkt_tensor normalise(vkt_graph *g, vkt_tensor x, vkt_row_norm_attr a, vkt_tensor gamma, vkt_tensor beta)
{
    const vkt_layout layout = g->values[x.id].layout;
    x = vkt_to_layout(g, x, VKT_ROWS);
    return vkt_to_layout(g, vkt_apply(g, &vkt_op_row_norm, (vkt_tensor[]){ x, gamma, beta }, 3, &a, NULL), layout);
}

/* Adds the normalisation whose rows are the last `dims` dimensions of x. */
static vkt_tensor normalise_last(vkt_graph *g, const char *name, vkt_tensor x, uint32_t dims, vkt_row_norm_attr a,
                                 vkt_tensor gamma, vkt_tensor beta)
{
    if (!vkt_is_usable(g, name, x)) return (vkt_tensor){ 0 };
    const vkt_shape s = g->values[x.id].shape;
    char text[80];
    if (dims == 0 || dims > s.rank)
        return refuse(g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want 1 to all dimensions of %s, got %u", name,
                                  vkt_shape_text(s, text), dims));
    a.groups = a.inner = a.channels = 1;
    for (uint32_t i = s.rank - dims; i < s.rank; i++) a.channels *= s.dim[i];
    if (gamma.id) gamma = vkt_reshape(g, gamma, vkt_shape1(a.channels));
    if (beta.id) beta = vkt_reshape(g, beta, vkt_shape1(a.channels));
    return normalise(g, x, a, gamma, beta);
}

vkt_tensor vkt_layer_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, vkt_tensor beta, float eps)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_row_norm_attr a = { .eps = vkt_or_f32(eps, 1e-5f) };
    return normalise_last(g, "layer_norm", x, dims, a, gamma, beta);
}

vkt_tensor vkt_rms_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, float eps)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_row_norm_attr a = { .eps = vkt_or_f32(eps, 0x1p-23f), .rms = 1 };
    return normalise_last(g, "rms_norm", x, dims, a, gamma, (vkt_tensor){ 0 });
}

vkt_tensor vkt_group_norm(vkt_graph *g, vkt_tensor x, uint32_t groups, vkt_tensor gamma, vkt_tensor beta, float eps)
{
    if (!g) return (vkt_tensor){ 0 };
    if (!vkt_is_usable(g, "group_norm", x)) return (vkt_tensor){ 0 };
    const vkt_shape s = g->values[x.id].shape;
    char text[80];
    if (s.rank < 2 || groups == 0 || s.dim[1] % groups)
        return refuse(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                  "group_norm: want (N,C,...) and groups that divide C, got %s "
                                  "and %u",
                                  vkt_shape_text(s, text), groups));
    vkt_row_norm_attr a = {
        .groups = groups, .channels = s.dim[1] / groups, .inner = 1, .eps = vkt_or_f32(eps, 1e-5f)
    };
    for (uint32_t i = 2; i < s.rank; i++) a.inner *= s.dim[i];
    return normalise(g, x, a, gamma, beta);
}
