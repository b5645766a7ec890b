/* ops/loss/score.c - argmax and count_correct over (B,K), and the distribution of samples over work groups. Losses of
 * labels use this distribution, too. */
#include "ops/loss/loss.h"

#include "kernel/ids.h"
#include "ops/elementwise/broadcast.h"

#include "abi/abi.h"
#include "abi/argmax.abi.h"

static uint32_t vectors_in(const vkt_sample_blocks *s, uint32_t rows)
{
    return s->columns ? vkt_div_up(s->pitch4, s->lanes) : s->by_lane ? vkt_div_up(rows, s->lanes) : rows;
}

bool vkt_next_range(const vkt_sample_blocks *s, vkt_sample_range *w)
{
    if (w->end == s->batch) return false;
    const uint64_t row_bytes = 4ull * s->classes;
    w->first = w->end;
    w->end = s->batch - w->first > s->range ? w->first + s->range : s->batch;
    w->vectors = vectors_in(s, w->end - w->first);
    w->part += w->blocks;
    w->blocks = vkt_div_up(w->vectors, s->per_block);
    w->offset_bytes = w->first * row_bytes;
    w->bytes = s->batch_last ? s->pitch4 * 4 * row_bytes : (w->end - w->first) * row_bytes;
    return true;
}

bool vkt_sample_blocks_of(vkt_emit *e, const vkt_value *z, bool label_alone, vkt_sample_blocks *out)
{
    const uint32_t B = z->shape.dim[0], K = z->shape.dim[1];
    const uint64_t most = e->lim->max_storage_range_bytes;
    /* If `columns` is set, a lane loops over the classes at most twice, with four classes per iteration. So 2 * K / 4
     * iterations must not be more than five sixths of vkt_largest_loop, as in vkt_rough_loop. */
    const uint64_t most_classes = vkt_largest_loop(e->lim) / 3 * 5;
    vkt_sample_blocks s = { .batch = B, .pitch4 = vkt_div_up(B, 4), .classes = K, .range = B };
    s.batch_last = z->layout == VKT_BATCH_LAST;
    s.columns = s.batch_last && !label_alone;
    s.by_lane = label_alone || (!s.columns && K <= 64);
    /* vkt_lanes_for_passes counts 3 passes over the classes. Two of them are loops over the classes. The third one
     * stands for the loop over partial sums, which has fewer iterations: see SPAN in softmax_xent.comp. */
    s.lanes = s.columns || s.by_lane ? vkt_subgroup(e->lim, VKT_K_SOFTMAX_XENT)
              : K > most_classes     ? vkt_lanes_for_passes(e, VKT_K_SOFTMAX_XENT, K, 3)
                                     : vkt_lanes_for(e->lim, VKT_K_SOFTMAX_XENT, K);
    if (z->bytes > most)
        s.range = s.batch_last ? 0 : (uint32_t)(most / 4 / K / vkt_bind_range_step(K) * vkt_bind_range_step(K));
    if (s.range == 0 || (s.columns && K > most_classes)) {
        vkt_emit_error(e,
                       vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                "%s: want rows in %llu bytes (batch last: all of z, and at most %llu classes; "
                                "vkt_to_layout makes rows of it), got (%u,%u)",
                                e->node->op->name, (unsigned long long)most, (unsigned long long)most_classes, B, K));
        return false;
    }
    /* A rough number of iterations for one vector. If several lanes share a row, their shuffles count as 4. */
    const uint64_t iterations = label_alone ? 1 : s.columns || s.by_lane ? K : vkt_div_up(K, s.lanes) + 4;
    const uint32_t vectors = vectors_in(&s, B);
    /* Several blocks need a second dispatch, so short sums have one block. */
    s.per_block =
        vectors * iterations <= e->lim->traits->iterations_score ? vectors : (uint32_t)VKT_MAX(512u / iterations, 1u);
    vkt_sample_range w = { .end = 0 };
    while (vkt_next_range(&s, &w)) s.blocks += w.blocks;
    *out = s;
    return true;
}

vkt_tensor vkt_scores_by_range(vkt_graph *g, vkt_tensor z)
{
    if (!z.id || z.id >= g->n_values) return z;
    const vkt_value *v = &g->values[z.id];
    const bool many = v->shape.rank == 2 && v->shape.dim[1] > VKT_MANY_CLASSES;
    return many || v->bytes > UINT64_C(1) << 27 ? vkt_to_layout(g, z, VKT_ROWS) : z;
}

vkt_result vkt_check_scores(vkt_infer *f, bool labels)
{
    const vkt_value *z = vkt_in(f, 0);
    const char *name = f->n->op->name;
    char zt[80], tt[80];
    VKT_REQUIRE(f, z->dtype == VKT_F32 && z->shape.rank == 2, z->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE,
                "%s: want z f32 (B,K), got %s %s", name, vkt_dtype_name(z->dtype), vkt_shape_text(z->shape, zt));
    if (!labels) return VKT_OK;
    const vkt_value *t = vkt_in(f, 1);
    VKT_REQUIRE(f, t->dtype == VKT_U32, VKT_E_DTYPE, "%s: want labels u32, got %s", name, vkt_dtype_name(t->dtype));
    VKT_REQUIRE(f, t->shape.rank == 1 && t->shape.dim[0] == z->shape.dim[0], VKT_E_SHAPE,
                "%s: want labels (%u) for z %s, got %s", name, z->shape.dim[0], vkt_shape_text(z->shape, zt),
                vkt_shape_text(t->shape, tt));
    return VKT_OK;
}

vkt_tensor vkt_partial_sums(vkt_emit *e, vkt_tensor y, uint32_t blocks)
{
    return blocks == 1 ? y : vkt_scratch(e, "partial", blocks * 4ull);
}

void vkt_sum_partials(vkt_emit *e, vkt_tensor partial, vkt_tensor y)
{
    if (partial.id && partial.id != y.id) vkt_emit_sum_to(e, partial, y, 1.0f);
}

static void emit(const vkt_node *n, vkt_emit *e, uint16_t kernel, vkt_tensor out, const vkt_sample_blocks *s)
{
    const bool count = n->n_in > 1;
    const uint32_t spec[] = { s->lanes, [ARGMAX_SPEC_BY_LANE] = s->by_lane };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(s, &w);) {
        const vkt_argmax_push pc = { s->batch,  s->pitch4,    s->classes, w.first, w.end,
                                     w.vectors, s->per_block, w.blocks,   w.part };
        const vkt_bind bind[] = { [ARGMAX_Z] = { n->in[0], w.offset_bytes, w.bytes },
                                  [ARGMAX_OUT] = VKT_WHOLE(out),
                                  [ARGMAX_T] = VKT_WHOLE(count ? n->in[1] : (vkt_tensor){ 0 }),
                                  [ARGMAX_STEP] = VKT_WHOLE(count ? n->in[2] : (vkt_tensor){ 0 }) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                           .bind = bind,
                                           .n_bind = count ? 4 : 2,
                                           VKT_LAUNCH_PUSH(pc),
                                           .spec = spec,
                                           .n_spec = 2,
                                           .groups = { w.blocks, 1, 1 } });
    }
}

static bool by_rows(const vkt_node *n)
{
    return vkt_node_in(n, 0)->layout == VKT_ROWS;
}

static void scores_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t kind = vkt_rng_range(r, 0, 5);
    const uint32_t B = kind == 0 ? vkt_rng_range(r, 300, 1100) : vkt_rng_range(r, 1, 70);
    const uint32_t K = kind == 1 ? vkt_rng_range(r, 300, 1100) : vkt_rng_range(r, 1, 19);
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape2(B, K), -9, 9)->distinct =
        vkt_rng_range(r, 0, 1) != 0;
}

/* ---- argmax ---- */

static vkt_result argmax_infer(vkt_infer *f)
{
    VKT_TRY(vkt_check_scores(f, false));
    vkt_out(f, VKT_U32, VKT_ROWS, vkt_shape1(vkt_in(f, 0)->shape.dim[0]));
    return VKT_OK;
}

static void argmax_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), false, &s)) return;
    emit(n, e, by_rows(n) ? VKT_K_ARGMAX_ROWS : VKT_K_ARGMAX, n->out[0], &s);
}

vkt_tensor vkt_argmax(vkt_graph *g, vkt_tensor z)
{
    if (!g) return (vkt_tensor){ 0 };
    z = vkt_scores_by_range(g, z);
    return vkt_apply(g, &vkt_op_argmax, &z, 1, NULL, NULL);
}

const vkt_op vkt_op_argmax = { .name = "argmax",
                               .min_in = 1,
                               .max_in = 1,
                               .infer = argmax_infer,
                               .emit = argmax_emit,
                               .sample = scores_sample,
                               .tol_why = "exact: integers",
                               .flops = vkt_flops_an_input,
                               .formula = "y[b] = the first k with the largest z[b,k]" };

/* ---- count_correct ---- */

static vkt_result count_infer(vkt_infer *f)
{
    VKT_TRY(vkt_check_scores(f, true));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

static void count_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, 0), false, &s)) return;
    const vkt_tensor partial = vkt_partial_sums(e, n->out[0], s.blocks);
    emit(n, e, by_rows(n) ? VKT_K_COUNT_CORRECT_ROWS : VKT_K_COUNT_CORRECT, partial, &s);
    vkt_sum_partials(e, partial, n->out[0]);
}

vkt_tensor vkt_count_correct(vkt_graph *g, vkt_tensor z, vkt_tensor t)
{
    if (!g) return (vkt_tensor){ 0 };
    return vkt_apply(g, &vkt_op_count_correct, (vkt_tensor[]){ vkt_scores_by_range(g, z), t }, 2, NULL, NULL);
}

static void count_sample(vkt_rng *r, vkt_case *c)
{
    scores_sample(r, c);
    const vkt_shape z = c->in[0].shape;
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(z.dim[0]), z.dim[1]);
    c->rows = vkt_rng_range(r, 0, z.dim[0]);
}

const vkt_op vkt_op_count_correct = { .name = "count_correct",
                                      .min_in = 2,
                                      .max_in = 2,
                                      .uses_step = true,
                                      .batch = vkt_batch_of_first,
                                      .infer = count_infer,
                                      .emit = count_emit,
                                      .sample = count_sample,
                                      .tol_why = "exact: sums of integers below 2^24",
                                      .flops = vkt_flops_an_input,
                                      .formula = "y = number of real rows b with argmax z[b] = t[b]" };
