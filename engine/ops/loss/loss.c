/* ops/loss/loss.c - cross-entropy of integer labels over the real rows of a batch (the step's `rows`), and its
 * gradient. */
#include "ops/loss/loss.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/softmax_xent.abi.h"
#include "abi/softmax_xent_dx.abi.h"

/* ---- softmax_xent: z (B,K), t (B) -> loss, stat (B,2) ----
 *
 * p = softmax(z) is never stored. For each row, stat has the largest logit m and 1 / sum_k exp(z[b,k] - m). The
 * gradient computes p again from z and stat. */

enum { XENT_OUT_LOSS = 0, XENT_OUT_STAT, XENT_DX_IN_STAT = 2, XENT_DX_IN_DLOSS };

static vkt_result xent_infer(vkt_infer *f)
{
    VKT_TRY(vkt_check_scores(f, true));
    const vkt_value z = *vkt_in(f, 0);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    vkt_out(f, VKT_F32, z.layout, vkt_shape2(z.shape.dim[0], 2));
    return VKT_OK;
}

/* The largest number of vec4s of logits that a lane keeps in registers. 8 vec4s need 32 registers. A lane should need
 * at most 128 registers in all, so that a GPU's core can run many subgroups at once. */
#define MOST_HELD 8u

/* Returns whether the lanes of a work group share the classes of four samples. With fewer classes than lanes, some
 * lanes are idle. Idle lanes are accepted only if the number of work groups is at most vkt_groups_wanted. */
static bool is_spread(const vkt_emit *e, const vkt_value *z)
{
    const uint32_t K = z->shape.dim[1], lanes = vkt_lanes_for(e->lim, VKT_K_SOFTMAX_XENT_SPREAD, K);
    const bool pays = K >= lanes || vkt_div_up(z->shape.dim[0], 4) <= vkt_groups_wanted(e->lim, lanes);
    return e->lim->traits->classes_spread && pays && z->layout == VKT_BATCH_LAST &&
           z->bytes <= e->lim->max_storage_range_bytes && vkt_div_up(K, lanes) <= MOST_HELD;
}

/* Emits the loss by a kernel in which the lanes of a work group share the classes. If the gradient is a companion (see
 * vkt_fuse_companion), this kernel also computes the gradient. */
static void emit_spread(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *z = vkt_node_in(n, 0);
    const uint32_t B = z->shape.dim[0], K = z->shape.dim[1],
                   lanes = vkt_lanes_for(e->lim, VKT_K_SOFTMAX_XENT_SPREAD, K);
    const vkt_softmax_xent_push pc = { .batch = B, .pitch4 = vkt_div_up(B, 4), .classes = K };
    const vkt_node *dx = vkt_fuse_companion(e);
    const vkt_tensor partial = vkt_partial_sums(e, n->out[XENT_OUT_LOSS], pc.pitch4);
    const uint32_t spec[] = { lanes, [XENT_SPEC_HELD] = vkt_div_up(K, lanes), [XENT_SPEC_DX] = dx != NULL };
    const vkt_bind bind[] = { [XENT_Z] = VKT_WHOLE(n->in[0]),
                              [XENT_T] = VKT_WHOLE(n->in[1]),
                              [XENT_STEP] = VKT_WHOLE(n->in[2]),
                              [XENT_STAT] = VKT_WHOLE(n->out[XENT_OUT_STAT]),
                              [XENT_PART] = VKT_WHOLE(partial),
                              [XENT_DLOSS] =
                                  VKT_WHOLE(dx ? dx->in[XENT_DX_IN_DLOSS] : n->in[2]), /* not read if dx is NULL */
                              [XENT_DZ] = VKT_WHOLE(dx ? dx->out[0] : n->out[XENT_OUT_STAT]) };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_SOFTMAX_XENT_SPREAD,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { pc.pitch4, 1, 1 } });
    vkt_sum_partials(e, partial, n->out[XENT_OUT_LOSS]);
}

/* Returns whether n is the gradient of `head`, and one dispatch can compute both. The gradient's factor dloss must not
 * be the loss of `head` itself, which is complete only after the dispatch. */
static bool is_gradient(const vkt_node *head, const vkt_node *n)
{
    const bool factor_exists = vkt_root(n->g, n->in[XENT_DX_IN_DLOSS]) != head->out[XENT_OUT_LOSS].id;
    return factor_exists && n->op == &vkt_op_softmax_xent_dx && n->in[0].id == head->in[0].id &&
           n->in[1].id == head->in[1].id && n->in[XENT_DX_IN_STAT].id == head->out[XENT_OUT_STAT].id;
}

static void xent_emit(const vkt_node *n, vkt_emit *e)
{
    if (is_spread(e, vkt_node_in(n, 0))) {
        emit_spread(n, e);
        return;
    }
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), false, &s)) return;
    const vkt_tensor partial = vkt_partial_sums(e, n->out[XENT_OUT_LOSS], s.blocks);
    const uint32_t spec[] = { s.lanes, [XENT_SPEC_BY_LANE] = s.by_lane };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(&s, &w);) {
        const vkt_softmax_xent_push pc = { s.batch,   s.pitch4,    s.classes, w.first, w.end,
                                           w.vectors, s.per_block, w.blocks,  w.part,  .group = 1 };
        const vkt_bind bind[] = { [XENT_Z] = { n->in[0], w.offset_bytes, w.bytes },
                                  [XENT_T] = VKT_WHOLE(n->in[1]),
                                  [XENT_STEP] = VKT_WHOLE(n->in[2]),
                                  [XENT_STAT] = VKT_WHOLE(n->out[XENT_OUT_STAT]),
                                  [XENT_PART] = VKT_WHOLE(partial) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = s.columns ? VKT_K_SOFTMAX_XENT : VKT_K_SOFTMAX_XENT_ROWS,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { w.blocks, 1, 1 } });
    }
    vkt_sum_partials(e, partial, n->out[XENT_OUT_LOSS]);
}

vkt_tensor vkt_softmax_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t)
{
    if (!g) return (vkt_tensor){ 0 };
    return vkt_apply(g, &vkt_op_softmax_xent, (vkt_tensor[]){ vkt_scores_by_range(g, z), t }, 2, NULL, NULL);
}

static void xent_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { n->in[0], n->in[1], n->out[XENT_OUT_STAT], dy[XENT_OUT_LOSS] };
    if (dy[XENT_OUT_LOSS].id) dx[0] = vkt_apply(g, &vkt_op_softmax_xent_dx, in, VKT_COUNT(in), NULL, NULL);
}

/* Generates a case. With one class, the loss is exactly 0. With more classes, the loss is not near 0, because the tests
 * limit its relative error. Small logits keep each row's loss above 0.018. With large logits the loss of a row may be
 * near 0, but such a case has so many rows that the mean is large. */
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
    .batch = vkt_batch_of_first,
    .diff = 1u << 0,
    .is_companion = is_gradient,
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
    const vkt_value z = *vkt_in(f, 0), stat = *vkt_in(f, XENT_DX_IN_STAT), dloss = *vkt_in(f, XENT_DX_IN_DLOSS);
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
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), false, &s)) return;
    const uint32_t lanes = vkt_score_lanes(e);
    const uint32_t spec[] = { lanes, [XENT_DX_SPEC_BY_LANE] = s.by_lane };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(&s, &w);) {
        const vkt_softmax_xent_dx_push pc = { s.batch, s.pitch4, s.classes, w.first, w.end, .group = 1 };
        const vkt_bind bind[] = { [XENT_DX_Z] = { n->in[0], w.offset_bytes, w.bytes },
                                  [XENT_DX_T] = VKT_WHOLE(n->in[1]),
                                  [XENT_DX_STEP] = VKT_WHOLE(n->in[4]),
                                  [XENT_DX_STAT] = VKT_WHOLE(n->in[XENT_DX_IN_STAT]),
                                  [XENT_DX_DLOSS] = VKT_WHOLE(n->in[XENT_DX_IN_DLOSS]),
                                  [XENT_DX_DZ] = { n->out[0], w.offset_bytes, w.bytes } };
        vkt_dispatch_add(
            e, &(vkt_launch){ .kernel = s.columns ? VKT_K_SOFTMAX_XENT_DX : VKT_K_SOFTMAX_XENT_DX_ROWS,
                              VKT_LAUNCH_BIND(bind),
                              VKT_LAUNCH_PUSH(pc),
                              VKT_LAUNCH_SPEC(spec),
                              .groups = { vkt_score_groups(&s, &w, lanes),
                                          VKT_MIN(vkt_div_up(s.classes, XENT_DX_CHUNK), e->lim->max_groups), 1 } });
    }
}

const vkt_op vkt_op_softmax_xent_dx = {
    .name = "softmax_xent_dx",
    .min_in = 4,
    .max_in = 4,
    .uses_step = true,
    .head_in = XENT_DX_IN_STAT + 1,
    .infer = xent_dx_infer,
    .emit = xent_dx_emit,
    .forward_only = true,
    .tested_by = "softmax_xent",
    .flops = vkt_flops_of_scores,
    .formula = "dz[b,k] = dloss (softmax(z[b])[k] - (k == t[b])) / rows, 0 past the real rows"
};
