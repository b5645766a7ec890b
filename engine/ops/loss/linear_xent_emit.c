/* ops/loss/linear_xent_emit.c - the dispatches of linear_cross_entropy, by slices of rows.
 *
 * The kernel label_rows lists the rows that count (linear_xent.c). These rows are processed slice by slice. For each
 * slice, a kernel gathers its rows of x, products write its logits to scratch, and linear_xent computes its losses. For
 * a gradient, linear_xent also replaces the logits by their gradient dz. Further products give dx = dz w of the slice,
 * and add dz^T x to dw. So each logit is computed once, and only the logits of one slice are stored at a time (the idea
 * of Liger Kernel: Hsu et al. 2024, section 3.2). The number of rows that count is known on the device only. So there
 * are slices for all rows of x. The dispatches of a slice are needed only if the slice has a row that counts
 * (vkt_when_begin in ops.h).
 *
 * The products for the logits and for dx read w. Each of these products uses one range of the rows of w. If w is
 * quantized, there are two variants. BLOCKS: the product unpacks the weights. UNPACKED: another dispatch unpacks the
 * range to scratch before the product. The order of the ranges is ascending for the logits of the first slice, and
 * alternates after that. So the range that was used last is used first. If it is still unpacked in scratch, it is not
 * unpacked again. */
#include "ops/loss/linear_xent.h"
#include "ops/product/gemm.h"
#include "ops/product/quantized.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/label_clear.abi.h"
#include "abi/label_found.abi.h"
#include "abi/label_move.abi.h"
#include "abi/label_rows.abi.h"
#include "abi/linear_xent.abi.h"
#include "abi/linear_xent_loss.abi.h"

typedef struct job {
    vkt_emit *e;
    const vkt_node *n;
    vkt_linear_xent_attr a;
    uint32_t R, D, V;
    uint32_t pitch;               /* elements from one row of logits to the next: V, rounded up to whole vec4s */
    uint32_t slice;               /* number of rows of the largest slice */
    uint32_t range, n_range;      /* range: rows of the largest range of w; n_range: number of ranges */
    uint32_t at;                  /* index of the range that was used last */
    uint32_t unpacked;            /* index of the range whose weights are in `range_w`; n_range: none */
    vkt_quantized_attr quantized; /* format and shape of w */
    vkt_gemm_blocks blocks;       /* the quantized weights as an operand of a product */
    vkt_tensor step, dx, dw;      /* dx, dw: {0} if the node does not compute this gradient */
    /* Scratch. rows: the indices of the rows that count; found: the two numbers of abi/label_found.abi.h; part: the
     * losses of the rows that count. */
    vkt_tensor rows, found, part;
    vkt_tensor slice_x, logits, slice_dx, range_w; /* scratch of one slice; range_w: unpacked weights of one range */
} job;

/* Computes the sizes of slices and ranges. All slices but the last one have the same number of rows. All ranges but the
 * last one have the same number of rows of w. If one row of logits, x or w is too large, sets the emission's error and
 * returns false. */
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
    const uint64_t tile = slice >= 32 ? 32 : 1; /* 32: each slice but the last one has whole tiles of 32 rows */
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

/* Chooses between UNPACKED and BLOCKS for a product with quantized weights. Returns whether the choice is UNPACKED. The
 * choice ends with the product (multiply). */
static bool is_unpacked(job *j, const vkt_gemm *product)
{
    vkt_variant_cost costs[2] = { { VKT_V_UNPACKED, vkt_gemm_unpack_cost(j->e, product, false) } };
    const bool can = vkt_gemm_reads_blocks(j->e, product);
    if (can) costs[1] = (vkt_variant_cost){ VKT_V_BLOCKS, vkt_gemm_unpack_cost(j->e, product, true) };
    return vkt_pick(j->e, costs, can ? 2 : 1) == VKT_V_UNPACKED;
}

/* Emits a product whose B is range r of the weights. */
static void multiply(job *j, vkt_gemm product, uint32_t r)
{
    vkt_gemm_matrix *w = &product.b;
    w->t = j->n->in[VKT_XENT_W];
    w->ld = j->D;
    w->first = (uint64_t)r * j->range * j->D;
    w->blocks = j->a.format ? &j->blocks : NULL;
    if (w->blocks && is_unpacked(j, &product)) {
        if (!j->range_w.id) j->range_w = vkt_scratch(j->e, "weights", 4ull * j->range * j->D);
        if (j->unpacked != r)
            vkt_dequantize_rows_emit(j->e, &j->quantized, w->t, r * j->range, rows_of_range(j, r), j->range_w);
        j->unpacked = r;
        w->t = j->range_w;
        w->first = 0;
        w->blocks = NULL;
    }
    vkt_gemm_emit(j->e, &product);
    if (j->a.format) vkt_pick_end(j->e);
}

/* Calls `use` for all ranges of the weights. The order is ascending if range 0 was used last, and in the first call of
 * each_range. Otherwise the order is descending. */
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
    multiply(j,
             (vkt_gemm){ .a = { .t = j->slice_x, .x_outer = true, .ld = j->D },
                         .b.x_outer = true,
                         .c = { .t = j->logits, .ld = j->pitch, .first = (uint64_t)r * j->range },
                         .m = rows,
                         .n = rows_of_range(j, r),
                         .k = j->D,
                         .batches = 1 },
             r);
}

static void dx_of_range(job *j, uint32_t rows, uint32_t r, bool first)
{
    const uint64_t at = (uint64_t)r * j->range;
    multiply(j,
             (vkt_gemm){ .a = { .t = j->logits, .x_outer = true, .ld = j->pitch, .first = at },
                         .c = { .t = j->slice_dx, .ld = j->D },
                         .m = rows,
                         .n = j->D,
                         .k = rows_of_range(j, r),
                         .batches = 1,
                         .accumulate = !first },
             r);
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
    const vkt_bind bind[] = { [LABEL_ROWS_T] = VKT_WHOLE(j->n->in[VKT_XENT_T]),
                              [LABEL_ROWS_STEP] = VKT_WHOLE(j->step),
                              [LABEL_ROWS_OUT] = VKT_WHOLE(j->rows),
                              [LABEL_ROWS_FOUND] = VKT_WHOLE(j->found),
                              [LABEL_ROWS_COUNT] = VKT_WHOLE(j->n->out[VKT_XENT_OUT_COUNT]) };
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

/* Returns how many rows of t (rows,D) one dispatch binds: all rows, if a binding can hold them. Otherwise so few rows
 * that a binding can hold them even if they do not start at an aligned offset, but at least 1. */
static uint32_t bound_rows(const job *j, vkt_tensor t, uint32_t rows)
{
    const uint64_t row = (uint64_t)j->D * vkt_element_bytes(vkt_lowered_value(j->e, t));
    return (uint32_t)VKT_MAX(vkt_steps_in(j->e->lim->max_storage_range_bytes, row, rows), 1);
}

/* Writes zeros to rows of t: to all of them if `all` is true, else to the rows that do not count. */
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
        const vkt_bind bind[] = { [LABEL_CLEAR_T] = VKT_WHOLE(j->n->in[VKT_XENT_T]),
                                  [LABEL_CLEAR_STEP] = VKT_WHOLE(j->step),
                                  [LABEL_CLEAR_OUT] = to };
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

/* Copies the rows of a slice from `all` (R,D) to `slice`, or with `back` from `slice` to `all`. `first`: index of the
 * slice's first row among the rows that count. */
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
                              [LINEAR_XENT_T] = VKT_WHOLE(j->n->in[VKT_XENT_T]),
                              [LINEAR_XENT_ROWS] = VKT_WHOLE(j->rows),
                              [LINEAR_XENT_FOUND] = VKT_WHOLE(j->found),
                              [LINEAR_XENT_DLOSS] = VKT_WHOLE(j->a.grads ? j->n->in[VKT_XENT_DLOSS] : j->found),
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
                              [LINEAR_XENT_LOSS_OUT] = VKT_WHOLE(j->n->out[VKT_XENT_OUT_LOSS]) };
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
}

void vkt_linear_xent_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_linear_xent_attr *a = n->attr;
    job j = { .e = e, .n = n, .a = *a, .R = vkt_node_in(n, VKT_XENT_X)->shape.dim[0], .D = a->columns, .V = a->rows };
    j.pitch = (uint32_t)vkt_round_up(j.V, 4);
    j.step = n->in[n->op->max_in];
    j.dx = vkt_linear_xent_gradient(n, VKT_XENT_GRAD_X);
    j.dw = vkt_linear_xent_gradient(n, VKT_XENT_GRAD_W);
    if (!sizes_of(&j)) return;
    j.quantized = vkt_linear_xent_weights(a);
    j.blocks = vkt_quantized_blocks(&j.quantized);
    j.unpacked = j.n_range;
    make_scratch(&j);
    find_rows(&j);
    if (j.dx.id) clear(&j, j.dx, j.R, false);
    if (j.dw.id) clear(&j, j.dw, j.V, true);
    const vkt_when when = vkt_when_begin(e, j.found);
    for (uint32_t first = 0; first < j.R && e->status == VKT_OK; first += j.slice) {
        const uint32_t rows = VKT_MIN(j.slice, j.R - first);
        vkt_when_above(e, first);
        move(&j, first, rows, n->in[VKT_XENT_X], j.slice_x, false);
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
