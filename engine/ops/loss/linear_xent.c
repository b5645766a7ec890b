/* ops/loss/linear_xent.c - the cross-entropy of labels whose logits are a linear layer of x:
 *
 *   x (R,D), w (V,D) or words of quantized weights, t (R)  ->  loss, count; linear_cross_entropy_dx also dx and dw
 *   loss = 1/norm sum over the rows that count of -log softmax(x[r] w^T)[t[r]]
 *   norm = count, or 1 for a sum
 *
 * label_rows lists the rows whose labels count. A slice of these rows at a time goes through all kernels: its rows of x
 * are gathered, a product writes its logits to scratch, and linear_xent computes the losses. For a gradient,
 * linear_xent also replaces the logits by their gradient dz. Further products give dx = dz w of the slice, and add
 * dz^T x to dw. So logits are computed once, and nothing of the size R V is stored (the idea of Liger Kernel: Hsu et
 * al. 2024, section 3.2). The number of rows that count is known on the device only. So there are slices for all R
 * rows, and the dispatches of a slice that has no row do not run (vkt_when_begin).
 *
 * Weights are used in ranges of the vocabulary. Quantized weights of a range are unpacked to scratch. Ranges are
 * visited up and down in turn, so the range that was visited last is not unpacked again. */
#include "ops/loss/loss.h"
#include "ops/product/gemm.h"
#include "ops/product/quantized.h"

#include "kernel/ids.h"

#include <math.h>

#include "abi/abi.h"
#include "abi/label_clear.abi.h"
#include "abi/label_found.abi.h"
#include "abi/label_move.abi.h"
#include "abi/label_rows.abi.h"
#include "abi/linear_xent.abi.h"
#include "abi/linear_xent_loss.abi.h"

enum { X = 0, W, T, DLOSS };
enum { LOSS = 0, COUNT, GRADS };
enum { GRAD_X = 1, GRAD_W = 2 };

static vkt_quantized_attr weights_of(const vkt_linear_xent_attr *a)
{
    return (vkt_quantized_attr){ .format = a->format, .rows = a->rows, .columns = a->columns };
}

/* ---- infer ---- */

static vkt_result check_weights(vkt_infer *f)
{
    const vkt_linear_xent_attr *a = f->n->attr;
    const vkt_value *w = vkt_in(f, W);
    const vkt_quantized_attr q = weights_of(a);
    char text[80];
    if (a->format) return vkt_quantized_check(f, W, &q);
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
    const vkt_value *x = vkt_in(f, X), *t = vkt_in(f, T);
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
    const vkt_value *dloss = vkt_in(f, DLOSS);
    VKT_REQUIRE(f, a->grads >= GRAD_X && a->grads <= (a->format ? GRAD_X : GRAD_X | GRAD_W), VKT_E_ARG,
                "linear_cross_entropy_dx: want grads 1 (dx), or 2 (dw) or 3 with weights f32, got %u", a->grads);
    VKT_REQUIRE(f, dloss->dtype == VKT_F32, VKT_E_DTYPE, "linear_cross_entropy_dx: want dloss f32, got %s",
                vkt_dtype_name(dloss->dtype));
    VKT_REQUIRE(f, dloss->shape.rank == 0, VKT_E_SHAPE,
                "linear_cross_entropy_dx: want the gradient of the loss, a scalar");
    VKT_TRY(infer(f));
    if (a->grads & GRAD_X) vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, X)->shape);
    if (a->grads & GRAD_W) vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, W)->shape);
    return VKT_OK;
}

static uint32_t batch(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return vkt_batch_of_first(n) / a->group;
}

/* Returns the output with a gradient (GRAD_X or GRAD_W); {0}: the node does not compute it. */
static vkt_tensor gradient_of(const vkt_node *n, uint32_t grad)
{
    const vkt_linear_xent_attr *a = n->attr;
    if (!(a->grads & grad)) return (vkt_tensor){ 0 };
    return n->out[GRADS + (grad == GRAD_W && a->grads & GRAD_X)];
}

/* ---- the slices ---- */

typedef struct job {
    vkt_emit *e;
    const vkt_node *n;
    vkt_linear_xent_attr a;
    uint32_t R, D, V;
    uint32_t pitch;          /* numbers from one row of logits to the next: V, rounded up to whole vec4s */
    uint32_t slice;          /* most rows of a slice */
    uint32_t range, n_range; /* most rows of w in a range; number of ranges */
    uint32_t at;             /* number of the range that was used last */
    bool unpacked;           /* the weights of that range are in `range_w` */
    vkt_tensor step, dx, dw, rows, found, part; /* {0}: no such gradient */
    vkt_tensor slice_x, logits, slice_dx, range_w;
} job;

/* Computes the sizes of slices and ranges. All slices have the same number of rows, but for the last. So have ranges.
 * Sets the emission's error and returns false if this device cannot bind even a row. */
static bool sizes_of(job *j)
{
    const vkt_limits *lim = j->e->lim;
    const uint64_t bind = lim->max_storage_range_bytes;
    const uint64_t logits = VKT_MIN((uint64_t)lim->traits->xent_logits_kib << 10, bind),
                   weights = VKT_MIN((uint64_t)lim->traits->xent_weights_kib << 10, bind);
    uint64_t slice = VKT_MIN(logits / (4ull * j->pitch), bind / (4ull * j->D)), range = weights / (4ull * j->D);
    if (slice == 0 || range == 0) {
        vkt_emit_error(j->e, vkt_fail(&j->e->host, VKT_E_UNSUPPORTED,
                                      "%s: %u classes of %u numbers do not fit bindings of %llu bytes", j->n->op->name,
                                      j->V, j->D, (unsigned long long)bind));
        return false;
    }
    const uint64_t tile = slice >= 32 ? 32 : 1; /* whole tiles of products */
    slice -= slice % tile;
    const uint64_t slices = (j->R + slice - 1) / slice;
    j->slice = (uint32_t)VKT_MIN(vkt_round_up((j->R + slices - 1) / slices, tile), j->R);
    const uint64_t unit = range >= 64 ? 64 : range >= 4 ? 4 : 1;
    const uint64_t parts = (j->V + range / unit * unit - 1) / (range / unit * unit);
    j->range = (uint32_t)VKT_MIN(vkt_round_up((j->V + parts - 1) / parts, unit), j->V);
    j->n_range = vkt_div_up(j->V, j->range);
    return true;
}

static uint32_t rows_of_range(const job *j, uint32_t r)
{
    return VKT_MIN(j->range, j->V - r * j->range);
}

/* Returns range r of the weights. */
static vkt_gemm_matrix weights(job *j, uint32_t r, bool outer)
{
    vkt_gemm_matrix w = { .t = j->n->in[W], .x_outer = outer, .ld = j->D, .first = (uint64_t)r * j->range * j->D };
    if (!j->a.format) return w;
    const vkt_quantized_attr q = weights_of(&j->a);
    if (!j->unpacked || j->at != r)
        vkt_dequantize_rows_emit(j->e, &q, j->n->in[W], r * j->range, rows_of_range(j, r), j->range_w);
    j->unpacked = true;
    w.t = j->range_w;
    w.first = 0;
    return w;
}

/* Calls `use` for all ranges of the weights: from the first to the last one if the first was used last, else from the
 * last to the first. */
static void each_range(job *j, uint32_t rows, void (*use)(job *j, uint32_t rows, uint32_t r, bool first))
{
    const bool up = j->at == 0;
    for (uint32_t i = 0; i < j->n_range; i++) {
        const uint32_t r = up ? i : j->n_range - 1 - i;
        use(j, rows, r, i == 0);
        j->at = r;
    }
}

static void logits_of_range(job *j, uint32_t rows, uint32_t r, bool first)
{
    (void)first;
    vkt_gemm_emit(j->e, &(vkt_gemm){ .a = { .t = j->slice_x, .x_outer = true, .ld = j->D },
                                     .b = weights(j, r, true),
                                     .c = { .t = j->logits, .ld = j->pitch, .first = (uint64_t)r * j->range },
                                     .m = rows,
                                     .n = rows_of_range(j, r),
                                     .k = j->D,
                                     .batches = 1 });
}

static void dx_of_range(job *j, uint32_t rows, uint32_t r, bool first)
{
    const uint64_t at = (uint64_t)r * j->range;
    vkt_gemm_emit(j->e, &(vkt_gemm){ .a = { .t = j->logits, .x_outer = true, .ld = j->pitch, .first = at },
                                     .b = weights(j, r, false),
                                     .c = { .t = j->slice_dx, .ld = j->D },
                                     .m = rows,
                                     .n = j->D,
                                     .k = rows_of_range(j, r),
                                     .batches = 1,
                                     .accumulate = !first });
}

static void dw_of_range(job *j, uint32_t rows, uint32_t r, bool first)
{
    const uint64_t at = (uint64_t)r * j->range;
    (void)first;
    vkt_gemm_emit(j->e, &(vkt_gemm){ .a = { .t = j->logits, .ld = j->pitch, .first = at },
                                     .b = { .t = j->slice_x, .ld = j->D },
                                     .c = { .t = j->dw, .ld = j->D, .first = at * j->D },
                                     .m = rows_of_range(j, r),
                                     .n = j->D,
                                     .k = rows,
                                     .batches = 1,
                                     .accumulate = true });
}

/* ---- small kernels ---- */

static void find_rows(job *j)
{
    const vkt_limits *lim = j->e->lim;
    const uint32_t lanes = VKT_MIN(VKT_MIN(lim->max_workgroup_lanes, LABEL_ROWS_MOST_LANES), 8 * lim->subgroup_size);
    const uint32_t spec[] = { lanes };
    const vkt_label_rows_push pc = { .n = j->R, .group = j->a.group, .classes = j->V, .ignore = j->a.ignore };
    const vkt_bind bind[] = { [LABEL_ROWS_T] = VKT_WHOLE(j->n->in[T]),
                              [LABEL_ROWS_STEP] = VKT_WHOLE(j->step),
                              [LABEL_ROWS_OUT] = VKT_WHOLE(j->rows),
                              [LABEL_ROWS_FOUND] = VKT_WHOLE(j->found),
                              [LABEL_ROWS_COUNT] = VKT_WHOLE(j->n->out[COUNT]) };
    if (2ull * vkt_div_up(j->R, lanes) + lanes > vkt_rough_loop(lim)) {
        vkt_emit_error(j->e, vkt_fail(&j->e->host, VKT_E_UNSUPPORTED, "%s: %u labels are too many for this device",
                                      j->n->op->name, j->R));
        return;
    }
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = VKT_K_LABEL_ROWS,
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(pc),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { 1, 1, 1 } });
}

/* Returns how many rows of t (rows,D) one binding holds, from any row on. */
static uint32_t bound_rows(const job *j, vkt_tensor t, uint32_t rows)
{
    const uint64_t row = (uint64_t)j->D * vkt_element_bytes(vkt_lowered_value(j->e, t));
    return (uint32_t)VKT_MAX(vkt_steps_in(j->e->lim->max_storage_range_bytes, row, rows), 1);
}

/* Writes zeros to t, which has `rows` rows: to all of them, or to those whose labels do not count. */
static void clear(job *j, vkt_tensor t, uint32_t rows, bool all)
{
    const uint32_t lanes = vkt_lanes(j->e->lim, j->e->lim->traits->lanes_gather), step = bound_rows(j, t, rows);
    const uint32_t spec[] = { lanes, [LABEL_CLEAR_SPEC_ALL] = all };
    for (uint32_t at = 0; at < rows; at += step) {
        vkt_label_clear_push pc = { .first = at,
                                    .rows = VKT_MIN(step, rows - at),
                                    .width4 = j->D / 4,
                                    .n = j->R,
                                    .group = j->a.group,
                                    .classes = j->V,
                                    .ignore = j->a.ignore };
        const vkt_bind to = vkt_bind_range(j->e, t, (uint64_t)at * j->D, (uint64_t)pc.rows * j->D, &pc.base);
        const vkt_bind bind[] = {
            [LABEL_CLEAR_T] = VKT_WHOLE(j->n->in[T]), [LABEL_CLEAR_STEP] = VKT_WHOLE(j->step), [LABEL_CLEAR_OUT] = to
        };
        pc.base /= 4;
        const uint64_t n = (uint64_t)pc.rows * pc.width4;
        vkt_dispatch_add(j->e,
                         &(vkt_launch){ .kernel = VKT_K_LABEL_CLEAR,
                                        VKT_LAUNCH_BIND(bind),
                                        VKT_LAUNCH_PUSH(pc),
                                        VKT_LAUNCH_SPEC(spec),
                                        .groups = { vkt_groups(n, lanes, j->e->lim->traits->items_gather), 1, 1 } });
    }
}

/* Copies the rows of a slice, which starts with row `first` of those that count: from `all` (R,D) to `slice`, or back.
 */
static void move(job *j, uint32_t first, uint32_t rows, vkt_tensor all, vkt_tensor slice, bool back)
{
    const uint32_t lanes = vkt_lanes(j->e->lim, j->e->lim->traits->lanes_gather), step = bound_rows(j, all, j->R);
    const uint32_t spec[] = { lanes };
    for (uint32_t at = 0; at < j->R; at += step) {
        vkt_label_move_push pc = { .first = first,
                                   .rows = rows,
                                   .width4 = j->D / 4,
                                   .row_begin = at,
                                   .row_end = at + VKT_MIN(step, j->R - at),
                                   .fill = at == 0 };
        const vkt_bind range =
            vkt_bind_range(j->e, all, (uint64_t)at * j->D, (uint64_t)(pc.row_end - at) * j->D, &pc.base);
        const vkt_bind bind[] = { [LABEL_MOVE_FROM] = back ? VKT_WHOLE(slice) : range,
                                  [LABEL_MOVE_ROWS] = VKT_WHOLE(j->rows),
                                  [LABEL_MOVE_FOUND] = VKT_WHOLE(j->found),
                                  [LABEL_MOVE_TO] = back ? range : VKT_WHOLE(slice) };
        pc.base /= 4;
        const uint64_t n = (uint64_t)rows * pc.width4;
        vkt_dispatch_add(j->e,
                         &(vkt_launch){ .kernel = back ? VKT_K_LABEL_SCATTER : VKT_K_LABEL_GATHER,
                                        VKT_LAUNCH_BIND(bind),
                                        VKT_LAUNCH_PUSH(pc),
                                        VKT_LAUNCH_SPEC(spec),
                                        .groups = { vkt_groups(n, lanes, j->e->lim->traits->items_gather), 1, 1 } });
    }
}

static void losses(job *j, uint32_t first, uint32_t rows)
{
    const uint32_t lanes = vkt_lanes_for_passes(j->e, VKT_K_LINEAR_XENT, j->pitch / 4, 3);
    const uint32_t spec[] = { lanes, [LINEAR_XENT_SPEC_GRADIENT] = j->a.grads != 0 };
    const vkt_linear_xent_push pc = {
        .first = first, .rows = rows, .classes = j->V, .pitch4 = j->pitch / 4, .mean = !j->a.sum
    };
    const vkt_bind logits = { .t = j->logits, .bytes = 4ull * rows * j->pitch };
    const vkt_bind bind[] = { [LINEAR_XENT_Z] = logits,
                              [LINEAR_XENT_T] = VKT_WHOLE(j->n->in[T]),
                              [LINEAR_XENT_ROWS] = VKT_WHOLE(j->rows),
                              [LINEAR_XENT_FOUND] = VKT_WHOLE(j->found),
                              [LINEAR_XENT_DLOSS] = VKT_WHOLE(j->a.grads ? j->n->in[DLOSS] : j->found),
                              [LINEAR_XENT_PART] = VKT_WHOLE(j->part),
                              [LINEAR_XENT_DZ] = logits };
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = VKT_K_LINEAR_XENT,
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(pc),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { rows, 1, 1 } });
}

static void total(job *j)
{
    const uint32_t spec[] = { vkt_lanes_for_passes(j->e, VKT_K_LINEAR_XENT_LOSS, j->R, 1) };
    const vkt_linear_xent_loss_push pc = { .mean = !j->a.sum };
    const vkt_bind bind[] = { [LINEAR_XENT_LOSS_PART] = VKT_WHOLE(j->part),
                              [LINEAR_XENT_LOSS_FOUND] = VKT_WHOLE(j->found),
                              [LINEAR_XENT_LOSS_OUT] = VKT_WHOLE(j->n->out[LOSS]) };
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = VKT_K_LINEAR_XENT_LOSS,
                                          VKT_LAUNCH_BIND(bind),
                                          VKT_LAUNCH_PUSH(pc),
                                          VKT_LAUNCH_SPEC(spec),
                                          .groups = { 1, 1, 1 } });
}

/* ---- emit ---- */

static void make_scratch(job *j)
{
    vkt_emit *e = j->e;
    j->rows = vkt_scratch(e, "rows", 4ull * j->R);
    j->found = vkt_scratch(e, "found", 4 * FOUND_WORDS);
    j->part = vkt_scratch(e, "losses", 4ull * j->R);
    j->slice_x = vkt_scratch(e, "x", 4ull * j->slice * j->D);
    j->logits = vkt_scratch(e, "logits", 4ull * j->slice * j->pitch);
    if (j->dx.id) j->slice_dx = vkt_scratch(e, "dx", 4ull * j->slice * j->D);
    if (j->a.format) j->range_w = vkt_scratch(e, "weights", 4ull * j->range * j->D);
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_linear_xent_attr *a = n->attr;
    job j = { .e = e, .n = n, .a = *a, .R = vkt_node_in(n, X)->shape.dim[0], .D = a->columns, .V = a->rows };
    j.pitch = (uint32_t)vkt_round_up(j.V, 4);
    j.step = n->in[n->op->max_in];
    j.dx = gradient_of(n, GRAD_X);
    j.dw = gradient_of(n, GRAD_W);
    if (!sizes_of(&j)) return;
    make_scratch(&j);
    find_rows(&j);
    if (j.dx.id) clear(&j, j.dx, j.R, false);
    if (j.dw.id) clear(&j, j.dw, j.V, true);
    const vkt_when when = vkt_when_begin(e, j.found);
    for (uint32_t first = 0; first < j.R && e->status == VKT_OK; first += j.slice) {
        const uint32_t rows = VKT_MIN(j.slice, j.R - first);
        vkt_when_above(e, first);
        move(&j, first, rows, n->in[X], j.slice_x, false);
        each_range(&j, rows, logits_of_range);
        losses(&j, first, rows);
        if (j.dx.id) {
            each_range(&j, rows, dx_of_range);
            move(&j, first, rows, j.dx, j.slice_dx, true);
        }
        for (uint32_t r = 0; j.dw.id && r < j.n_range; r++) dw_of_range(&j, rows, r, false);
    }
    vkt_when_end(e, &when);
    total(&j);
}

/* ---- gradients ---- */

static uint32_t wanted_grads(const vkt_graph *g, const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return (vkt_wants_grad(g, n->in[X]) ? GRAD_X : 0) | (!a->format && vkt_wants_grad(g, n->in[W]) ? GRAD_W : 0);
}

/* If the gradient of the loss is known before the traversal, the forward node computes the gradients, too. */
static void fuse(vkt_graph *g, vkt_node *n, vkt_tensor dloss)
{
    vkt_linear_xent_attr a = *(const vkt_linear_xent_attr *)n->attr;
    a.grads = wanted_grads(g, n);
    if (g->no_fuse || !dloss.id || !a.grads) return;
    vkt_node_become(g, n, &vkt_op_linear_cross_entropy_dx, (vkt_tensor[]){ n->in[X], n->in[W], n->in[T], dloss }, 4,
                    &a);
}

/* The gradients are outputs of n if fuse has changed it. Else a node of its own computes loss and gradients once more.
 */
static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_linear_xent_attr a = *(const vkt_linear_xent_attr *)n->attr;
    const uint32_t has = a.grads;
    a.grads = wanted_grads(g, n);
    if (!dy[LOSS].id || !a.grads) return;
    if ((a.grads & ~has) || n->in[DLOSS].id != dy[LOSS].id) {
        const vkt_tensor in[] = { n->in[X], n->in[W], n->in[T], dy[LOSS] };
        if (!vkt_apply(g, &vkt_op_linear_cross_entropy_dx, in, 4, &a, NULL).id) return;
        n = g->nodes[g->n_nodes - 1];
    }
    if (a.grads & GRAD_X) dx[X] = gradient_of(n, GRAD_X);
    if (a.grads & GRAD_W) dx[W] = gradient_of(n, GRAD_W);
}

static bool stops(const vkt_node *n, uint32_t i)
{
    return i == W && ((const vkt_linear_xent_attr *)n->attr)->format != 0;
}

/* Returns whether output GRADS is dx, which may be stored in 16 bits, and not dw. */
static bool has_dx(const vkt_node *n)
{
    return (((const vkt_linear_xent_attr *)n->attr)->grads & GRAD_X) != 0;
}

/* ---- random cases ---- */

static void settle(void *attr, const vkt_case_input *in)
{
    vkt_linear_xent_attr *a = attr;
    a->columns = in[X].shape.dim[1];
    const vkt_quantized_attr q = weights_of(a);
    a->rows = a->format ? vkt_quantized_rows(&q, in[W].shape.dim[0]) : in[W].shape.dim[0];
}

static void amend(const void *attr, uint32_t *words, size_t n)
{
    const vkt_quantized_attr q = weights_of(attr);
    if (q.format) vkt_quantized_amend(&q, words, n);
}

/* Returns about the largest weight that random words of a format have (vkt_quantized_amend). */
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

/* Generates a case. Logits are of the order of 1, so that loss and gradients have digits to compare. In some cases, a
 * label does not count: one of the classes, or the number after the last class. */
static void sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t ignoring = vkt_rng_range(r, 0, 2), group = vkt_rng_range(r, 0, 1) ? 1 : vkt_rng_range(r, 2, 5);
    const uint32_t samples = vkt_rng_range(r, 20, 90) / group + 4, V = vkt_rng_range(r, 3, 150);
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
    a->grads = a->format ? GRAD_X : vkt_rng_range(r, GRAD_X, GRAD_X | GRAD_W);
}

/* Counts a product and four operations for each logit. */
static double flops(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    return vkt_elements_in(n, T) * a->rows * (2.0 * a->columns + 4);
}

static double dx_flops(const vkt_node *n)
{
    const vkt_linear_xent_attr *a = n->attr;
    const double products = 1 + (a->grads & GRAD_X ? 1 : 0) + (a->grads & GRAD_W ? 1 : 0);
    return vkt_elements_in(n, T) * a->rows * (2.0 * products * a->columns + 8);
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
    .diff = 1u << X | 1u << W,
    .stops = stops,
    .attr_bytes = sizeof(vkt_linear_xent_attr),
    .infer = infer,
    .settle = settle,
    .emit = emit,
    .half_rows = VKT_HALF_IN(X),
    .backward = backward,
    .fuse = fuse,
    .sample = sample,
    .amended = W,
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
    .diff = 1u << X | 1u << W,
    .stops = stops,
    .attr_bytes = sizeof(vkt_linear_xent_attr),
    .infer = dx_infer,
    .settle = settle,
    .emit = emit,
    .half_rows = VKT_HALF_IN(X) | VKT_HALF_OUT(GRADS),
    .half_when = has_dx,
    .backward = backward,
    .sample = dx_sample,
    .amended = W,
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
    a.ignore = o.has_ignore ? o.ignore : (uint32_t)VKT_IGNORE_INDEX;
    a.sum = o.sum;
    a.group = 1;
    for (uint32_t i = 1; i < ts.rank; i++) a.group *= ts.dim[i];
    const uint32_t rows = xs.dim[0] * a.group;
    const vkt_tensor in[] = { vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), vkt_shape2(rows, a.columns)), w,
                              vkt_reshape(g, vkt_to_layout(g, t, VKT_ROWS), vkt_shape1(rows)) };
    const vkt_tensor loss = vkt_apply(g, &vkt_op_linear_cross_entropy, in, 3, &a, out);
    if (loss.id && o.count) *o.count = out[COUNT];
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
