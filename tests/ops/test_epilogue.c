/* Tests epilogues (passes/epilogue.c). Before a node stores its result, it applies the node behind it: a relu, a
 * dropout, a sum or the gradient of an activation. The results must have the same bits as those of a program that fuses
 * nothing. The number of dispatches must be the expected one. Two nodes are not fused if another node reads the value
 * between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "abi/storage.abi.h"
#include "kernel/ids.h"
#include "ops/pair.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

typedef pair_net net;
typedef pair_spec spec;
/* The operand o of norm(x) + o (see `sum`). INPUT: an input. BEFORE: a value that is computed before the norm. BEHIND:
 * a value that is computed after the norm. NORM: the output of another norm. OWN: x. WIDE: an input that stays f32 in
 * programs of 16 bits, because another node reads it as f32. */
enum { INPUT, BEFORE, BEHIND, NORM, OWN, WIDE };

#define BATCHES .x = { 4, { 6, 3, 5, 7 } }

static vkt_tensor input_x(net *n)
{
    return pair_input(n, n->s->by_rows, n->s->x, false);
}

static vkt_tensor input_rows(net *n, vkt_shape shape)
{
    return pair_input(n, true, shape, false);
}

/* ---- relu behind each op that can fuse it ---- */

static vkt_tensor bias_of(net *n, uint32_t channels)
{
    return n->s->bias ? input_rows(n, vkt_shape1(channels)) : (vkt_tensor){ 0 };
}

static void add(net *n)
{
    const vkt_tensor a = input_x(n);
    pair_show(n, vkt_relu(n->g, vkt_add(n->g, a, input_x(n))), false);
}

static void conv(net *n)
{
    const vkt_tensor x = input_x(n), w = input_rows(n, n->s->w), bias = bias_of(n, n->s->w.dim[0]);
    const vkt_conv1d_params p = { .stride = n->s->conv.stride[1], .pad = n->s->conv.pad[1] };
    pair_show(n,
              vkt_relu(n->g, n->s->x.rank == 3 ? vkt_conv1d(n->g, x, w, bias, &p)
                                               : vkt_conv2d(n->g, x, w, bias, &n->s->conv)),
              false);
}

static void conv_transpose(net *n)
{
    const vkt_conv2d_params *c = &n->s->conv;
    const vkt_conv_transpose2d_params p = { .stride = { c->stride[0], c->stride[1] }, .pad = { c->pad[0], c->pad[1] } };
    const vkt_tensor x = input_x(n), w = input_rows(n, n->s->w), bias = bias_of(n, n->s->w.dim[1]);
    pair_show(n, vkt_relu(n->g, vkt_conv_transpose2d(n->g, x, w, bias, &p)), false);
}

static void linear(net *n)
{
    const vkt_tensor x = input_x(n), w = input_rows(n, n->s->w);
    pair_show(n, vkt_relu(n->g, vkt_linear(n->g, x, w, bias_of(n, n->s->w.dim[0]))), false);
}

/* Builds a norm. `given`: the running statistics are inputs. If all inputs are integers (WHOLE in pair.h), the running
 * variance is 1. Then the results are integers too, which are exact in 16 bits. */
static vkt_tensor norm_of(net *n, vkt_tensor x)
{
    const uint32_t channels = n->s->x.dim[1];
    vkt_batch_norm_params p = { .eps = 1e-30f, .evaluate = n->s->given };
    if (n->s->given) {
        p.running_mean = input_rows(n, vkt_shape1(channels));
        p.running_var = pair_input(n, true, vkt_shape1(channels), true);
    }
    p.gamma = bias_of(n, channels);
    p.beta = bias_of(n, channels);
    return vkt_batch_norm(n->g, x, &p);
}

static void norm(net *n)
{
    pair_show(n, vkt_relu(n->g, norm_of(n, input_x(n))), false);
}

static void relu_is_stored_by_the_node_before_it(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { norm, BATCHES, .fused = 1 },
        { norm, BATCHES, .bias = true, .rows = 4, .fused = 1 },
        { norm, .x = { 2, { 7, 5 } }, .bias = true, .rows = 5, .fused = 1 },
        { norm, BATCHES, .given = true, .fused = 1 },
        { norm, BATCHES, .given = true, .bias = true, .values = SPECIAL, .fused = 1 },
        { add, BATCHES, .values = SPECIAL, .left = 1, .fused = 1 },
        { add, .x = { 4, { 6, 3, 5, 7 } }, .by_rows = true, .values = SPECIAL, .left = 1, .fused = 1 },
        { add, .x = { 1, { 3 } }, .by_rows = true, .values = SPECIAL, .left = 1, .fused = 1 },
        { add, .x = { 2, { 37, 113 } }, .by_rows = true, .values = SPECIAL, .left = 1, .fused = 1 },
        { conv, .x = { 3, { 5, 3, 11 } }, .w = { 3, { 4, 3, 3 } }, .conv.stride = { 0, 2 }, .bias = true, .fused = 1 },
        { conv, .x = { 4, { 5, 4, 6, 5 } }, .w = { 4, { 6, 2, 2, 3 } }, .conv.groups = 2, .fused = 1 },
        { linear, .x = { 2, { 9, 12 } }, .w = { 2, { 7, 12 } }, .bias = true, .fused = 1 },
        { linear, .x = { 2, { 9, 13 } }, .w = { 2, { 7, 13 } }, .fused = 1 },
        { linear, .x = { 2, { 9, 12 } }, .w = { 2, { 7, 12 } }, .by_rows = true, .bias = true, .left = 1 },
    };
    pair_agree(specs, VKT_COUNT(specs));
}

static void check_variant(const spec *s, vkt_variant v)
{
    harness_view view = pair_whole;
    view.force = (uint64_t)1 << v;
    net fused, plain;
    assert_true(pair_make(&fused, &plain, s, &view));
    assert_int_equal(fused.p->lowered.n_picked, 1);
    assert_int_equal(fused.p->lowered.picked[0].variant, v);
    pair_free(&fused, &plain);
}

static void any_variant_of_a_convolution(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec forward = {
        conv, .x = { 4, { 5, 4, 9, 7 } }, .w = { 4, { 8, 4, 3, 3 } }, .conv.pad = { 1, 1 }, .bias = true, .fused = 1
    };
    const spec strided = { conv_transpose, .x = { 4, { 5, 4, 4, 5 } }, .w = { 4, { 4, 6, 3, 3 } },
                           .bias = true,   .conv.stride = { 2, 3 },    .fused = 1 };
    static const vkt_variant variants[] = { VKT_V_TILE,     VKT_V_DIRECT, VKT_V_DIRECT_SHARED, VKT_V_SPAN,
                                            VKT_V_WINOGRAD, VKT_V_FFT8,   VKT_V_SHARED };
    spec back = forward;
    back.build = conv_transpose;
    back.w = vkt_shape4(4, 8, 3, 3);
    for (size_t i = 0; i < VKT_COUNT(variants); i++) {
        if (!vkt_test_leaves_out(i, 2)) check_variant(&forward, variants[i]);
        if (!vkt_test_leaves_out(i + 1, 2)) check_variant(&back, variants[i]);
    }
    for (size_t i = 0; i < 3; i++) check_variant(&strided, variants[i]);
}

static void small_bindings(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 4096;
    lim->max_texel_elements = VKT_MIN(lim->max_texel_elements, 256);
}

/* Each sum over source channels is computed in parts: CONV2D_TILE computes the first part, and CONV2D_TILE_ADD adds
 * each later part. Checks that relu is applied once for each sum, and never to the first part. */
static void check_parts(const vkt_program *p)
{
    uint32_t begun = 0, ended = 0, steps = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        const bool first = d->kernel == VKT_K_CONV2D_TILE, more = d->kernel == VKT_K_CONV2D_TILE_ADD;
        begun += first;
        steps += more;
        ended += (d->storage & STORAGE_RELU) != 0;
        if (first) assert_false(d->storage & STORAGE_RELU);
    }
    assert_true(begun > 0 && steps >= begun);
    assert_int_equal(begun, ended);
}

static void only_a_complete_sum_is_clamped_at_zero(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec forward = { conv,         .x = { 4, { 3, 8, 7, 7 } }, .w = { 4, { 6, 8, 3, 3 } }, .conv.pad = { 1, 1 },
                           .bias = true, .fused = PAIR_MANY };
    const spec back = { conv_transpose, .x = { 4, { 3, 8, 7, 7 } }, .w = { 4, { 8, 6, 3, 3 } }, .conv.pad = { 1, 1 },
                        .fused = PAIR_MANY };
    /* Each part of a sum has four of the eight source channels. */
    harness_view view = { "with bindings of 4 KiB", small_bindings, .force = VKT_V(TILE) };
    for (int i = 0; i < 4; i++) {
        net fused, plain;
        view.precision = i / 2 ? VKT_PRECISION_F16 : VKT_PRECISION_F32;
        assert_true(pair_make(&fused, &plain, i % 2 ? &back : &forward, &view));
        check_parts(fused.p);
        pair_free(&fused, &plain);
    }
}

/* ---- sums ---- */

/* Builds relu(norm(x) + o). `bare`: without the relu. */
static void sum(net *n)
{
    const spec *s = n->s;
    vkt_graph *g = n->g;
    const vkt_tensor x = input_x(n);
    vkt_tensor o = s->other == OWN ? x : (vkt_tensor){ 0 };
    if (s->other == INPUT || s->other == WIDE) o = input_x(n);
    if (s->other == WIDE) vkt_keep(g, vkt_sum(g, o));
    if (s->other == BEFORE) o = vkt_tanh(g, input_x(n));
    if (s->other == NORM) o = norm_of(n, input_x(n));
    vkt_tensor y = norm_of(n, x);
    if (s->other == BEHIND) o = vkt_tanh(g, input_x(n));
    if (s->flat) y = vkt_flatten(g, y), o = vkt_flatten(g, o);
    y = s->swap ? vkt_add(g, o, y) : vkt_add(g, y, o);
    pair_show(n, s->bare ? y : vkt_relu(g, y), false);
}

static void a_sum_is_its_norms(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int swap = 0; swap < 2; swap++)
        for (int flat = 0; flat < 2; flat++) {
            const spec s = { sum, BATCHES, .bias = true, .rows = 4, .swap = swap, .flat = flat, .fused = 2 };
            spec specs[] = { s, s, s, s, s, s, s };
            specs[1].other = BEFORE, specs[1].left = 1;
            specs[2].other = BEHIND, specs[2].left = 2, specs[2].fused = 1; /* the sum waits for o and fuses relu */
            specs[3].other = NORM;                                          /* the later norm fuses the sum */
            specs[4].other = OWN;
            specs[5].bare = true, specs[5].fused = 1;
            specs[6].given = true, specs[6].values = SPECIAL;
            pair_agree(specs, VKT_COUNT(specs));
        }
    const spec blocks = { sum, .x = { 3, { 9, 2, 2750 } }, .fused = 2 }; /* each channel has several work groups */
    pair_agree(&blocks, 1);
}

/* ---- dropout ---- */

/* Returns the probability of dropout. With 1/2, dropout multiplies the kept numbers by 2, which is exact in 16 bits. */
static float chance(const net *n)
{
    return n->s->bare ? 0.5f : 0.3f;
}

static vkt_tensor dropped(net *n, vkt_tensor x)
{
    return n->s->given ? vkt_dropout2d(n->g, x, chance(n)) : vkt_dropout(n->g, x, chance(n));
}

/* Builds dropout(act(x)). `other`: adds another tensor. `flat`: x is a norm's output, whose memory may be reused. */
static void drop(net *n)
{
    const spec *s = n->s;
    const vkt_tensor in = input_x(n), x = s->flat ? norm_of(n, in) : in, y = dropped(n, s->act ? s->act(n->g, x) : x);
    const vkt_tensor o = s->other ? pair_input(n, s->by_rows, s->x, false) : (vkt_tensor){ 0 };
    pair_show(n, !o.id ? y : s->swap ? vkt_add(n->g, o, y) : vkt_add(n->g, y, o), false);
}

/* Builds the gradient of x through dropout(act(x)). `flat`: dy is the result of a norm. */
static void drop_slope(net *n)
{
    const vkt_tensor x = input_x(n), y = dropped(n, n->s->act(n->g, x));
    const vkt_tensor in = pair_input(n, n->s->by_rows, n->s->x, false), dy = n->s->flat ? norm_of(n, in) : in;
    vkt_tensor dx;
    OK(vkt_gradients(n->g, &y, &dy, 1, &x, 1, &dx));
    pair_show(n, dx, true);
}

static vkt_tensor leak(vkt_graph *g, vkt_tensor x)
{
    return vkt_leaky_relu(g, x, 0.25f);
}

static vkt_tensor clip(vkt_graph *g, vkt_tensor x)
{
    return vkt_clamp(g, x, -0.25f, 0.5f);
}

#define WHOLE_VEC4S .x = { 4, { 8, 3, 5, 7 } }
#define TABLE .x = { 2, { 37, 113 } }, .by_rows = true

static void dropout_is_part_of_its_neighbours(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { drop, WHOLE_VEC4S, .act = vkt_gelu, .fused = 1 },
        { drop, WHOLE_VEC4S, .act = leak, .values = SPECIAL, .fused = 1 },
        { drop, WHOLE_VEC4S, .act = vkt_exp, .rows = 5, .fused = 1 },
        { drop, TABLE, .act = vkt_silu, .fused = 1 },
        { drop, TABLE, .act = vkt_gelu, .memory = AGAIN, .fused = 1 },
        { drop, .x = { 1, { 3 } }, .by_rows = true, .act = leak, .fused = 1 },
        { drop, WHOLE_VEC4S, .other = 1, .values = SPECIAL, .fused = 1 },
        { drop, BATCHES, .other = 1, .swap = true, .fused = 1 },
        { drop, TABLE, .other = 1, .fused = 1 },
        /* The sum has its own dispatch, in place. */
        { drop, TABLE, .other = 1, .act = vkt_tanh, .left = 1, .fused = 1 },
        { drop_slope, WHOLE_VEC4S, .act = vkt_gelu, .fused = 1 },
        { drop_slope, TABLE, .act = clip, .values = SPECIAL, .fused = 1 },
        { drop_slope, TABLE, .act = leak, .left = 1, .fused = 1 }, /* the gradient of leak reads the output of leak */
        { drop_slope, TABLE, .act = vkt_silu, .memory = PACKED, .fused = 1 },
        /* Nothing is fused. The later of the two nodes has its own dispatch, in place. A dropout is not fused with a
         * function of a value that has padding. A dropout2d is not fused with a function or a sum. */
        { drop, BATCHES, .act = vkt_exp, .left = 1 },
        { drop_slope, BATCHES, .act = vkt_gelu, .left = 1 },
        { drop, WHOLE_VEC4S, .act = vkt_gelu, .given = true, .left = 1 },
        { drop, WHOLE_VEC4S, .given = true, .other = 1, .left = 1 },
    };
    pair_agree(specs, VKT_COUNT(specs));
}

static void dropout_is_stored_where_its_operand_was(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { drop, WHOLE_VEC4S, .flat = true, .act = vkt_gelu, .fused = 1 },
        { drop, WHOLE_VEC4S, .flat = true, .other = 1, .fused = 1 },
        { drop, BATCHES, .flat = true, .other = 1, .swap = true, .fused = 1 },
        { drop_slope, WHOLE_VEC4S, .flat = true, .act = vkt_gelu, .fused = 1 },
    };
    for (size_t i = 0; i < VKT_COUNT(specs); i++) {
        net fused, plain;
        assert_true(pair_make(&fused, &plain, &specs[i], &pair_whole));
        const uint32_t root = vkt_root(fused.g, fused.out[0].t);
        assert_int_not_equal(fused.p->plan.owner[root], root);
        pair_free(&fused, &plain);
    }
}

/* ---- any device ---- */

/* Checks pairs of programs (pair.h) in the views of harness.h, which have other limits and traits. In the views with
 * small bindings, each node except `linear` has several dispatches. */
static void in_every_view(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { add, .x = { 2, { 41, 131 } }, .by_rows = true, .values = SPECIAL, .left = 1, .fused = PAIR_MANY },
        { norm, .x = { 4, { 6, 7, 9, 11 } }, .bias = true, .rows = 5, .fused = PAIR_MANY },
        { linear, .x = { 2, { 9, 12 } }, .w = { 2, { 7, 12 } }, .bias = true, .fused = PAIR_MANY },
        { sum, .x = { 4, { 6, 7, 9, 11 } }, .bias = true, .rows = 5, .fused = PAIR_MANY },
        { drop, .x = { 2, { 41, 131 } }, .by_rows = true, .act = vkt_gelu, .fused = PAIR_MANY },
        { drop, .x = { 2, { 41, 131 } }, .by_rows = true, .other = 1, .fused = PAIR_MANY },
        { drop_slope, .x = { 4, { 8, 7, 9, 11 } }, .act = vkt_gelu, .fused = PAIR_MANY },
    };
    for (size_t i = 0; i < VKT_COUNT(specs); i++) {
        uint32_t views = 0;
        for (size_t v = 1; v < harness_n_views; v++) views += pair_agree_in(&specs[i], &harness_views[v]);
        assert_true(views > 3);
    }
}

/* Builds a chain of sums and relus behind a norm. The norm can fuse one sum and one relu, in this order. A later sum
 * can fuse one relu. All dispatches behind the dispatch of the norm work in place. */
static void chain(net *n)
{
    vkt_graph *g = n->g;
    const vkt_tensor a = input_x(n), b = input_x(n);
    const vkt_tensor first = n->s->bare ? norm_of(n, input_x(n)) : vkt_relu(g, norm_of(n, input_x(n)));
    pair_show(n, vkt_relu(g, vkt_relu(g, vkt_add(g, b, vkt_add(g, first, a)))), false);
}

static void the_rest_is_done_in_place(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec specs[] = {
        { chain, BATCHES, .bias = true, .left = 3, .fused = 2 }, /* dispatches: norm + relu, sum, sum + relu, relu */
        { chain, BATCHES, .bare = true, .left = 2, .fused = 2 }, /* dispatches: norm + sum, sum + relu, relu */
    };
    pair_agree(specs, VKT_COUNT(specs));
}

/* ---- gradients ---- */

/* Builds the gradient of x, where y = act(x) and the gradient of y is the sum of two tensors. `flat`: both tensors are
 * gradients of the flattened y. `swap`: one of the two tensors is y itself. */
static void slope(net *n)
{
    const spec *s = n->s;
    const vkt_tensor x = input_x(n), y = s->act(n->g, x), out = s->flat ? vkt_flatten(n->g, y) : y;
    const vkt_shape shape = vkt_tensor_shape(n->g, out);
    const vkt_tensor dy[] = { s->swap ? out : pair_input(n, s->by_rows, shape, false),
                              pair_input(n, s->by_rows, shape, false) };
    vkt_tensor dx;
    OK(vkt_gradients(n->g, (vkt_tensor[]){ out, out }, dy, 2, &x, 1, &dx));
    pair_show(n, dx, true);
}

static void the_sum_of_two_gradients_goes_on_through_relus(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec specs[] = {
        { slope, BATCHES, .act = vkt_relu, .left = 2, .fused = 1 },
        { slope, .x = { 2, { 5, 7 } }, .act = vkt_relu, .by_rows = true, .values = SPECIAL, .left = 2, .fused = 1 },
        { slope, BATCHES, .act = vkt_relu, .flat = true, .left = 2, .fused = 1 },
        /* In the next three cases, nothing is fused. The result overwrites the sum in memory. */
        { slope, BATCHES, .act = vkt_tanh, .left = 3 },
        { slope, BATCHES, .act = vkt_tanh, .flat = true, .left = 3 },
        { slope, BATCHES, .act = vkt_gelu, .left = 2 },
        /* In the next two cases, y is an operand of the sum. A node may overwrite its operands, so a fused node could
         * overwrite y before it reads y for the gradient of the activation. So the nodes are not fused. */
        { slope, BATCHES, .act = vkt_relu, .swap = true, .left = 3 },
        { slope, BATCHES, .act = vkt_tanh, .swap = true, .left = 3 },
    };
    pair_agree(specs, VKT_COUNT(specs));
}

/* ---- apart ---- */

static void kept(net *n)
{
    const vkt_tensor y = n->s->given ? vkt_add(n->g, norm_of(n, input_x(n)), input_x(n)) : norm_of(n, input_x(n));
    pair_show(n, y, false);
    pair_show(n, vkt_relu(n->g, y), false);
}

static void shared(net *n)
{
    const vkt_tensor y = norm_of(n, input_x(n));
    pair_show(n, vkt_relu(n->g, y), false);
    pair_show(n, vkt_tanh(n->g, y), false);
}

static void repeated(net *n)
{
    const vkt_tensor x = input_x(n), o = input_rows(n, vkt_shape3(n->s->x.dim[1], 1, 1));
    pair_show(n, vkt_relu(n->g, vkt_add(n->g, n->s->bare ? x : norm_of(n, x), o)), false);
}

static void of_another_layout(net *n)
{
    const vkt_tensor y = norm_of(n, input_x(n)), o = input_rows(n, n->s->x);
    pair_show(n, vkt_relu(n->g, n->s->swap ? vkt_add(n->g, o, y) : vkt_add(n->g, y, o)), false);
}

/* A norm has no epilogue if its output is kept, has two readers, or is added to a tensor of another shape or layout.
 * `repeated` with `bare` has no norm. A sum that broadcasts an operand has no epilogue either. */
static void what_others_want_stays(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec specs[] = {
        { kept, BATCHES, .left = 1 },
        { kept, BATCHES, .given = true, .left = 1, .fused = 1 }, /* the norm fuses the sum, which is kept */
        { shared, BATCHES, .left = 2 },
        { repeated, BATCHES, .left = 1 },
        { repeated, BATCHES, .bare = true, .left = 1 },
        { of_another_layout, BATCHES, .left = 1 },
        { of_another_layout, BATCHES, .swap = true, .left = 1 },
    };
    pair_agree(specs, VKT_COUNT(specs));
}

/* ---- other programs ---- */

static void stored_in_16_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec specs[] = {
        { add, BATCHES, .values = SPECIAL, .left = 1, .fused = 1 },
        { add, .x = { 2, { 5, 12 } }, .by_rows = true, .values = SPECIAL, .left = 1, .fused = 1 },
        { conv, .x = { 4, { 5, 3, 6, 7 } }, .w = { 4, { 4, 3, 2, 2 } }, .bias = true, .fused = 1 },
        { norm, BATCHES, .bias = true, .rows = 4, .fused = 1 },
        { sum, BATCHES, .bias = true, .given = true, .values = WHOLE, .fused = 2 },
        { sum, BATCHES, .bias = true, .given = true, .values = WHOLE, .other = NORM, .fused = 2 },
        { sum, BATCHES, .bias = true, .given = true, .values = WHOLE, .other = WIDE, .fused = 2 },
        { slope, BATCHES, .act = vkt_relu, .left = 2, .fused = 1 },
        { slope, BATCHES, .act = vkt_gelu, .left = 2 },
        { drop, WHOLE_VEC4S, .act = vkt_gelu, .bare = true, .fused = 1 },
        { drop, WHOLE_VEC4S, .other = 1, .values = WHOLE, .bare = true, .fused = 1 },
        { drop_slope, WHOLE_VEC4S, .act = vkt_gelu, .bare = true, .fused = 1 },
    };
    for (size_t i = 0; i < 2 * VKT_COUNT(specs); i++) {
        if (vkt_test_leaves_out(i / 2 + i, 2)) continue; /* a run with few cases has one of the two formats */
        const harness_view *view = &harness_half_views[i % 2];
        net fused, plain;
        assert_true(pair_make(&fused, &plain, &specs[i / 2], view));
        const vkt_emit *e = &fused.p->lowered;
        if (!specs[i / 2].by_rows) assert_int_equal(vkt_lowered_value(e, fused.out[0].t)->storage, view->precision);
        if (specs[i / 2].other == WIDE)
            assert_int_equal(vkt_lowered_value(e, fused.in[1].t)->storage, VKT_PRECISION_F32);
        pair_free(&fused, &plain);
    }
}

/* The networks of `early`. RELU_OF_SUM: relu(x + o). AND_NORM: relu(relu(norm(x)) + o). DROPPED_FUNCTION:
 * dropout(gelu(x)). DROPPED_SUM: dropout(x) + o. */
enum { RELU_OF_SUM, AND_NORM, DROPPED_FUNCTION, DROPPED_SUM };

static vkt_tensor early(net *n, vkt_tensor x, vkt_tensor o)
{
    switch (n->s->other) {
    case AND_NORM: x = vkt_relu(n->g, norm_of(n, x)); break;
    case DROPPED_FUNCTION: return dropped(n, vkt_gelu(n->g, x));
    case DROPPED_SUM: return vkt_add(n->g, dropped(n, x), o);
    default: break;
    }
    return vkt_relu(n->g, vkt_add(n->g, x, o));
}

/* Builds a cheap value r with two readers. Between the two readers are two images with four times the channels of r. So
 * `recompute` saves memory: it computes r again for the second reader. With AND_NORM, r needs two dispatches, and the
 * second dispatch works in place. */
static void late(net *n)
{
    vkt_graph *g = n->g;
    const vkt_tensor none = { 0 }, x = input_x(n), o = input_x(n), r = early(n, x, o);
    const uint32_t few = n->s->x.dim[1], many = 4 * few;
    vkt_tensor y = vkt_conv2d(g, r, input_rows(n, vkt_shape4(many, few, 1, 1)), none, NULL);
    y = vkt_conv2d(g, y, input_rows(n, vkt_shape4(many, many, 1, 1)), none, NULL);
    y = vkt_conv2d(g, y, input_rows(n, vkt_shape4(few, many, 1, 1)), none, NULL);
    pair_show(n, vkt_add(g, y, r), false);
}

static uint32_t relus_stored(const vkt_program *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->lowered.n; i++) n += (p->lowered.list[i].storage & STORAGE_RELU) != 0;
    return n;
}

static void what_is_made_again_has_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        spec s;
        uint32_t again, relus;
    } cases[] = {
        { { late, BATCHES, .other = RELU_OF_SUM, .memory = PACKED, .left = 2, .fused = 1 }, 1, 1 },
        { { late, BATCHES, .other = AND_NORM, .given = true, .memory = PACKED, .left = 2, .fused = 2 }, 2, 2 },
        { { late, WHOLE_VEC4S, .other = DROPPED_FUNCTION, .memory = PACKED, .left = 1, .fused = 1 }, 1, 0 },
        { { late, WHOLE_VEC4S, .other = DROPPED_SUM, .memory = PACKED, .left = 1, .fused = 1 }, 1, 0 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        net fused, plain;
        assert_true(pair_make(&fused, &plain, &cases[i].s, &pair_whole));
        net again = fused; /* another program of the same graph */
        assert_true(pair_program(&again, &pair_whole, AGAIN, &again.p));
        assert_int_equal(again.p->again, cases[i].again);
        assert_int_equal(relus_stored(fused.p), cases[i].relus);
        assert_int_equal(relus_stored(again.p), 2 * cases[i].relus);
        pair_run(&again);
        pair_same(&again, &plain);
        vkt_program_destroy(&again.p);
        pair_free(&fused, &plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_is_stored_by_the_node_before_it),
        cmocka_unit_test(any_variant_of_a_convolution),
        cmocka_unit_test(only_a_complete_sum_is_clamped_at_zero),
        cmocka_unit_test(a_sum_is_its_norms),
        cmocka_unit_test(in_every_view),
        cmocka_unit_test(the_rest_is_done_in_place),
        cmocka_unit_test(dropout_is_part_of_its_neighbours),
        cmocka_unit_test(dropout_is_stored_where_its_operand_was),
        cmocka_unit_test(the_sum_of_two_gradients_goes_on_through_relus),
        cmocka_unit_test(what_others_want_stays),
        cmocka_unit_test(stored_in_16_bits),
        cmocka_unit_test(what_is_made_again_has_the_same_bits),
    };
    return cmocka_run_group_tests_name("epilogue", tests, harness_setup, harness_teardown);
}
