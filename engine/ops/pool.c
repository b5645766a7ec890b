/* ops/pool.c - max and average pooling over R x S windows of pictures that lie BATCH_LAST.
 *
 * Vectors run over the batch, so every window, stride and padding costs the same. Adaptive windows that divide the
 * picture evenly are ordinary ones; windows that neither overlap nor leave gaps have a faster gradient (CELL in
 * pool2d_dx.comp). */
#include "ops/conv2d.h"
#include "ops/pool.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/pool2d.abi.h"

/* Loop turns of one invocation (see DESIGN: Mesa 22.3 stops at 65,535), and groups that keep every core busy. */
#define MAX_TURNS 50000u
#define MIN_GROUPS 64u

typedef struct pool2d_dx_attr {
    vkt_pool2d_attr pool;
    vkt_shape x; /* what to make a gradient of */
} pool2d_dx_attr;

/* ---- what both rows share: geometry, windows of channels, group counts ---- */

/* One pooling as the shaders see it. */
typedef struct geometry {
    vkt_pool2d_push push;
    uint32_t R, S; /* 0: adaptive */
    uint32_t n4, channels;
    bool inside;  /* no window reaches beyond the picture */
    bool cells;   /* windows are disjoint and leave no gap but at the far edges */
    bool covered; /* cells cover the picture exactly */
} geometry;

static uint32_t dilation_of(const vkt_pool2d_attr *a, uint32_t axis)
{
    return VKT_MAX(a->dilation[axis], 1u);
}

/* From the first element of a window to its last, both counted. */
static uint64_t reach(const vkt_pool2d_attr *a, uint32_t axis)
{
    return a->kernel[axis] ? (a->kernel[axis] - 1ull) * dilation_of(a, axis) + 1 : 0;
}

static geometry geometry_of(const vkt_pool2d_attr *a, vkt_shape x)
{
    const uint32_t H = x.dim[2], W = x.dim[3], P = a->out[0], Q = a->out[1];
    geometry o = { .push = { .H = H, .W = W, .P = P, .Q = Q, .exclude_pad = a->exclude_pad },
                   .n4 = vkt_div_up(x.dim[0], 4),
                   .channels = x.dim[1] };
    if (!a->adaptive) {
        o.R = a->kernel[0], o.S = a->kernel[1];
        o.push.stride_h = a->stride[0], o.push.stride_w = a->stride[1];
        o.push.pad_h = a->pad[0], o.push.pad_w = a->pad[1];
    } else if (H % P == 0 && W % Q == 0) {
        o.R = o.push.stride_h = H / P;
        o.S = o.push.stride_w = W / Q;
    }
    if (o.R == 0) return o;
    const bool no_pad = o.push.pad_h == 0 && o.push.pad_w == 0;
    const uint64_t high = a->adaptive ? o.R : reach(a, 0), wide = a->adaptive ? o.S : reach(a, 1);
    o.inside =
        no_pad && (uint64_t)(P - 1) * o.push.stride_h + high <= H && (uint64_t)(Q - 1) * o.push.stride_w + wide <= W;
    o.cells = no_pad && o.push.stride_h == o.R && o.push.stride_w == o.S && high == o.R && wide == o.S;
    o.covered = o.cells && P * o.R == H && Q * o.S == W;
    return o;
}

/* What the shaders of either row do: per channel `rows` rows of `items` vectors, each of up to `taps` loop turns. */
typedef struct work {
    uint16_t kernel;
    uint32_t big; /* the binding with H x W pictures; the others have P x Q */
    uint32_t n_bind;
    uint32_t rows;
    uint64_t items, taps;
    bool inside;          /* POOL_SPEC_INSIDE */
    bool relu;            /* POOL_SPEC_RELU */
    uint32_t dilation[2]; /* forward, of a maximum; 0: 1 */
} work;

/* How a work is cut. */
typedef struct cuts {
    uint64_t plane[2]; /* elements of one channel's picture, P x Q and H x W */
    uint64_t channels; /* of one dispatch */
    uint64_t parts;    /* groups that a row of work can be shared by */
    uint64_t gy;       /* ... and is */
} cuts;

static bool cut(const vkt_emit *e, const geometry *o, const work *w, const vkt_bind *bind, uint32_t lanes, cuts *c)
{
    uint32_t size = 4; /* bytes of the smallest element */
    for (uint32_t i = 0; i < w->n_bind; i++) size = VKT_MIN(size, vkt_element_bytes(vkt_lowered_value(e, bind[i].t)));
    c->plane[0] = (uint64_t)o->push.P * o->push.Q * o->n4 * 4;
    c->plane[1] = (uint64_t)o->push.H * o->push.W * o->n4 * 4;
    /* Channels whose bytes are a multiple of VKT_ALIGN_BYTES: at most 64 / size, as planes are whole vec4s. */
    uint32_t unit = 1;
    while (unit * c->plane[0] * size % VKT_ALIGN_BYTES || unit * c->plane[1] * size % VKT_ALIGN_BYTES) unit *= 2;
    const uint64_t fit = e->lim->max_storage_range_bytes / 4 / VKT_MAX(c->plane[0], c->plane[1]);
    c->channels = fit >= o->channels ? o->channels : fit / unit * unit;
    if (c->channels == 0) return false;
    const uint64_t rows = w->rows * c->channels;
    const uint64_t turns = vkt_groups(rows, e->lim->max_groups, 1) * (w->taps + 2); /* of one part of a row */
    c->parts = vkt_groups(w->items, lanes, 1);
    c->gy = e->lim->cpu ? vkt_groups(MIN_GROUPS, (uint32_t)VKT_MIN(rows, MIN_GROUPS), 1) : c->parts;
    c->gy = VKT_MIN(VKT_MAX(c->gy, vkt_groups(c->parts * turns, MAX_TURNS, 1)), c->parts);
    return turns <= MAX_TURNS && c->parts <= e->lim->max_groups;
}

/* One dispatch for each block of channels that bindings can hold. `bind` is whole tensors. */
static void emit_channels(const vkt_node *n, vkt_emit *e, const geometry *o, const work *w, vkt_bind *bind)
{
    const uint32_t lanes = e->lim->cpu ? e->lim->subgroup_size : 64;
    const uint32_t spec[] = { lanes,
                              [POOL_SPEC_R] = o->R,
                              [POOL_SPEC_S] = o->S,
                              [POOL_SPEC_N4] = o->n4,
                              [POOL_SPEC_INSIDE] = w->inside,
                              [POOL_SPEC_RELU] = w->relu,
                              [POOL_SPEC_DILATION_H] = VKT_MAX(w->dilation[0], 1u),
                              [POOL_SPEC_DILATION_W] = VKT_MAX(w->dilation[1], 1u) };
    cuts k;
    if (!cut(e, o, w, bind, lanes, &k)) {
        const vkt_result r = vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                      "%s: windows of %llu elements in pictures of %llu bytes do not fit this device",
                                      n->op->name, (unsigned long long)w->taps, (unsigned long long)k.plane[1] * 4);
        vkt_emit_error(e, r);
        return;
    }
    for (uint64_t c = 0; c < o->channels; c += k.channels) {
        vkt_pool2d_push push = o->push;
        push.channels = (uint32_t)VKT_MIN(k.channels, o->channels - c);
        for (uint32_t i = 0; i < w->n_bind; i++)
            bind[i] = vkt_part(e, bind[i].t, c * k.plane[i == w->big], push.channels * k.plane[i == w->big]);
        vkt_dispatch_add(e, w->kernel, bind, w->n_bind, &push, sizeof push, spec, VKT_COUNT(spec),
                         (uint64_t)push.channels * w->rows, (uint32_t)k.gy, 1);
    }
}

/* Elements of the largest window; adaptive ones differ by at most one along an axis. */
static uint64_t largest_window(const geometry *o)
{
    const uint64_t R = o->R ? o->R : o->push.H / o->push.P + 2, S = o->R ? o->S : o->push.W / o->push.Q + 2;
    return R * (S + 1);
}

/* ---- pool2d: x (N,C,H,W) -> y (N,C,P,Q), and for max: index (N,C,P,Q) u32, h W + w of the winner ---- */

static vkt_result infer_axis(vkt_infer *f, const vkt_pool2d_attr *a, uint32_t axis, uint32_t size)
{
    static const char *const names[] = { "height", "width" };
    const uint32_t k = a->kernel[axis], stride = a->stride[axis], pad = a->pad[axis];
    if (a->adaptive) {
        VKT_REQUIRE(f, a->out[axis] > 0 && a->out[axis] < 1u << 16 && size < 1u << 16, VKT_E_ARG,
                    "pool2d: %s: want an adaptive output of 1 to 65535, got %u from %u", names[axis], a->out[axis],
                    size);
        return VKT_OK;
    }
    VKT_REQUIRE(f, k > 0 && stride > 0 && pad <= k / 2, VKT_E_ARG,
                "pool2d: %s: want kernel >= 1, stride >= 1 and pad <= kernel / 2, got %u, %u, %u", names[axis], k,
                stride, pad);
    VKT_REQUIRE(f, !a->average || dilation_of(a, axis) == 1, VKT_E_ARG,
                "pool2d: %s: an average has no dilation, got %u", names[axis], a->dilation[axis]);
    VKT_REQUIRE(f,
                (uint64_t)size + 2 * (uint64_t)pad >= reach(a, axis) &&
                    (uint64_t)size + 2 * (uint64_t)pad + stride < INT32_MAX,
                VKT_E_SHAPE, "pool2d: %s: a kernel of %u (dilation %u) does not fit into %u with padding %u",
                names[axis], k, dilation_of(a, axis), size, pad);
    VKT_REQUIRE(f, a->out[axis] > 0, VKT_E_SHAPE, "pool2d: %s: want an output of at least 1", names[axis]);
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
    for (uint32_t axis = 0; axis < 2; axis++) VKT_TRY(infer_axis(f, a, axis, x->shape.dim[2 + axis]));
    const vkt_shape y = vkt_shape4(x->shape.dim[0], x->shape.dim[1], a->out[0], a->out[1]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, y);
    if (!a->average) vkt_out(f, VKT_U32, VKT_BATCH_LAST, y);
    return VKT_OK;
}

static void pool_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_pool2d_attr *a = n->attr;
    const geometry o = geometry_of(a, vkt_node_in(n, 0)->shape);
    vkt_bind bind[] = {
        [POOL_X] = VKT_WHOLE(n->in[0]), [POOL_Y] = VKT_WHOLE(n->out[0]), [POOL_INDEX] = VKT_WHOLE(n->out[1])
    };
    const work w = { .kernel = a->average ? VKT_K_AVG_POOL2D : VKT_K_MAX_POOL2D,
                     .big = POOL_X,
                     .n_bind = a->average ? 2 : 3,
                     .rows = o.push.P,
                     .items = (uint64_t)o.push.Q * o.n4,
                     .taps = largest_window(&o),
                     .inside = o.inside,
                     .relu = a->relu,
                     .dilation = { a->dilation[0], a->dilation[1] } };
    emit_channels(n, e, &o, &w, bind);
}

vkt_tensor vkt_max_pool2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor index, const vkt_pool2d_attr *a, vkt_shape x)
{
    const pool2d_dx_attr attr = { .pool = *a, .x = x };
    const vkt_tensor in[] = { dy, index };
    return vkt_apply(g, &vkt_op_pool2d_dx, in, a->average ? 1 : 2, &attr, NULL);
}

static void pool_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_max_pool2d_dx(g, dy[0], n->out[1], n->attr, vkt_node_in(n, 0)->shape);
}

/* The same memory as t, in the shape and layout that `as` has; {0}: the graph has no such value. */
static vkt_tensor seen_as(const vkt_graph *g, vkt_tensor t, const vkt_value *as)
{
    while (t.id && (vkt_value_of(g, t)->layout != as->layout || !vkt_shape_equal(vkt_value_of(g, t)->shape, as->shape)))
        t.id = vkt_value_of(g, t)->alias;
    return t;
}

/* max_pool(relu(x)) in one node, bit for bit and in the gradient too: a window's first maximum is the same before relu
 * and after it where it is above 0 (or NaN), and elsewhere relu lets no gradient through. So the index names no winner
 * there, which is not what a gradient of relu's output, asked for before, wants to read. And with the convolution that
 * makes x, with or without relu. Sequences are reshaped in between. */
static void pool_fuse(vkt_graph *g, vkt_node *n, vkt_tensor dloss)
{
    (void)dloss;
    vkt_pool2d_attr a = *(const vkt_pool2d_attr *)n->attr;
    if (a.average || a.relu || vkt_readers(g, n->out[1]) > 0 || g->no_fuse) return;
    const vkt_node *before = vkt_sole_maker(g, n->in[0]);
    if (!before) return;
    a.relu = before->op->stage == VKT_STAGE_RELU;
    const vkt_tensor x = a.relu ? seen_as(g, before->in[0], vkt_node_in(n, 0)) : n->in[0];
    const vkt_node *conv = a.relu ? vkt_sole_maker(g, before->in[0]) : before;
    if (conv && vkt_conv2d_take_max_pool(g, n, conv, a.relu)) return;
    if (a.relu && x.id) vkt_node_become(g, n, &vkt_op_pool2d, &x, 1, &a);
}

/* torch: floor or ceil; a last window that would start beyond picture and left padding is dropped. 0: nothing fits. */
static uint32_t out_size(uint32_t size, uint64_t k, uint32_t stride, uint32_t pad, bool ceil_mode)
{
    const uint64_t padded = (uint64_t)size + 2 * (uint64_t)pad;
    if (padded < k || k == 0 || stride == 0) return 0;
    uint64_t n = (padded - k + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (n - 1) * stride >= (uint64_t)size + pad) n--;
    return (uint32_t)n;
}

static void resolve_out(vkt_pool2d_attr *a, vkt_shape x)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (a->stride[i] == 0) a->stride[i] = a->kernel[i];
        a->out[i] = out_size(x.dim[2 + i], reach(a, i), a->stride[i], a->pad[i], a->ceil_mode);
    }
}

static void pool_sample(vkt_rng *r, vkt_case *c)
{
    vkt_pool2d_attr a = { .average = vkt_rng_range(r, 0, 1) != 0, .adaptive = vkt_rng_range(r, 0, 2) == 0 };
    const bool cells = vkt_rng_range(r, 0, 1) != 0;
    const vkt_shape x =
        vkt_shape4(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 5), vkt_rng_range(r, 3, 17), vkt_rng_range(r, 3, 17));
    for (uint32_t i = 0; i < 2; i++) {
        if (a.adaptive) {
            a.out[i] = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, 1, x.dim[2 + i] + 2) : 1;
            continue;
        }
        a.kernel[i] = vkt_rng_range(r, 1, x.dim[2 + i] < 5 ? x.dim[2 + i] : 5);
        if (cells) continue;
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

/* Every element of every window once; adaptive windows are taken to share the picture evenly. */
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
    .emit = pool_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0), /* not the index */
    .backward = pool_backward,
    .fuse = pool_fuse,
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

/* ---- pool2d_dx: dy (N,C,P,Q), index (max only) -> dx (N,C,H,W) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    const pool2d_dx_attr *a = f->n->attr;
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

static void emit_dx(vkt_emit *e, const pool2d_dx_attr *a, vkt_tensor dy, vkt_tensor index, vkt_tensor dx)
{
    static const uint16_t kernels[2][2] = { { VKT_K_MAX_POOL2D_DX, VKT_K_MAX_POOL2D_DX_CELL },
                                            { VKT_K_AVG_POOL2D_DX, VKT_K_AVG_POOL2D_DX_CELL } };
    geometry o = geometry_of(&a->pool, a->x);
    if (!a->pool.adaptive) { /* windows that reach an element are candidates; the index tells whether it won */
        o.R = (uint32_t)reach(&a->pool, 0);
        o.S = (uint32_t)reach(&a->pool, 1);
    }
    vkt_bind bind[] = { [POOL_DY] = VKT_WHOLE(dy), [POOL_DX] = VKT_WHOLE(dx), [POOL_INDEX] = VKT_WHOLE(index) };
    const uint32_t columns = o.cells ? vkt_div_up(o.push.W, o.S) : o.push.W;
    work w = { .kernel = kernels[a->pool.average][o.cells],
               .big = POOL_DX,
               .n_bind = a->pool.average ? 2 : 3,
               .rows = o.cells ? vkt_div_up(o.push.H, o.R) : o.push.H,
               .items = (uint64_t)columns * o.n4,
               .taps = largest_window(&o),
               .inside = o.cells ? o.covered : o.inside };
    if (!o.cells) { /* windows over one element: as many strides as fit into a kernel, at most P and Q */
        const uint64_t p = o.R ? o.R / o.push.stride_h + 1u : o.push.P / o.push.H + 2u;
        const uint64_t q = o.R ? o.S / o.push.stride_w + 1u : o.push.Q / o.push.W + 2u;
        w.taps = VKT_MIN(p, o.push.P) * (VKT_MIN(q, o.push.Q) + 1);
    }
    emit_channels(e->node, e, &o, &w, bind);
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    emit_dx(e, n->attr, n->in[0], n->in[1], n->out[0]);
}

bool vkt_is_unpool(const vkt_node *n, uint32_t cell[2])
{
    if (n->op != &vkt_op_pool2d_dx) return false;
    const pool2d_dx_attr *a = n->attr;
    const geometry o = geometry_of(&a->pool, a->x);
    cell[0] = o.R, cell[1] = o.S;
    return o.cells && !a->pool.average;
}

void vkt_emit_unpool(vkt_emit *e, vkt_tensor dy, vkt_tensor index, const uint32_t cell[2], vkt_tensor dx)
{
    const vkt_shape y = vkt_lowered_value(e, dy)->shape;
    const pool2d_dx_attr a = {
        .pool = { .kernel = { cell[0], cell[1] }, .stride = { cell[0], cell[1] }, .out = { y.dim[2], y.dim[3] } },
        .x = vkt_lowered_value(e, dx)->shape
    };
    emit_dx(e, &a, dy, index, dx);
}

static double dx_flops(const vkt_node *n)
{
    const pool2d_dx_attr *a = n->attr;
    if (!a->pool.average) return vkt_elements_in(n, 0);
    if (a->pool.adaptive) return vkt_elements_out(n, 0);
    return vkt_elements_in(n, 0) * a->pool.kernel[0] * a->pool.kernel[1];
}

const vkt_op vkt_op_pool2d_dx = {
    .name = "pool2d_dx",
    .min_in = 1,
    .max_in = 2,
    .attr_bytes = sizeof(pool2d_dx_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .tested_by = "pool2d",
    .flops = dx_flops,
    .formula = "dx[n,c,h,w] = sum over windows with (h,w): max: dy if (h,w) won; mean: dy / size",
};

/* ---- builders ---- */

static vkt_tensor pool2d(vkt_graph *g, vkt_tensor x, vkt_pool2d_attr *a)
{
    if (!x.id || g->status != VKT_OK) return (vkt_tensor){ 0 };
    if (vkt_value_of(g, x)->layout != VKT_BATCH_LAST) x = vkt_to_layout(g, x, VKT_BATCH_LAST);
    if (!a->adaptive && x.id) resolve_out(a, vkt_tensor_shape(g, x));
    return vkt_apply(g, &vkt_op_pool2d, &x, 1, a, NULL);
}

static vkt_tensor windowed(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p, bool average)
{
    static const vkt_pool2d_params none;
    if (!p) p = &none; /* a kernel of 0: infer says what it wants */
    vkt_pool2d_attr a = { .average = average,
                          .kernel = { p->kernel[0], p->kernel[1] },
                          .stride = { p->stride[0], p->stride[1] },
                          .pad = { p->pad[0], p->pad[1] },
                          .dilation = { p->dilation[0], p->dilation[1] },
                          .ceil_mode = p->ceil_mode,
                          .exclude_pad = average && p->exclude_pad };
    return pool2d(g, x, &a);
}

vkt_tensor vkt_max_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p)
{
    return windowed(g, x, p, false);
}

vkt_tensor vkt_avg_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p)
{
    return windowed(g, x, p, true);
}

static vkt_tensor adaptive(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w, bool average)
{
    vkt_pool2d_attr a = { .average = average, .adaptive = true, .out = { out_h, out_w } };
    return pool2d(g, x, &a);
}

vkt_tensor vkt_adaptive_max_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    return adaptive(g, x, out_h, out_w, false);
}

vkt_tensor vkt_adaptive_avg_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w)
{
    return adaptive(g, x, out_h, out_w, true);
}
