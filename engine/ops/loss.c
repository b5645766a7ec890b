/* ops/loss.c - losses over the real rows of a batch (the step's `rows`): softmax_xent and mse, with their gradients. */
#include "ops/loss.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/mse.abi.h"
#include "abi/mse_dx.abi.h"
#include "abi/softmax_xent.abi.h"
#include "abi/softmax_xent_dx.abi.h"

/* ---- softmax_xent: z (B,K), t (B) -> loss, stat (B,2) ----
 * p = softmax(z) is never stored: stat holds each row's largest logit and the inverse of its sum of exponentials, from
 * which the gradient makes p again, to the same last bit. */

enum { XENT_OUT_LOSS = 0, XENT_OUT_STAT };

static vkt_result xent_infer(vkt_infer *f)
{
    VKT_TRY(vkt_check_scores(f, true));
    const vkt_value z = *vkt_in(f, 0);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    vkt_out(f, VKT_F32, z.layout, vkt_shape2(z.shape.dim[0], 2));
    return VKT_OK;
}

static void xent_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), &s)) return;
    const vkt_tensor partial = vkt_partial_sums(e, n->out[XENT_OUT_LOSS], s.blocks);
    const uint32_t spec[] = { s.lanes, [XENT_SPEC_BY_LANE] = s.by_lane };
    for (vkt_sample_window w = { .end = 0 }; vkt_next_window(&s, &w);) {
        const vkt_softmax_xent_push pc = { s.batch,   s.pitch4,    s.classes, w.first, w.end,
                                           w.vectors, s.per_block, w.blocks,  w.part };
        const vkt_bind bind[] = { [XENT_Z] = { n->in[0], w.offset_bytes, w.bytes },
                                  [XENT_T] = VKT_WHOLE(n->in[1]),
                                  [XENT_STEP] = VKT_WHOLE(n->in[2]),
                                  [XENT_STAT] = VKT_WHOLE(n->out[XENT_OUT_STAT]),
                                  [XENT_PART] = VKT_WHOLE(partial) };
        vkt_dispatch_add(e, s.columns ? VKT_K_SOFTMAX_XENT : VKT_K_SOFTMAX_XENT_ROWS, bind, VKT_COUNT(bind), &pc,
                         sizeof pc, spec, VKT_COUNT(spec), w.blocks, 1, 1);
    }
    vkt_sum_partials(e, partial, n->out[XENT_OUT_LOSS]);
}

vkt_tensor vkt_softmax_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t)
{
    return vkt_apply(g, &vkt_op_softmax_xent, (vkt_tensor[]){ vkt_windowed_scores(g, z), t }, 2, NULL, NULL);
}

static void xent_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { n->in[0], n->in[1], n->out[XENT_OUT_STAT], dy[XENT_OUT_LOSS] };
    if (dy[XENT_OUT_LOSS].id) dx[0] = vkt_apply(g, &vkt_op_softmax_xent_dx, in, VKT_COUNT(in), NULL, NULL);
}

/* A loss near 0 is the log of a sum near 1, which has no digits to compare: small logits keep each loss above 0.018,
 * wide ones come with rows enough for a large mean. */
static void xent_sample(vkt_rng *r, vkt_case *c)
{
    const bool wide = vkt_rng_range(r, 0, 2) == 0;
    const uint32_t kind = vkt_rng_range(r, 0, 5), least = wide ? 20 : 1;
    const uint32_t B = kind == 0 ? vkt_rng_range(r, 300, 1100) : vkt_rng_range(r, least, 70);
    const uint32_t K = kind == 1 ? vkt_rng_range(r, 300, 1100) : vkt_rng_range(r, wide ? 3 : 1, 19);
    const float most = wide ? 60 : 2;
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape2(B, K), -most, most);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(B), K);
    c->rows = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, least, B) : 0;
}

const vkt_op vkt_op_softmax_xent = {
    .name = "softmax_xent",
    .min_in = 2,
    .max_in = 2,
    .uses_step = true,
    .diff = 1u << 0,
    .infer = xent_infer,
    .emit = xent_emit,
    .backward = xent_backward,
    .sample = xent_sample,
    .rel_tol = 3e-6f,
    .abs_tol = 3e-5f,
    .tol_why = "Vulkan's log errs by 2^-21 near 1, against losses of 0.018 and more; exp(-x) by 3 + 2x ulp, and "
               "x exp(-x) <= 0.4",
    .flops = vkt_flops_of_scores,
    .formula = "loss = 1/rows sum_b -log softmax(z[b])[t[b]]",
};

static vkt_result xent_dx_infer(vkt_infer *f)
{
    VKT_TRY(vkt_check_scores(f, true));
    const vkt_value z = *vkt_in(f, 0), stat = *vkt_in(f, 2), dloss = *vkt_in(f, 3);
    VKT_REQUIRE(f, stat.layout == z.layout && vkt_shape_equal(stat.shape, vkt_shape2(z.shape.dim[0], 2)), VKT_E_SHAPE,
                "softmax_xent_dx: want the statistics of softmax_xent");
    VKT_REQUIRE(f, dloss.dtype == VKT_F32 && vkt_shape_elements(dloss.shape) == 1, VKT_E_SHAPE,
                "softmax_xent_dx: want a scalar gradient");
    vkt_out(f, VKT_F32, z.layout, z.shape);
    return VKT_OK;
}

static void xent_dx_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), &s)) return;
    const uint32_t lanes = e->lim->cpu ? e->lim->subgroup_size : 64;
    const uint32_t spec[] = { lanes, [XENT_DX_SPEC_BY_LANE] = s.by_lane };
    for (vkt_sample_window w = { .end = 0 }; vkt_next_window(&s, &w);) {
        const uint32_t rows = w.end - w.first;
        const vkt_softmax_xent_dx_push pc = { s.batch, s.pitch4, s.classes, w.first, w.end };
        const vkt_bind bind[] = { [XENT_DX_Z] = { n->in[0], w.offset_bytes, w.bytes },
                                  [XENT_DX_T] = VKT_WHOLE(n->in[1]),
                                  [XENT_DX_STEP] = VKT_WHOLE(n->in[4]),
                                  [XENT_DX_STAT] = VKT_WHOLE(n->in[2]),
                                  [XENT_DX_DLOSS] = VKT_WHOLE(n->in[3]),
                                  [XENT_DX_DZ] = { n->out[0], w.offset_bytes, w.bytes } };
        const uint64_t groups = s.columns   ? vkt_groups(s.pitch4, lanes, 1)
                                : s.by_lane ? vkt_groups(rows, lanes, 1)
                                            : rows;
        vkt_dispatch_add(e, s.columns ? VKT_K_SOFTMAX_XENT_DX : VKT_K_SOFTMAX_XENT_DX_ROWS, bind, VKT_COUNT(bind), &pc,
                         sizeof pc, spec, VKT_COUNT(spec), groups, vkt_div_up(s.classes, XENT_DX_CHUNK), 1);
    }
}

const vkt_op vkt_op_softmax_xent_dx = {
    .name = "softmax_xent_dx",
    .min_in = 4,
    .max_in = 4,
    .uses_step = true,
    .infer = xent_dx_infer,
    .emit = xent_dx_emit,
    .tested_by = "softmax_xent",
    .flops = vkt_flops_of_scores,
    .formula = "dz[b,k] = dloss (softmax(z[b])[k] - (k == t[b])) / rows, 0 past the real rows"
};

/* ---- mse: y, target (B, ..) -> loss ---- */

static vkt_result check_pair(vkt_infer *f)
{
    const vkt_value *y = vkt_in(f, 0), *target = vkt_in(f, 1);
    char yt[80], tt[80];
    VKT_REQUIRE(f, y->dtype == VKT_F32 && target->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32 and f32, got %s and %s",
                f->n->op->name, vkt_dtype_name(y->dtype), vkt_dtype_name(target->dtype));
    VKT_REQUIRE(f, y->shape.rank >= 1 && y->layout == target->layout && vkt_shape_equal(y->shape, target->shape),
                VKT_E_SHAPE, "%s: want y and target of one shape (B, ..) and layout, got %s and %s", f->n->op->name,
                vkt_shape_text(y->shape, yt), vkt_shape_text(target->shape, tt));
    VKT_REQUIRE(f, y->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", f->n->op->name);
    return VKT_OK;
}

static vkt_result mse_infer(vkt_infer *f)
{
    VKT_TRY(check_pair(f));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

/* Which elements lie in real rows: see mse.abi.h. */
typedef struct columns {
    uint32_t batch, per_row, elements_per_row, period4;
} columns;

static columns columns_of(const vkt_value *y)
{
    const bool rows = y->layout == VKT_ROWS;
    const uint32_t batch = y->shape.dim[0], features = (uint32_t)(vkt_shape_elements(y->shape) / batch);
    return (columns){ batch, rows ? features : 1, features,
                      rows ? (uint32_t)((y->bytes / 4 + 3) / 4) : vkt_div_up(batch, 4) };
}

static void mse_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *y = vkt_node_in(n, 0);
    const columns c = columns_of(y);
    const uint32_t spec[] = { vkt_lanes_for(e->lim, y->bytes / 16) };
    const uint64_t window = vkt_window_bytes(e->lim), turns = vkt_groups((y->bytes + 3) / 4, spec[0], 4);
    /* A second dispatch costs as much as 2000 turns of a work group on a CPU; short blocks keep rounding small. */
    const bool one = turns <= (e->lim->cpu ? 1024u : 64u);
    const uint32_t per_block = spec[0] * (one ? (uint32_t)turns : e->lim->cpu ? 256u : 32u);
    uint32_t blocks = 0;
    for (uint64_t at = 0; at < y->bytes; at += window)
        blocks += vkt_div_up((uint32_t)((VKT_MIN(y->bytes - at, window) + 15) / 16), per_block);
    const vkt_tensor partial = vkt_partial_sums(e, n->out[0], blocks);
    vkt_mse_push pc = { c.batch, c.per_row, c.elements_per_row, c.period4, .per_block = per_block };
    for (uint64_t at = 0; at < y->bytes; at += window) {
        const uint64_t bytes = VKT_MIN(y->bytes - at, window);
        const vkt_bind bind[] = { [MSE_Y] = { n->in[0], at, bytes },
                                  [MSE_TARGET] = { n->in[1], at, bytes },
                                  [MSE_STEP] = VKT_WHOLE(n->in[2]),
                                  [MSE_PART] = VKT_WHOLE(partial) };
        pc.begin4 = (uint32_t)(at / 16);
        pc.vec4s = (uint32_t)((bytes + 15) / 16);
        pc.blocks = vkt_div_up(pc.vec4s, per_block);
        vkt_dispatch_add(e, VKT_K_MSE, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1, pc.blocks, 1, 1);
        pc.first_block += pc.blocks;
    }
    vkt_sum_partials(e, partial, n->out[0]);
}

vkt_tensor vkt_mse(vkt_graph *g, vkt_tensor y, vkt_tensor target)
{
    if (y.id && y.id < g->n_values) target = vkt_to_layout(g, target, g->values[y.id].layout);
    return vkt_apply(g, &vkt_op_mse, (vkt_tensor[]){ y, target }, 2, NULL, NULL);
}

static void mse_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_mse_dx, (vkt_tensor[]){ n->in[0], n->in[1], dy[0] }, 3, NULL, NULL);
}

static void mse_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    vkt_shape s = vkt_shape1(vkt_rng_range(r, 1, 20000));
    if (vkt_rng_range(r, 0, 2))
        s = vkt_shape3(vkt_rng_range(r, 1, 67), vkt_rng_range(r, 1, 13), vkt_rng_range(r, 1, 7));
    vkt_case_f32(c, layout, s, -3, 3);
    vkt_case_f32(c, layout, s, -3, 3);
    c->rows = vkt_rng_range(r, 0, s.dim[0]);
}

/* Difference, square, sum. */
static double mse_flops(const vkt_node *n)
{
    return 3 * vkt_elements_in(n, 0);
}

const vkt_op vkt_op_mse = {
    .name = "mse",
    .min_in = 2,
    .max_in = 2,
    .uses_step = true,
    .diff = 1u << 0,
    .infer = mse_infer,
    .emit = mse_emit,
    .backward = mse_backward,
    .fuse = vkt_fuse_mlp_mse,
    .sample = mse_sample,
    .rel_tol = 8e-6f,
    .abs_tol = 1e-6f,
    .tol_why = "terms of one sign, at most 1024 of them on one way; roundings of 2^-24 add up like a random walk",
    .flops = mse_flops,
    .formula = "loss = mean of (y - target)^2 over the real rows"
};

static vkt_result mse_dx_infer(vkt_infer *f)
{
    VKT_TRY(check_pair(f));
    const vkt_value y = *vkt_in(f, 0), dloss = *vkt_in(f, 2);
    VKT_REQUIRE(f, dloss.dtype == VKT_F32 && vkt_shape_elements(dloss.shape) == 1, VKT_E_SHAPE,
                "mse_dx: want a scalar gradient");
    vkt_out(f, VKT_F32, y.layout, y.shape);
    return VKT_OK;
}

static void mse_dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *y = vkt_node_in(n, 0);
    const columns c = columns_of(y);
    const uint32_t lanes = e->lim->cpu ? e->lim->subgroup_size : 128, spec[] = { lanes };
    const uint64_t window = vkt_window_bytes(e->lim);
    vkt_mse_dx_push pc = { c.batch, c.per_row, c.elements_per_row, c.period4 };
    for (uint64_t at = 0; at < y->bytes; at += window) {
        const uint64_t bytes = VKT_MIN(y->bytes - at, window);
        const vkt_bind bind[] = { [MSE_DX_Y] = { n->in[0], at, bytes },
                                  [MSE_DX_TARGET] = { n->in[1], at, bytes },
                                  [MSE_DX_STEP] = VKT_WHOLE(n->in[3]),
                                  [MSE_DX_DLOSS] = VKT_WHOLE(n->in[2]),
                                  [MSE_DX_DY] = { n->out[0], at, bytes } };
        pc.begin4 = (uint32_t)(at / 16);
        pc.n = (uint32_t)(bytes / 4);
        vkt_dispatch_add(e, VKT_K_MSE_DX, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1,
                         VKT_MIN(vkt_groups(pc.n, lanes, e->lim->cpu ? 64 : 8), e->lim->cpu ? 256u : 4096u), 1, 1);
    }
}

static double mse_dx_flops(const vkt_node *n)
{
    return 2 * vkt_elements_in(n, 0);
}

const vkt_op vkt_op_mse_dx = { .name = "mse_dx",
                               .min_in = 3,
                               .max_in = 3,
                               .uses_step = true,
                               .infer = mse_dx_infer,
                               .emit = mse_dx_emit,
                               .tested_by = "mse",
                               .flops = mse_dx_flops,
                               .formula = "dy = dloss 2 (y - target) / n, 0 past the real rows" };
