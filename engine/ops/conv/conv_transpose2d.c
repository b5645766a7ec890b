/* ops/conv/conv_transpose2d.c - transposed 2-D convolution: y is computed from x as conv2d_dx computes dx from dy, with
 * the same kernels and variants. The dx of this op is a conv2d of dy. The formulas are those of one group.
 *
 * y[n,o,p,q] = bias[o] + sum of x[n,c,i,j] w[c,o,r,s] over all (c,i,j,r,s) with
 *              p = i stride - pad + r dil and q = j stride - pad + s dil
 *
 * With the same p and q:
 *
 * dx[n,c,i,j] = sum_{o,r,s} dy[n,o,p,q] w[c,o,r,s]
 *
 * dw[c,o,r,s] = sum_{n,i,j} x[n,c,i,j] dy[n,o,p,q]
 *
 * db[o] = sum_{n,p,q} dy[n,o,p,q]
 *
 * In vkt_conv2d_size, the input image is this op's y, and the output image is this op's x. */
#include "ops/conv/choose.h"
#include "ops/conv/conv2d.h"

/* Returns the attributes of the convolution. They do not include output_pad, because the shape of y does. */
static vkt_conv2d_attr conv_of(const vkt_conv_transpose2d_attr *a)
{
    return (vkt_conv2d_attr){ .stride = { a->stride[0], a->stride[1] },
                              .pad = { a->pad[0], a->pad[1] },
                              .dilation = { a->dilation[0], a->dilation[1] },
                              .groups = a->groups };
}

/* Returns (in - 1) * stride - 2 * pad + dil * (kernel - 1) + output_pad + 1; 0 if the padding leaves nothing, or if the
 * size is above 2^31 - 1. */
static uint32_t out_size(const vkt_conv_transpose2d_attr *a, int axis, uint32_t in, uint32_t kernel)
{
    const uint64_t all =
        (in - 1ull) * a->stride[axis] + (uint64_t)a->dilation[axis] * (kernel - 1ull) + a->output_pad[axis] + 1;
    const uint64_t padding = 2ull * a->pad[axis];
    return all <= padding || all - padding > INT32_MAX ? 0 : (uint32_t)(all - padding);
}

static vkt_result infer(vkt_infer *f)
{
    const vkt_conv_transpose2d_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0), *w = vkt_in(f, 1);
    const vkt_conv2d_attr conv = conv_of(a);
    char xt[80], wt[80];
    VKT_TRY(vkt_conv2d_check_attr(f, &conv));
    VKT_TRY(vkt_conv2d_want_image(f, 0, "x"));
    VKT_REQUIRE(f, w->dtype == VKT_F32, VKT_E_DTYPE, "conv_transpose2d: want w as f32, got %s",
                vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f,
                w->layout == VKT_ROWS && w->shape.rank == 4 && w->shape.dim[0] == x->shape.dim[1] &&
                    x->shape.dim[1] % a->groups == 0 && (uint64_t)w->shape.dim[1] * a->groups <= INT32_MAX,
                VKT_E_SHAPE,
                "conv_transpose2d: want x (N,C,H,W), w (C,O/groups,R,S) and groups that divide C, got x %s, w %s, "
                "groups %u",
                vkt_shape_text(x->shape, xt), vkt_shape_text(w->shape, wt), a->groups);
    const uint32_t out_channels = w->shape.dim[1] * a->groups;
    if (vkt_has(f, 2)) {
        const vkt_value *b = vkt_in(f, 2);
        VKT_REQUIRE(f, b->dtype == VKT_F32 && b->shape.rank == 1 && b->shape.dim[0] == out_channels,
                    b->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "conv_transpose2d: want bias f32 (%u), got %s %s",
                    out_channels, vkt_dtype_name(b->dtype), vkt_shape_text(b->shape, xt));
    }
    for (int i = 0; i < 2; i++)
        VKT_REQUIRE(f, a->output_pad[i] < VKT_MAX(a->stride[i], a->dilation[i]), VKT_E_ARG,
                    "conv_transpose2d: want output_pad below stride or dilation, got %u, %u and %u", a->output_pad[i],
                    a->stride[i], a->dilation[i]);
    const uint32_t p = out_size(a, 0, x->shape.dim[2], w->shape.dim[2]),
                   q = out_size(a, 1, x->shape.dim[3], w->shape.dim[3]);
    VKT_REQUIRE(f, p && q, VKT_E_SHAPE, "conv_transpose2d: x %s by w %s with pad %u,%u leaves no image",
                vkt_shape_text(x->shape, xt), vkt_shape_text(w->shape, wt), a->pad[0], a->pad[1]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape4(x->shape.dim[0], out_channels, p, q));
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_conv2d_attr a = conv_of(n->attr);
    const vkt_conv2d_size z =
        vkt_conv2d_size_of(vkt_node_out(n, 0), vkt_node_in(n, 0), vkt_node_in(n, 1)->shape.dim + 2, &a);
    vkt_emit_conv2d_dx(e, &z, n->in[0], n->in[1], n->in[2], n->out[0]);
}

/* dx is a convolution of dy. If output_pad is the stride or more, that convolution alone would give an image larger
 * than x. So the attributes include the size of x. */
typedef struct dx_attr {
    vkt_conv2d_attr conv;
    uint32_t x[2]; /* H, W */
} dx_attr;

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], w = n->in[1], bias = n->in[2];
    const vkt_shape xs = vkt_tensor_shape(g, x), ws = vkt_tensor_shape(g, w);
    const dx_attr a = { .conv = conv_of(n->attr), .x = { xs.dim[2], xs.dim[3] } };
    if (vkt_wants_grad(g, x)) {
        const vkt_tensor in[] = { dy[0], w };
        dx[0] = vkt_apply(g, &vkt_op_conv_transpose2d_dx, in, VKT_COUNT(in), &a, NULL);
    }
    if (vkt_wants_grad(g, w)) dx[1] = vkt_conv2d_dw(g, dy[0], x, &a.conv, ws.dim + 2, false, &dx[2]);
    if (vkt_wants_grad(g, bias)) {
        const vkt_shape bs = vkt_tensor_shape(g, bias);
        dx[2] = vkt_reshape(g, vkt_sum_to(g, dy[0], vkt_shape3(bs.dim[0], 1, 1)), bs);
    }
}

static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t batches[] = { 1, 3, 5, 16, 33 };
    /* `quads`: the numbers of channels are multiples of 4, and groups and stride are 1. So FFT variants can run, unless
     * the kernel is 1x1. */
    const bool quads = vkt_rng_range(r, 0, 3) == 0;
    vkt_conv_transpose2d_attr a = { .groups = !quads && vkt_rng_range(r, 1, 4) == 1 ? vkt_rng_range(r, 2, 3) : 1 };
    const uint32_t unit = quads ? 4 : 1, channels = unit * vkt_rng_range(r, 1, 7);
    const uint32_t out_channels = unit * vkt_rng_range(r, 1, 9);
    uint32_t n = batches[vkt_rng_range(r, 0, VKT_COUNT(batches) - 1)], kernel[2], in[2];
    for (int i = 0; i < 2; i++) {
        a.stride[i] = quads ? 1 : vkt_rng_range(r, 1, 3);
        a.dilation[i] = vkt_rng_range(r, 1, 2);
        a.output_pad[i] = vkt_rng_range(r, 0, VKT_MAX(a.stride[i], a.dilation[i]) - 1);
        kernel[i] = vkt_rng_range(r, 1, 4);
        a.pad[i] = vkt_rng_range(r, 0, a.dilation[i] * (kernel[i] - 1) / 2);
        in[i] = vkt_rng_range(r, 1, 8);
    }
    while (n > 1 && n * channels * out_channels * a.groups * in[0] * in[1] * kernel[0] * kernel[1] > 500000) n /= 2;
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape4(n, channels * a.groups, in[0], in[1]), -1, 1);
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(channels * a.groups, out_channels, kernel[0], kernel[1]), -1, 1);
    if (vkt_rng_range(r, 0, 2) == 0)
        vkt_case_absent(c);
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(out_channels * a.groups), -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

/* Returns the flops of the products of y, or of dx. `pixels` is the number of elements of x. There are O/G * R * S
 * products for each element of x, and a product counts as two flops. Products that fall into the padding count, too. */
static double product_flops(double pixels, vkt_shape w)
{
    return pixels * 2.0 * w.dim[1] * w.dim[2] * w.dim[3];
}

static double flops(const vkt_node *n)
{
    const double sums = n->in[2].id ? vkt_elements_out(n, 0) : 0;
    return product_flops(vkt_elements_in(n, 0), vkt_node_in(n, 1)->shape) + sums;
}

static const vkt_field fields[] = { VKT_FIELD(vkt_conv_transpose2d_attr, stride, U32, 2, 1),
                                    VKT_FIELD(vkt_conv_transpose2d_attr, pad, U32, 2, 0),
                                    VKT_FIELD(vkt_conv_transpose2d_attr, dilation, U32, 2, 1),
                                    VKT_FIELD(vkt_conv_transpose2d_attr, groups, U32, 1, 1),
                                    VKT_FIELD(vkt_conv_transpose2d_attr, output_pad, U32, 2, 0),
                                    { .name = NULL } };

const vkt_op vkt_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .min_in = 2,
    .max_in = 3,
    .diff = 1u << 0 | 1u << 1 | 1u << 2,
    .attr_bytes = sizeof(vkt_conv_transpose2d_attr),
    .infer = infer,
    .emit = emit,
    .epilogues = 1u << VKT_FUSE_RELU,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 2e-5f,
    .abs_tol = 1e-5f,
    .tol_why =
        "as conv2d's: a sum of K products in [-1,1] rounds like a random walk, 2^-24 sqrt(K/2) times its partial "
        "sums; K < 30,000 gives 8e-6",
    .flops = flops,
    .fields = fields,
    .formula = "y[n,o,p,q] = bias[o] + sum of x[n,c,h,w] w[c,o,r,s] over all (c,h,w,r,s) with p = h stride - pad + r "
               "dil, q = w stride - pad + s dil",
};

/* ---- dx: dy, w -> (N,C,H,W) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const dx_attr *a = f->n->attr;
    const vkt_shape dy = vkt_in(f, 0)->shape, w = vkt_in(f, 1)->shape;
    VKT_TRY(vkt_conv2d_want_image(f, 0, "dy"));
    VKT_REQUIRE(f, w.rank == 4 && w.dim[1] * a->conv.groups == dy.dim[1], VKT_E_SHAPE,
                "conv_transpose2d_dx: dy and w do not fit");
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape4(dy.dim[0], w.dim[0], a->x[0], a->x[1]));
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const dx_attr *a = n->attr;
    const vkt_conv2d_size z =
        vkt_conv2d_size_of(vkt_node_in(n, 0), vkt_node_out(n, 0), vkt_node_in(n, 1)->shape.dim + 2, &a->conv);
    vkt_emit_conv2d(e, &z, n->in[0], n->in[1], (vkt_tensor){ 0 }, n->out[0]);
}

static double dx_flops(const vkt_node *n)
{
    return product_flops(vkt_elements_out(n, 0), vkt_node_in(n, 1)->shape);
}

const vkt_op vkt_op_conv_transpose2d_dx = {
    .name = "conv_transpose2d_dx",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(dx_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "conv_transpose2d",
    .flops = dx_flops,
    .formula = "dx[n,c,h,w] = sum_{o,r,s} dy[n,o, h stride - pad + r dil, w stride - pad + s dil] w[c,o,r,s]",
};

/* ---- builder ---- */

vkt_tensor vkt_conv_transpose2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                const vkt_conv_transpose2d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    static const vkt_conv_transpose2d_params defaults;
    if (!p) p = &defaults;
    const vkt_conv_transpose2d_attr a = { .stride = { VKT_MAX(p->stride[0], 1u), VKT_MAX(p->stride[1], 1u) },
                                          .pad = { p->pad[0], p->pad[1] },
                                          .dilation = { VKT_MAX(p->dilation[0], 1u), VKT_MAX(p->dilation[1], 1u) },
                                          .groups = VKT_MAX(p->groups, 1u),
                                          .output_pad = { p->output_pad[0], p->output_pad[1] } };
    if (x.id && x.id < g->n_values && vkt_value_of(g, x)->layout == VKT_ROWS) x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    const vkt_tensor in[] = { x, w, bias };
    return vkt_apply(g, &vkt_op_conv_transpose2d, in, bias.id ? 3 : 2, &a, NULL);
}
