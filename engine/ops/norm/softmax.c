/* ops/norm/softmax.c - softmax and its logarithm over one axis, with scale and causal mask for attention. The
 * inputs and outputs are never stored in 16 bits. The gradient is a difference of numbers computed from y, and 16 bits
 * would lose the digits of this difference. (torch.autocast keeps softmax in f32, too.) */
#include "kernel/ids.h"
#include "ops/move/move.h"

#include <math.h>

#include "abi/abi.h"
#include "abi/softmax.abi.h"

/* A line: the elements of x along the axis, at one position of the other axes. An element of a line is called a class.
 * If a line has more classes than this, the axis is made the fastest one, on any device, so that all lanes of a work
 * group can share a line. */
#define MANY_CLASSES 75000u

/* ---- softmax: x -> y ---- */

static vkt_result infer(vkt_infer *f)
{
    const vkt_softmax_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    const char *name = f->n->op->name;
    char text[80];
    for (uint32_t i = 0; i < f->n->n_in; i++)
        VKT_REQUIRE(f, vkt_in(f, i)->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", name,
                    vkt_dtype_name(vkt_in(f, i)->dtype));
    VKT_REQUIRE(f, a->axis < x.shape.rank, VKT_E_SHAPE, "%s: %s has no axis %d", name, vkt_shape_text(x.shape, text),
                (int)a->axis);
    VKT_REQUIRE(f, a->log <= 1 && a->causal <= 1, VKT_E_ARG, "%s: want log and causal 0 or 1, got %u and %u", name,
                a->log, a->causal);
    VKT_REQUIRE(f, isfinite(a->scale) && a->scale > 0, VKT_E_ARG, "%s: want a scale above 0, got %g", name,
                (double)a->scale);
    VKT_REQUIRE(f, x.layout == VKT_ROWS || (a->axis != 0 && !a->causal), VKT_E_ARG, "%s: want this x by rows", name);
    VKT_REQUIRE(f, !a->causal || (!a->log && x.shape.rank >= 2 && a->axis == x.shape.rank - 1), VKT_E_SHAPE,
                "%s: a causal mask wants scores (.., T, S), got %s", name, vkt_shape_text(x.shape, text));
    vkt_out(f, VKT_F32, x.layout, x.shape);
    return VKT_OK;
}

/* Which lanes compute a line.
 *   LANE: one lane; neighbouring lanes compute neighbouring lines. If `width` is 4, a lane computes four lines at once
 *   LINE: one lane, which reads four neighbouring classes at a time
 *   ALONG: all lanes of a work group */
typedef enum lane_order { LANE, LINE, ALONG } lane_order;

/* How the kernel loops over the lines of a tensor. */
typedef struct loop_plan {
    uint32_t classes;
    uint64_t outer, inner; /* outer: number of slices [classes][inner]; inner: elements from one class to the next */
    lane_order by;
    uint32_t width, lanes;
} loop_plan;

static loop_plan loops_of(vkt_emit *e, const vkt_value *x, uint32_t axis)
{
    const vkt_phys p = vkt_phys_of(x);
    uint32_t at = 0;
    while (p.logical[at] != axis) at++;
    loop_plan w = { .classes = p.dim[at], .inner = p.stride[at], .width = 1 };
    w.outer = p.elements / w.inner / w.classes;
    if (w.inner == 1) w.by = w.classes > 64 ? ALONG : w.classes % 4 == 0 ? LINE : LANE;
    if ((w.by == LANE ? w.inner : w.classes) % 4 == 0) w.width = 4;
    /* One pass is counted, though softmax has three loops, and its gradient has two. The loops have four loads per
     * iteration. So for a long line, all loops together have fewer iterations than one loop with one load per
     * iteration. */
    w.lanes = w.by == ALONG ? vkt_lanes_for_passes(e, VKT_K_SOFTMAX_ALONG, w.classes / w.width, 1)
                            : vkt_lanes(e->lim, e->lim->traits->lanes_classes);
    return w;
}

/* Returns the number of work groups for `units` units. A unit is a line, or four lines that a lane computes at once.
 * A lane (ALONG: a work group) computes as many units as the trait iterations_group allows, but at least one. */
static uint64_t groups_of(const vkt_emit *e, const loop_plan *w, uint64_t units)
{
    const uint32_t at_once = w->by == ALONG ? w->width * w->lanes : w->by == LINE ? 16u : 4u;
    const uint64_t iterations = 3ull * w->classes / at_once + 8;
    return vkt_groups(units, w->by == ALONG ? 1 : w->lanes,
                      (uint32_t)VKT_MAX(e->lim->traits->iterations_group / iterations, 1u));
}

/* Returns the largest number of classes of a line that one lane can compute. The lane loops over the classes at most
 * three times, with four classes per iteration. A sixteenth of the iterations stays in reserve. */
static uint64_t most_classes(const vkt_limits *lim)
{
    return vkt_largest_loop(lim) / 4 * 5;
}

static const uint16_t kernels[2][3][2] = {
    /* [gradient][lane_order][wide] */
    { [LANE] = { VKT_K_SOFTMAX, VKT_K_SOFTMAX4 },
      [LINE] = { VKT_K_SOFTMAX_LINE4, VKT_K_SOFTMAX_LINE4 },
      [ALONG] = { VKT_K_SOFTMAX_ALONG, VKT_K_SOFTMAX_ALONG4 } },
    { [LANE] = { VKT_K_SOFTMAX_DX, VKT_K_SOFTMAX_DX4 },
      [LINE] = { VKT_K_SOFTMAX_DX_LINE4, VKT_K_SOFTMAX_DX_LINE4 },
      [ALONG] = { VKT_K_SOFTMAX_DX_ALONG, VKT_K_SOFTMAX_DX_ALONG4 } },
};

/* Emits softmax, with input x, or its gradient, with inputs y and dy: one dispatch for each range of slices that fits
 * into a binding. */
static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_softmax_attr *a = n->attr;
    const vkt_value *x = vkt_node_in(n, 0);
    const loop_plan w = loops_of(e, x, a->axis);
    const bool dx = n->n_in == 2;
    const uint64_t slice = w.classes * w.inner, most = e->lim->max_storage_range_bytes / 4 / slice;
    const uint64_t step = slice <= UINT32_MAX ? vkt_bind_range_step((uint32_t)slice) : 1;
    const uint64_t per = most >= w.outer ? w.outer : most - most % step;
    const uint32_t held = w.by == ALONG ? vkt_held(e->lim, w.classes / w.width, w.lanes, dx ? 2 : 1) : 0;
    const uint32_t spec[] = {
        w.lanes, [SOFTMAX_SPEC_LOG] = a->log, [SOFTMAX_SPEC_CAUSAL] = a->causal, [SOFTMAX_SPEC_HELD] = held
    };
    if (per == 0 || (w.by == LANE && w.classes > most_classes(e->lim))) {
        vkt_emit_error(
            e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                        "%s: want slices of %llu elements in %llu bytes, and at most %llu classes unless they "
                        "are the fastest dimension (vkt_permute and vkt_to_layout make them so)",
                        n->op->name, (unsigned long long)slice, (unsigned long long)e->lim->max_storage_range_bytes,
                        (unsigned long long)most_classes(e->lim)));
        return;
    }
    for (uint64_t at = 0; at < w.outer; at += per) {
        const uint64_t count = VKT_MIN(w.outer - at, per), vec = w.by == LANE ? w.width : 1;
        const vkt_softmax_push pc = { .units = (uint32_t)(count * w.inner / vec),
                                      .classes = w.classes,
                                      .inner = (uint32_t)(w.inner / vec),
                                      .first = (uint32_t)at,
                                      .queries = a->causal ? x->shape.dim[a->axis - 1] : 1,
                                      .scale = a->scale };
        const vkt_tensor none = { 0 };
        const vkt_bind bind[] = { [SOFTMAX_X] = vkt_part(e, n->in[0], at * slice, count * slice),
                                  [SOFTMAX_DY] = vkt_part(e, dx ? n->in[1] : none, at * slice, count * slice),
                                  [SOFTMAX_Y] = vkt_part(e, n->out[0], at * slice, count * slice) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernels[dx][w.by][w.width == 4],
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { groups_of(e, &w, pc.units), 1, 1 } });
    }
}

/* Returns true if the lines along the axis are not contiguous, and are too long. Lines are too long if a line has more
 * than MANY_CLASSES classes, or if a slice of neighbouring lines has more than 2^27 bytes (every device can bind 2^27
 * bytes at once). */
static bool are_too_long(const vkt_value *x, uint32_t axis)
{
    if (axis >= x->shape.rank) return false;
    int64_t stride[VKT_MAX_RANK] = { 0 };
    vkt_logical_strides(x, stride);
    const uint64_t classes = x->shape.dim[axis], bytes = 4 * classes * (uint64_t)stride[axis];
    return stride[axis] > 1 && (classes > MANY_CLASSES || bytes > UINT64_C(1) << 27);
}

/* Adds the op. A negative `axis` counts from the end. The result has x's layout. If the axis is 0, if the mask is
 * causal, or if lines are too long (are_too_long), x is converted to ROWS. If lines are too long in ROWS as well, the
 * axis is moved to the end, and is moved back in the result. */
static vkt_tensor apply(vkt_graph *g, vkt_tensor x, int32_t axis, vkt_softmax_attr a)
{
    if (g->status != VKT_OK || x.id >= g->n_values) return vkt_apply(g, &vkt_op_softmax, &x, 1, &a, NULL);
    const uint32_t rank = g->values[x.id].shape.rank;
    const vkt_layout layout = g->values[x.id].layout;
    const int64_t from_left = axis < 0 ? axis + (int64_t)rank : axis;
    char text[80];
    if (x.id && (from_left < 0 || from_left >= rank)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "softmax: %s has no axis %d",
                                    vkt_shape_text(g->values[x.id].shape, text), axis));
        return (vkt_tensor){ 0 };
    }
    a.axis = (uint32_t)from_left;
    const bool rows = a.axis == 0 || a.causal || are_too_long(&g->values[x.id], a.axis);
    if (rows) x = vkt_to_layout(g, x, VKT_ROWS);
    const bool last = g->status == VKT_OK && are_too_long(&g->values[x.id], a.axis);
    uint32_t there[VKT_MAX_RANK], back[VKT_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        there[i] = i < a.axis ? i : i + 1 < rank ? i + 1 : a.axis;
        back[there[i]] = i;
    }
    if (last) {
        x = vkt_permute(g, x, there);
        a.axis = rank - 1;
    }
    vkt_tensor y = vkt_apply(g, &vkt_op_softmax, &x, 1, &a, NULL);
    if (last) y = vkt_permute(g, y, back);
    return vkt_to_layout(g, y, layout);
}

vkt_tensor vkt_softmax(vkt_graph *g, vkt_tensor x, int32_t axis)
{
    if (!g) return (vkt_tensor){ 0 };
    return apply(g, x, axis, (vkt_softmax_attr){ .scale = 1 });
}

vkt_tensor vkt_log_softmax(vkt_graph *g, vkt_tensor x, int32_t axis)
{
    if (!g) return (vkt_tensor){ 0 };
    return apply(g, x, axis, (vkt_softmax_attr){ .scale = 1, .log = 1 });
}

vkt_tensor vkt_softmax_of_scores(vkt_graph *g, vkt_tensor x, float scale, bool causal)
{
    if (!g) return (vkt_tensor){ 0 };
    return apply(g, x, -1, (vkt_softmax_attr){ .scale = scale, .causal = causal });
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_softmax_dx, (vkt_tensor[]){ n->out[0], dy[0] }, 2, n->attr, NULL);
}

/* Generates a case. If logits are far apart, most gradients are differences of almost equal numbers, and their
 * rounding errors are large. The tolerance is a fraction of the largest gradient. So logits are far apart only in cases
 * with many lines, where some gradient is large. */
static void sample(vkt_rng *r, vkt_case *c)
{
    vkt_softmax_attr a = { .scale = 1, .log = vkt_rng_range(r, 0, 2) == 0 };
    const uint32_t kind = vkt_rng_range(r, 0, 5), layout = vkt_rng_range(r, 0, 1);
    vkt_shape x =
        vkt_shape4(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 11), vkt_rng_range(r, 1, 8), vkt_rng_range(r, 1, 13));
    if (kind == 0) x = vkt_shape2(vkt_rng_range(r, 1, 9), 4 * vkt_rng_range(r, 17, 300));
    if (kind == 1) x = vkt_shape2(vkt_rng_range(r, 1, 9), vkt_rng_range(r, 65, 1200));
    if (kind == 2) x = vkt_shape2(vkt_rng_range(r, 30, 300), vkt_rng_range(r, 3, 30));
    a.axis = kind < 3 ? 1 : vkt_rng_range(r, layout, 3);
    if (!layout && a.axis == x.rank - 1 && vkt_rng_range(r, 0, 1)) {
        a.scale = vkt_rng_uniform(r, 0.1f, 1);
        a.causal = !a.log;
    }
    const float most = kind == 2 ? 30 : 2;
    vkt_case_f32(c, layout ? VKT_BATCH_LAST : VKT_ROWS, x, -most, most);
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_softmax_attr, axis, U32, 1, 1),
                                    VKT_FIELD(vkt_softmax_attr, log, U32, 1, 0),
                                    VKT_FIELD(vkt_softmax_attr, causal, U32, 1, 0),
                                    VKT_FIELD(vkt_softmax_attr, scale, F32, 1, 1),
                                    { .name = NULL } };

const vkt_op vkt_op_softmax = {
    .name = "softmax",
    .min_in = 1,
    .max_in = 1,
    .diff = 1u << 0,
    .attr_bytes = sizeof(vkt_softmax_attr),
    .infer = infer,
    .emit = emit,
    .backward = backward,
    .sample = sample,
    .rel_tol = 8e-6f,
    .abs_tol = 3e-6f,
    .tol_why = "z - m is rounded, at most by 2^-19 for |z - m| <= 60, and with it exp relatively; sums in spans of 64, "
               "< 100 roundings of terms of one sign; a gradient is a difference of numbers as large as the largest",
    .flops = vkt_flops_of_scores,
    .fields = fields,
    .formula = "y = exp(scale x) / sum exp(scale x) over one axis, or its logarithm",
};

static vkt_result dx_infer(vkt_infer *f)
{
    const vkt_value *y = vkt_in(f, 0), *dy = vkt_in(f, 1);
    VKT_REQUIRE(f, y->layout == dy->layout && vkt_shape_equal(y->shape, dy->shape), VKT_E_SHAPE,
                "softmax_dx: want softmax's result and its gradient");
    return infer(f);
}

const vkt_op vkt_op_softmax_dx = {
    .name = "softmax_dx",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(vkt_softmax_attr),
    .infer = dx_infer,
    .emit = emit,
    .forward_only = true,
    .tested_by = "softmax",
    .flops = vkt_flops_of_scores,
    .fields = fields,
    .formula = "dx = scale y (dy - sum dy y); of the logarithm scale (dy - exp(y) sum dy)",
};
