/* ops/loss/cross_entropy.c - losses of integer labels with all options: cross_entropy of logits and nll of
 * log-probabilities. loss.c has the loss without options, whose divisor is the number of real rows. A row is
 * real if its sample is one of the first vkt_run.rows samples of the batch. (vkt_run.rows = 0: all rows are real.)
 *
 *   z (B,K), t (B), w (K) or null -> loss, norm, and for cross_entropy stat (B,3)
 *   l[b] = -(1-s) w[t] log p[t] - s/K sum_k w[k] log p[k],  p = softmax(z[b]),  s: smoothing,  t = t[b]
 *   loss = sum_b l[b] / norm,  norm = sum_b w[t[b]] over the rows that count, or 1 for a sum. A row counts if it is
 *          real, and its label is a class and not ignored
 *   `each`: loss[b] = l[b],  norm = 1,  and dz[b,k] has dloss[b] instead of dloss
 *   dz[b,k] = dloss/norm (((1-s) w[t] + s/K sum_j w[j]) p[k] - (1-s) w[t] (k == t) - s/K w[k])
 *
 * If row b is not real, or t[b] is `ignore`, then l[b] and dz[b,k] are 0. In other rows, l[b] is NaN if t[b] is no
 * class.
 *
 * For nll, log p[k] is z[b,k], s is 0, and dz has no term with p[k].
 *
 * stat[b] has three numbers: [0] m = max_k z[b,k]; [1] 1 / sum_k exp(z[b,k] - m); [2] the factor of p[k] in the
 * brackets of dz, or 0 if row b does not count. */
#include "ops/loss/loss.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/loss_divide.abi.h"
#include "abi/nll_dx.abi.h"
#include "abi/softmax_xent.abi.h"
#include "abi/softmax_xent_dx.abi.h"

enum { IN_Z = 0, IN_T, IN_WEIGHT };
enum { OUT_LOSS = 0, OUT_NORM, OUT_STAT };
enum { DX_Z = 0, DX_T, DX_NORM, DX_DLOSS, NLL_DX_IN_WEIGHT, DX_STAT = NLL_DX_IN_WEIGHT, DX_WEIGHT };

static vkt_result check_weight(vkt_infer *f, uint32_t i)
{
    if (!vkt_has(f, i)) return VKT_OK;
    const vkt_value *w = vkt_in(f, i);
    const uint32_t K = vkt_in(f, 0)->shape.dim[1];
    char text[80];
    VKT_REQUIRE(f, w->dtype == VKT_F32, VKT_E_DTYPE, "%s: want weights f32, got %s", f->n->op->name,
                vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f, w->layout == VKT_ROWS && vkt_shape_equal(w->shape, vkt_shape1(K)), VKT_E_SHAPE,
                "%s: want weights (%u) by rows, one for each class, got %s", f->n->op->name, K,
                vkt_shape_text(w->shape, text));
    return VKT_OK;
}

/* ---- forward ---- */

static vkt_result infer(vkt_infer *f, bool nll)
{
    const vkt_cross_entropy_attr *a = f->n->attr;
    const char *name = f->n->op->name;
    VKT_TRY(vkt_check_scores(f, true));
    VKT_TRY(check_weight(f, IN_WEIGHT));
    const vkt_value z = *vkt_in(f, IN_Z);
    const float most = nll ? 0 : 1;
    VKT_REQUIRE(f, a->sum <= 1, VKT_E_ARG, "%s: want sum 0 or 1, got %u", name, a->sum);
    VKT_REQUIRE(f, a->smoothing >= 0 && a->smoothing <= most, VKT_E_ARG,
                "%s: want a label smoothing of 0 to %g, got %g", name, (double)most, (double)a->smoothing);
    VKT_REQUIRE(f, a->group && z.shape.dim[0] % a->group == 0, VKT_E_SHAPE, "%s: want rows in groups of %u, got %u",
                name, a->group, z.shape.dim[0]);
    VKT_REQUIRE(f, !a->each || !a->sum, VKT_E_ARG, "%s: a loss of each row is not a sum", name);
    vkt_out(f, VKT_F32, VKT_ROWS, a->each ? vkt_shape1(z.shape.dim[0]) : vkt_shape0());
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    if (!nll) vkt_out(f, VKT_F32, z.layout, vkt_shape2(z.shape.dim[0], 3));
    return VKT_OK;
}

static uint32_t batch(const vkt_node *n)
{
    const vkt_cross_entropy_attr *a = n->attr;
    return vkt_batch_of_first(n) / a->group;
}

static vkt_result cross_entropy_infer(vkt_infer *f)
{
    return infer(f, false);
}

static vkt_result nll_infer(vkt_infer *f)
{
    return infer(f, true);
}

/* Emits the dispatch that adds the partial sums of all blocks. The dispatch writes the divisor, and the total divided
 * by the divisor. If `sum` is set, the divisor is 1. Otherwise the divisor is the sum of the weights. */
static void divide(const vkt_node *n, vkt_emit *e, vkt_tensor part, vkt_tensor weights, uint32_t blocks, bool sum)
{
    const uint32_t spec[] = { vkt_lanes_for_passes(e, VKT_K_LOSS_DIVIDE, blocks, 1) };
    const vkt_loss_divide_push pc = { blocks, sum };
    const vkt_bind bind[] = { [DIVIDE_PART] = VKT_WHOLE(part),
                              [DIVIDE_WEIGHT] = VKT_WHOLE(weights),
                              [DIVIDE_LOSS] = VKT_WHOLE(n->out[OUT_LOSS]),
                              [DIVIDE_NORM] = VKT_WHOLE(n->out[OUT_NORM]) };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_LOSS_DIVIDE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       .spec = spec,
                                       .n_spec = 1,
                                       .groups = { 1, 1, 1 } });
}

static void emit(const vkt_node *n, vkt_emit *e, bool nll)
{
    const vkt_cross_entropy_attr *a = n->attr;
    const vkt_tensor weight = n->in[IN_WEIGHT], stat = nll ? (vkt_tensor){ 0 } : n->out[OUT_STAT];
    const bool columns = vkt_node_in(n, IN_Z)->layout == VKT_BATCH_LAST;
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, IN_Z), nll, &s)) return;
    const uint32_t parts = a->each ? 1 : s.blocks; /* number of partial sums; 1: the kernel writes loss and norm */
    const vkt_tensor part = vkt_partial_sums(e, n->out[OUT_LOSS], parts);
    const vkt_tensor weights = vkt_partial_sums(e, n->out[OUT_NORM], parts);
    const uint32_t spec[] = { s.lanes, [XENT_SPEC_BY_LANE] = s.by_lane, [XENT_SPEC_WEIGHTED] = weight.id != 0,
                              [XENT_SPEC_SMOOTH] = a->smoothing > 0, [XENT_SPEC_EACH] = a->each != 0 };
    vkt_softmax_xent_push pc = { .batch = s.batch,
                                 .pitch4 = s.pitch4,
                                 .classes = s.classes,
                                 .per_block = s.per_block,
                                 .group = a->group,
                                 .ignore = a->ignore,
                                 .hard = 1 - a->smoothing,
                                 .soft = a->smoothing / (float)s.classes,
                                 .divide = s.blocks > 1 ? XENT_DIVIDE_LATER
                                           : a->sum     ? XENT_DIVIDE_NOT
                                                        : XENT_DIVIDE_MEAN,
                                 .row_stride = columns ? 1 : s.classes,
                                 .class_stride = columns ? 4 * s.pitch4 : 1 };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(&s, &w);) {
        pc.first = w.first;
        pc.end = w.end;
        pc.vectors = w.vectors;
        pc.blocks = w.blocks;
        pc.part = w.part;
        const vkt_bind bind[] = { [XENT_Z] = { n->in[IN_Z], w.offset_bytes, w.bytes },
                                  [XENT_T] = VKT_WHOLE(n->in[IN_T]),
                                  [XENT_STEP] = VKT_WHOLE(n->in[n->op->max_in]),
                                  [XENT_STAT] = VKT_WHOLE(stat),
                                  [XENT_PART] = VKT_WHOLE(part),
                                  [XENT_WEIGHT] = VKT_WHOLE(weight.id ? weight : n->in[IN_T]), /* unread without w */
                                  [XENT_NORM] = VKT_WHOLE(weights) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = nll       ? VKT_K_NLL
                                                     : columns ? VKT_K_CROSS_ENTROPY
                                                               : VKT_K_CROSS_ENTROPY_ROWS,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { w.blocks, 1, 1 } });
    }
    if (parts > 1) divide(n, e, part, weights, s.blocks, a->sum);
}

static void cross_entropy_emit(const vkt_node *n, vkt_emit *e)
{
    emit(n, e, false);
}

static void nll_emit(const vkt_node *n, vkt_emit *e)
{
    emit(n, e, true);
}

static bool is_label_reduction(vkt_loss_reduction r)
{
    return r == VKT_LOSS_MEAN || r == VKT_LOSS_SUM || r == VKT_LOSS_NONE;
}

/* Returns z (N,K,d..) as (N,d..,K) in ROWS. */
static vkt_tensor classes_last(vkt_graph *g, vkt_tensor z)
{
    const uint32_t rank = vkt_tensor_shape(g, z).rank;
    uint32_t perm[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 1; i < rank; i++) perm[i] = i + 1 < rank ? i + 1 : 1;
    return vkt_permute(g, vkt_to_layout(g, z, VKT_ROWS), perm);
}

/* Converts z and t with several labels per sample to z (rows,K) and t (rows). Sets *group, which must be 1 before the
 * call, to the number of rows of a sample. If the shapes do not fit, sets the graph's error and returns false. */
static bool make_rows(vkt_graph *g, const char *name, vkt_tensor *z, vkt_tensor *t, uint32_t *group)
{
    const vkt_shape zs = vkt_tensor_shape(g, *z), ts = vkt_tensor_shape(g, *t);
    char zt[80], tt[80];
    bool same = ts.rank == zs.rank - 1;
    for (uint32_t i = 0; i < ts.rank && same; i++) same = ts.dim[i] == zs.dim[i];
    if (!same) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want a label for each row of z %s, got %s", name,
                                    vkt_shape_text(zs, zt), vkt_shape_text(ts, tt)));
        return false;
    }
    for (uint32_t i = 1; i < ts.rank; i++) *group *= ts.dim[i];
    *z = vkt_reshape(g, *z, vkt_shape2(zs.dim[0] * *group, zs.dim[ts.rank]));
    *t = vkt_reshape(g, *t, vkt_shape1(zs.dim[0] * *group));
    return true;
}

static vkt_tensor build(vkt_graph *g, const vkt_op *op, vkt_tensor z, vkt_tensor t, const vkt_cross_entropy_params *p)
{
    const vkt_cross_entropy_params o = p ? *p : (vkt_cross_entropy_params){ 0 };
    vkt_cross_entropy_attr a = { .ignore = (uint32_t)(o.has_ignore_index ? o.ignore_index : VKT_IGNORE_INDEX),
                                 .sum = o.reduction == VKT_LOSS_SUM,
                                 .each = o.reduction == VKT_LOSS_NONE,
                                 .group = 1,
                                 .smoothing = vkt_or_f32(o.label_smoothing, 0) };
    const vkt_shape ts = vkt_tensor_shape(g, t);
    if (!is_label_reduction(o.reduction)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "%s: want the reduction mean, sum or none", op->name));
        return (vkt_tensor){ 0 };
    }
    const bool many = vkt_tensor_shape(g, z).rank > 2;
    if (many && o.classes_second) z = classes_last(g, z);
    if (many && (g->status != VKT_OK || !make_rows(g, op->name, &z, &t, &a.group))) return (vkt_tensor){ 0 };
    const vkt_tensor loss = vkt_apply(g, op, (vkt_tensor[]){ vkt_scores_by_range(g, z), t, o.weight }, 3, &a, NULL);
    return many && a.each && loss.id ? vkt_reshape(g, loss, ts) : loss;
}

vkt_tensor vkt_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t, const vkt_cross_entropy_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_cross_entropy, z, t, p);
}

vkt_tensor vkt_nll_loss(vkt_graph *g, vkt_tensor y, vkt_tensor t, const vkt_cross_entropy_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_nll, y, t, p);
}

static void cross_entropy_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { [DX_Z] = n->in[IN_Z],      [DX_T] = n->in[IN_T],         [DX_NORM] = n->out[OUT_NORM],
                              [DX_DLOSS] = dy[OUT_LOSS], [DX_STAT] = n->out[OUT_STAT], [DX_WEIGHT] = n->in[IN_WEIGHT] };
    if (dy[OUT_LOSS].id) dx[0] = vkt_apply(g, &vkt_op_cross_entropy_dx, in, VKT_COUNT(in), n->attr, NULL);
}

static void nll_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { [DX_Z] = n->in[IN_Z],
                              [DX_T] = n->in[IN_T],
                              [DX_NORM] = n->out[OUT_NORM],
                              [DX_DLOSS] = dy[OUT_LOSS],
                              [NLL_DX_IN_WEIGHT] = n->in[IN_WEIGHT] };
    if (dy[OUT_LOSS].id) dx[0] = vkt_apply(g, &vkt_op_nll_dx, in, VKT_COUNT(in), n->attr, NULL);
}

/* ---- gradients ---- */

static vkt_result dx_infer(vkt_infer *f, uint32_t weight)
{
    VKT_TRY(vkt_check_scores(f, true));
    VKT_TRY(check_weight(f, weight));
    const vkt_value z = *vkt_in(f, DX_Z);
    const uint64_t losses = ((const vkt_cross_entropy_attr *)f->n->attr)->each ? z.shape.dim[0] : 1;
    for (uint32_t i = DX_NORM; i <= DX_DLOSS; i++)
        VKT_REQUIRE(f,
                    vkt_in(f, i)->dtype == VKT_F32 && vkt_in(f, i)->layout == VKT_ROWS &&
                        vkt_shape_elements(vkt_in(f, i)->shape) == (i == DX_DLOSS ? losses : 1),
                    VKT_E_SHAPE, "%s: want a gradient of each loss, and the scalar that the loss was divided by",
                    f->n->op->name);
    vkt_out(f, VKT_F32, z.layout, z.shape);
    return VKT_OK;
}

static vkt_result cross_entropy_dx_infer(vkt_infer *f)
{
    const vkt_value z = *vkt_in(f, DX_Z), stat = *vkt_in(f, DX_STAT);
    VKT_TRY(dx_infer(f, DX_WEIGHT));
    VKT_REQUIRE(f, stat.layout == z.layout && vkt_shape_equal(stat.shape, vkt_shape2(z.shape.dim[0], 3)), VKT_E_SHAPE,
                "cross_entropy_dx: want the statistics of cross_entropy");
    return VKT_OK;
}

static vkt_result nll_dx_infer(vkt_infer *f)
{
    return dx_infer(f, NLL_DX_IN_WEIGHT);
}

static void cross_entropy_dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_cross_entropy_attr *a = n->attr;
    const vkt_tensor weight = n->in[DX_WEIGHT];
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, DX_Z), false, &s)) return;
    const uint32_t lanes = vkt_score_lanes(e),
                   spec[] = { lanes, [XENT_DX_SPEC_BY_LANE] = s.by_lane, [XENT_DX_SPEC_WEIGHTED] = weight.id != 0,
                              [XENT_DX_SPEC_SMOOTH] = a->smoothing > 0, [XENT_DX_SPEC_EACH] = a->each != 0 };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(&s, &w);) {
        const vkt_softmax_xent_dx_push pc = { .batch = s.batch,
                                              .pitch4 = s.pitch4,
                                              .classes = s.classes,
                                              .first = w.first,
                                              .end = w.end,
                                              .group = a->group,
                                              .ignore = a->ignore,
                                              .hard = 1 - a->smoothing,
                                              .soft = a->smoothing / (float)s.classes };
        const vkt_bind bind[] = { [XENT_DX_Z] = { n->in[DX_Z], w.offset_bytes, w.bytes },
                                  [XENT_DX_T] = VKT_WHOLE(n->in[DX_T]),
                                  [XENT_DX_STEP] = VKT_WHOLE(n->in[n->op->max_in]),
                                  [XENT_DX_STAT] = VKT_WHOLE(n->in[DX_STAT]),
                                  [XENT_DX_DLOSS] = VKT_WHOLE(n->in[DX_DLOSS]),
                                  [XENT_DX_DZ] = { n->out[0], w.offset_bytes, w.bytes },
                                  [XENT_DX_NORM] = VKT_WHOLE(n->in[DX_NORM]),
                                  [XENT_DX_WEIGHT] =
                                      VKT_WHOLE(weight.id ? weight : n->in[DX_T]) /* unread without w */ };
        vkt_dispatch_add(
            e, &(vkt_launch){ .kernel = s.columns ? VKT_K_CROSS_ENTROPY_DX : VKT_K_CROSS_ENTROPY_DX_ROWS,
                              VKT_LAUNCH_BIND(bind),
                              VKT_LAUNCH_PUSH(pc),
                              VKT_LAUNCH_SPEC(spec),
                              .groups = { vkt_score_groups(&s, &w, lanes),
                                          VKT_MIN(vkt_div_up(s.classes, XENT_DX_CHUNK), e->lim->max_groups), 1 } });
    }
}

static void nll_dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_cross_entropy_attr *a = n->attr;
    const vkt_tensor weight = n->in[NLL_DX_IN_WEIGHT];
    const bool columns = vkt_node_in(n, DX_Z)->layout == VKT_BATCH_LAST;
    vkt_sample_blocks s;
    if (!vkt_sample_blocks_of(e, vkt_node_in(n, DX_Z), true, &s)) return;
    const uint32_t lanes = vkt_score_lanes(e),
                   spec[] = { lanes, [NLL_DX_SPEC_WEIGHTED] = weight.id != 0, [NLL_DX_SPEC_EACH] = a->each != 0 };
    for (vkt_sample_range w = { .end = 0 }; vkt_next_range(&s, &w);) {
        const vkt_nll_dx_push pc = {
            s.batch, s.pitch4, s.classes, w.first, (uint32_t)(w.bytes / 4), a->group, a->ignore
        };
        const vkt_bind bind[] = { [NLL_DX_T] = VKT_WHOLE(n->in[DX_T]),
                                  [NLL_DX_STEP] = VKT_WHOLE(n->in[n->op->max_in]),
                                  [NLL_DX_DLOSS] = VKT_WHOLE(n->in[DX_DLOSS]),
                                  [NLL_DX_NORM] = VKT_WHOLE(n->in[DX_NORM]),
                                  [NLL_DX_WEIGHT] = VKT_WHOLE(weight.id ? weight : n->in[DX_T]), /* unread without w */
                                  [NLL_DX_DZ] = { n->out[0], w.offset_bytes, w.bytes } };
        vkt_dispatch_add(e,
                         &(vkt_launch){ .kernel = columns ? VKT_K_NLL_DX : VKT_K_NLL_DX_ROWS,
                                        VKT_LAUNCH_BIND(bind),
                                        VKT_LAUNCH_PUSH(pc),
                                        VKT_LAUNCH_SPEC(spec),
                                        .groups = { VKT_MIN(vkt_groups(pc.n, lanes, e->lim->traits->items_elementwise),
                                                            e->lim->traits->groups_flat_most),
                                                    1, 1 } });
    }
}

/* ---- op descriptors ---- */

/* Generates a case. In some cases, rows with the label `ignore` do not count. This label is a class, or K, which is
 * no class. Cases with an ignored label have many rows, so that some rows count. A case of cross_entropy has small
 * logits or many rows. So its loss is not near 0, unless there is only one class: see xent_sample in loss.c. A
 * log-probability of nll is at most -0.1, for the same reason. */
static void sample(vkt_rng *r, vkt_case *c, bool nll)
{
    const uint32_t ignoring = vkt_rng_range(r, 0, 2), kind = vkt_rng_range(r, 0, 5);
    const bool wide = !nll && vkt_rng_range(r, 0, 2) == 0, many = wide || ignoring;
    vkt_cross_entropy_attr a = { .ignore = (uint32_t)VKT_IGNORE_INDEX,
                                 .sum = vkt_rng_range(r, 0, 1),
                                 .group = vkt_rng_range(r, 0, 2) ? 1 : vkt_rng_range(r, 2, 5),
                                 .smoothing = nll || vkt_rng_range(r, 0, 1) ? 0 : vkt_rng_uniform(r, 0.05f, 1) };
    a.each = !a.sum && vkt_rng_range(r, 0, 2) == 0;
    const uint32_t B =
        kind == 0 ? vkt_rng_range(r, 300, 1100) / a.group : vkt_rng_range(r, many ? 20 : 1, 70 / a.group + 20);
    const uint32_t K = kind == 1 ? vkt_rng_range(r, 300, 1100) : vkt_rng_range(r, many ? 3 : 1, 19);
    if (ignoring) a.ignore = ignoring == 1 ? K : vkt_rng_range(r, 0, K - 1);
    const float most = wide ? 60 : 2;
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, vkt_shape2(B * a.group, K), nll ? -9 : -most,
                 nll ? -0.1f : most);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(B * a.group), ignoring == 1 ? K + 1 : K);
    if (vkt_rng_range(r, 0, 1))
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(K), 0.3f, 2);
    else
        vkt_case_absent(c);
    c->rows = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, many ? 20 : 1, B) : 0;
    vkt_case_attr(c, &a, sizeof a);
}

static void cross_entropy_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, false);
}

static void nll_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, true);
}

static double nll_flops(const vkt_node *n)
{
    return 2 * vkt_elements_in(n, IN_T);
}

/* Counts 8 bytes for each row: its label, and the log-probability of that label. */
static double nll_bytes(const vkt_node *n)
{
    return 8 * vkt_elements_in(n, IN_T);
}

/* Counts the bytes of the labels and of dz. The op does not read z: it uses only the shape of z. */
static double nll_dx_bytes(const vkt_node *n)
{
    return 4 * (vkt_elements_in(n, DX_T) + vkt_elements_out(n, 0));
}

static const vkt_field fields[] = { VKT_FIELD(vkt_cross_entropy_attr, ignore, U32, 1, 4294967196.0),
                                    VKT_FIELD(vkt_cross_entropy_attr, sum, U32, 1, 0),
                                    VKT_FIELD(vkt_cross_entropy_attr, each, U32, 1, 0),
                                    VKT_FIELD(vkt_cross_entropy_attr, group, U32, 1, 1),
                                    VKT_FIELD(vkt_cross_entropy_attr, smoothing, F32, 1, 0),
                                    { .name = NULL } };

const vkt_op vkt_op_cross_entropy = {
    .name = "cross_entropy",
    .min_in = 2,
    .max_in = 3,
    .uses_step = true,
    .batch = batch,
    .diff = 1u << IN_Z,
    .refuses = 1u << IN_WEIGHT,
    .attr_bytes = sizeof(vkt_cross_entropy_attr),
    .infer = cross_entropy_infer,
    .emit = cross_entropy_emit,
    .backward = cross_entropy_backward,
    .sample = cross_entropy_sample,
    .rel_tol = 3e-6f,
    .abs_tol = 3e-5f,
    .tol_why = "as softmax_xent; weights are positive, so that sums have terms of one sign, and round once more",
    .flops = vkt_flops_of_scores,
    .fields = fields,
    .formula = "loss = sum_b (1-s) w[t] -log p[t] + s/K sum_k w[k] -log p[k], p = softmax(z[b]), over sum_b w[t]",
};

const vkt_op vkt_op_cross_entropy_dx = {
    .name = "cross_entropy_dx",
    .min_in = 5,
    .max_in = 6,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_cross_entropy_attr),
    .infer = cross_entropy_dx_infer,
    .emit = cross_entropy_dx_emit,
    .forward_only = true,
    .tested_by = "cross_entropy",
    .flops = vkt_flops_of_scores,
    .formula =
        "dz = dloss/norm (((1-s) w[t] + s/K sum w) p - (1-s) w[t] (k == t) - s/K w), 0 for rows that do not count",
};

const vkt_op vkt_op_nll = {
    .name = "nll",
    .min_in = 2,
    .max_in = 3,
    .uses_step = true,
    .batch = batch,
    .diff = 1u << IN_Z,
    .refuses = 1u << IN_WEIGHT,
    .attr_bytes = sizeof(vkt_cross_entropy_attr),
    .infer = nll_infer,
    .emit = nll_emit,
    .backward = nll_backward,
    .sample = nll_sample,
    .rel_tol = 8e-6f,
    .tol_why = "terms of one sign, at most 1024 of them in one chain; roundings of 2^-24 add up like a random walk",
    .flops = nll_flops,
    .bytes = nll_bytes,
    .fields = fields,
    .formula = "loss = sum_b -w[t[b]] y[b,t[b]] / sum_b w[t[b]]",
};

const vkt_op vkt_op_nll_dx = {
    .name = "nll_dx",
    .min_in = 4,
    .max_in = 5,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_cross_entropy_attr),
    .infer = nll_dx_infer,
    .emit = nll_dx_emit,
    .forward_only = true,
    .tested_by = "nll",
    .flops = vkt_flops_none,
    .bytes = nll_dx_bytes,
    .formula = "dy[b,k] = -dloss/norm w[k] (k == t[b]), 0 for rows that do not count",
};
