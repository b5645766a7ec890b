/* ops/conv/pool.c - max and average pooling over R x S windows of images, BATCH_LAST.
 *
 * A vec4 is four samples of one pixel. So loads are whole vec4s, whatever window, stride and padding are. Adaptive
 * windows that divide the image evenly are computed as ordinary windows. A faster kernel computes the gradient
 * (DISJOINT in shaders/conv/pool2d_dx.comp) if windows are disjoint, without padding, dilation or gaps between them,
 * and each window is small enough for one lane. */
#include "ops/conv/conv2d.h"
#include "ops/conv/pool.h"

/* ---- pool2d: x (N,C,H,W) -> y (N,C,P,Q), and for max: index (N,C,P,Q) u32, see abi/pool_index.abi.h ---- */

/* The index of a pixel is stored with POOL_INDEX_BIAS added. If the pixel's index is below MAX_PIXELS, the sum has the
 * bits of a finite float (pool_index.abi.h). */
#define MAX_PIXELS 0x3f800000u

/* Returns the size of y along an axis, as torch computes it: rounded down, or up in ceil mode. In ceil mode, a last
 * window that would start in the padding behind the image is dropped. Returns 0 if no window fits. */
static uint32_t out_size(const vkt_pool2d_attr *a, uint32_t axis, uint32_t size)
{
    const uint32_t stride = a->stride[axis], pad = a->pad[axis];
    const uint64_t padded = (uint64_t)size + 2 * (uint64_t)pad, reach = vkt_pool2d_reach(a, axis);
    if (padded < reach || reach == 0 || stride == 0) return 0;
    uint64_t n = (padded - reach + (a->ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (a->ceil_mode && (n - 1) * stride >= (uint64_t)size + pad) n--;
    return (uint32_t)n;
}

static vkt_result infer_axis(vkt_infer *f, const vkt_pool2d_attr *a, uint32_t axis, uint32_t size)
{
    static const char *const names[] = { "height", "width" };
    const uint32_t k = a->kernel[axis], stride = a->stride[axis], pad = a->pad[axis];
    if (a->adaptive) {
        VKT_REQUIRE(f, !k && !stride && !pad && a->dilation[axis] <= 1 && !a->ceil_mode, VKT_E_ARG,
                    "pool2d: %s: an adaptive output takes no kernel, stride, pad, dilation or ceil_mode", names[axis]);
        VKT_REQUIRE(
            f, a->out[axis] > 0 && (a->out[axis] + 1ull) * (size + 1ull) < INT32_MAX, VKT_E_ARG,
            "pool2d: %s: want an adaptive output of at least 1, and output times size below 2^31, got %u from %u",
            names[axis], a->out[axis], size);
        return VKT_OK;
    }
    VKT_REQUIRE(f, k > 0 && stride > 0 && pad <= k / 2, VKT_E_ARG,
                "pool2d: %s: want kernel >= 1, stride >= 1 and pad <= kernel / 2, got %u, %u, %u", names[axis], k,
                stride, pad);
    VKT_REQUIRE(f, !a->average || a->dilation[axis] <= 1, VKT_E_ARG, "pool2d: %s: an average has no dilation, got %u",
                names[axis], a->dilation[axis]);
    VKT_REQUIRE(f,
                (uint64_t)size + 2 * (uint64_t)pad >= vkt_pool2d_reach(a, axis) &&
                    (uint64_t)size + 2 * (uint64_t)pad + stride < INT32_MAX,
                VKT_E_SHAPE, "pool2d: %s: a kernel of %u (dilation %u) does not fit into %u with padding %u",
                names[axis], k, VKT_MAX(a->dilation[axis], 1u), size, pad);
    const uint32_t out = out_size(a, axis, size);
    VKT_REQUIRE(f, out > 0 && a->out[axis] == out, VKT_E_SHAPE, "pool2d: %s: want an output of %u, got %u", names[axis],
                out, a->out[axis]);
    return VKT_OK;
}

static vkt_result pool_infer(vkt_infer *f)
{
    const vkt_pool2d_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0);
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && x->shape.rank == 4 && x->layout == VKT_BATCH_LAST,
                x->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE,
                "pool2d: want f32 (N,C,H,W) with the batch last, got %s %s", vkt_dtype_name(x->dtype),
                vkt_shape_text(x->shape, text));
    VKT_REQUIRE(f, !a->average || !a->relu, VKT_E_ARG, "pool2d: relu is part of a maximum alone");
    VKT_REQUIRE(f, a->average || (uint64_t)x->shape.dim[2] * x->shape.dim[3] < MAX_PIXELS, VKT_E_SHAPE,
                "pool2d: a maximum wants images of less than %u pixels, got %s", MAX_PIXELS,
                vkt_shape_text(x->shape, text));
    VKT_REQUIRE(f, a->average || !a->exclude_pad, VKT_E_ARG, "pool2d: exclude_pad is part of an average alone");
    for (uint32_t axis = 0; axis < 2; axis++) VKT_TRY(infer_axis(f, a, axis, x->shape.dim[2 + axis]));
    const vkt_shape y = vkt_shape4(x->shape.dim[0], x->shape.dim[1], a->out[0], a->out[1]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, y);
    if (!a->average) vkt_out(f, VKT_U32, VKT_BATCH_LAST, y);
    return VKT_OK;
}

static void pool_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_pool2d(e, n->attr, n->in[0], n->out[0], n->out[1]);
}

static void pool_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_max_pool2d_dx(g, dy[0], n->out[1], n->attr, vkt_node_in(n, 0)->shape);
}

/* Follows the chain of aliases from t on. Returns the first value that has the shape and layout of `as`. Returns {0} if
 * there is none before an alias that passes no gradient (stop_gradient). */
static vkt_tensor seen_as(const vkt_graph *g, vkt_tensor t, const vkt_value *as)
{
    const vkt_value *v = vkt_value_of(g, t);
    while (t.id && (v->layout != as->layout || !vkt_shape_equal(v->shape, as->shape))) {
        if (v->alias && !g->nodes[v->producer - 1]->op->diff) return (vkt_tensor){ 0 };
        t.id = v->alias;
        v = vkt_value_of(g, t);
    }
    return t;
}

/* Fuses max_pool(relu(x)) into one node. The bits of the result and of the gradient do not change. If the maximum of a
 * window is above 0 or NaN, relu does not change the winner (the element that is the maximum). Otherwise relu passes no
 * gradient, and the index is 0: no winner. Nothing is fused if a node reads the index already. That node computes the
 * gradient of relu's output, and needs a winner even in a window whose maximum is not above 0.
 *
 * A convolution that produces x is fused too, with or without relu, if vkt_conv2d_fuse_max_pool can do it. Reshapes
 * between these nodes are skipped: the ops on sequences add them (sequence.c). */
static void pool_fuse(vkt_graph *g, vkt_node *n, vkt_tensor dloss)
{
    (void)dloss;
    vkt_pool2d_attr a = *(const vkt_pool2d_attr *)n->attr;
    if (a.average || a.relu || vkt_readers(g, n->out[1]) > 0 || g->no_fuse) return;
    const vkt_node *before = vkt_sole_producer_past_views(g, n->in[0]);
    if (!before) return;
    a.relu = before->op->fuse_kind == VKT_FUSE_RELU;
    const vkt_tensor x = a.relu ? seen_as(g, before->in[0], vkt_node_in(n, 0)) : n->in[0];
    const vkt_node *conv = a.relu ? vkt_sole_producer_past_views(g, before->in[0]) : before;
    if (conv && vkt_conv2d_fuse_max_pool(g, n, conv, a.relu)) return;
    if (a.relu && x.id) vkt_node_become(g, n, &vkt_op_pool2d, &x, 1, &a);
}

static void resolve_out(vkt_pool2d_attr *a, vkt_shape x)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (a->stride[i] == 0) a->stride[i] = a->kernel[i];
        a->out[i] = out_size(a, i, x.dim[2 + i]);
    }
}

static void pool_settle(void *attr, vkt_case_input *in)
{
    vkt_pool2d_attr *a = attr;
    if (!a->adaptive) resolve_out(a, in[0].shape);
}

static void pool_sample(vkt_rng *r, vkt_case *c)
{
    vkt_pool2d_attr a = { .average = vkt_rng_range(r, 0, 1) != 0, .adaptive = vkt_rng_range(r, 0, 2) == 0 };
    const bool disjoint = vkt_rng_range(r, 0, 1) != 0;
    const vkt_shape x =
        vkt_shape4(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 5), vkt_rng_range(r, 3, 17), vkt_rng_range(r, 3, 17));
    for (uint32_t i = 0; i < 2; i++) {
        if (a.adaptive) {
            a.out[i] = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, 1, x.dim[2 + i] + 2) : 1;
            continue;
        }
        a.kernel[i] = vkt_rng_range(r, 1, x.dim[2 + i] < 5 ? x.dim[2 + i] : 5);
        if (disjoint) continue;
        if (!a.average && a.kernel[i] > 1 && vkt_rng_range(r, 0, 2) == 0)
            a.dilation[i] = vkt_rng_range(r, 1, (x.dim[2 + i] - 1) / (a.kernel[i] - 1));
        a.stride[i] = vkt_rng_range(r, 1, 4);
        a.pad[i] = vkt_rng_range(r, 0, a.kernel[i] / 2);
    }
    if (!a.adaptive) {
        a.ceil_mode = vkt_rng_range(r, 0, 1) != 0;
        a.exclude_pad = a.average && vkt_rng_range(r, 0, 1) != 0;
        resolve_out(&a, x);
    }
    a.relu = !a.average && vkt_rng_range(r, 0, 2) == 0;
    vkt_case_f32(c, VKT_BATCH_LAST, x, -2, a.relu ? 0.5f : 2)->distinct = !a.average;
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts every element of every window once, and once more for relu. Adaptive windows count as if they divided the
 * image evenly. */
static double pool_flops(const vkt_node *n)
{
    const vkt_pool2d_attr *a = n->attr;
    const double each = a->relu ? 2 : 1;
    if (a->adaptive) return each * vkt_elements_in(n, 0);
    return each * vkt_elements_out(n, 0) * a->kernel[0] * a->kernel[1];
}

static const vkt_field pool_fields[] = { VKT_FIELD(vkt_pool2d_attr, average, BOOL, 1, 0),
                                         VKT_FIELD(vkt_pool2d_attr, adaptive, BOOL, 1, 0),
                                         VKT_FIELD(vkt_pool2d_attr, kernel, U32, 2, 0),
                                         VKT_FIELD(vkt_pool2d_attr, stride, U32, 2, 0),
                                         VKT_FIELD(vkt_pool2d_attr, pad, U32, 2, 0),
                                         VKT_FIELD(vkt_pool2d_attr, ceil_mode, BOOL, 1, 0),
                                         VKT_FIELD(vkt_pool2d_attr, exclude_pad, BOOL, 1, 0),
                                         VKT_FIELD(vkt_pool2d_attr, relu, BOOL, 1, 0),
                                         VKT_FIELD(vkt_pool2d_attr, dilation, U32, 2, 0),
                                         VKT_FIELD(vkt_pool2d_attr, out, U32, 2, 0),
                                         { .name = NULL } };

const vkt_op vkt_op_pool2d = {
    .name = "pool2d",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .diff = 1,
    .attr_bytes = sizeof(vkt_pool2d_attr),
    .infer = pool_infer,
    .settle = pool_settle,
    .emit = pool_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0), /* the index stays in 32 bits */
    .backward = pool_backward,
    .fuse = pool_fuse,
    .late_epilogues = 1u << VKT_FUSE_DROPOUT,
    .sample = pool_sample,
    .rel_tol = 2e-6f,
    .abs_tol = 2e-6f,
    .tol_why =
        "an average adds up to 25 (adaptive: 17 x 17, in sums of at most 2 + 2) numbers: 25 * 2^-24 = 1.5e-6 of the "
        "largest; a maximum is exact, its gradient adds up to 25 numbers",
    .flops = pool_flops,
    .fields = pool_fields,
    .formula = "y[n,c,p,q] = max or mean of x, or max of relu(x), over the window of (p,q)",
};

/* ---- builders ---- */

static vkt_tensor pool2d(vkt_graph *g, vkt_tensor x, vkt_pool2d_attr *a)
{
    if (!vkt_is_usable(g, "pool2d", x)) return (vkt_tensor){ 0 };
    if (vkt_value_of(g, x)->layout != VKT_BATCH_LAST) x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    if (!a->adaptive && x.id) resolve_out(a, vkt_tensor_shape(g, x));
    return vkt_apply(g, &vkt_op_pool2d, &x, 1, a, NULL);
}

static vkt_tensor pool2d_by_params(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p, bool average)
{
    static const vkt_pool2d_params none;
    if (!p) p = &none; /* a kernel of size 0, which pool_infer reports as an error */
    /* A dilation of 1 is stored as 0, so that equal networks have equal texts in checkpoints (train/identity.h). */
    uint32_t dilation[2];
    for (int i = 0; i < 2; i++) dilation[i] = p->dilation[i] > 1 ? p->dilation[i] : 0;
    vkt_pool2d_attr a = { .average = average,
                          .kernel = { p->kernel[0], p->kernel[1] },
                          .stride = { p->stride[0], p->stride[1] },
                          .pad = { p->pad[0], p->pad[1] },
                          .dilation = { dilation[0], dilation[1] },
                          .ceil_mode = p->ceil_mode,
                          .exclude_pad = average && p->exclude_pad };
    return pool2d(g, x, &a);
}

vkt_tensor vkt_max_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    return pool2d_by_params(g, x, p, false);
}

vkt_tensor vkt_avg_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    return pool2d_by_params(g, x, p, true);
}

static vkt_tensor adaptive(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w, bool average)
{
    vkt_pool2d_attr a = { .average = average, .adaptive = true, .out = { out_h, out_w } };
    return pool2d(g, x, &a);
}

vkt_tensor vkt_adaptive_max_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    if (!g) return (vkt_tensor){ 0 };
    return adaptive(g, x, out_h, out_w, false);
}

vkt_tensor vkt_adaptive_avg_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    if (!g) return (vkt_tensor){ 0 };
    return adaptive(g, x, out_h, out_w, true);
}
