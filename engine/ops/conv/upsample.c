/* ops/conv/upsample.c - resizes images, nearest and bilinear: see shaders/conv/upsample2d.comp. */
#include "ops/ops.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/upsample2d.abi.h"

/* The most pixels of x and of y along an axis. Let the axis have H pixels in x and P pixels in y. The bilinear shaders
 * compute a position as a fraction with a denominator up to 2 * P. The numerator is at most 2 * P * H, and must fit
 * into a signed 32-bit integer. */
#define MAX_SIZE 32767u
/* If x is an image of one pixel, its gradient is a sum over all pixels of y, which one invocation computes. If this sum
 * would take ALONE iterations or more, vkt_expand computes y instead of upsample2d, because several invocations compute
 * the gradient of vkt_expand. */
#define ALONE 50000u

typedef struct upsample2d_dx_attr {
    vkt_upsample2d_attr up;
    uint32_t size[2]; /* H, W */
} upsample2d_dx_attr;

/* ---- both ops ---- */

static vkt_result infer_images(vkt_infer *f, vkt_shape want)
{
    const vkt_value *v = vkt_in(f, 0);
    char text[80];
    VKT_REQUIRE(f, v->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(v->dtype));
    VKT_REQUIRE(f, v->shape.rank == 4 && v->layout == VKT_BATCH_LAST, VKT_E_SHAPE,
                "%s: want (N,C,H,W) with the batch last, got %s", f->n->op->name, vkt_shape_text(v->shape, text));
    for (uint32_t i = 2; i < 4; i++)
        VKT_REQUIRE(f, want.dim[i] > 0 && want.dim[i] <= MAX_SIZE && v->shape.dim[i] <= MAX_SIZE, VKT_E_ARG,
                    "%s: want %s of 1 to %u, got %u from %u", f->n->op->name, i == 2 ? "a height" : "a width", MAX_SIZE,
                    want.dim[i], v->shape.dim[i]);
    want.dim[0] = v->shape.dim[0];
    want.dim[1] = v->shape.dim[1];
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, want);
    return VKT_OK;
}

/* The scale of one axis: pixel p of the output is at position (p * up + offset) / below of the input, in pixels. With
 * align_corners, the centres of the first and last pixels match. If the output has one pixel, only the centres of the
 * first pixels match. Without align_corners, the edges of the images match. */
typedef struct axis {
    int32_t up, offset, below;
} axis;

static axis axis_of(bool align_corners, uint32_t in, uint32_t out)
{
    const int32_t i = (int32_t)in, o = (int32_t)out;
    if (!align_corners) return (axis){ 2 * i, i - o, 2 * o };
    return o > 1 ? (axis){ i - 1, 0, o - 1 } : (axis){ 0, 0, 1 };
}

static vkt_upsample2d_push push_of(const vkt_upsample2d_attr *a, uint32_t H, uint32_t W)
{
    const uint32_t P = a->out[0], Q = a->out[1];
    const axis h = axis_of(a->align_corners, H, P), w = axis_of(a->align_corners, W, Q);
    return (vkt_upsample2d_push){ .H = H,
                                  .W = W,
                                  .P = P,
                                  .Q = Q,
                                  .scale_h = (float)H / (float)P,
                                  .scale_w = (float)W / (float)Q,
                                  .up_h = h.up,
                                  .offset_h = h.offset,
                                  .below_h = h.below,
                                  .up_w = w.up,
                                  .offset_w = w.offset,
                                  .below_w = w.below };
}

/* Emits the dispatches. Each dispatch computes as many channels as bindings hold. Each pixel of the result needs up to
 * `taps` loop iterations. */
static void emit_channels(const vkt_node *n, vkt_emit *e, uint16_t kernel, vkt_upsample2d_push pc, bool is_gradient,
                          uint64_t taps)
{
    const vkt_shape s = vkt_node_in(n, 0)->shape;
    const uint32_t n4 = vkt_div_up(s.dim[0], 4), lanes = vkt_lanes(e->lim, e->lim->traits->lanes_image);
    const uint32_t rows = is_gradient ? pc.H : pc.P, columns = is_gradient ? pc.W : pc.Q;
    const uint64_t small = (uint64_t)pc.H * pc.W * n4 * 4, large = (uint64_t)pc.P * pc.Q * n4 * 4;
    const uint64_t fit = vkt_steps_in(e->lim->max_storage_range_bytes, 4 * VKT_MAX(small, large), s.dim[1]);
    const uint64_t parts = vkt_groups((uint64_t)columns * n4, lanes, 1), all_rows = rows * VKT_MAX(fit, 1u);
    /* the iterations of a lane: it computes one vec4 in each image row of its work group */
    const uint64_t iterations = vkt_groups(all_rows, e->lim->max_groups, 1) * (taps + 1);
    const uint64_t most = vkt_rough_loop(e->lim);
    const uint32_t wanted = e->lim->traits->groups_image;
    uint64_t gy = wanted ? vkt_groups(wanted, (uint32_t)VKT_MIN(all_rows, wanted), 1) : parts;
    const uint64_t least = iterations > most ? parts : vkt_groups(parts, (uint32_t)(most / iterations), 1);
    gy = VKT_MIN(VKT_MIN(VKT_MAX(gy, least), parts), e->lim->max_groups);
    if (fit == 0 || iterations > most || least > gy) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: %u x %u and %u x %u pixels of %u samples do not fit this device", n->op->name,
                                   pc.H, pc.W, pc.P, pc.Q, s.dim[0]));
        return;
    }
    const vkt_tensor x = is_gradient ? n->out[0] : n->in[0], y = is_gradient ? n->in[0] : n->out[0];
    const uint32_t spec[] = { lanes, [UPSAMPLE_SPEC_N4] = n4 };
    for (uint64_t c = 0; c < s.dim[1]; c += fit) {
        pc.channels = (uint32_t)VKT_MIN(fit, s.dim[1] - c);
        const vkt_bind bind[] = { [UPSAMPLE_X] = vkt_bind_range(e, x, c * small, pc.channels * small, &pc.x),
                                  [UPSAMPLE_Y] = vkt_bind_range(e, y, c * large, pc.channels * large, &pc.y) };
        pc.x /= 4;
        pc.y /= 4;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { (uint64_t)pc.channels * rows, (uint32_t)gy, 1 } });
    }
}

/* ---- upsample2d: x (N,C,H,W) -> (N,C,P,Q) ---- */

static vkt_result upsample_infer(vkt_infer *f)
{
    const vkt_upsample2d_attr *a = f->n->attr;
    VKT_REQUIRE(f, a->bilinear || !a->align_corners, VKT_E_ARG,
                "upsample2d: want align_corners only with bilinear, got it with nearest");
    return infer_images(f, vkt_shape4(0, 0, a->out[0], a->out[1]));
}

static void upsample_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_upsample2d_attr *a = n->attr;
    const vkt_shape x = vkt_node_in(n, 0)->shape;
    emit_channels(n, e, a->bilinear ? VKT_K_UPSAMPLE2D_BILINEAR : VKT_K_UPSAMPLE2D, push_of(a, x.dim[2], x.dim[3]),
                  false, 1);
}

vkt_tensor vkt_upsample2d(vkt_graph *g, vkt_tensor x, const vkt_upsample2d_params *p)
{
    static const vkt_upsample2d_params none;
    if (!p) p = &none; /* no size and no scale: infer reports the error */
    if (!vkt_is_usable(g, "upsample2d", x)) return (vkt_tensor){ 0 };
    if ((p->size[0] || p->size[1]) && (p->scale[0] || p->scale[1])) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "upsample2d: want a size or a scale, got %u,%u and %u,%u",
                                    p->size[0], p->size[1], p->scale[0], p->scale[1]));
        return (vkt_tensor){ 0 };
    }
    const vkt_shape s = vkt_tensor_shape(g, x);
    vkt_upsample2d_attr a = { .bilinear = p->mode == VKT_UPSAMPLE_BILINEAR, .align_corners = p->align_corners };
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t scaled = s.rank == 4 ? (uint64_t)p->scale[i] * s.dim[2 + i] : 0;
        a.out[i] = p->size[i] ? p->size[i] : (uint32_t)VKT_MIN(scaled, UINT32_MAX);
    }
    x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    /* An image of one pixel is expanded instead of resized if the sum over y in the gradient would need ALONE
     * iterations or more. */
    const bool one = s.rank == 4 && s.dim[2] == 1 && s.dim[3] == 1 && a.out[0] < 32768 && a.out[1] < 32768;
    const bool known = a.bilinear || !a.align_corners; /* if false, infer reports the error */
    if (one && known && (uint64_t)a.out[0] * a.out[1] + a.out[0] >= ALONE)
        return vkt_expand(g, x, vkt_shape4(s.dim[0], s.dim[1], a.out[0], a.out[1]), VKT_BATCH_LAST);
    return vkt_apply(g, &vkt_op_upsample2d, &x, 1, &a, NULL);
}

static void upsample_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape x = vkt_node_in(n, 0)->shape;
    const upsample2d_dx_attr a = { *(const vkt_upsample2d_attr *)n->attr, { x.dim[2], x.dim[3] } };
    dx[0] = vkt_apply(g, &vkt_op_upsample2d_dx, &dy[0], 1, &a, NULL);
}

static void upsample_sample(vkt_rng *r, vkt_case *c)
{
    vkt_upsample2d_attr a = { .bilinear = vkt_rng_range(r, 0, 2) != 0 };
    vkt_shape x = vkt_shape4(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 5), 1, 1);
    const uint32_t how = vkt_rng_range(r, 0, 3);
    for (uint32_t i = 0; i < 2; i++) {
        x.dim[2 + i] = vkt_rng_range(r, 1, 9);
        a.out[i] = how ? vkt_rng_range(r, 1, 17) : 2 * x.dim[2 + i];
    }
    a.align_corners = a.bilinear && vkt_rng_range(r, 0, 1);
    vkt_case_f32(c, VKT_BATCH_LAST, x, -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

/* Nearest: counts nothing. Bilinear: counts three interpolations between two numbers for each element of y. An
 * interpolation has three operations. */
static double upsample_flops(const vkt_node *n)
{
    return ((const vkt_upsample2d_attr *)n->attr)->bilinear ? 9 * vkt_elements_out(n, 0) : 0;
}

static const vkt_field upsample_fields[] = { VKT_FIELD(vkt_upsample2d_attr, out, U32, 2, 0),
                                             VKT_FIELD(vkt_upsample2d_attr, bilinear, BOOL, 1, 0),
                                             VKT_FIELD(vkt_upsample2d_attr, align_corners, BOOL, 1, 0),
                                             { .name = NULL } };

const vkt_op vkt_op_upsample2d = {
    .name = "upsample2d",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .diff = 1,
    .attr_bytes = sizeof(vkt_upsample2d_attr),
    .infer = upsample_infer,
    .emit = upsample_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = upsample_backward,
    .sample = upsample_sample,
    .abs_tol = 2e-5f,
    .tol_why =
        "a weight is a quotient, 2.5 ulp, of exact integers: with its products and sums 16 * 2^-24 = 1e-6 forward; a "
        "gradient adds up to 17 x 17 terms of both signs, in 34 roundings of sums some 5 times the largest",
    .flops = upsample_flops,
    .fields = upsample_fields,
    .formula = "y[n,c,p,q] = x at (p H/P, q W/Q): the nearest pixel, or the four around it by distance",
};

/* ---- upsample2d_dx: dy (N,C,P,Q) -> dx (N,C,H,W) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const upsample2d_dx_attr *a = f->n->attr;
    return infer_images(f, vkt_shape4(0, 0, a->size[0], a->size[1]));
}

/* Returns an upper bound of the number of pixels of y, along an axis, that depend on one pixel of x. */
static uint64_t readers_of(const vkt_upsample2d_attr *a, uint32_t size, uint32_t out)
{
    return VKT_MIN((a->bilinear ? 2u : 1u) * ((uint64_t)out / (size > 1 ? size - 1 : 1) + 2), out) + 3;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const upsample2d_dx_attr *a = n->attr;
    emit_channels(n, e, a->up.bilinear ? VKT_K_UPSAMPLE2D_BILINEAR_DX : VKT_K_UPSAMPLE2D_DX,
                  push_of(&a->up, a->size[0], a->size[1]), true,
                  readers_of(&a->up, a->size[0], a->up.out[0]) * (readers_of(&a->up, a->size[1], a->up.out[1]) + 1));
}

/* Nearest: counts one addition for each element of dy. Bilinear: counts four products and four additions for each
 * element of dy, because each element of dy is added to up to four elements of dx. */
static double dx_flops(const vkt_node *n)
{
    return (((const upsample2d_dx_attr *)n->attr)->up.bilinear ? 8 : 1) * vkt_elements_in(n, 0);
}

const vkt_op vkt_op_upsample2d_dx = {
    .name = "upsample2d_dx",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .attr_bytes = sizeof(upsample2d_dx_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .forward_only = true,
    .tested_by = "upsample2d",
    .flops = dx_flops,
    .formula = "dx[n,c,h,w] = sum over (p,q) of dy times the weight of x[n,c,h,w] in y[n,c,p,q]",
};
