/* ops/encode/frequency.c - sines and cosines of the coordinates of points, at rising frequencies. */
#include "kernel/ids.h"
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/frequency.abi.h"

enum { MAX_FREQUENCIES = 32, DEFAULT_FREQUENCIES = 10 }; /* the default is NeRF's value for positions */

/* ---- both ops ---- */

static vkt_result check_points(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, 0);
    const uint32_t K = ((const vkt_frequency_attr *)f->n->attr)->frequencies;
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->shape.rank == 2 && x->layout == VKT_BATCH_LAST, VKT_E_SHAPE,
                "%s: want points (B,D) with the batch last, got %s", f->n->op->name, vkt_shape_text(x->shape, text));
    VKT_REQUIRE(f, K >= 1 && K <= MAX_FREQUENCIES && x->shape.dim[1] <= UINT32_MAX / (2 * K), VKT_E_ARG,
                "%s: want 1 to %d frequencies, got %u of %s", f->n->op->name, MAX_FREQUENCIES, K,
                vkt_shape_text(x->shape, text));
    return VKT_OK;
}

/* Emits the dispatches. Each dispatch computes as many dimensions as bindings hold. */
static void emit_dims(const vkt_node *n, vkt_emit *e, bool is_gradient)
{
    const vkt_shape s = vkt_node_in(n, 0)->shape;
    const uint32_t K = ((const vkt_frequency_attr *)n->attr)->frequencies, n4 = vkt_div_up(s.dim[0], 4);
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_gather), spec[] = { lanes };
    const uint64_t row = 4 * (uint64_t)n4;
    const uint64_t fit = vkt_steps_in(e->lim->max_storage_range_bytes, 2 * K * row * 4, s.dim[1]);
    if (fit == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %u frequencies of %u samples do not fit a binding",
                                   n->op->name, K, s.dim[0]));
    for (uint64_t d = 0; fit && d < s.dim[1]; d += fit) {
        vkt_frequency_push pc = { .n4 = n4, .dims = (uint32_t)VKT_MIN(fit, s.dim[1] - d), .frequencies = K };
        vkt_bind bind[FREQUENCY_DX + 1] = { { .bytes = 0 } };
        const vkt_tensor y = is_gradient ? n->in[1] : n->out[0];
        bind[FREQUENCY_X] = vkt_bind_range(e, n->in[0], d * row, pc.dims * row, &pc.x_base);
        bind[FREQUENCY_Y] = vkt_bind_range(e, y, d * row * 2 * K, pc.dims * row * 2 * K, &pc.y_base);
        if (is_gradient) bind[FREQUENCY_DX] = vkt_bind_range(e, n->out[0], d * row, pc.dims * row, &pc.dx_base);
        pc.x_base /= 4;
        pc.y_base /= 4;
        pc.dx_base /= 4;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = is_gradient ? VKT_K_FREQUENCY_DX : VKT_K_FREQUENCY,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { vkt_groups(n4, lanes, e->lim->traits->items_frequency),
                                                       VKT_MIN(pc.dims, e->lim->max_groups), 1 } });
    }
}

/* ---- frequency: x (B,D) -> (B, 2 D K) ---- */

static vkt_result frequency_infer(vkt_infer *f)
{
    VKT_TRY(check_points(f));
    const vkt_shape x = vkt_in(f, 0)->shape;
    const uint32_t K = ((const vkt_frequency_attr *)f->n->attr)->frequencies;
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape2(x.dim[0], 2 * K * x.dim[1]));
    return VKT_OK;
}

static void frequency_emit(const vkt_node *n, vkt_emit *e)
{
    emit_dims(n, e, false);
}

vkt_tensor vkt_frequency(vkt_graph *g, vkt_tensor x, uint32_t frequencies)
{
    const vkt_frequency_attr a = { frequencies ? frequencies : DEFAULT_FREQUENCIES };
    x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    return vkt_apply(g, &vkt_op_frequency, &x, 1, &a, NULL);
}

static void frequency_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_frequency_dx, (vkt_tensor[]){ n->in[0], dy[0] }, 2, n->attr, NULL);
}

static void frequency_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_frequency_attr a = { vkt_rng_range(r, 1, 4) };
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(vkt_rng_range(r, 1, 300), vkt_rng_range(r, 1, 7)), -2, 2);
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts sine, cosine and one product for every two elements of y. */
static double frequency_flops(const vkt_node *n)
{
    return 1.5 * vkt_elements_out(n, 0);
}

static const vkt_field frequency_fields[] = { VKT_FIELD(vkt_frequency_attr, frequencies, U32, 1, DEFAULT_FREQUENCIES),
                                              { .name = NULL } };

const vkt_op vkt_op_frequency = {
    .name = "frequency",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .diff = 1,
    .attr_bytes = sizeof(vkt_frequency_attr),
    .infer = frequency_infer,
    .emit = frequency_emit,
    .half = VKT_HALF_OUT(0),
    .backward = frequency_backward,
    .sample = frequency_sample,
    .abs_tol = 1.2e-5f,
    .tol_why = "a sine is off by 2^-23; dx adds up 2^k pi of two such for k < 4: 15 pi sqrt(2) 3 2^-24 = 1.2e-5, in "
               "units of its largest element",
    .flops = frequency_flops,
    .fields = frequency_fields,
    .formula = "y[b, 2 (d K + k)] = sin(2^k pi x[b,d]), and the cosine behind it",
};

/* ---- frequency_dx: x (B,D), dy (B, 2 D K) -> dx (B,D) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    VKT_TRY(check_points(f));
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_in(f, 0)->shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    emit_dims(n, e, true);
}

/* Counts sine, cosine, three products and two sums for every two elements of dy. */
static double dx_flops(const vkt_node *n)
{
    return 3.5 * vkt_elements_in(n, 1);
}

const vkt_op vkt_op_frequency_dx = {
    .name = "frequency_dx",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .attr_bytes = sizeof(vkt_frequency_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(1) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "frequency",
    .flops = dx_flops,
    .formula = "dx[b,d] = sum_k 2^k pi (cos(2^k pi x[b,d]) dy_sin - sin(2^k pi x[b,d]) dy_cos)",
};
