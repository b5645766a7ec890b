/* ops/conv/fused_unpool.c - conv2d_dw, fused with the node that computes its dy. This node must be the gradient of a
 * max pooling, and no other node may read dy. dy is an image with at most one nonzero element per window. Some kernels
 * do not need this image: they read the gradient of the pooling's output, and the index.
 *
 * The windows must be disjoint, so that an element of dy belongs to at most one window. The nodes are fused before a
 * kernel is chosen for the device. If that kernel cannot read the pooled gradient, it gets the complete dy as scratch
 * (choose.c). */
#include "ops/conv/choose.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/pool.h"

/* The attributes of the node: those of the convolution, and the sizes that the shapes of the inputs do not give. */
typedef struct unpool_attr {
    vkt_conv2d_attr conv;
    uint32_t kernel[2]; /* R, S */
    uint32_t bias;      /* 1: db is the second output. A bool would add padding bytes: see vkt_op.attr_bytes */
    uint32_t out[2];    /* P, Q */
    uint32_t cell[2];
} unpool_attr;

static vkt_result infer(vkt_infer *f)
{
    const unpool_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0), *dy = vkt_in(f, 1), *index = vkt_in(f, 2);
    VKT_TRY(vkt_conv2d_want_image(f, 0, "x"));
    VKT_TRY(vkt_conv2d_want_image(f, 1, "dy"));
    VKT_REQUIRE(f,
                x->shape.dim[0] == dy->shape.dim[0] && index->dtype == VKT_U32 && index->layout == dy->layout &&
                    vkt_shape_equal(index->shape, dy->shape),
                VKT_E_SHAPE, "conv2d_dw_unpool: x, dy and index do not fit");
    const uint32_t channels = x->shape.dim[1] / a->conv.groups, out_channels = dy->shape.dim[1];
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape4(out_channels, channels, a->kernel[0], a->kernel[1]));
    if (a->bias) vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(out_channels));
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const unpool_attr *a = n->attr;
    vkt_value y = *vkt_node_in(n, 1);
    y.shape.dim[2] = a->out[0];
    y.shape.dim[3] = a->out[1];
    const vkt_conv2d_size z = vkt_conv2d_size_of(vkt_node_in(n, 0), &y, a->kernel, &a->conv);
    vkt_emit_conv2d_dw(e, &(vkt_conv2d_dw_product){ .z = &z,
                                                    .x = n->in[0],
                                                    .dy = n->in[1],
                                                    .dw = n->out[0],
                                                    .db = n->out[1],
                                                    .index = n->in[2],
                                                    .cell = { a->cell[0], a->cell[1] } });
}

/* Returns the flops of conv2d_dw. Each of the N x O x P x Q elements of the convolution's gradient counts, also the
 * zeros. */
static double flops(const vkt_node *n)
{
    const unpool_attr *a = n->attr;
    const vkt_shape dy = vkt_node_in(n, 1)->shape, w = vkt_node_out(n, 0)->shape;
    const double elements = (double)dy.dim[0] * dy.dim[1] * a->out[0] * a->out[1];
    return elements * (2.0 * w.dim[1] * w.dim[2] * w.dim[3] + a->bias);
}

const vkt_op vkt_op_conv2d_dw_unpool = {
    .name = "conv2d_dw_unpool",
    .min_in = 3,
    .max_in = 3,
    .attr_bytes = sizeof(unpool_attr),
    .infer = infer,
    .emit = emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1), /* the index stays in 32 bits */
    .forward_only = true,
    .tested_by = "conv2d",
    .flops = flops,
    .formula = "dw and db as conv2d_dw has them, of dy[n,o,p,q] = dpool[n,o,h,w] where the maximum of pooling window "
               "(h,w) is at (p,q), "
               "else 0",
};

vkt_tensor vkt_conv2d_dw_unpool(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a,
                                const uint32_t kernel[2], bool bias, vkt_tensor *db)
{
    const vkt_value *v = vkt_value_of(g, dy);
    unpool_attr attr = { .conv = *a, .kernel = { kernel[0], kernel[1] }, .bias = bias };
    if (!v->producer || vkt_readers(g, dy) > 0 || g->no_fuse) return (vkt_tensor){ 0 };
    const vkt_node *pool = g->nodes[v->producer - 1];
    if (!vkt_is_unpool(pool, attr.cell)) return (vkt_tensor){ 0 };
    attr.out[0] = v->shape.dim[2];
    attr.out[1] = v->shape.dim[3];
    const vkt_tensor in[] = { x, pool->in[0], pool->in[1] };
    vkt_tensor out[VKT_MAX_OUT];
    vkt_apply(g, &vkt_op_conv2d_dw_unpool, in, VKT_COUNT(in), &attr, out);
    *db = out[1];
    return out[0];
}
