/* ops/loss/pair_loss.c - losses that compare y with a target, element by element, over the real rows of a batch (the
 * step's `rows`). t = target, d = y - t, s = sigmoid(y), w = weight of positives or 1:
 *
 *              term                                             its derivative with respect to y
 *   mse        d^2                                              2 d
 *   l1         |d|                                              sign(d), 0 at 0
 *   smooth_l1  |d| < beta ? d^2 / (2 beta) : |d| - beta/2       |d| < beta ? d / beta : sign(d)
 *   huber      |d| < beta ? d^2 / 2 : beta (|d| - beta/2)       |d| < beta ? d : beta sign(d)
 *   bce        -t log y - (1-t) log(1-y), logs are >= -100      d / max(y (1-y), 1e-12)
 *   bce_logits w t softplus(-y) + (1-t) softplus(y)             (1-t) s - w t (1-s)
 *   kl_div     t (log t - y), or exp(t) (t - y)                 -t, or -exp(t)
 *   relative_l2  d^2 / (y^2 + beta)                           2 d / (y^2 + beta)
 *
 * The second form of kl_div is for `log_target`, where t is a log-probability. The derivative of relative_l2 treats the
 * divisor as a constant, by definition of this loss. The first four terms are even functions of d. So pair_loss_dx also
 * computes the gradient with respect to the target, from exchanged inputs y and target. */
#include "ops/loss/loss.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/loss.abi.h"

/* kinds[k]: the op descriptor of the loss that has the number k in the kernels (loss.abi.h). kl_div has a second
 * number: LOSS_KL_LOG, if the targets are log-probabilities. */
static const vkt_op *const kinds[] = {
    [LOSS_MSE] = &vkt_op_mse,
    [LOSS_L1] = &vkt_op_l1,
    [LOSS_SMOOTH_L1] = &vkt_op_smooth_l1,
    [LOSS_HUBER] = &vkt_op_huber,
    [LOSS_BCE] = &vkt_op_bce,
    [LOSS_LOGITS] = &vkt_op_bce_logits,
    [LOSS_KL] = &vkt_op_kl_div,
    [LOSS_RELATIVE] = &vkt_op_relative_l2,
};

static uint32_t kind_of(const vkt_op *op, const vkt_pair_loss_attr *a)
{
    uint32_t kind = LOSS_MSE;
    while (kinds[kind] != op) kind++;
    return kind == LOSS_KL && a->log_target ? LOSS_KL_LOG : kind;
}

/* Returns the weight: the optional input of the op. {0}: there is no weight. */
static vkt_tensor weight_of(const vkt_node *n)
{
    return n->op->min_in < n->op->max_in ? n->in[n->op->max_in - 1] : (vkt_tensor){ 0 };
}

static vkt_result check_pair(vkt_infer *f)
{
    const vkt_value *y = vkt_in(f, 0), *target = vkt_in(f, 1);
    const char *name = f->n->op->name;
    char yt[80], tt[80];
    VKT_REQUIRE(f, y->dtype == VKT_F32 && target->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32 and f32, got %s and %s",
                name, vkt_dtype_name(y->dtype), vkt_dtype_name(target->dtype));
    VKT_REQUIRE(f, y->shape.rank >= 1 && y->layout == target->layout && vkt_shape_equal(y->shape, target->shape),
                VKT_E_SHAPE, "%s: want y and target of one shape (B, ..) and layout, got %s and %s", name,
                vkt_shape_text(y->shape, yt), vkt_shape_text(target->shape, tt));
    VKT_REQUIRE(f, y->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", name);
    if (!weight_of(f->n).id) return VKT_OK;
    const vkt_value *w = vkt_value_of(f->g, weight_of(f->n));
    const uint64_t features = vkt_shape_elements(y->shape) / y->shape.dim[0];
    VKT_REQUIRE(f, w->dtype == VKT_F32, VKT_E_DTYPE, "%s: want weights f32, got %s", name, vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f, w->layout == VKT_ROWS && vkt_shape_elements(w->shape) == features, VKT_E_SHAPE,
                "%s: want weights by rows for the %llu elements of a row, got %s", name, (unsigned long long)features,
                vkt_shape_text(w->shape, tt));
    return VKT_OK;
}

static vkt_result loss_infer(vkt_infer *f)
{
    const vkt_pair_loss_attr *a = f->n->attr;
    VKT_TRY(check_pair(f));
    VKT_REQUIRE(f, a->reduction <= VKT_LOSS_NONE, VKT_E_ARG, "%s: want a vkt_loss_reduction, got %u", f->n->op->name,
                a->reduction);
    VKT_REQUIRE(f, a->log_target <= 1, VKT_E_ARG, "%s: want log_target 0 or 1, got %u", f->n->op->name, a->log_target);
    VKT_REQUIRE(f, a->beta > 0, VKT_E_ARG, "%s: want a positive beta, delta or epsilon, got %g", f->n->op->name,
                (double)a->beta);
    if (a->reduction == VKT_LOSS_NONE)
        vkt_out(f, VKT_F32, vkt_in(f, 0)->layout, vkt_in(f, 0)->shape);
    else
        vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

/* Returns the push constants that do not depend on the dispatch (loss.abi.h): the members that say which elements of y
 * are in real rows, the divisors of the sum of the terms, and beta. */
static vkt_loss_push push_of(const vkt_value *y, const vkt_pair_loss_attr *a)
{
    const bool rows = y->layout == VKT_ROWS;
    const uint32_t batch = y->shape.dim[0], features = (uint32_t)(vkt_shape_elements(y->shape) / batch);
    return (vkt_loss_push){ .batch = batch,
                            .per_row = rows ? features : 1,
                            .period4 = rows ? (uint32_t)((y->bytes / 4 + 3) / 4) : vkt_div_up(batch, 4),
                            .by_rows = a->reduction == VKT_LOSS_MEAN || a->reduction == VKT_LOSS_BATCHMEAN,
                            .elements = a->reduction == VKT_LOSS_MEAN ? features : 1,
                            .beta = a->beta };
}

/* Initialises the bindings that the kernels of the loss and of its gradient share, for pc.n elements from element `at`
 * on. Each kernel also has bindings that the other does not have. */
#define WINDOW(n, e, pc, at, weight)                                                                     \
    [LOSS_Y] = vkt_part(e, (n)->in[0], at, (pc).n), [LOSS_TARGET] = vkt_part(e, (n)->in[1], at, (pc).n), \
    [LOSS_STEP] = VKT_WHOLE((n)->in[(n)->op->max_in]), [LOSS_WEIGHT] = VKT_WHOLE(weight)

/* Emits dispatches that write one number for each element. If `terms` is true, this number is the element's term, and
 * dloss may be any tensor, because the kernel does not read it. If `terms` is false, the number is the gradient: the
 * term's derivative times dloss, divided by the divisor of the loss. */
static void emit_elements(const vkt_node *n, vkt_emit *e, uint32_t kind, vkt_tensor dloss, bool terms)
{
    const vkt_value *y = vkt_node_in(n, 0);
    const vkt_pair_loss_attr *a = n->attr;
    const bool each = !terms && a->reduction == VKT_LOSS_NONE;
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_elementwise);
    const uint32_t spec[] = { lanes, [LOSS_SPEC_KIND] = kind, [LOSS_SPEC_EACH] = each, [LOSS_SPEC_TERM] = terms };
    const uint64_t total = y->bytes / 4, range = vkt_bind_range_elements(e->lim);
    const vkt_tensor weight = weight_of(n);
    vkt_loss_push pc = push_of(y, a);
    for (uint64_t at = 0; at < total; at += range) {
        pc.begin4 = (uint32_t)(at / 4);
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        const vkt_bind bind[] = {
            WINDOW(n, e, pc, at, weight), [LOSS_DLOSS] = each ? vkt_part(e, dloss, at, pc.n) : VKT_WHOLE(dloss),
            [LOSS_DY] = vkt_part(e, n->out[0], at, pc.n)
        };
        vkt_dispatch_add(e,
                         &(vkt_launch){ .kernel = weight.id ? VKT_K_LOSS_DX_WEIGHTED : VKT_K_LOSS_DX,
                                        VKT_LAUNCH_BIND(bind),
                                        VKT_LAUNCH_PUSH(pc),
                                        VKT_LAUNCH_SPEC(spec),
                                        .groups = { VKT_MIN(vkt_groups(pc.n, lanes, e->lim->traits->items_elementwise),
                                                            e->lim->traits->groups_flat_most),
                                                    1, 1 } });
    }
}

static void loss_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *y = vkt_node_in(n, 0);
    const vkt_pair_loss_attr *a = n->attr;
    if (a->reduction == VKT_LOSS_NONE) {
        emit_elements(n, e, kind_of(n->op, a), n->in[n->op->max_in], true);
        return;
    }
    const vkt_tensor weight = weight_of(n);
    const uint64_t total = y->bytes / 4, range = vkt_bind_range_elements(e->lim);
    const uint32_t spec[] = { vkt_lanes_for(e->lim, VKT_K_LOSS, y->bytes / 16), [LOSS_SPEC_KIND] = kind_of(n->op, a) };
    const uint64_t iterations = vkt_groups(total, spec[0], 4);
    /* Several blocks need a second dispatch, which takes long on a CPU. So a short sum has one block. Longer sums have
     * short blocks, which keep rounding errors small. */
    const bool one = iterations <= e->lim->traits->iterations_loss;
    vkt_loss_push pc = push_of(y, a);
    pc.per_block = spec[0] * (one ? (uint32_t)iterations : e->lim->traits->iterations_loss_block);
    uint32_t blocks = 0;
    for (uint64_t at = 0; at < total; at += range)
        blocks += vkt_div_up((uint32_t)((VKT_MIN(total - at, range) + 3) / 4), pc.per_block);
    const vkt_tensor partial = vkt_partial_sums(e, n->out[0], blocks);
    for (uint64_t at = 0; at < total; at += range) {
        pc.begin4 = (uint32_t)(at / 4);
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        pc.blocks = vkt_div_up((pc.n + 3) / 4, pc.per_block);
        const vkt_bind bind[] = { WINDOW(n, e, pc, at, weight), [LOSS_PART] = VKT_WHOLE(partial) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = weight.id ? VKT_K_LOSS_WEIGHTED : VKT_K_LOSS,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { pc.blocks, 1, 1 } });
        pc.first_block += pc.blocks;
    }
    vkt_sum_partials(e, partial, n->out[0]);
}

static void loss_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_pair_loss_attr a = *(const vkt_pair_loss_attr *)n->attr;
    a.kind = kind_of(n->op, &a);
    const vkt_tensor weight = weight_of(n);
    for (uint32_t i = 0; i < 2; i++)
        if ((n->op->diff >> i & 1) && vkt_wants_grad(g, n->in[i])) {
            const vkt_tensor in[] = { n->in[i], n->in[1 - i], dy[0], weight };
            dx[i] = vkt_apply(g, &vkt_op_pair_loss_dx, in, VKT_COUNT(in), &a, NULL);
        }
}

/* Counts the operations of an element's term, and its addition to the sum. */
static double loss_flops(const vkt_node *n)
{
    static const uint8_t each[] = { [LOSS_MSE] = 3, [LOSS_L1] = 3,      [LOSS_SMOOTH_L1] = 5, [LOSS_HUBER] = 5,
                                    [LOSS_BCE] = 8, [LOSS_LOGITS] = 12, [LOSS_KL] = 4,        [LOSS_RELATIVE] = 6 };
    return each[kind_of(n->op, &(vkt_pair_loss_attr){ 0 })] * vkt_elements_in(n, 0);
}

/* ---- the gradient of all these losses: y, target, dloss, weight or null -> dy ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const vkt_value y = *vkt_in(f, 0), dloss = *vkt_in(f, 2);
    VKT_TRY(check_pair(f));
    const bool each = ((const vkt_pair_loss_attr *)f->n->attr)->reduction == VKT_LOSS_NONE;
    VKT_REQUIRE(f,
                dloss.dtype == VKT_F32 && (each ? vkt_shape_equal(dloss.shape, y.shape) && dloss.layout == y.layout
                                                : vkt_shape_elements(dloss.shape) == 1),
                VKT_E_SHAPE, "pair_loss_dx: want a gradient like y where there is no reduction, else a scalar");
    vkt_out(f, VKT_F32, y.layout, y.shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_pair_loss_attr *a = n->attr;
    emit_elements(n, e, a->kind, n->in[2], false);
}

static double dx_flops(const vkt_node *n)
{
    return 2 * vkt_elements_in(n, 0);
}

const vkt_op vkt_op_pair_loss_dx = { .name = "pair_loss_dx",
                                     .min_in = 3,
                                     .max_in = 4,
                                     .uses_step = true,
                                     .attr_bytes = sizeof(vkt_pair_loss_attr),
                                     .infer = dx_infer,
                                     .emit = dx_emit,
                                     .half = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
                                     .forward_only = true,
                                     .tested_by = "mse",
                                     .flops = dx_flops,
                                     .formula = "dy = dloss d term(y, target) / dy / n, 0 past the real rows" };

/* ---- the op descriptors ---- */

static void sample_of(vkt_rng *r, vkt_case *c, vkt_pair_loss_attr a, float y_lo, float y_hi, float t_lo, float t_hi)
{
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    vkt_shape s = vkt_shape1(vkt_rng_range(r, 1, 20000));
    if (vkt_rng_range(r, 0, 2))
        s = vkt_shape3(vkt_rng_range(r, 1, 67), vkt_rng_range(r, 1, 13), vkt_rng_range(r, 1, 7));
    vkt_case_f32(c, layout, s, y_lo, y_hi);
    vkt_case_f32(c, layout, s, t_lo, t_hi);
    c->rows = vkt_rng_range(r, 0, s.dim[0]);
    a.reduction = vkt_rng_range(r, VKT_LOSS_MEAN, VKT_LOSS_NONE);
    vkt_case_attr(c, &a, sizeof a);
}

static void sample_numbers(vkt_rng *r, vkt_case *c)
{
    sample_of(r, c, (vkt_pair_loss_attr){ .beta = vkt_rng_uniform(r, 0.3f, 2.5f) }, -3, 3, -3, 3);
}

static void sample_probabilities(vkt_rng *r, vkt_case *c)
{
    sample_of(r, c, (vkt_pair_loss_attr){ .beta = 1 }, 0.01f, 0.99f, 0, 1);
}

static void sample_logits(vkt_rng *r, vkt_case *c)
{
    sample_of(r, c, (vkt_pair_loss_attr){ .beta = 1 }, -9, 9, 0, 1);
    const vkt_shape s = c->in[0].shape;
    if (vkt_rng_range(r, 0, 1))
        vkt_case_f32(c, VKT_ROWS, s.rank == 1 ? vkt_shape0() : vkt_shape2(s.dim[1], s.dim[2]), 0.3f, 3);
    else
        vkt_case_absent(c);
}

/* Generates numbers such that every term is positive. If terms cancelled, the relative error of the sum would be
 * large. */
static void sample_divergence(vkt_rng *r, vkt_case *c)
{
    const bool log = vkt_rng_range(r, 0, 1);
    const vkt_pair_loss_attr a = { .beta = 1, .log_target = log };
    sample_of(r, c, a, -9, -5, log ? -4.5f : 0.015f, log ? -0.01f : 1);
}

static void sample_radiances(vkt_rng *r, vkt_case *c)
{
    sample_of(r, c, (vkt_pair_loss_attr){ .beta = vkt_rng_range(r, 0, 1) ? 0.01f : vkt_rng_uniform(r, 1e-3f, 2) }, -2,
              3, -2, 3);
}

static void mse_fuse(vkt_graph *g, vkt_node *n, vkt_tensor dloss)
{
    const vkt_pair_loss_attr *a = n->attr;
    if (dloss.id && a->reduction == VKT_LOSS_MEAN && !vkt_wants_grad(g, n->in[1])) vkt_fuse_mlp_mse(g, n, dloss);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_pair_loss_attr, reduction, U32, 1, VKT_LOSS_MEAN),
                                    VKT_FIELD(vkt_pair_loss_attr, log_target, U32, 1, 0),
                                    VKT_FIELD(vkt_pair_loss_attr, beta, F32, 1, 1),
                                    { .name = NULL } };

#define ROUNDS_LIKE_A_SUM \
    "terms of one sign, at most 1024 of them in one chain; roundings of 2^-24 add up like a random walk"
#define ROUNDS_LIKE_A_LOG ROUNDS_LIKE_A_SUM "; exp and log err by about one of them (lib/explog.glsl)"
#define PAIR_LOSS(name_, inputs, diff_)                                                                                \
    .name = (name_), .min_in = 2, .max_in = (inputs), .uses_step = true, .batch = vkt_batch_of_first, .diff = (diff_), \
    .refuses = ((1u << (inputs)) - 1) & ~(uint32_t)(diff_), .attr_bytes = sizeof(vkt_pair_loss_attr),                  \
    .infer = loss_infer, .emit = loss_emit, .half = VKT_HALF_IN(0) | VKT_HALF_IN(1), .backward = loss_backward,        \
    .rel_tol = 8e-6f, .abs_tol = 1e-6f, .flops = loss_flops, .fields = fields

const vkt_op vkt_op_mse = { PAIR_LOSS("mse", 2, 3), .fuse = mse_fuse, .sample = sample_numbers,
                            .tol_why = ROUNDS_LIKE_A_SUM,
                            .formula = "loss = mean of (y - target)^2 over the real rows, their sum, or each" };
const vkt_op vkt_op_l1 = { PAIR_LOSS("l1", 2, 3), .sample = sample_numbers, .tol_why = ROUNDS_LIKE_A_SUM,
                           .formula = "loss = mean of |y - target| over the real rows, their sum, or each" };
const vkt_op vkt_op_smooth_l1 = { PAIR_LOSS("smooth_l1", 2, 3), .sample = sample_numbers, .tol_why = ROUNDS_LIKE_A_SUM,
                                  .formula = "loss = mean of |d| < beta ? d^2 / (2 beta) : |d| - beta/2, d = y - "
                                             "target, over the real rows, their sum, or each" };
const vkt_op vkt_op_huber = { PAIR_LOSS("huber", 2, 3), .sample = sample_numbers, .tol_why = ROUNDS_LIKE_A_SUM,
                              .formula = "loss = mean of |d| < beta ? d^2 / 2 : beta (|d| - beta/2), d = y - target, "
                                         "over the real rows, their sum, or each" };
const vkt_op vkt_op_bce = { PAIR_LOSS("bce", 2, 1), .sample = sample_probabilities, .tol_why = ROUNDS_LIKE_A_LOG,
                            .formula =
                                "loss = mean of -t log y - (1-t) log(1-y) over the real rows, their sum, or each" };
const vkt_op vkt_op_bce_logits = { PAIR_LOSS("bce_logits", 3, 1), .sample = sample_logits, .tol_why = ROUNDS_LIKE_A_LOG,
                                   .formula = "loss = mean of w t softplus(-y) + (1-t) softplus(y) over the real rows, "
                                              "their sum, or each" };
const vkt_op vkt_op_kl_div = { PAIR_LOSS("kl_div", 2, 1), .sample = sample_divergence, .tol_why = ROUNDS_LIKE_A_LOG,
                               .formula =
                                   "loss = mean of t (log t - y) over the real rows, their sum, or each, by elements "
                                   "or by rows" };

const vkt_op vkt_op_relative_l2 = {
    PAIR_LOSS("relative_l2", 2, 1), .sample = sample_radiances,
    .tol_why = ROUNDS_LIKE_A_SUM "; a division of 3 ulp (Vulkan spec)",
    .formula = "loss = mean of (y - target)^2 / (y^2 + beta) over the real rows, their sum, or each; "
               "to the gradient y^2 + beta is a constant"
};

/* ---- the public functions ---- */

/* Adds the loss, with the target converted to y's layout. */
static vkt_tensor build(vkt_graph *g, const vkt_op *op, vkt_tensor y, vkt_tensor target, vkt_tensor weight,
                        vkt_pair_loss_attr a)
{
    if (y.id && y.id < g->n_values) target = vkt_to_layout(g, target, g->values[y.id].layout);
    return vkt_apply(g, op, (vkt_tensor[]){ y, target, weight }, op->max_in, &a, NULL);
}

#define NO_WEIGHT ((vkt_tensor){ 0 })

vkt_tensor vkt_mse(vkt_graph *g, vkt_tensor y, vkt_tensor target)
{
    if (!g) return (vkt_tensor){ 0 };
    return vkt_mse_loss(g, y, target, VKT_LOSS_MEAN);
}

vkt_tensor vkt_mse_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_mse, y, target, NO_WEIGHT, (vkt_pair_loss_attr){ .reduction = reduction, .beta = 1 });
}

vkt_tensor vkt_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_l1, y, target, NO_WEIGHT, (vkt_pair_loss_attr){ .reduction = reduction, .beta = 1 });
}

vkt_tensor vkt_smooth_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float beta, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_smooth_l1, y, target, NO_WEIGHT,
                 (vkt_pair_loss_attr){ .reduction = reduction, .beta = beta });
}

vkt_tensor vkt_huber_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float delta, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_huber, y, target, NO_WEIGHT, (vkt_pair_loss_attr){ .reduction = reduction, .beta = delta });
}

vkt_tensor vkt_binary_cross_entropy(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_bce, y, target, NO_WEIGHT, (vkt_pair_loss_attr){ .reduction = reduction, .beta = 1 });
}

vkt_tensor vkt_binary_cross_entropy_with_logits(vkt_graph *g, vkt_tensor z, vkt_tensor target, vkt_tensor pos_weight,
                                                vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_pair_loss_attr a = { .reduction = reduction, .beta = 1 };
    if (pos_weight.id && z.id && z.id < g->n_values && g->values[z.id].shape.rank) {
        vkt_shape row = g->values[z.id].shape;
        row.rank--;
        memmove(row.dim, row.dim + 1, row.rank * sizeof *row.dim);
        pos_weight = vkt_expand(g, pos_weight, row, VKT_ROWS);
    }
    return build(g, &vkt_op_bce_logits, z, target, pos_weight, a);
}

vkt_tensor vkt_kl_div(vkt_graph *g, vkt_tensor y, vkt_tensor target, bool log_target, vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_kl_div, y, target, NO_WEIGHT,
                 (vkt_pair_loss_attr){ .reduction = reduction, .log_target = log_target, .beta = 1 });
}

vkt_tensor vkt_relative_l2_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float epsilon,
                                vkt_loss_reduction reduction)
{
    if (!g) return (vkt_tensor){ 0 };
    return build(g, &vkt_op_relative_l2, y, target, NO_WEIGHT,
                 (vkt_pair_loss_attr){ .reduction = reduction, .beta = vkt_or_f32(epsilon, 0.01f) });
}
