/* ops/loss/linear_xent.c - the cross-entropy of labels with the logits x w^T:
 *
 *   x (R,D), w (V,D) or words of quantized weights, t (R)  ->  loss, count
 *   loss = 1/norm sum of -log softmax(x[r] w^T)[t[r]] over the rows r that count
 *   norm = `count`, or 1 for a sum;  `count` is the number of rows that count
 *
 * A row counts if it is real (its sample is one of the step's `rows`), and its label is a class and not ignored. The
 * loss is NaN if the label of a real row is neither a class nor ignored.
 * linear_cross_entropy_dx also reads dloss, and computes dx, dw or both. */
#include "ops/loss/linear_xent.h"
#include "ops/product/quantized.h"

#include <math.h>

/* ---- infer ---- */

static vkt_result check_weights(vkt_infer *f)
{
    const vkt_linear_xent_attr *a = f->n->attr;
    const vkt_value *w = vkt_in(f, VKT_XENT_W);
    const vkt_quantized_attr q = vkt_linear_xent_weights(a);
    char text[80];
    if (a->format) return vkt_quantized_check(f, VKT_XENT_W, &q);
    VKT_REQUIRE(f, w->dtype == VKT_F32, VKT_E_DTYPE, "%s: want w f32, got %s", f->n->op->name,
                vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f, w->layout == VKT_ROWS && vkt_shape_equal(w->shape, vkt_shape2(a->rows, a->columns)), VKT_E_SHAPE,
                "%s: want w (classes,%u) by rows, got %s", f->n->op->name, a->columns, vkt_shape_text(w->shape, text));
    VKT_REQUIRE(f, a->columns % 4 == 0, VKT_E_SHAPE, "%s: want rows of a multiple of 4 numbers, got %u", f->n->op->name,
                a->columns);
    return VKT_OK;
}

static vkt_result infer(vkt_infer *f)
{
    const vkt_linear_xent_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, VKT_XENT_X), *t = vkt_in(f, VKT_XENT_T);
    const char *name = f->n->op->name;
    char xt[80], tt[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && t->dtype == VKT_U32, VKT_E_DTYPE, "%s: want x f32 and labels u32, got %s, %s",
                name, vkt_dtype_name(x->dtype), vkt_dtype_name(t->dtype));
    VKT_REQUIRE(f, x->layout == VKT_ROWS && x->shape.rank == 2 && x->shape.dim[1] == a->columns, VKT_E_SHAPE,
                "%s: want x (rows,%u) by rows, got %s", name, a->columns, vkt_shape_text(x->shape, xt));
    VKT_REQUIRE(f, t->layout == VKT_ROWS && vkt_shape_equal(t->shape, vkt_shape1(x->shape.dim[0])), VKT_E_SHAPE,
                "%s: want a label for each row of x %s, got %s", name, vkt_shape_text(x->shape, xt),
                vkt_shape_text(t->shape, tt));
    VKT_REQUIRE(f, a->sum <= 1, VKT_E_ARG, "%s: want sum 0 or 1, got %u", name, a->sum);
    VKT_REQUIRE(f, a->group && x->shape.dim[0] % a->group == 0, VKT_E_SHAPE, "%s: want rows in groups of %u, got %u",
                name, a->group, x->shape.dim[0]);
    VKT_TRY(check_weights(f));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

static vkt_result dx_infer(vkt_infer *f)
{
    const vkt_linear_xent_attr *a = f->n->attr;
    const vkt_value *dloss = vkt_in(f, VKT_XENT_DLOSS);
    VKT_REQUIRE(
        f, a->grads >= VKT_XENT_GRAD_X && a->grads <= (a->format ? VKT_XENT_GRAD_X : VKT_XENT_GRAD_X | VKT_XENT_GRAD_W),
        VKT_E_ARG, "linear_cross_entropy_dx: want grads 1 (dx), or 2 (dw) or 3 with weights f32, got %u", a->grads);
    VKT_REQUIRE(f, dloss->dtype == VKT_F32, VKT_E_DTYPE, "linear_cross_entropy_dx: want dloss f32, got %s",
                vkt_dtype_name(dloss->dtype));
    VKT_REQUIRE(f, dloss->shape.rank == 0, VKT_E_SHAPE,
                "linear_cross_entropy_dx: want the gradient of the loss, a scalar");
    VKT_TRY(infer(f));
    if (a->grads & VKT_XENT_GRAD_X) vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, VKT_XENT_X)->shape);
    if (a->grads & VKT_XENT_GRAD_W) vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, VKT_XENT_W)->shape);
    return VKT_OK;
}

static uint32_t batch(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return vkt_batch_of_first(n) / a->group;
}

/* ---- gradients ---- */

static uint32_t wanted_grads(const vkt_graph *g, const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return (vkt_wants_grad(g, n->in[VKT_XENT_X]) ? VKT_XENT_GRAD_X : 0) |
           (!a->format && vkt_wants_grad(g, n->in[VKT_XENT_W]) ? VKT_XENT_GRAD_W : 0);
}

/* If the gradient of the loss (dloss) is known before the backward traversal, and fusion is on, the forward node also
 * computes the gradients of x and w that are needed. */
static void fuse(vkt_graph *g, vkt_node *n, vkt_tensor dloss)
{
    vkt_linear_xent_attr a = *(const vkt_linear_xent_attr *)n->attr;
    a.grads = wanted_grads(g, n);
    if (g->no_fuse || !dloss.id || !a.grads) return;
    vkt_node_become(g, n, &vkt_op_linear_cross_entropy_dx,
                    (vkt_tensor[]){ n->in[VKT_XENT_X], n->in[VKT_XENT_W], n->in[VKT_XENT_T], dloss }, 4, &a);
}

/* If n computes all needed gradients from the same dloss (see `fuse`), the gradients are outputs of n. Otherwise a new
 * node computes them, and the loss again. */
static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_linear_xent_attr a = *(const vkt_linear_xent_attr *)n->attr;
    const uint32_t has = a.grads;
    a.grads = wanted_grads(g, n);
    for (uint32_t k = VKT_XENT_OUT_GRADS; k < n->n_out && g->status == VKT_OK; k++)
        if (dy[k].id) vkt_refuse_second_gradient(g, n, k);
    if (!dy[VKT_XENT_OUT_LOSS].id || !a.grads) return;
    if ((a.grads & ~has) || n->in[VKT_XENT_DLOSS].id != dy[VKT_XENT_OUT_LOSS].id) {
        const vkt_tensor in[] = { n->in[VKT_XENT_X], n->in[VKT_XENT_W], n->in[VKT_XENT_T], dy[VKT_XENT_OUT_LOSS] };
        if (!vkt_apply(g, &vkt_op_linear_cross_entropy_dx, in, 4, &a, NULL).id) return;
        n = g->nodes[g->n_nodes - 1];
    }
    if (a.grads & VKT_XENT_GRAD_X) dx[VKT_XENT_X] = vkt_linear_xent_gradient(n, VKT_XENT_GRAD_X);
    if (a.grads & VKT_XENT_GRAD_W) dx[VKT_XENT_W] = vkt_linear_xent_gradient(n, VKT_XENT_GRAD_W);
}

static bool stops(const vkt_node *n, uint32_t i)
{
    return i == VKT_XENT_W && ((const vkt_linear_xent_attr *)n->attr)->format != 0;
}

/* Returns true if output VKT_XENT_OUT_GRADS is dx, which may be stored in 16 bits; false if it is dw. */
static bool has_dx(const vkt_node *n)
{
    return (((const vkt_linear_xent_attr *)n->attr)->grads & VKT_XENT_GRAD_X) != 0;
}

/* ---- random cases ---- */

static void settle(void *attr, vkt_case_input *in)
{
    vkt_linear_xent_attr *a = attr;
    a->columns = in[VKT_XENT_X].shape.dim[1];
    const vkt_quantized_attr q = vkt_linear_xent_weights(a);
    a->rows = a->format ? vkt_quantized_rows(&q, in[VKT_XENT_W].shape.dim[0]) : in[VKT_XENT_W].shape.dim[0];
    in[VKT_XENT_T].bound = VKT_MIN(in[VKT_XENT_T].bound, a->rows);
}

static void amend(const void *attr, uint32_t *words, size_t n)
{
    const vkt_quantized_attr q = vkt_linear_xent_weights(attr);
    if (q.format) vkt_quantized_amend(&q, words, n);
}

/* Returns roughly the largest weight that random words of a format can hold after vkt_quantized_amend. Returns at least
 * 1. */
static float largest_weight(uint32_t format)
{
    switch (format) {
    case VKT_QUANT_Q8_0: return 8;
    case VKT_QUANT_Q4_K: return 60;
    case VKT_QUANT_Q5_K: return 120;
    case VKT_QUANT_Q6_K: return 256;
    default: return 1;
    }
}

/* Generates a case. The magnitude of logits is about 1 or less, so that loss and gradients are not near 0. In some
 * cases, rows with the label `ignore` do not count. This label is a class, or V, which is no class. */
static void sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t ignoring = vkt_rng_range(r, 0, 2), group = vkt_rng_range(r, 0, 1) ? 1 : vkt_rng_range(r, 2, 5);
    const uint32_t samples = vkt_rng_range(r, 20, 50) / group + 4, V = vkt_rng_range(r, 2, 90);
    vkt_linear_xent_attr a = { .rows = V, .ignore = (uint32_t)VKT_IGNORE_INDEX, .sum = vkt_rng_range(r, 0, 1) };
    a.group = group;
    if (ignoring) a.ignore = ignoring == 1 ? V : vkt_rng_range(r, 0, V - 1);
    vkt_case_input *x = vkt_case_f32(c, VKT_ROWS, vkt_shape2(samples * group, 1), -1, 1);
    if (vkt_rng_range(r, 0, 1)) {
        const vkt_quantized_attr q = vkt_quantized_sample(r, c, V);
        a.format = q.format;
        a.columns = q.columns;
    } else {
        a.columns = 4 * vkt_rng_range(r, 1, 20);
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(V, a.columns), -0.5f, 0.5f);
    }
    x->shape.dim[1] = a.columns;
    x->hi = VKT_MIN(1, 8 / (largest_weight(a.format) * sqrtf((float)a.columns)));
    x->lo = -x->hi;
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(samples * group), ignoring == 1 ? V + 1 : V);
    c->rows = vkt_rng_range(r, 0, 2) ? 0 : vkt_rng_range(r, 4, samples);
    vkt_case_attr(c, &a, sizeof a);
}

static void dx_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c);
    vkt_case_f32(c, VKT_ROWS, vkt_shape0(), 0.5f, 2);
    vkt_linear_xent_attr *a = (vkt_linear_xent_attr *)c->attr;
    a->grads = a->format ? VKT_XENT_GRAD_X : vkt_rng_range(r, VKT_XENT_GRAD_X, VKT_XENT_GRAD_X | VKT_XENT_GRAD_W);
}

/* Counts a dot product of `columns` multiply-adds, and four more operations, for each logit. */
static double flops(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return vkt_elements_in(n, VKT_XENT_T) * a->rows * (2.0 * a->columns + 4);
}

static double dx_flops(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    const double products = 1 + (a->grads & VKT_XENT_GRAD_X ? 1 : 0) + (a->grads & VKT_XENT_GRAD_W ? 1 : 0);
    return vkt_elements_in(n, VKT_XENT_T) * a->rows * (2.0 * products * a->columns + 8);
}

static const vkt_field fields[] = {
    VKT_FIELD(vkt_linear_xent_attr, format, U32, 1, 0),  VKT_FIELD(vkt_linear_xent_attr, rows, U32, 1, 0),
    VKT_FIELD(vkt_linear_xent_attr, columns, U32, 1, 0), VKT_FIELD(vkt_linear_xent_attr, ignore, U32, 1, 4294967196.0),
    VKT_FIELD(vkt_linear_xent_attr, sum, U32, 1, 0),     VKT_FIELD(vkt_linear_xent_attr, group, U32, 1, 1),
    VKT_FIELD(vkt_linear_xent_attr, grads, U32, 1, 0),   { .name = NULL }
};

#define TOLERANCE                                                                                                    \
    "a logit errs as a product of linear_quantized does, 2e-5 of the largest one; loss and probabilities err by as " \
    "much as the logits, and dx and dw by a further product"

const vkt_op vkt_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .min_in = 3,
    .max_in = 3,
    .uses_step = true,
    .batch = batch,
    .diff = 1u << VKT_XENT_X | 1u << VKT_XENT_W,
    .stops = stops,
    .attr_bytes = sizeof(vkt_linear_xent_attr),
    .infer = infer,
    .settle = settle,
    .emit = vkt_linear_xent_emit,
    .half_rows = VKT_HALF_IN(VKT_XENT_X),
    .backward = backward,
    .fuse = fuse,
    .sample = sample,
    .amended = VKT_XENT_W,
    .amend = amend,
    .rel_tol = 2e-5f,
    .abs_tol = 4e-5f,
    .tol_why = TOLERANCE,
    .flops = flops,
    .fields = fields,
    .formula = "loss = mean over the labels that count of -log softmax(x[r] w^T)[t[r]]; count: their number",
};

const vkt_op vkt_op_linear_cross_entropy_dx = {
    .name = "linear_cross_entropy_dx",
    .min_in = 4,
    .max_in = 4,
    .uses_step = true,
    .batch = batch,
    .diff = 1u << VKT_XENT_X | 1u << VKT_XENT_W,
    .refuses = 1u << VKT_XENT_DLOSS,
    .stops = stops,
    .attr_bytes = sizeof(vkt_linear_xent_attr),
    .infer = dx_infer,
    .settle = settle,
    .emit = vkt_linear_xent_emit,
    .half_rows = VKT_HALF_IN(VKT_XENT_X) | VKT_HALF_OUT(VKT_XENT_OUT_GRADS),
    .half_when = has_dx,
    .backward = backward,
    .sample = dx_sample,
    .amended = VKT_XENT_W,
    .amend = amend,
    .rel_tol = 2e-5f,
    .abs_tol = 4e-5f,
    .tol_why = TOLERANCE,
    .flops = dx_flops,
    .fields = fields,
    .formula = "linear_cross_entropy, and dx = dz w, dw = dz^T x with dz = dloss/count (softmax(x w^T) - (k == t))",
};

/* ---- building ---- */

static vkt_tensor build(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor t, vkt_linear_xent_attr a,
                        const vkt_linear_cross_entropy_params *p)
{
    const vkt_linear_cross_entropy_params o = p ? *p : (vkt_linear_cross_entropy_params){ 0 };
    vkt_tensor out[VKT_MAX_OUT];
    if (o.count) *o.count = (vkt_tensor){ 0 };
    const char *name = vkt_op_linear_cross_entropy.name;
    if (!vkt_is_usable(g, name, x) || !vkt_is_usable(g, name, w) || !vkt_is_usable(g, name, t))
        return (vkt_tensor){ 0 };
    const vkt_shape xs = vkt_tensor_shape(g, x), ts = vkt_tensor_shape(g, t);
    char xt[80], tt[80];
    bool same = xs.rank >= 2 && ts.rank == xs.rank - 1;
    for (uint32_t i = 0; same && i < ts.rank; i++) same = xs.dim[i] == ts.dim[i];
    if (!same) {
        vkt_graph_error(g,
                        vkt_fail(&g->host, VKT_E_SHAPE, "%s: want x (..,D) and a label for each row of it, got %s, %s",
                                 name, vkt_shape_text(xs, xt), vkt_shape_text(ts, tt)));
        return (vkt_tensor){ 0 };
    }
    a.columns = xs.dim[xs.rank - 1];
    a.ignore = (uint32_t)(o.has_ignore_index ? o.ignore_index : VKT_IGNORE_INDEX);
    a.sum = o.sum;
    a.group = 1;
    for (uint32_t i = 1; i < ts.rank; i++) a.group *= ts.dim[i];
    const uint32_t rows = xs.dim[0] * a.group;
    const vkt_tensor in[] = { vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), vkt_shape2(rows, a.columns)), w,
                              vkt_reshape(g, vkt_to_layout(g, t, VKT_ROWS), vkt_shape1(rows)) };
    const vkt_tensor loss = vkt_apply(g, &vkt_op_linear_cross_entropy, in, 3, &a, out);
    if (loss.id && o.count) *o.count = out[VKT_XENT_OUT_COUNT];
    return loss;
}

vkt_tensor vkt_linear_cross_entropy(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor labels,
                                    const vkt_linear_cross_entropy_params *p)
{
    const vkt_shape ws = vkt_tensor_shape(g, w);
    return build(g, x, w, labels, (vkt_linear_xent_attr){ .rows = ws.rank ? ws.dim[0] : 1 }, p);
}

vkt_tensor vkt_linear_cross_entropy_quantized(vkt_graph *g, vkt_tensor x, vkt_tensor words, vkt_quant format,
                                              uint32_t outputs, vkt_tensor labels,
                                              const vkt_linear_cross_entropy_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    if (format == 0) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "linear_cross_entropy: want a vkt_quant, got 0"));
        return (vkt_tensor){ 0 };
    }
    return build(g, x, words, labels, (vkt_linear_xent_attr){ .format = format, .rows = outputs }, p);
}
