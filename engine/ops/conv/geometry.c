/* ops/conv/geometry.c - see geometry.h. */
#include "ops/conv/geometry.h"

/* The limit of stride, dilation and padding. With this limit, the index that a tap reads fits into an int32 of the
 * kernels. */
#define MAX_REACH (1u << 20)

vkt_conv2d_size vkt_conv2d_size_of(const vkt_value *x, const vkt_value *y, const uint32_t kernel[2],
                                   const vkt_conv2d_attr *a)
{
    return (vkt_conv2d_size){ .n4 = vkt_phys_of(y).pitch / 4,
                              .channels = x->shape.dim[1],
                              .out_channels = y->shape.dim[1],
                              .in = { x->shape.dim[2], x->shape.dim[3] },
                              .kernel = { kernel[0], kernel[1] },
                              .out = { y->shape.dim[2], y->shape.dim[3] },
                              .a = *a };
}

vkt_result vkt_conv2d_want_image(vkt_infer *f, uint32_t i, const char *name)
{
    const vkt_value *v = vkt_in(f, i);
    char text[80];
    VKT_REQUIRE(f, v->dtype == VKT_F32, VKT_E_DTYPE, "%s: want %s as f32, got %s", f->n->op->name, name,
                vkt_dtype_name(v->dtype));
    VKT_REQUIRE(f, v->shape.rank == 4 && v->layout == VKT_BATCH_LAST, VKT_E_SHAPE,
                "%s: want %s (N,C,H,W), batch last, got %s%s", f->n->op->name, name, vkt_shape_text(v->shape, text),
                v->layout == VKT_ROWS ? " in rows" : "");
    return VKT_OK;
}

uint32_t vkt_conv2d_out_size(const vkt_conv2d_attr *a, int axis, uint32_t in, uint32_t kernel)
{
    const uint64_t padded = in + 2ull * a->pad[axis], reach = (uint64_t)a->dilation[axis] * (kernel - 1ull) + 1;
    const uint64_t out = padded < reach ? 0 : (padded - reach) / a->stride[axis] + 1;
    return padded > INT32_MAX || out > INT32_MAX ? 0 : (uint32_t)out;
}

vkt_result vkt_conv2d_check_attr(vkt_infer *f, const vkt_conv2d_attr *a)
{
    const char *name = f->n->op->name;
    VKT_REQUIRE(f, a->stride[0] && a->stride[1] && a->dilation[0] && a->dilation[1] && a->groups, VKT_E_ARG,
                "%s: want a stride, dilation and groups of 1 or more, got %u,%u, %u,%u and %u", name, a->stride[0],
                a->stride[1], a->dilation[0], a->dilation[1], a->groups);
    for (int i = 0; i < 2; i++)
        VKT_REQUIRE(f, VKT_MAX(VKT_MAX(a->stride[i], a->dilation[i]), a->pad[i]) <= MAX_REACH, VKT_E_ARG,
                    "%s: want a stride, dilation and pad of at most %u, got %u, %u and %u", name, MAX_REACH,
                    a->stride[i], a->dilation[i], a->pad[i]);
    return VKT_OK;
}

vkt_result vkt_conv2d_check(vkt_infer *f, const vkt_conv2d_attr *a, uint32_t out[2])
{
    const vkt_value *x = vkt_in(f, 0), *w = vkt_in(f, 1);
    char xt[80], wt[80];
    VKT_TRY(vkt_conv2d_check_attr(f, a));
    VKT_TRY(vkt_conv2d_want_image(f, 0, "x"));
    VKT_REQUIRE(f, w->dtype == VKT_F32, VKT_E_DTYPE, "%s: want w as f32, got %s", f->n->op->name,
                vkt_dtype_name(w->dtype));
    VKT_REQUIRE(f, w->layout == VKT_ROWS, VKT_E_SHAPE, "%s: want w by rows (vkt_to_layout), got it with the batch last",
                f->n->op->name);
    const uint32_t channels = x->shape.dim[1];
    VKT_REQUIRE(f,
                w->shape.rank == 4 && channels % a->groups == 0 && w->shape.dim[1] == channels / a->groups &&
                    w->shape.dim[0] % a->groups == 0,
                VKT_E_SHAPE,
                "%s: want x (N,C,H,W), w (O,C/groups,R,S) and groups that divide C and O, got x %s, w %s, groups %u",
                f->n->op->name, vkt_shape_text(x->shape, xt), vkt_shape_text(w->shape, wt), a->groups);
    if (vkt_has(f, 2)) {
        const vkt_value *b = vkt_in(f, 2);
        VKT_REQUIRE(f, b->dtype == VKT_F32 && b->shape.rank == 1 && b->shape.dim[0] == w->shape.dim[0],
                    b->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want bias f32 (%u), got %s %s",
                    f->n->op->name, w->shape.dim[0], vkt_dtype_name(b->dtype), vkt_shape_text(b->shape, xt));
    }
    for (int i = 0; i < 2; i++) out[i] = vkt_conv2d_out_size(a, i, x->shape.dim[2 + i], w->shape.dim[2 + i]);
    VKT_REQUIRE(f, out[0] && out[1], VKT_E_SHAPE, "%s: w %s with dilation %u,%u does not fit into x %s with pad %u,%u",
                f->n->op->name, vkt_shape_text(w->shape, wt), a->dilation[0], a->dilation[1],
                vkt_shape_text(x->shape, xt), a->pad[0], a->pad[1]);
    return VKT_OK;
}

double vkt_conv2d_flops(double pixels, vkt_shape w, bool bias)
{
    return pixels * (2.0 * w.dim[1] * w.dim[2] * w.dim[3] + bias);
}
