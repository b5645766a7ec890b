/* ops/conv/conv2d.c - 2-D convolution (cross-correlation) and its gradients, as ops. C: channels of x; G: number of
 * groups; g: the group of output channel o.
 *
 * y[n,o,p,q] = bias[o] + sum_{c,r,s} x[n, g C/G + c, p stride - pad + r dil, q stride - pad + s dil] w[o,c,r,s]
 *
 * dx: an element of x is a factor in some of the sums y[n,o,p,q]. In each of these sums, one weight w[o,c,r,s]
 * multiplies the element. The gradient of the element is the total of dy[n,o,p,q] w[o,c,r,s] over these sums.
 *
 * dw[o,c,r,s] is the sum, over n, p and q, of dy[n,o,p,q] times the element of x that w[o,c,r,s] multiplies in
 * y[n,o,p,q].
 *
 * db[o] = sum_{n,p,q} dy[n,o,p,q]
 */
#include "ops/conv/choose.h"
#include "ops/conv/conv2d.h"

/* The attributes of the gradients: those of the convolution, and sizes that the shapes of the inputs do not give. */
typedef struct dx_attr {
    vkt_conv2d_attr conv;
    uint32_t in[2]; /* H, W */
} dx_attr;

typedef struct dw_attr {
    vkt_conv2d_attr conv;
    uint32_t kernel[2]; /* R, S */
    uint32_t bias;      /* 1: db is the second output. A bool would add padding bytes: see vkt_op.attr_bytes */
} dw_attr;

/* ---- forward ---- */

static vkt_result infer(vkt_infer *f)
{
    uint32_t out[2];
    VKT_TRY(vkt_conv2d_check(f, f->n->attr, out));
    vkt_out(f, VKT_F32, VKT_BATCH_LAST,
            vkt_shape4(vkt_in(f, 0)->shape.dim[0], vkt_in(f, 1)->shape.dim[0], out[0], out[1]));
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_conv2d_size z =
        vkt_conv2d_size_of(vkt_node_in(n, 0), vkt_node_out(n, 0), vkt_node_in(n, 1)->shape.dim + 2, n->attr);
    vkt_emit_conv2d(e, &z, n->in[0], n->in[1], n->in[2], n->out[0]);
}

void vkt_conv2d_backward(vkt_graph *g, const vkt_node *n, const vkt_conv2d_attr *a, vkt_tensor dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], w = n->in[1], bias = n->in[2];
    const vkt_shape xs = vkt_tensor_shape(g, x), ws = vkt_tensor_shape(g, w);
    if (vkt_wants_grad(g, x)) dx[0] = vkt_conv2d_dx(g, dy, w, a, xs.dim + 2);
    if (vkt_wants_grad(g, w) || vkt_wants_grad(g, bias))
        dx[1] = vkt_conv2d_dw(g, x, dy, a, ws.dim + 2, vkt_wants_grad(g, bias), &dx[2]);
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_conv2d_backward(g, n, n->attr, dy[0], dx);
}

/* Generates a case that the FFT variants can compute: one group, numbers of channels that are multiples of 4, and a
 * stride of 1. Some images fit into one tile of a Fourier transform, and larger images need several tiles. WINOGRAD
 * needs kernels of 3x3 without dilation. On average, a little more than half of the cases have such a kernel. */
static void sample_transforms(vkt_rng *r, vkt_case *c)
{
    vkt_conv2d_attr a = { .stride = { 1, 1 }, .groups = 1 };
    const bool three = vkt_rng_range(r, 0, 1) == 0;
    const uint32_t channels = 4 * vkt_rng_range(r, 1, 9), out_channels = 4 * vkt_rng_range(r, 1, 11);
    uint32_t kernel[2], in[2], n = vkt_rng_range(r, 1, 40);
    for (int i = 0; i < 2; i++) {
        a.dilation[i] = !three && vkt_rng_range(r, 1, 4) == 1 ? 2 : 1;
        kernel[i] = three ? 3 : vkt_rng_range(r, 2, a.dilation[i] == 2 ? 3 : 6);
        const uint32_t reach = a.dilation[i] * (kernel[i] - 1) + 1;
        a.pad[i] = vkt_rng_range(r, 0, reach - 1);
        in[i] = reach + vkt_rng_range(r, 0, vkt_rng_range(r, 0, 1) ? 24 : 8);
    }
    const uint64_t per_sample = (uint64_t)channels * out_channels * in[0] * in[1] * kernel[0] * kernel[1];
    while (n > 1 && per_sample * n > 2000000) n /= 2;
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape4(n, channels, in[0], in[1]), -1, 1);
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(out_channels, channels, kernel[0], kernel[1]), -1, 1);
    if (vkt_rng_range(r, 0, 1) == 0)
        vkt_case_absent(c);
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(out_channels), -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t batches[] = { 1, 3, 5, 16, 33, 64 };
    if (vkt_rng_range(r, 0, 3) == 0) {
        sample_transforms(r, c);
        return;
    }
    const bool depthwise = vkt_rng_range(r, 0, 5) == 0;
    /* If kind is 1, kernels are 1x1, so conv/tile.comp may read the weights themselves, not a reordered copy. If kind
     * is 0 or 1, a group has up to 70 output channels, else up to 11. In depthwise cases a group always has up to 3. */
    const uint32_t kind = vkt_rng_range(r, 0, 4);
    const uint32_t some_groups = vkt_rng_range(r, 1, 4) == 1 ? vkt_rng_range(r, 2, 3) : 1;
    vkt_conv2d_attr a = { .groups = depthwise ? vkt_rng_range(r, 5, 19) : some_groups };
    const uint32_t channels = depthwise ? 1 : kind == 1 ? 4 * vkt_rng_range(r, 9, 12) : vkt_rng_range(r, 1, 9);
    const uint32_t out_channels = depthwise ? vkt_rng_range(r, 1, 3) : vkt_rng_range(r, 1, kind > 1 ? 11 : 70);
    uint32_t n = batches[vkt_rng_range(r, 0, VKT_COUNT(batches) - 1)], kernel[2], in[2];
    for (int i = 0; i < 2; i++) {
        a.stride[i] = vkt_rng_range(r, 1, 3);
        a.dilation[i] = vkt_rng_range(r, 1, 2);
        kernel[i] = kind == 1 ? 1 : vkt_rng_range(r, 1, 4);
        a.pad[i] = vkt_rng_range(r, 0, 2);
        in[i] = a.dilation[i] * (kernel[i] - 1) + vkt_rng_range(r, 1, 7);
    }
    const uint64_t per_sample = (uint64_t)channels * out_channels * a.groups * in[0] * in[1] * kernel[0] * kernel[1];
    while (n > 1 && per_sample * n > 1000000) n /= 2;
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape4(n, channels * a.groups, in[0], in[1]), -1, 1);
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(out_channels * a.groups, channels, kernel[0], kernel[1]), -1, 1);
    if (vkt_rng_range(r, 0, 2) == 0)
        vkt_case_absent(c);
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(out_channels * a.groups), -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

/* Computes the number of groups anew. A smaller case may have fewer channels, but a group keeps its number of channels
 * (dimension 1 of w). */
static void settle(void *attr, vkt_case_input *in)
{
    vkt_conv2d_attr *a = attr;
    a->groups = VKT_MAX(1u, in[0].shape.dim[1] / in[1].shape.dim[1]);
}

static double flops(const vkt_node *n)
{
    return vkt_conv2d_flops(vkt_elements_out(n, 0), vkt_node_in(n, 1)->shape, n->in[2].id != 0);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_conv2d_attr, stride, U32, 2, 1),
                                    VKT_FIELD(vkt_conv2d_attr, pad, U32, 2, 0),
                                    VKT_FIELD(vkt_conv2d_attr, dilation, U32, 2, 1),
                                    VKT_FIELD(vkt_conv2d_attr, groups, U32, 1, 1),
                                    { .name = NULL } };

const vkt_op vkt_op_conv2d = {
    .name = "conv2d",
    .min_in = 2,
    .max_in = 3,
    .diff = 1u << 0 | 1u << 1 | 1u << 2,
    .attr_bytes = sizeof(vkt_conv2d_attr),
    .infer = infer,
    .settle = settle,
    .emit = emit,
    .epilogues = 1u << VKT_FUSE_RELU,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 2e-5f,
    .abs_tol = 1e-5f,
    .tol_why =
        "a sum of K products in [-1,1] rounds like a random walk: about 2^-24 sqrt(K/2) times its partial sums, which "
        "the largest element bounds within a factor of 2; K < 30,000 gives 8e-6; Winograd's "
        "terms are 5/3 as large together (25 variances for 9), in sums of K/9: half the error",
    .flops = flops,
    .fields = fields,
    .formula =
        "y[n,o,p,q] = bias[o] + sum_{c,r,s} x[n, g C/G + c, p stride - pad + r dil, q stride - pad + s dil] w[o,c,r,s]",
};

/* ---- dx: dy, w -> (N,C,H,W) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const dx_attr *a = f->n->attr;
    const vkt_shape dy = vkt_in(f, 0)->shape, w = vkt_in(f, 1)->shape;
    VKT_TRY(vkt_conv2d_want_image(f, 0, "dy"));
    VKT_REQUIRE(f, w.rank == 4 && w.dim[0] == dy.dim[1], VKT_E_SHAPE, "conv2d_dx: dy and w do not fit");
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape4(dy.dim[0], w.dim[1] * a->conv.groups, a->in[0], a->in[1]));
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const dx_attr *a = n->attr;
    const vkt_conv2d_size z =
        vkt_conv2d_size_of(vkt_node_out(n, 0), vkt_node_in(n, 0), vkt_node_in(n, 1)->shape.dim + 2, &a->conv);
    vkt_emit_conv2d_dx(e, &z, n->in[0], n->in[1], (vkt_tensor){ 0 }, n->out[0]);
}

static double dx_flops(const vkt_node *n)
{
    return vkt_conv2d_flops(vkt_elements_in(n, 0), vkt_node_in(n, 1)->shape, false);
}

const vkt_op vkt_op_conv2d_dx = {
    .name = "conv2d_dx",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(dx_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .late_epilogues = 1u << VKT_FUSE_SLOPE,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "conv2d",
    .flops = dx_flops,
    .formula = "dx[n,c,h,w] = sum of dy[n,o,p,q] w[o,c,r,s] over all (o,p,q,r,s) whose tap is (h,w)",
};

/* ---- dw: x, dy -> (O,C/groups,R,S), and db (O) ---- */

static vkt_result dw_infer(vkt_infer *f)
{
    const dw_attr *a = f->n->attr;
    const vkt_shape x = vkt_in(f, 0)->shape, dy = vkt_in(f, 1)->shape;
    VKT_TRY(vkt_conv2d_want_image(f, 0, "x"));
    VKT_TRY(vkt_conv2d_want_image(f, 1, "dy"));
    VKT_REQUIRE(f, x.dim[0] == dy.dim[0], VKT_E_SHAPE, "conv2d_dw: x and dy do not fit");
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape4(dy.dim[1], x.dim[1] / a->conv.groups, a->kernel[0], a->kernel[1]));
    if (a->bias) vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(dy.dim[1]));
    return VKT_OK;
}

static void dw_emit(const vkt_node *n, vkt_emit *e)
{
    const dw_attr *a = n->attr;
    const vkt_conv2d_size z = vkt_conv2d_size_of(vkt_node_in(n, 0), vkt_node_in(n, 1), a->kernel, &a->conv);
    vkt_emit_conv2d_dw(
        e, &(vkt_conv2d_dw_product){ .z = &z, .x = n->in[0], .dy = n->in[1], .dw = n->out[0], .db = n->out[1] });
}

static double dw_flops(const vkt_node *n)
{
    return vkt_conv2d_flops(vkt_elements_in(n, 1), vkt_node_out(n, 0)->shape, n->n_out > 1);
}

const vkt_op vkt_op_conv2d_dw = {
    .name = "conv2d_dw",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(dw_attr),
    .infer = dw_infer,
    .emit = dw_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_IN(1),
    .forward_only = true,
    .tested_by = "conv2d",
    .flops = dw_flops,
    .formula = "dw[o,c,r,s] = sum_{n,p,q} dy[n,o,p,q] x[n, g C/G + c, p stride - pad + r dil, q stride - pad + s dil]; "
               "db[o] = sum_{n,p,q} dy[n,o,p,q]",
};

/* ---- builders ---- */

vkt_tensor vkt_conv2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor w, const vkt_conv2d_attr *a, const uint32_t in[2])
{
    const dx_attr attr = { .conv = *a, .in = { in[0], in[1] } };
    const vkt_tensor inputs[] = { dy, w };
    return vkt_apply(g, &vkt_op_conv2d_dx, inputs, VKT_COUNT(inputs), &attr, NULL);
}

vkt_tensor vkt_conv2d_dw(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a, const uint32_t kernel[2],
                         bool bias, vkt_tensor *db)
{
    const vkt_tensor unpooled = vkt_conv2d_dw_unpool(g, x, dy, a, kernel, bias, db);
    if (unpooled.id) return unpooled;
    const dw_attr attr = { .conv = *a, .kernel = { kernel[0], kernel[1] }, .bias = bias };
    const vkt_tensor inputs[] = { x, dy };
    vkt_tensor out[VKT_MAX_OUT];
    vkt_apply(g, &vkt_op_conv2d_dw, inputs, VKT_COUNT(inputs), &attr, out);
    *db = out[1];
    return out[0];
}

vkt_tensor vkt_conv2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv2d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    static const vkt_conv2d_params defaults;
    if (!p) p = &defaults;
    const vkt_conv2d_attr a = { .stride = { VKT_MAX(p->stride[0], 1u), VKT_MAX(p->stride[1], 1u) },
                                .pad = { p->pad[0], p->pad[1] },
                                .dilation = { VKT_MAX(p->dilation[0], 1u), VKT_MAX(p->dilation[1], 1u) },
                                .groups = VKT_MAX(p->groups, 1u) };
    if (x.id && x.id < g->n_values && vkt_value_of(g, x)->layout == VKT_ROWS) x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    const vkt_tensor in[] = { x, w, bias };
    return vkt_apply(g, &vkt_op_conv2d, in, bias.id ? 3 : 2, &a, NULL);
}
