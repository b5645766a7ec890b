/* ops/conv/pool_split.c - splits poolings and their gradients, first by channels and then by rows, into dispatches
 * whose bindings are small enough and whose loops are short enough. In the forward pass, large windows are split into
 * parts, too. */
#include "ops/conv/conv2d.h"
#include "ops/conv/pool.h"
#include "ops/elementwise/elementwise.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/pool2d.abi.h"

/* The geometry of a pooling, as the shaders use it. */
typedef struct geometry {
    vkt_pool2d_push push;
    uint32_t R, S; /* R x S elements per window; 0: adaptive windows of different sizes */
    uint32_t dilation[2];
    uint32_t reach[2]; /* rows and columns from the first to the last element of a window, both included; 0 if R is 0 */
    uint32_t n4, channels;
    bool inside;   /* no window extends beyond the image or has a dilation; false if R is 0 */
    bool disjoint; /* windows are disjoint, without dilation or padding, and leave no gap except at the far edges */
    bool covered;  /* the disjoint windows cover the image exactly */
} geometry;

uint64_t vkt_pool2d_reach(const vkt_pool2d_attr *a, uint32_t axis)
{
    const uint64_t hops = VKT_MAX(a->kernel[axis], 1u) - 1u;
    return a->kernel[axis] ? hops * VKT_MAX(a->dilation[axis], 1u) + 1 : 0;
}

static geometry geometry_of(const vkt_pool2d_attr *a, vkt_shape x)
{
    const uint32_t H = x.dim[2], W = x.dim[3], P = a->out[0], Q = a->out[1];
    geometry o = { .push = { .H = H, .W = W, .P = P, .Q = Q, .exclude_pad = a->exclude_pad, .samples = x.dim[0] },
                   .dilation = { 1, 1 },
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
    for (uint32_t i = 0; i < 2; i++) {
        o.reach[i] = a->adaptive ? (i ? o.S : o.R) : (uint32_t)vkt_pool2d_reach(a, i);
        if (a->kernel[i] > 1) o.dilation[i] = VKT_MAX(a->dilation[i], 1u);
    }
    const bool no_pad = o.push.pad_h == 0 && o.push.pad_w == 0;
    const bool dense = o.dilation[0] == 1 && o.dilation[1] == 1;
    o.inside = dense && no_pad && (uint64_t)(P - 1) * o.push.stride_h + o.R <= H &&
               (uint64_t)(Q - 1) * o.push.stride_w + o.S <= W;
    o.disjoint = dense && no_pad && o.push.stride_h == o.R && o.push.stride_w == o.S;
    o.covered = o.disjoint && P * o.R == H && Q * o.S == W;
    return o;
}

/* The result of pool2d (y) or of pool2d_dx (dx). Each channel of the result has `rows` rows, and a row has `items`
 * items. An item is a vec4 of the result, unless `disjoint` is true. Each item needs up to `taps` loop iterations. */
typedef struct work {
    uint16_t kernel;
    uint32_t big; /* the binding with H x W images. The other bindings have P x Q images */
    uint32_t n_bind;
    uint32_t rows;
    uint64_t items, taps;
    bool disjoint;           /* true only in pool2d_dx, for disjoint windows that are small enough for one lane. If
                              * true, `rows` counts rows of windows, and an item is one window of 4 samples */
    bool inside;             /* POOL_SPEC_INSIDE */
    bool relu;               /* POOL_SPEC_RELU */
    const vkt_node *dropout; /* the dropout that the kernel also computes, or NULL */
} work;

/* How each window is split into parts. One invocation computes one part. A part has h x w elements, or fewer at the
 * window's far edges. `across` parts are side by side, and n is the number of all parts. If n is 1, one invocation
 * computes the whole window. */
typedef struct parts {
    uint32_t h, w, across, n;
} parts;

/* A part has at least about PART_ELEMENTS elements, and a window has at most about MAX_PARTS parts. These limits are
 * rough, because the size of a part is rounded down to whole rows, and is less if a binding does not hold so many rows.
 * One invocation combines the results of all parts of a window, so there must not be too many parts. */
#define PART_ELEMENTS 1024u
#define MAX_PARTS 4096u
/* A window without dilation that needs more than ALONE iterations is split into parts, even if the device allows longer
 * loops. An image has only a few windows of this size. With one invocation per window, most cores would be idle. */
#define ALONE 50000u

typedef struct job {
    vkt_emit *e;
    const geometry *o;
    const work *w;
    parts parts;
    vkt_tensor t[3]; /* by binding */
    uint32_t spec[POOL_SPEC_PLANES + 1];
    vkt_tensor partial, winners; /* scratch: the results of parts */
    uint64_t partial_bytes;
} job;

/* Rows row .. row + rows - 1 of channels channel .. channel + channels - 1. A block of several channels has all
 * rows. */
typedef struct block {
    uint64_t channel, channels;
    uint32_t row, rows;
    uint32_t part, parts; /* the block has the parts part .. part + parts - 1 of each window. A block has all parts,
                           * unless it is one row of one channel */
} block;

/* Rows first .. first + n - 1 of an image. */
typedef struct span {
    uint64_t first, n;
} span;

/* Computes the size of the largest window along both axes. For adaptive windows of different sizes, the result is an
 * upper bound: at most two elements too large. */
static void largest_window(const geometry *o, uint64_t size[2])
{
    size[0] = o->R ? o->R : o->push.H / o->push.P + 2;
    size[1] = o->R ? o->S : o->push.W / o->push.Q + 2;
}

/* Splits windows without dilation into parts if a window is too large for one invocation. If possible, a part is so
 * small that one binding holds its rows of x, and the parts are so few that one binding holds all their results for a
 * row of y. */
static parts parts_of(const vkt_limits *lim, const geometry *o)
{
    const uint64_t half = lim->max_storage_range_bytes / 2, rows = half / (16ull * o->push.W * o->n4);
    const uint64_t most = VKT_MIN(VKT_MAX(half / (16ull * o->push.Q * o->n4), 1), MAX_PARTS);
    uint64_t size[2];
    largest_window(o, size);
    const uint64_t taps = size[0] * (size[1] + 1), alone = VKT_MIN(vkt_rough_loop(lim), ALONE);
    const bool dilated = (o->R > 1 && o->dilation[0] > 1) || (o->S > 1 && o->dilation[1] > 1);
    parts p = { (uint32_t)size[0], (uint32_t)size[1], 1, 1 };
    if (dilated || taps + 2 <= alone) return p; /* no kernel splits windows with dilation into parts */
    const uint64_t elements = VKT_MAX(PART_ELEMENTS, vkt_groups(taps, (uint32_t)most, 1));
    p.w = (uint32_t)VKT_MIN(size[1], elements);
    p.h = p.w < size[1] ? 1 : (uint32_t)VKT_MAX(VKT_MIN(elements / p.w, rows), 1);
    p.across = (uint32_t)vkt_groups(size[1], p.w, 1);
    p.n = p.across * (uint32_t)vkt_groups(size[0], p.h, 1);
    return p;
}

/* Sets *first and *end: the windows of row p of y contain rows first .. end - 1 of x, as in lib/pool.glsl. With
 * dilation, the rows between two elements of a window count, too. */
static void window_of(const geometry *o, uint64_t p, uint64_t *first, uint64_t *end)
{
    const uint64_t H = o->push.H, P = o->push.P, at = p * o->push.stride_h, pad = o->push.pad_h;
    *first = o->R ? (at > pad ? at - pad : 0) : p * H / P;
    *end = o->R ? VKT_MIN(at + o->reach[0] - pad, H) : ((p + 1) * H + P - 1) / P;
}

/* Computes a range of rows of y, first .. last. The range has all rows of y whose windows contain row h of x, as in
 * pool2d_dx.comp. With dilation, a window counts even if row h is between two of its elements. */
static void holders_of(const geometry *o, uint64_t h, uint64_t *first, uint64_t *last)
{
    const uint64_t H = o->push.H, P = o->push.P, shifted = h + o->push.pad_h, R = o->reach[0];
    const uint64_t from = !R ? h * P / H : shifted < R ? 0 : (shifted - R) / o->push.stride_h + 1;
    *first = VKT_MIN(from, P - 1);
    *last = VKT_MIN(R ? shifted / o->push.stride_h : ((h + 1) * P + H - 1) / H - 1, P - 1);
}

/* Computes the rows of the P x Q images and of the H x W images that a block reads or writes. */
static void spans_of(const job *j, const block *b, span *pq, span *hw)
{
    const geometry *o = j->o;
    uint64_t first, last;
    *pq = (span){ 0, o->push.P };
    *hw = (span){ 0, o->push.H };
    if (b->channels > 1) return;
    if (j->w->big == POOL_X) {
        *pq = (span){ b->row, b->rows };
        window_of(o, b->row, &hw->first, &last);
        window_of(o, b->row + b->rows - 1, &first, &last);
        if (b->parts < j->parts.n) {
            last = VKT_MIN(last, hw->first + ((b->part + b->parts - 1) / j->parts.across + 1) * j->parts.h);
            hw->first = VKT_MIN(hw->first + b->part / j->parts.across * (uint64_t)j->parts.h, last - 1);
        }
        hw->n = last - hw->first;
    } else if (j->w->disjoint) {
        *hw = (span){ (uint64_t)b->row * o->R, VKT_MIN((uint64_t)b->rows * o->R, o->push.H - b->row * o->R) };
        *pq = (span){ VKT_MIN(b->row, o->push.P - 1), 0 };
        pq->n = VKT_MAX(VKT_MIN((uint64_t)b->row + b->rows, o->push.P) - pq->first, 1);
    } else {
        *hw = (span){ b->row, b->rows };
        holders_of(o, b->row, &pq->first, &last);
        holders_of(o, b->row + b->rows - 1, &first, &last);
        pq->n = VKT_MAX(last, pq->first) - pq->first + 1;
    }
}

/* Binds the ranges of each tensor that a block needs. Returns false if the device cannot bind so much. */
static bool bind_ranges(const job *j, const block *b, vkt_bind *bind, vkt_pool2d_push *push)
{
    const geometry *o = j->o;
    const uint64_t lines[2] = { o->push.P, o->push.H };
    const uint64_t line[2] = { 4ull * o->push.Q * o->n4, 4ull * o->push.W * o->n4 }; /* elements of a row */
    span s[2];
    bool fits = true;
    spans_of(j, b, &s[0], &s[1]);
    *push = o->push;
    push->channels = (uint32_t)b->channels;
    push->first_row = b->row;
    push->rows = b->rows;
    push->first_channel = (uint32_t)b->channel;
    for (uint32_t i = 0; i < j->w->n_bind; i++) {
        const bool big = i == j->w->big;
        uint32_t base;
        bind[i] = vkt_bind_range(j->e, j->t[i], (b->channel * lines[big] + s[big].first) * line[big],
                                 ((b->channels - 1) * lines[big] + s[big].n) * line[big], &base);
        /* The base is the index, in the binding, of the vec4 at which the image's first row starts. If that row is
         * before the start of the binding, the base is negative, modulo 2^32.
         */
        *(i == POOL_INDEX ? &push->index_base
          : big           ? &push->hw_base
                          : &push->pq_base) = base / 4 - (uint32_t)(s[big].first * line[big] / 4);
        fits = fits && bind[i].bytes <= j->e->lim->max_storage_range_bytes;
    }
    return fits;
}

/* Returns the number of work groups along the y axis of a dispatch. The number is so large that no loop is too long if
 * a vec4 needs `taps` iterations. Returns 0 if no such number is possible. */
static uint32_t groups_of(const job *j, const block *b, uint64_t taps)
{
    const vkt_limits *lim = j->e->lim;
    const uint32_t wanted = lim->traits->groups_image;
    const uint64_t most = vkt_rough_loop(lim), rows = b->channels * b->rows,
                   all = vkt_groups(j->w->items, j->spec[0], 1);
    /* the iterations of a lane that computes one vec4 in each of its rows */
    const uint64_t iterations = vkt_groups(rows, lim->max_groups, 1) * (taps + 2);
    if (iterations > most) return 0;
    const uint64_t least = vkt_groups(all, (uint32_t)(most / iterations), 1);
    const uint64_t busy = wanted ? vkt_groups(wanted, (uint32_t)VKT_MIN(rows, wanted), 1) : all;
    if (least > lim->max_groups) return 0;
    return (uint32_t)VKT_MIN(VKT_MIN(VKT_MAX(busy, least), all), lim->max_groups);
}

static void dispatch(const job *j, const block *b, uint16_t kernel, const vkt_bind *bind, uint32_t n_bind,
                     const vkt_pool2d_push *push, uint64_t taps)
{
    const vkt_node *dropout = j->w->dropout;
    vkt_pool2d_push pc = *push;
    vkt_bind all[4] = { { .bytes = 0 } };
    memcpy(all, bind, n_bind * sizeof *bind);
    if (dropout) {
        const vkt_dropout_attr *a = dropout->attr;
        pc.threshold = a->threshold, pc.scale = a->scale, pc.salt = a->salt;
        all[POOL_STEP] = VKT_WHOLE(dropout->in[1]);
    }
    vkt_dispatch_add(j->e, &(vkt_launch){ .kernel = kernel,
                                          .bind = all,
                                          .n_bind = dropout ? POOL_STEP + 1u : n_bind,
                                          VKT_LAUNCH_PUSH(pc),
                                          .spec = j->spec,
                                          .n_spec = dropout ? POOL_SPEC_PLANES + 1u : POOL_SPEC_PLANES,
                                          .groups = { b->channels * b->rows, groups_of(j, b, taps), b->parts } });
}

static void too_large(const job *j)
{
    uint64_t size[2];
    largest_window(j->o, size);
    vkt_emit_error(j->e,
                   vkt_fail(&j->e->host, VKT_E_UNSUPPORTED,
                            "%s: windows of %llu x %llu elements in rows of %llu bytes (all samples) are too much for "
                            "this device, which binds %llu bytes and has %u work groups for loops of %llu iterations: "
                            "use smaller batches, images or kernels",
                            j->e->node->op->name, (unsigned long long)size[0], (unsigned long long)size[1],
                            16ull * j->o->push.W * j->o->n4, (unsigned long long)j->e->lim->max_storage_range_bytes,
                            j->e->lim->max_groups, (unsigned long long)vkt_rough_loop(j->e->lim)));
}

/* Emits parts b->part .. b->part + b->parts - 1 of the windows of block b. If these are too many for a binding or for
 * one dispatch, emits them in two halves. */
static void emit_parts(const job *j, const block *b)
{
    const bool max = j->w->n_bind == 3;
    vkt_pool2d_push push;
    vkt_bind bind[3];
    if (!bind_ranges(j, b, bind, &push) || b->parts > j->e->lim->max_groups) {
        block half = *b;
        if (b->parts == 1) {
            too_large(j);
            return;
        }
        half.parts = b->parts / 2;
        emit_parts(j, &half);
        half.part += half.parts;
        half.parts = b->parts - half.parts;
        emit_parts(j, &half);
        return;
    }
    push.part = b->part;
    push.part_h = j->parts.h;
    push.part_w = j->parts.w;
    push.parts_across = j->parts.across;
    push.part_pitch = (uint32_t)(b->channels * b->rows * j->w->items);
    bind[POOL_Y] = (vkt_bind){ .t = j->partial, .bytes = j->partial_bytes };
    bind[POOL_INDEX] = (vkt_bind){ .t = j->winners, .bytes = j->partial_bytes };
    dispatch(j, b, max ? VKT_K_MAX_POOL2D_PART : VKT_K_AVG_POOL2D_PART, bind, j->w->n_bind, &push,
             j->parts.h * (j->parts.w + 1ull));
}

/* Emits all parts of a block's windows, and the dispatch that combines the parts' results. */
static void emit_shared(job *j, const block *b, vkt_bind *bind, vkt_pool2d_push push)
{
    const bool max = j->w->n_bind == 3;
    const uint64_t bytes = 16ull * j->parts.n * b->channels * b->rows * j->w->items;
    if (j->partial_bytes < bytes) { /* a later block may have more rows, because windows at the edge read less of x */
        j->partial = vkt_scratch(j->e, "parts", bytes);
        j->partial_bytes = bytes;
        if (max) j->winners = vkt_scratch(j->e, "winners", bytes);
    }
    emit_parts(j, b);
    push.parts = j->parts.n;
    push.part_pitch = (uint32_t)(b->channels * b->rows * j->w->items);
    const vkt_bind join[] = { [POOL_X] = { .t = j->partial, .bytes = j->partial_bytes },
                              [POOL_Y] = bind[POOL_Y],
                              [POOL_INDEX] = bind[POOL_INDEX],
                              [POOL_WINNERS] = { .t = j->winners, .bytes = j->partial_bytes } };
    block whole = *b;
    whole.parts = 1;
    dispatch(j, &whole, max ? VKT_K_MAX_POOL2D_JOIN : VKT_K_AVG_POOL2D_JOIN, join, max ? 4 : 2, &push, j->parts.n);
}

/* Emits a block in one dispatch, or in several if windows have parts. If the block is too large for bindings or loops,
 * emits its two halves. Each half has half of the channels or, if there is only one channel, half of the rows. */
static void emit_block(job *j, const block *b)
{
    const uint64_t partial = j->parts.n > 1 ? 16ull * j->parts.n * b->channels * b->rows * j->w->items : 0;
    const uint64_t taps = j->parts.n > 1 ? VKT_MAX(j->parts.h * (j->parts.w + 1ull), j->parts.n) : j->w->taps;
    vkt_pool2d_push push;
    vkt_bind bind[3] = { { .bytes = 0 } };
    const bool loops = groups_of(j, b, taps) && partial <= j->e->lim->max_storage_range_bytes;
    const bool fits = bind_ranges(j, b, bind, &push) && loops;
    if (!fits && (b->channels > 1 || b->rows > 1)) {
        const bool channels = b->channels > 1;
        block half = *b;
        half.channels = channels ? vkt_groups(b->channels, 2, 1) : 1;
        half.rows = channels ? b->rows : vkt_div_up(b->rows, 2);
        emit_block(j, &half);
        half.channel += channels ? half.channels : 0;
        half.channels = channels ? b->channels - half.channels : 1;
        half.row += channels ? 0 : half.rows;
        half.rows = channels ? b->rows : b->rows - half.rows;
        emit_block(j, &half);
    } else if (j->parts.n > 1 && loops) {
        emit_shared(j, b, bind, push);
    } else if (fits) {
        dispatch(j, b, j->w->kernel, bind, j->w->n_bind, &push, taps);
    } else {
        too_large(j);
    }
}

static void emit_channels(vkt_emit *e, const geometry *o, const work *w, parts p, const vkt_tensor t[3])
{
    job j = { .e = e, .o = o, .w = w, .parts = p, .t = { t[0], t[1], t[2] } };
    j.spec[0] = vkt_lanes(e->lim, e->lim->traits->lanes_image);
    j.spec[POOL_SPEC_R] = o->R;
    j.spec[POOL_SPEC_S] = o->S;
    j.spec[POOL_SPEC_N4] = o->n4;
    j.spec[POOL_SPEC_INSIDE] = w->inside;
    j.spec[POOL_SPEC_RELU] = w->relu;
    j.spec[POOL_SPEC_DILATION_H] = o->dilation[0];
    j.spec[POOL_SPEC_DILATION_W] = o->dilation[1];
    if (w->dropout) j.spec[POOL_SPEC_PLANES] = ((const vkt_dropout_attr *)w->dropout->attr)->planes;
    const block all = { .channels = o->channels, .rows = w->rows, .parts = p.n };
    emit_block(&j, &all);
}

/* Returns the dropout behind the node if the kernel that writes t should compute the dropout too, else NULL. The result
 * is always NULL if t is not output 0 of the node, or if the device does not have the trait dropout_joined. */
static const vkt_node *take_dropout(vkt_emit *e, vkt_tensor t, uint32_t channels)
{
    const bool joins = e->lim->traits->dropout_joined && t.id == e->node->out[0].id;
    return joins ? vkt_take_dropout_of_image(e, channels) : NULL;
}

/* ---- y ---- */

void vkt_emit_pool2d(vkt_emit *e, const vkt_pool2d_attr *a, vkt_tensor x, vkt_tensor y, vkt_tensor index)
{
    const geometry o = geometry_of(a, vkt_lowered_value(e, x)->shape);
    const parts p = parts_of(e->lim, &o);
    const vkt_tensor t[] = { [POOL_X] = x, [POOL_Y] = y, [POOL_INDEX] = index };
    static const uint16_t kernels[2][2] = { { VKT_K_MAX_POOL2D, VKT_K_MAX_POOL2D_DROPOUT },
                                            { VKT_K_AVG_POOL2D, VKT_K_AVG_POOL2D_DROPOUT } };
    const vkt_node *dropout = p.n == 1 ? take_dropout(e, y, o.channels) : NULL;
    const work w = { .kernel = kernels[a->average][dropout != NULL],
                     .big = POOL_X,
                     .n_bind = a->average ? 2 : 3,
                     .rows = o.push.P,
                     .items = (uint64_t)o.push.Q * o.n4,
                     .taps = p.h * (p.w + 1ull),
                     .inside = o.inside,
                     .relu = a->relu,
                     .dropout = dropout };
    emit_channels(e, &o, &w, p, t);
}

/* ---- dx ---- */

void vkt_emit_pool2d_dx(vkt_emit *e, const vkt_pool2d_dx_attr *a, vkt_tensor dy, vkt_tensor index, vkt_tensor dx)
{
    static const uint16_t kernels[2][3] = {
        { VKT_K_MAX_POOL2D_DX, VKT_K_MAX_POOL2D_DX_DISJOINT, VKT_K_MAX_POOL2D_DX_DROPOUT },
        { VKT_K_AVG_POOL2D_DX, VKT_K_AVG_POOL2D_DX_DISJOINT, VKT_K_AVG_POOL2D_DX_DROPOUT }
    };
    const geometry o = geometry_of(&a->pool, a->x);
    const vkt_tensor t[] = { [POOL_DY] = dy, [POOL_DX] = dx, [POOL_INDEX] = index };
    const parts whole = { .n = 1 };
    const bool disjoint =
        o.disjoint && parts_of(e->lim, &o).n == 1; /* if there are several parts, a window is too large for one lane */
    const uint32_t columns = disjoint ? vkt_div_up(o.push.W, o.S) : o.push.W;
    const vkt_node *dropout = disjoint ? take_dropout(e, dx, o.channels) : NULL;
    work w = { .kernel = kernels[a->pool.average][dropout ? 2 : disjoint],
               .big = POOL_DX,
               .n_bind = a->pool.average ? 2 : 3,
               .rows = disjoint ? vkt_div_up(o.push.H, o.R) : o.push.H,
               .items = (uint64_t)columns * o.n4,
               .taps = (uint64_t)o.R * (o.S + 1ull),
               .disjoint = disjoint,
               .inside = disjoint ? o.covered : o.inside,
               .dropout = dropout };
    if (!disjoint && o.dilation[0] == 1 && o.dilation[1] == 1) {
        /* Along an axis, an element is in at most R / stride + 1 windows (adaptive windows: P / H + 2), and in no more
         * windows than the axis has. With dilation, w.taps stays R * (S + 1), because the kernel loops over all
         * elements of a window. */
        const uint64_t p = o.R ? o.R / o.push.stride_h + 1u : o.push.P / o.push.H + 2u;
        const uint64_t q = o.R ? o.S / o.push.stride_w + 1u : o.push.Q / o.push.W + 2u;
        w.taps = VKT_MIN(p, o.push.P) * (VKT_MIN(q, o.push.Q) + 1);
    }
    emit_channels(e, &o, &w, whole, t);
}

bool vkt_pool2d_is_disjoint(const vkt_pool2d_attr *a, vkt_shape x, uint32_t cell[2])
{
    const geometry o = geometry_of(a, x);
    cell[0] = o.R, cell[1] = o.S;
    return o.disjoint;
}

void vkt_emit_unpool(vkt_emit *e, vkt_tensor dy, vkt_tensor index, const uint32_t cell[2], vkt_tensor dx)
{
    const vkt_shape y = vkt_lowered_value(e, dy)->shape;
    const vkt_pool2d_dx_attr a = {
        .pool = { .kernel = { cell[0], cell[1] }, .stride = { cell[0], cell[1] }, .out = { y.dim[2], y.dim[3] } },
        .x = vkt_lowered_value(e, dx)->shape
    };
    vkt_emit_pool2d_dx(e, &a, dy, index, dx);
}
