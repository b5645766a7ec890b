/* ops/conv/pool_dx.c - the gradient of poolings: dy (N,C,P,Q), index (max only) -> dx (N,C,H,W). */
#include "ops/conv/pool.h"

static vkt_result infer(vkt_infer *f)
{
    const vkt_pool2d_dx_attr *a = f->n->attr;
    const vkt_shape want = vkt_shape4(a->x.dim[0], a->x.dim[1], a->pool.out[0], a->pool.out[1]);
    for (uint32_t i = 0; i < (a->pool.average ? 1u : 2u); i++) {
        const vkt_value *v = vkt_in(f, i);
        char text[80], got[80];
        VKT_REQUIRE(f,
                    vkt_has(f, i) && v->layout == VKT_BATCH_LAST && vkt_shape_equal(v->shape, want) &&
                        v->dtype == (i ? VKT_U32 : VKT_F32),
                    VKT_E_SHAPE, "pool2d_dx: want input %u %s with the batch last, got %s", i,
                    vkt_shape_text(want, text), vkt_shape_text(v->shape, got));
    }
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, a->x);
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_pool2d_dx(e, n->attr, n->in[0], n->in[1], n->out[0]);
}

static double flops(const vkt_node *n)
{
    const vkt_pool2d_dx_attr *a = n->attr;
    if (!a->pool.average) return vkt_elements_in(n, 0);
    if (a->pool.adaptive) return vkt_elements_out(n, 0);
    return vkt_elements_in(n, 0) * a->pool.kernel[0] * a->pool.kernel[1];
}

const vkt_op vkt_op_pool2d_dx = {
    .name = "pool2d_dx",
    .min_in = 1,
    .max_in = 2,
    .attr_bytes = sizeof(vkt_pool2d_dx_attr),
    .infer = infer,
    .emit = emit,
    .late_epilogues = 1u << VKT_FUSE_DROPOUT,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "pool2d",
    .flops = flops,
    .formula = "dx[n,c,h,w] = sum over windows with (h,w): max: dy if (h,w) won; mean: dy / size",
};

vkt_tensor vkt_max_pool2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor index, const vkt_pool2d_attr *a, vkt_shape x)
{
    const vkt_pool2d_dx_attr attr = { .pool = *a, .x = x };
    const vkt_tensor in[] = { dy, index };
    return vkt_apply(g, &vkt_op_pool2d_dx, in, a->average ? 1 : 2, &attr, NULL);
}

bool vkt_is_unpool(const vkt_node *n, uint32_t cell[2])
{
    if (n->op != &vkt_op_pool2d_dx) return false;
    const vkt_pool2d_dx_attr *a = n->attr;
    return vkt_pool2d_is_disjoint(&a->pool, a->x, cell) && !a->pool.average;
}
