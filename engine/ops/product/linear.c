/* ops/product/linear.c - y[b,o] = sum_i x[b,i] w[o,i] + bias[o]: x (B,I), w (O,I), bias (O) or null -> (B,O), in x's
 * layout. In ROWS, the op is a matrix product, and dx = dy w, dw = dy^T x, db = dy summed over b. In BATCH_LAST, the op
 * is a 1x1 convolution of 1x1 images with I channels, and has the gradients of this convolution. */
#include "base/built.h"
#include "ops/conv/choose.h"
#include "ops/conv/conv2d.h"
#include "ops/product/gemm.h"

/* In a library without convolutions (VKT_KERNELS), vkt_linear converts x to ROWS and uses the matrix product. */
enum { HAS_CONVOLUTIONS = VKT_BUILT_CONV2D_TILE };

static const vkt_conv2d_attr as_conv2d = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
static const uint32_t one_pixel[2] = { 1, 1 };

static vkt_result infer(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, 0), *w = vkt_in(f, 1), *bias = vkt_has(f, 2) ? vkt_in(f, 2) : NULL;
    char xt[80], wt[80], bt[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && w->dtype == VKT_F32 && (!bias || bias->dtype == VKT_F32), VKT_E_DTYPE,
                "linear: want f32 tensors, got x %s, w %s", vkt_dtype_name(x->dtype), vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f, x->shape.rank == 2 && w->shape.rank == 2 && x->shape.dim[1] == w->shape.dim[1], VKT_E_SHAPE,
                "linear: want x (B,I) and w (O,I), got %s and %s", vkt_shape_text(x->shape, xt),
                vkt_shape_text(w->shape, wt));
    VKT_REQUIRE(f, w->layout == VKT_ROWS, VKT_E_SHAPE, "linear: want w by rows");
    VKT_REQUIRE(f, !bias || (bias->shape.rank == 1 && bias->shape.dim[0] == w->shape.dim[0]), VKT_E_SHAPE,
                "linear: want bias (%u), got %s", w->shape.dim[0], vkt_shape_text(bias->shape, bt));
    vkt_out(f, VKT_F32, x->layout, vkt_shape2(x->shape.dim[0], w->shape.dim[0]));
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *x = vkt_node_in(n, 0);
    const uint32_t batch = x->shape.dim[0], in = x->shape.dim[1], out = vkt_node_in(n, 1)->shape.dim[0];
    if (x->layout == VKT_BATCH_LAST && !HAS_CONVOLUTIONS) {
        vkt_kernel_absent(e, VKT_K_CONV2D_TILE);
        return;
    }
    if (x->layout == VKT_BATCH_LAST) {
        const vkt_conv2d_size z = { .n4 = vkt_phys_of(x).pitch / 4,
                                    .channels = in,
                                    .out_channels = out,
                                    .in = { 1, 1 },
                                    .kernel = { 1, 1 },
                                    .out = { 1, 1 },
                                    .a = as_conv2d };
        vkt_emit_conv2d(e, &z, n->in[0], n->in[1], n->in[2], n->out[0]);
        return;
    }
    const vkt_gemm product = { .a = { .t = n->in[0], .x_outer = true, .ld = in },
                               .b = { .t = n->in[1], .x_outer = true, .ld = in },
                               .c = { .t = n->out[0], .ld = out },
                               .bias = n->in[2],
                               .m = batch,
                               .n = out,
                               .k = in,
                               .batches = 1 };
    vkt_gemm_emit(e, &product);
}

static void backward_rows(vkt_graph *g, const vkt_node *n, vkt_tensor dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], w = n->in[1], bias = n->in[2];
    if (vkt_wants_grad(g, x)) dx[0] = vkt_matmul(g, dy, w, false, false);
    if (vkt_wants_grad(g, w)) dx[1] = vkt_matmul(g, dy, x, true, false);
    if (vkt_wants_grad(g, bias)) dx[2] = vkt_sum_to(g, dy, vkt_tensor_shape(g, bias));
}

static vkt_tensor with_pixel(vkt_graph *g, vkt_tensor t)
{
    const vkt_shape s = vkt_tensor_shape(g, t);
    return vkt_reshape(g, t, vkt_shape4(s.dim[0], s.dim[1], 1, 1));
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], w = n->in[1], bias = n->in[2];
    if (!HAS_CONVOLUTIONS || vkt_value_of(g, x)->layout == VKT_ROWS) {
        backward_rows(g, n, dy[0], dx);
        return;
    }
    const vkt_shape xs = vkt_tensor_shape(g, x), ws = vkt_tensor_shape(g, w);
    const vkt_tensor dy4 = with_pixel(g, dy[0]);
    if (vkt_wants_grad(g, x))
        dx[0] = vkt_reshape(g, vkt_conv2d_dx(g, dy4, with_pixel(g, w), &as_conv2d, one_pixel), xs);
    if (!vkt_wants_grad(g, w) && !vkt_wants_grad(g, bias)) return;
    const vkt_tensor dw =
        vkt_conv2d_dw(g, with_pixel(g, x), dy4, &as_conv2d, one_pixel, vkt_wants_grad(g, bias), &dx[2]);
    dx[1] = vkt_reshape(g, dw, ws);
}

static void sample(vkt_rng *r, vkt_case *c)
{
    const vkt_layout layout = vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
    const uint32_t quad = vkt_rng_range(r, 0, 1) ? 4 : 1;
    const uint32_t batch = vkt_rng_range(r, 1, 70), in = quad * vkt_rng_range(r, 1, 90 / quad);
    const uint32_t out = vkt_rng_range(r, 1, 70);
    vkt_case_f32(c, layout, vkt_shape2(batch, in), -1, 1);
    vkt_case_f32(c, VKT_ROWS, vkt_shape2(out, in), -1, 1);
    if (vkt_rng_range(r, 0, 2) == 0)
        vkt_case_absent(c);
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(out), -1, 1);
}

static double flops(const vkt_node *n)
{
    const double bias = n->in[2].id ? 1 : 0;
    return vkt_elements_out(n, 0) * (2.0 * vkt_node_in(n, 1)->shape.dim[1] + bias);
}

const vkt_op vkt_op_linear = {
    .name = "linear",
    .min_in = 2,
    .max_in = 3,
    .fuse_kind = VKT_FUSE_AFFINE,
    .diff = 1u << 0 | 1u << 1 | 1u << 2,
    .infer = infer,
    .emit = emit,
    .epilogues = 1u << VKT_FUSE_RELU,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why = "Higham, Accuracy and Stability, 3.5: K u times the sum of |a b|, u = 2^-24; K <= 90 products in "
               "[-1,1]: at most "
               "91 * 2^-24 * 90 / 4, errors that add like sqrt(K) a tenth of it, and the largest element is above 1",
    .flops = flops,
    .formula = "y[b,o] = sum_i x[b,i] w[o,i] + bias[o]",
};

static vkt_tensor linear(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias)
{
    const vkt_tensor in[] = { x, w, bias };
    return vkt_apply(g, &vkt_op_linear, in, bias.id ? 3 : 2, NULL, NULL);
}

vkt_tensor vkt_linear(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias)
{
    vkt_shape s = vkt_tensor_shape(g, x);
    if (s.rank <= 2) return linear(g, HAS_CONVOLUTIONS ? x : vkt_to_layout(g, x, VKT_ROWS), w, bias);
    const uint32_t in = s.dim[s.rank - 1];
    const vkt_shape rows = vkt_shape2((uint32_t)(vkt_shape_elements(s) / in), in);
    const vkt_tensor y = linear(g, vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), rows), w, bias);
    if (!y.id) return y;
    s.dim[s.rank - 1] = vkt_tensor_shape(g, y).dim[1];
    return vkt_reshape(g, y, s);
}
