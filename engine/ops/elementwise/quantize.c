/* ops/elementwise/quantize.c - rounds numbers in [0,1] to 2^bits levels, or adds noise instead, with a straight-through
 * gradient: see vktrain/ops.h. */
#include "ops/elementwise/elementwise.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/quantize.abi.h"

enum { MAX_BITS = 16 };

static void emit_flat(const vkt_node *n, vkt_emit *e, bool is_gradient)
{
    const vkt_quantize_attr *a = n->attr;
    const vkt_traits *t = e->lim->traits;
    const uint32_t lanes = vkt_lanes(e->lim, t->lanes_elementwise), spec[] = { lanes };
    const uint64_t total = vkt_node_in(n, 0)->bytes / 4, range = vkt_bind_range_elements(e->lim);
    vkt_quantize_push pc = { .steps = (1u << a->bits) - 1, .noise = a->noise, .salt = a->salt };
    for (uint64_t at = 0; at < total; at += range) {
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        pc.begin = (uint32_t)at;
        vkt_bind bind[QUANTIZE_DY + 1] = {
            [QUANTIZE_X] = vkt_part(e, n->in[0], at, pc.n), [QUANTIZE_Y] = vkt_part(e, n->out[0], at, pc.n)
        };
        if (is_gradient)
            bind[QUANTIZE_DY] = vkt_part(e, n->in[1], at, pc.n);
        else
            bind[QUANTIZE_STEP] = VKT_WHOLE(n->in[1]);
        vkt_dispatch_add(
            e, &(vkt_launch){
                   .kernel = is_gradient ? VKT_K_QUANTIZE_DX : VKT_K_QUANTIZE,
                   .bind = bind,
                   .n_bind = is_gradient ? QUANTIZE_DY + 1 : QUANTIZE_STEP + 1,
                   VKT_LAUNCH_PUSH(pc),
                   VKT_LAUNCH_SPEC(spec),
                   .groups = { VKT_MIN(vkt_groups(pc.n, lanes, t->items_elementwise), t->groups_flat_most), 1, 1 } });
    }
}

/* ---- quantize: x -> y ---- */

static vkt_result quantize_infer(vkt_infer *f)
{
    const vkt_quantize_attr *a = f->n->attr;
    VKT_REQUIRE(f, a->bits >= 1 && a->bits <= MAX_BITS && a->noise <= 1, VKT_E_ARG,
                "quantize: want 1 to %d bits and noise 0 or 1, got %u and %u", MAX_BITS, a->bits, a->noise);
    VKT_REQUIRE(f, vkt_in(f, 0)->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "quantize: want at most 2^32 elements");
    return vkt_infer_same(f);
}

static void quantize_emit(const vkt_node *n, vkt_emit *e)
{
    emit_flat(n, e, false);
}

vkt_tensor vkt_quantize(vkt_graph *g, vkt_tensor x, uint32_t bits, bool noise)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_quantize_attr a = { .bits = bits, .noise = noise, .salt = noise ? (uint32_t)g->n_nodes : 0 };
    return vkt_apply(g, &vkt_op_quantize, &x, 1, &a, NULL);
}

static void quantize_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_quantize_dx, (vkt_tensor[]){ n->in[0], dy[0] }, 2, n->attr, NULL);
}

/* Generates multiples of 1/256 in [0, 1]. For these, x * (2^bits - 1) is exact, so device and reference round to the
 * same level. In [0, 1], the straight-through gradient is equal to the reference's difference quotient, which treats
 * the rounding error as a constant. */
static void quantize_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_quantize_attr a = { .bits = vkt_rng_range(r, 1, 9),
                                  .noise = vkt_rng_range(r, 0, 1),
                                  .salt = vkt_rng_range(r, 0, 99) };
    vkt_case_f32(c, vkt_draw_layout(r),
                 vkt_shape3(vkt_rng_range(r, 1, 21), vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 9)), 0, 1)
        ->grid = 1.0f / 256;
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field quantize_fields[] = { VKT_FIELD(vkt_quantize_attr, bits, U32, 1, 0),
                                             VKT_FIELD(vkt_quantize_attr, noise, U32, 1, 0),
                                             { .name = NULL } };

const vkt_op vkt_op_quantize = {
    .name = "quantize",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .uses_step = true,
    .in_place = 1u << 0,
    .diff = 1u << 0,
    .attr_bytes = sizeof(vkt_quantize_attr),
    .infer = quantize_infer,
    .emit = quantize_emit,
    .backward = quantize_backward,
    .sample = quantize_sample,
    .abs_tol = 6e-7f,
    .tol_why = "a quotient, 2.5 ulp, and a sum of numbers up to 1.5: 4 2^-24 beside the largest",
    .flops = vkt_flops_an_output,
    .fields = quantize_fields,
    .formula = "y = floor(L t + 1/2) / L, or t + (r - 1/2) / L with noise r; t = x in [0,1], L = 2^bits - 1",
};

/* ---- quantize_dx: x, dy -> dx ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    vkt_out(f, VKT_F32, vkt_in(f, 0)->layout, vkt_in(f, 0)->shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    emit_flat(n, e, true);
}

const vkt_op vkt_op_quantize_dx = {
    .name = "quantize_dx",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .attr_bytes = sizeof(vkt_quantize_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .forward_only = true,
    .tested_by = "quantize",
    .flops = vkt_flops_none,
    .formula = "dx = dy, but 0 where x is outside [0,1] and -dy points further outside",
};
