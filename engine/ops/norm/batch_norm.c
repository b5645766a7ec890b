/* ops/norm/batch_norm.c - normalisation of channels over the batch: batch_norm, its gradient, and running statistics.
 *
 *   x (N,C,...), BATCH_LAST: a channel is contiguous; only its elements of real rows (the step's `rows`) count
 *   y = gamma xhat + beta in the real rows, else 0;  xhat = (x - mean) / sqrt(var + eps)
 *   mean, var: mean and biased variance of the n elements of a channel in the real rows
 *   dbeta = sum dy, dgamma = sum dy xhat, dx = gamma / sqrt(var + eps) (dy - dbeta / n - xhat dgamma / n)
 *   (Ioffe & Szegedy, Batch Normalization, 2015.)
 *
 * The forward pass and the backward pass each have three parts:
 *   1. compute the statistics (backward: the sums) of each block of a channel
 *   2. combine the results of the blocks of each channel
 *   3. compute y (backward: dx), element by element
 * If a channel is one block, one kernel does all three parts. If a channel has few blocks (trait blocks_joined), each
 * work group of part 3 also does part 2. In both cases, the forward kernel of part 3 also updates the running
 * statistics, if the node has a companion running_stats (vkt_fuse_companion).
 *
 * If mean and variance are given (evaluation, or frozen statistics), the forward pass has part 3 only. In this case,
 * all rows of the batch count as real, and dx = gamma / sqrt(var + eps) dy. */
#include "ops/norm/norm.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/batch_norm.abi.h"
#include "abi/running_stats.abi.h"

/* The largest number of vec4s in a block: 32 KiB. The statistics need two loops over a block, and a block of this size
 * is still in a first-level cache when the second loop reads it. */
#define BLOCK4 2048u

vkt_result vkt_norm_check_vector(const vkt_infer *f, uint32_t i, uint32_t n, const char *name)
{
    if (!vkt_has(f, i)) return VKT_OK;
    const vkt_value *v = vkt_in(f, i);
    char text[80];
    VKT_REQUIRE(f, v->dtype == VKT_F32 && v->shape.rank == 1 && v->shape.dim[0] == n,
                v->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want %s f32 (%u), got %s %s", f->n->op->name,
                name, n, vkt_dtype_name(v->dtype), vkt_shape_text(v->shape, text));
    return VKT_OK;
}

static vkt_result check_channels(const vkt_infer *f)
{
    const vkt_batch_norm_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0);
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && x->shape.rank >= 2 && x->layout == VKT_BATCH_LAST,
                x->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want f32 (N,C,...), batch last, got %s %s",
                f->n->op->name, vkt_dtype_name(x->dtype), vkt_shape_text(x->shape, text));
    VKT_REQUIRE(f, a->eps >= 0 && !isinf(a->eps), VKT_E_ARG, "%s: want eps >= 0, got %g", f->n->op->name,
                (double)a->eps);
    VKT_REQUIRE(f, x->bytes / 16 / x->shape.dim[1] < UINT32_MAX, VKT_E_UNSUPPORTED,
                "%s: want channels of less than 2^34 elements", f->n->op->name);
    return VKT_OK;
}

/* ---- dispatches ---- */

/* The kernel and the arguments of one of the three parts (see the top of this file). Bit i of `ranged`: the tensor of
 * binding i is as large as x, so each dispatch binds only a range of its channels. */
typedef struct plan {
    const vkt_node *n;
    uint16_t kernel;
    vkt_bind bind[BATCH_NORM_BINDINGS];
    uint32_t ranged;
    vkt_batch_norm_push push;
    bool summed; /* the lanes of a work group compute sums together */
    bool joined; /* the elementwise part combines the results of blocks itself */
    uint32_t spec[7];
} plan;

static plan plan_of(const vkt_emit *e, const vkt_node *n, uint16_t kernel, float eps)
{
    const vkt_value *x = vkt_node_in(n, 0);
    const uint32_t batch = x->shape.dim[0], channels = x->shape.dim[1], period4 = vkt_div_up(batch, 4);
    plan p = { .n = n, .kernel = kernel };
    p.push = (vkt_batch_norm_push){ .channel4 = (uint32_t)(vkt_shape_elements(x->shape) / batch / channels) * period4,
                                    .period4 = period4,
                                    .batch = batch,
                                    .all_channels = channels,
                                    .eps = eps };
    p.push.per_block = VKT_MIN(p.push.channel4, BLOCK4);
    p.push.blocks = vkt_div_up(p.push.channel4, p.push.per_block);
    p.joined = p.push.blocks <= VKT_MAX(e->lim->traits->blocks_joined, 1u);
    p.spec[BATCH_NORM_SPEC_ALONE] = p.push.blocks == 1;
    return p;
}

/* Emits dispatches for all channels. Each dispatch has as many channels as every binding can hold. */
static void emit_channels(vkt_emit *e, plan *p)
{
    const uint64_t step_bytes = (uint64_t)p->push.channel4 * 16, channels = p->push.all_channels;
    const uint64_t most = vkt_steps_in(e->lim->max_storage_range_bytes, step_bytes, channels);
    if (most == 0) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: a channel of %llu bytes is larger than a binding of this device",
                                   p->n->op->name, (unsigned long long)step_bytes));
        return;
    }
    p->spec[0] = p->summed ? vkt_lanes_for(e->lim, p->kernel, p->push.per_block)
                           : VKT_MIN(vkt_lanes(e->lim, e->lim->traits->lanes_elementwise),
                                     (uint32_t)vkt_round_up(p->push.per_block, e->lim->subgroup_size));
    const uint64_t elements = (uint64_t)p->push.channel4 * 4;
    for (uint64_t c = 0; c < channels; c += most) {
        p->push.first = (uint32_t)c;
        p->push.channels = (uint32_t)VKT_MIN(most, channels - c);
        uint32_t base[BATCH_NORM_BINDINGS] = { 0 };
        vkt_bind bind[BATCH_NORM_BINDINGS];
        for (uint32_t i = 0; i < VKT_COUNT(bind); i++)
            bind[i] = p->ranged >> i & 1
                          ? vkt_bind_range(e, p->bind[i].t, c * elements, p->push.channels * elements, &base[i])
                          : p->bind[i];
        p->push.x4 = base[BATCH_NORM_X] / 4;
        p->push.dy4 = base[BATCH_NORM_DY] / 4;
        p->push.y4 = base[BATCH_NORM_Y] / 4;
        p->push.plus4 = base[BATCH_NORM_PLUS] / 4;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = p->kernel,
                                           VKT_LAUNCH_BIND(bind),
                                           .push = &p->push,
                                           .push_bytes = sizeof p->push,
                                           VKT_LAUNCH_SPEC(p->spec),
                                           .groups = { (uint64_t)p->push.channels * p->push.blocks, 1, 1 } });
    }
}

/* Emits the dispatch that combines the results of the blocks of each channel. The kernel reads the results of blocks
 * from the scratch value that `p` binds, and writes the results of channels to the tensors in `finish`. */
static void emit_finish(vkt_emit *e, const plan *p, uint16_t kernel, vkt_bind *finish)
{
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_reduce), spec[] = { lanes };
    finish[BATCH_NORM_PART] = p->bind[BATCH_NORM_PART];
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                       .bind = finish,
                                       .n_bind = BATCH_NORM_BINDINGS,
                                       .push = &p->push,
                                       .push_bytes = sizeof p->push,
                                       .spec = spec,
                                       .n_spec = 1,
                                       .groups = { vkt_groups(p->push.all_channels, lanes, 1), 1, 1 } });
}

static vkt_bind blocks_scratch(vkt_emit *e, const plan *p)
{
    return VKT_WHOLE(vkt_scratch(e, "blocks", (uint64_t)p->push.blocks * p->push.all_channels * 16));
}

/* ---- batch_norm: x, gamma, beta, step -> y, mean, var; batch_norm_given: x, mean, var, gamma, beta -> y ---- */

/* Lets the kernel do the work of the companion node running_stats, if there is one. Otherwise the bindings of running
 * statistics get the batch's mean, and the kernel does not use them. */
static void bind_running(vkt_emit *e, plan *p)
{
    const vkt_node *r = vkt_fuse_companion(e);
    const vkt_bind mean = p->bind[BATCH_NORM_MEAN];
    p->bind[BATCH_NORM_RUNNING_MEAN] = r ? VKT_WHOLE(r->in[0]) : mean;
    p->bind[BATCH_NORM_RUNNING_VAR] = r ? VKT_WHOLE(r->in[1]) : mean;
    p->spec[BATCH_NORM_SPEC_RUNNING] = r != NULL;
    if (!r) return;
    const vkt_running_stats_attr *a = r->attr;
    p->push.unbiased = a->unbiased;
    p->push.momentum = a->momentum;
}

/* Emits part 3 of the forward pass. If the parameter `part` binds a tensor, each work group also computes the
 * statistics of its channel. It combines the results of the channel's blocks, which are in this tensor. But if a
 * channel is one block, the work group computes the statistics from x, and does not read this tensor. */
static void emit_normalise(const vkt_node *n, vkt_emit *e, const vkt_tensor statistics[2], const vkt_tensor affine[2],
                           vkt_tensor step, vkt_bind part)
{
    const vkt_batch_norm_attr *a = n->attr;
    const vkt_tensor gamma = affine[0], beta = affine[1], mean = statistics[0];
    plan p = plan_of(e, n, part.t.id ? VKT_K_BATCH_NORM_JOINED : VKT_K_BATCH_NORM, a->eps);
    p.bind[BATCH_NORM_X] = VKT_WHOLE(n->in[0]);
    p.bind[BATCH_NORM_STEP] = VKT_WHOLE(step.id ? step : mean); /* no kernel reads the binding of an absent tensor */
    p.bind[BATCH_NORM_MEAN] = VKT_WHOLE(mean);
    p.bind[BATCH_NORM_VAR] = VKT_WHOLE(statistics[1]);
    p.bind[BATCH_NORM_GAMMA] = VKT_WHOLE(gamma.id ? gamma : mean);
    p.bind[BATCH_NORM_BETA] = VKT_WHOLE(beta.id ? beta : mean);
    p.bind[BATCH_NORM_Y] = VKT_WHOLE(n->out[0]);
    p.bind[BATCH_NORM_PART] = part;
    p.ranged = 1u << BATCH_NORM_X | 1u << BATCH_NORM_PLUS | 1u << BATCH_NORM_Y;
    p.summed = p.kernel == VKT_K_BATCH_NORM_JOINED;
    p.spec[BATCH_NORM_SPEC_GAMMA] = gamma.id != 0;
    p.spec[BATCH_NORM_SPEC_BETA] = beta.id != 0;
    p.spec[BATCH_NORM_SPEC_GIVEN] = step.id == 0;
    if (p.summed) bind_running(e, &p);
    const vkt_node *sum = vkt_fuse_epilogue(e, VKT_FUSE_SUM);
    p.bind[BATCH_NORM_PLUS] = VKT_WHOLE(sum ? sum->in[vkt_root(e->g, sum->in[0]) == n->out[0].id] : n->in[0]);
    p.spec[BATCH_NORM_SPEC_PLUS] = sum != NULL;
    if (vkt_fuse_epilogue(e, VKT_FUSE_RELU)) e->relu = n->out[0];
    emit_channels(e, &p);
}

static vkt_result batch_norm_infer(vkt_infer *f)
{
    VKT_TRY(check_channels(f));
    const vkt_value x = *vkt_in(f, 0);
    const uint32_t channels = x.shape.dim[1];
    const uint32_t affine = f->n->op->uses_step ? 1 : 3;
    VKT_TRY(vkt_norm_check_vector(f, affine, channels, "gamma"));
    VKT_TRY(vkt_norm_check_vector(f, affine + 1, channels, "beta"));
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, x.shape);
    if (affine == 3) {
        VKT_TRY(vkt_norm_check_vector(f, 1, channels, "mean"));
        return vkt_norm_check_vector(f, 2, channels, "variance");
    }
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(channels));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(channels));
    return VKT_OK;
}

/* Returns whether n updates running statistics by the batch's statistics that `head` computes. */
static bool is_running(const vkt_node *head, const vkt_node *n)
{
    return n->op == &vkt_op_running_stats && n->in[2].id == head->out[1].id && n->in[3].id == head->out[2].id;
}

static void batch_norm_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_batch_norm_attr *a = n->attr;
    plan p = plan_of(e, n, VKT_K_BATCH_NORM_STATS, a->eps);
    const bool alone = p.push.blocks == 1;
    p.bind[BATCH_NORM_X] = VKT_WHOLE(n->in[0]);
    p.bind[BATCH_NORM_STEP] = VKT_WHOLE(n->in[3]);
    p.bind[BATCH_NORM_PART] = alone ? VKT_WHOLE(n->out[1]) : blocks_scratch(e, &p); /* alone: the binding is not read */
    p.ranged = 1u << BATCH_NORM_X;
    p.summed = true;
    if (!alone) emit_channels(e, &p);
    vkt_bind finish[BATCH_NORM_BINDINGS] = {
        [BATCH_NORM_MEAN] = VKT_WHOLE(n->out[1]), [BATCH_NORM_VAR] = VKT_WHOLE(n->out[2])
    };
    if (!p.joined) emit_finish(e, &p, VKT_K_BATCH_NORM_FINISH, finish);
    emit_normalise(n, e, &n->out[1], &n->in[1], n->in[3],
                   p.joined ? p.bind[BATCH_NORM_PART] : (vkt_bind){ .bytes = 0 });
}

static void given_emit(const vkt_node *n, vkt_emit *e)
{
    emit_normalise(n, e, &n->in[1], &n->in[3], (vkt_tensor){ 0 }, (vkt_bind){ .bytes = 0 });
}

static void batch_norm_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_tensor outs[VKT_MAX_OUT];
    if (!dy[0].id) return;
    vkt_apply(g, &vkt_op_batch_norm_dx, (vkt_tensor[]){ n->in[0], dy[0], n->out[1], n->out[2], n->in[1] }, 5, n->attr,
              outs);
    for (uint32_t i = 0; i < 3; i++) dx[i] = outs[i];
}

static void given_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_tensor outs[VKT_MAX_OUT];
    vkt_batch_norm_attr a = *(const vkt_batch_norm_attr *)n->attr;
    a.given = 1;
    vkt_apply(g, &vkt_op_batch_norm_dx, (vkt_tensor[]){ n->in[0], dy[0], n->in[1], n->in[2], n->in[3] }, 5, &a, outs);
    dx[0] = outs[0];
    dx[3] = outs[1];
    dx[4] = outs[2];
}

static void sample(vkt_rng *r, vkt_case *c, bool given)
{
    vkt_shape s = vkt_shape2(vkt_rng_range(r, 8, 70), vkt_rng_range(r, 1, 40));
    if (vkt_rng_range(r, 0, 2))
        s = vkt_shape4(vkt_rng_range(r, 8, 21), vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 13),
                       vkt_rng_range(r, 1, 11));
    const uint32_t large = vkt_rng_range(r, 0, 7); /* 0: a channel has 10 blocks; 1: 4 or 5 blocks; else 1 block */
    if (large < 2) s = vkt_shape3(9, 2, large ? vkt_rng_range(r, 2700, 2800) : vkt_rng_range(r, 6200, 6800));
    vkt_case_f32(c, VKT_BATCH_LAST, s, -1, 3);
    for (uint32_t i = 0; given && i < 2; i++)
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(s.dim[1]), i ? 0.1f : -1.0f, i ? 2 : 1);
    for (uint32_t i = 0; i < 2; i++) /* gamma, beta */
        if (vkt_rng_range(r, 0, 3))
            vkt_case_f32(c, VKT_ROWS, vkt_shape1(s.dim[1]), i ? -1.0f : 0.5f, i ? 1 : 2);
        else
            vkt_case_absent(c);
    const vkt_batch_norm_attr a = { .eps = vkt_rng_range(r, 0, 1) ? 1e-5f : 1e-3f };
    vkt_case_attr(c, &a, sizeof a);
    /* The case has 7 real rows or more. If a channel had only two numbers, they would become +1 and -1 for any values,
     * and the gradient would be little more than rounding. */
    c->rows = vkt_rng_range(r, 0, s.dim[0] - 7) + 7;
}

static void batch_norm_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, false);
}

static void given_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, true);
}

/* Counts for each element three operations of y (difference, product, sum). If the statistics are not given, also
 * counts four operations of the statistics (sum, difference, square, sum). */
static double batch_norm_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * (n->op->uses_step ? 7 : 3);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_batch_norm_attr, eps, F32, 1, 1e-5), { .name = NULL } };

const vkt_op vkt_op_batch_norm = {
    .name = "batch_norm",
    .min_in = 1,
    .max_in = 3,
    .uses_step = true,
    .batch = vkt_batch_of_first,
    .diff = 7,
    .attr_bytes = sizeof(vkt_batch_norm_attr),
    .infer = batch_norm_infer,
    .emit = batch_norm_emit,
    .epilogues = 1u << VKT_FUSE_SUM | 1u << VKT_FUSE_RELU,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .is_companion = is_running,
    .backward = batch_norm_backward,
    .sample = batch_norm_sample,
    .rel_tol = 4e-6f,
    .abs_tol = 1e-5f,
    .tol_why = "mean and deviation within some units of 2^-24 of numbers up to 3, divided by a deviation of about 1.2: "
               "2^-24 * 3 * 10; gradients are differences of sums of up to 2e4 terms, which add up like a random walk",
    .flops = batch_norm_flops,
    .fields = fields,
    .formula = "y = gamma (x - mean) / sqrt(var + eps) + beta, mean and variance of the batch"
};

const vkt_op vkt_op_batch_norm_given = {
    .name = "batch_norm_given",
    .min_in = 3,
    .max_in = 5,
    .cheap = true,
    .diff = 1u << 0 | 1u << 3 | 1u << 4,
    .attr_bytes = sizeof(vkt_batch_norm_attr),
    .infer = batch_norm_infer,
    .emit = given_emit,
    .epilogues = 1u << VKT_FUSE_SUM | 1u << VKT_FUSE_RELU,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = given_backward,
    .sample = given_sample,
    .rel_tol = 2e-6f,
    .abs_tol = 4e-6f,
    .tol_why = "six roundings forward; a gradient of gamma sums up to 2e4 terms of both signs",
    .flops = batch_norm_flops,
    .fields = fields,
    .formula = "y = gamma (x - mean) / sqrt(var + eps) + beta, mean and variance given"
};

/* ---- batch_norm_dx: x, dy, mean, var, gamma, step -> dx, dgamma, dbeta ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    VKT_TRY(check_channels(f));
    const vkt_value x = *vkt_in(f, 0), dy = *vkt_in(f, 1);
    VKT_REQUIRE(f, vkt_shape_equal(x.shape, dy.shape) && dy.layout == x.layout, VKT_E_SHAPE,
                "batch_norm_dx: want a gradient of x's shape and layout");
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, x.shape);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(x.shape.dim[1]));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(x.shape.dim[1]));
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_batch_norm_attr *a = n->attr;
    plan p = plan_of(e, n, VKT_K_BATCH_NORM_SUMS, a->eps);
    const bool alone = p.push.blocks == 1;
    p.bind[BATCH_NORM_X] = VKT_WHOLE(n->in[0]);
    const vkt_node *relu_dx = vkt_fuse_slope(e); /* the fused gradient of a relu, or NULL */
    p.bind[BATCH_NORM_DY] = VKT_WHOLE(relu_dx ? relu_dx->in[1] : n->in[1]);
    p.bind[BATCH_NORM_MASK] = relu_dx ? VKT_WHOLE(relu_dx->in[0]) : p.bind[BATCH_NORM_DY];
    p.bind[BATCH_NORM_MEAN] = VKT_WHOLE(n->in[2]);
    p.bind[BATCH_NORM_VAR] = VKT_WHOLE(n->in[3]);
    p.bind[BATCH_NORM_STEP] = VKT_WHOLE(n->in[5]);
    p.bind[BATCH_NORM_PART] = alone ? VKT_WHOLE(n->in[2]) : blocks_scratch(e, &p); /* alone: the binding is not read */
    p.ranged = 1u << BATCH_NORM_X | 1u << BATCH_NORM_DY | 1u << BATCH_NORM_MASK;
    p.spec[BATCH_NORM_SPEC_GIVEN] = a->given;
    p.spec[BATCH_NORM_SPEC_MASK] = relu_dx != NULL;
    p.summed = true;
    if (!alone) emit_channels(e, &p);
    vkt_bind finish[BATCH_NORM_BINDINGS] = {
        [BATCH_NORM_DGAMMA] = VKT_WHOLE(n->out[1]), [BATCH_NORM_DBETA] = VKT_WHOLE(n->out[2])
    };
    if (!p.joined) {
        emit_finish(e, &p, VKT_K_BATCH_NORM_FINISH_SUMS, finish);
        p.bind[BATCH_NORM_PART] = (vkt_bind){ .bytes = 0 };
    }
    p.kernel = p.joined ? VKT_K_BATCH_NORM_DX_JOINED : VKT_K_BATCH_NORM_DX;
    p.summed = p.joined;
    p.bind[BATCH_NORM_GAMMA] = VKT_WHOLE(n->in[n->in[4].id ? 4 : 2]); /* without gamma, the binding is not read */
    p.bind[BATCH_NORM_DGAMMA] = finish[BATCH_NORM_DGAMMA];
    p.bind[BATCH_NORM_DBETA] = finish[BATCH_NORM_DBETA];
    p.bind[BATCH_NORM_Y] = VKT_WHOLE(n->out[0]);
    p.ranged |= 1u << BATCH_NORM_Y;
    p.spec[BATCH_NORM_SPEC_GAMMA] = n->in[4].id != 0;
    emit_channels(e, &p);
}

/* Counts for each element five operations of the two sums, and six of dx (three differences, three products). */
static double dx_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * 11;
}

const vkt_op vkt_op_batch_norm_dx = {
    .name = "batch_norm_dx",
    .min_in = 4,
    .max_in = 5,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_batch_norm_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .slope_in = 1 + 1,
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "batch_norm",
    .flops = dx_flops,
    .fields = fields,
    .formula = "dx = gamma / sqrt(var + eps) (dy - mean dy - xhat mean(dy xhat))",
};

/* ---- running_stats: running mean, running variance, mean, variance, step -> both running values, in place ---- */

static vkt_result running_infer(vkt_infer *f)
{
    const vkt_running_stats_attr *a = f->n->attr;
    const vkt_value *mean = vkt_in(f, 0);
    const uint32_t channels = mean->shape.dim[0];
    VKT_REQUIRE(f, a->batch && a->positions && (uint64_t)a->batch * a->positions <= UINT32_MAX && a->unbiased <= 1,
                VKT_E_ARG, "running_stats: want 1 to 2^32 - 1 numbers and unbiased 0 or 1, got %u x %u and %u",
                a->batch, a->positions, a->unbiased);
    VKT_REQUIRE(f, a->momentum >= 0 && a->momentum <= 1, VKT_E_ARG, "running_stats: want a momentum in [0, 1], got %g",
                (double)a->momentum);
    VKT_TRY(vkt_norm_check_vector(f, 0, channels, "a running mean"));
    VKT_TRY(vkt_norm_check_vector(f, 1, channels, "a running variance"));
    VKT_TRY(vkt_norm_check_vector(f, 2, channels, "a mean"));
    VKT_TRY(vkt_norm_check_vector(f, 3, channels, "a variance"));
    vkt_out_alias(f, 0, VKT_ROWS, vkt_shape1(channels));
    vkt_out_alias(f, 1, VKT_ROWS, vkt_shape1(channels));
    return VKT_OK;
}

static void running_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_running_stats_attr *a = n->attr;
    const uint32_t channels = vkt_node_in(n, 0)->shape.dim[0];
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_reduce), spec[] = { lanes };
    const vkt_running_stats_push pc = { channels, a->batch, a->positions, a->unbiased, a->momentum };
    const vkt_bind bind[] = { [RUNNING_STATS_MEAN] = VKT_WHOLE(n->in[0]),
                              [RUNNING_STATS_VAR] = VKT_WHOLE(n->in[1]),
                              [RUNNING_STATS_NEW_MEAN] = VKT_WHOLE(n->in[2]),
                              [RUNNING_STATS_NEW_VAR] = VKT_WHOLE(n->in[3]),
                              [RUNNING_STATS_STEP] = VKT_WHOLE(n->in[4]) };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_RUNNING_STATS,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       .spec = spec,
                                       .n_spec = 1,
                                       .groups = { vkt_groups(channels, lanes, 1), 1, 1 } });
}

static void running_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t channels = vkt_rng_range(r, 1, 300);
    for (uint32_t i = 0; i < 4; i++) vkt_case_f32(c, VKT_ROWS, vkt_shape1(channels), i % 2 ? 0.1f : -1, 2);
    const vkt_running_stats_attr a = { .batch = vkt_rng_range(r, 1, 9),
                                       .positions = vkt_rng_range(r, 1, 9),
                                       .unbiased = vkt_rng_range(r, 0, 1),
                                       .momentum = vkt_rng_uniform(r, 0, 1) };
    vkt_case_attr(c, &a, sizeof a);
    c->rows = vkt_rng_range(r, 1, 12);
}

static double running_flops(const vkt_node *n)
{
    return vkt_elements_in(n, 0) * 7;
}

static const vkt_field running_fields[] = { VKT_FIELD(vkt_running_stats_attr, batch, U32, 1, 1),
                                            VKT_FIELD(vkt_running_stats_attr, positions, U32, 1, 1),
                                            VKT_FIELD(vkt_running_stats_attr, unbiased, U32, 1, 1),
                                            VKT_FIELD(vkt_running_stats_attr, momentum, F32, 1, 0.1),
                                            { .name = NULL } };

const vkt_op vkt_op_running_stats = {
    .name = "running_stats",
    .min_in = 4,
    .max_in = 4,
    .uses_step = true,
    .side_effect = true,
    .head_in = 2 + 1, /* input 2, the new mean */
    .attr_bytes = sizeof(vkt_running_stats_attr),
    .infer = running_infer,
    .emit = running_emit,
    .sample = running_sample,
    .rel_tol = 1e-6f,
    .abs_tol = 1e-6f,
    .tol_why = "at most 6 roundings of numbers no larger than twice the largest: 6 * 2 * 2^-24 = 7e-7",
    .flops = running_flops,
    .fields = running_fields,
    .formula = "running += momentum (new - running), in place",
};

/* ---- building ---- */

static vkt_tensor batch_last(vkt_graph *g, vkt_tensor x)
{
    return x.id ? vkt_to_layout(g, x, VKT_BATCH_LAST) : x;
}

/* Returns true if t is null or may hold running statistics. Otherwise sets the graph's error and returns false. A
 * parameter may hold running statistics only if vkt_state declared it. */
static bool is_state(vkt_graph *g, vkt_tensor t)
{
    if (!t.id) return true;
    if (!vkt_is_usable(g, "batch_norm", t)) return false;
    const vkt_value *v = &g->values[vkt_root(g, t)];
    if (v->role != VKT_ROLE_PARAM || v->state) return true;
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG,
                                "batch_norm: want running statistics of vkt_state, got the parameter '%s'", v->name));
    return false;
}

vkt_tensor vkt_batch_norm(vkt_graph *g, vkt_tensor x, const vkt_batch_norm_params *p)
{
    const vkt_batch_norm_params defaults = { .eps = 0 }, *q = p ? p : &defaults;
    const vkt_batch_norm_attr a = { .eps = vkt_or_f32(q->eps, 1e-5f) };
    const float momentum = vkt_or_f32(q->momentum, 0.1f);
    if (!(a.eps >= 0) || isinf(a.eps) || !(momentum >= 0 && momentum <= 1)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG,
                                    "batch_norm: want eps >= 0 and a momentum in [0, 1], got %g and %g", (double)a.eps,
                                    (double)momentum));
        return (vkt_tensor){ 0 };
    }
    if (!is_state(g, q->running_mean) || !is_state(g, q->running_var)) return (vkt_tensor){ 0 };
    x = batch_last(g, x);
    if (q->evaluate)
        return vkt_apply(g, &vkt_op_batch_norm_given,
                         (vkt_tensor[]){ x, q->running_mean, q->running_var, q->gamma, q->beta }, 5, &a, NULL);
    vkt_tensor outs[VKT_MAX_OUT];
    vkt_apply(g, &vkt_op_batch_norm, (vkt_tensor[]){ x, q->gamma, q->beta }, 3, &a, outs);
    if (!outs[0].id || (!q->running_mean.id && !q->running_var.id)) return outs[0];
    const vkt_shape s = vkt_tensor_shape(g, x);
    const vkt_running_stats_attr r = { .batch = s.dim[0],
                                       .positions = (uint32_t)(vkt_shape_elements(s) / s.dim[0] / s.dim[1]),
                                       .unbiased = !q->biased,
                                       .momentum = momentum };
    vkt_apply(g, &vkt_op_running_stats, (vkt_tensor[]){ q->running_mean, q->running_var, outs[1], outs[2] }, 4, &r,
              NULL);
    return outs[0];
}
