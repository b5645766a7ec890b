/* Tests the fusion of max pooling with the nodes before it. vkt_backward fuses a relu and the max pooling behind it
 * into one node. A convolution before these nodes is fused too, under the conditions that vktrain/ops.h lists above
 * vkt_max_pool2d. Results, gradients and updated weights must have the bits of the graph without fusion (`no_fuse`).
 * (Exception: see `once`.) Two nodes are not fused if another node reads the value between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

typedef enum source { AS_IT_IS, CONV2D, CONV1D } source; /* the input of relu: x itself, or a convolution of x */

typedef struct net {
    source source;
    vkt_shape x;
    vkt_pool2d_params pool; /* CONV1D: only the second numbers of kernel, stride and pad are used */
    uint32_t adaptive;      /* output height and width of an adaptive pooling; 0: `pool` is used */
    /* keep: relu's output is kept before vkt_backward. fork: the sum of relu's output is added to the loss. ask: the
     * gradient of relu's output is also computed before vkt_backward, and kept. */
    bool keep, fork, ask;
    bool forget;   /* relu's output is not kept after vkt_backward */
    bool linear;   /* there is no relu */
    bool reshaped; /* before the pooling, (N,C,H,W) is reshaped to (N,C,W,H), which moves no data */
    vkt_precision precision;
    /* If true, only y of the first run is compared. Gradients may differ, because the fused node chooses maxima before
     * it rounds to 16 bits. */
    bool once;
} net;

typedef struct rig {
    vkt_graph *g;
    vkt_tensor weights, hidden, y; /* y is multiplied by `weights` before the sum, so dy is `weights` */
    vkt_tensor asked;              /* the gradient of `hidden`, or {0} */
    vkt_store *store;
    vkt_program *program;
} rig;

static vkt_tensor features(vkt_graph *g, const net *n)
{
    const uint32_t C = n->x.dim[1];
    const vkt_tensor none = { 0 }, x = vkt_to_layout(g, vkt_param(g, "x", n->x), VKT_BATCH_LAST);
    if (n->source == CONV2D)
        return vkt_conv2d(g, x, vkt_param(g, "w", vkt_shape4(C + 1, C, 3, 3)), none,
                          &(vkt_conv2d_params){ .pad = { 1, 1 } });
    if (n->source == CONV1D)
        return vkt_conv1d(g, x, vkt_param(g, "w", vkt_shape3(C + 1, C, 3)), none, &(vkt_conv1d_params){ .pad = 1 });
    return x;
}

static vkt_tensor pooled(vkt_graph *g, const net *n, vkt_tensor h)
{
    const vkt_shape s = vkt_tensor_shape(g, h);
    if (n->reshaped) h = vkt_reshape(g, h, vkt_shape4(s.dim[0], s.dim[1], s.dim[3], s.dim[2]));
    if (n->adaptive) return vkt_adaptive_max_pool2d(g, h, n->adaptive, n->adaptive);
    if (n->source != CONV1D) return vkt_max_pool2d(g, h, &n->pool);
    return vkt_max_pool1d(g, h, &(vkt_pool1d_params){ n->pool.kernel[1], n->pool.stride[1], n->pool.pad[1] });
}

static void rig_make(rig *r, const net *n, bool fuse)
{
    vkt_graph *g = harness_graph();
    const vkt_tensor x = features(g, n);
    *r = (rig){ .g = g, .hidden = n->linear ? x : vkt_relu(g, x) };
    r->y = pooled(g, n, r->hidden);
    r->weights = vkt_input(g, "weights", VKT_F32, VKT_BATCH_LAST, vkt_tensor_shape(g, r->y));
    vkt_tensor loss = vkt_sum(g, vkt_mul(g, r->y, r->weights));
    vkt_keep(g, r->y);
    if (n->keep) vkt_keep(g, r->hidden);
    if (n->fork) loss = vkt_add(g, loss, vkt_sum(g, r->hidden));
    if (n->ask) {
        OK(vkt_gradients(g, &r->y, &r->weights, 1, &r->hidden, 1, &r->asked));
        vkt_keep(g, r->asked);
    }
    g->no_fuse = !fuse;
    OK(vkt_backward(g, loss));
    g->no_fuse = false;                     /* allows epilogues: a convolution may fuse its relu, also if !fuse */
    if (!n->forget) vkt_keep(g, r->hidden); /* too late to prevent the fusion, but relu's output is now stored */
    OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    OK(vkt_store_create(harness_ctx, g, &r->store));
    OK(vkt_program_create(harness_ctx, g, r->store, &(vkt_program_params){ .precision = n->precision }, &r->program));
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->program);
    vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
}

/* Returns one of few numbers, at random. So there are windows with ties, windows without a number above 0, both zeros,
 * and sometimes NaN or infinity. */
static float number(vkt_rng *rng)
{
    static const float rare[] = { NAN, INFINITY, -INFINITY, 1e-30f };
    const uint32_t k = vkt_rng_range(rng, 0, 80);
    if (k < VKT_COUNT(rare)) return rare[k];
    return k < 16 ? -0.0f : (float)((int)k % 5 - 3) / 4;
}

static void write_inputs(rig *r, bool special)
{
    vkt_rng rng = vkt_rng_make(5, VKT_STREAM_TEST, 7, 0);
    for (uint32_t k = 0; k < vkt_store_count(r->store); k++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_store_shape(r->store, k));
        float *v = test_malloc(elements * sizeof *v);
        for (size_t i = 0; i < elements; i++) v[i] = special ? number(&rng) : vkt_rng_uniform(&rng, -1, 1);
        OK(vkt_store_write(r->store, k, VKT_PART_VALUE, v));
        test_free(v);
    }
    const size_t elements = (size_t)vkt_shape_elements(vkt_tensor_shape(r->g, r->weights));
    float *v = test_malloc(elements * sizeof *v);
    for (size_t i = 0; i < elements; i++) v[i] = vkt_rng_uniform(&rng, -1, 1);
    OK(vkt_program_write(r->program, r->weights, v, elements * sizeof *v));
    test_free(v);
}

static void same_bits(const rig *a, const rig *b, vkt_tensor t)
{
    const size_t elements = (size_t)vkt_shape_elements(vkt_tensor_shape(a->g, t));
    float *x = test_malloc(2 * elements * sizeof *x);
    OK(vkt_program_read(a->program, t, x, elements * sizeof *x));
    OK(vkt_program_read(b->program, t, x + elements, elements * sizeof *x));
    assert_memory_equal(x, x + elements, elements * sizeof *x);
    test_free(x);
}

static void same_store(const rig *a, const rig *b, vkt_store_part part)
{
    for (uint32_t k = 0; k < vkt_store_count(a->store); k++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_store_shape(a->store, k));
        float *x = test_malloc(2 * elements * sizeof *x);
        OK(vkt_store_read(a->store, k, part, x));
        OK(vkt_store_read(b->store, k, part, x + elements));
        assert_memory_equal(x, x + elements, elements * sizeof *x);
        test_free(x);
    }
}

static uint32_t dispatches(const rig *r)
{
    vkt_plan_info info;
    vkt_program_plan(r->program, &info);
    return info.dispatches;
}

/* Checks that the fused and the separate nodes agree. `fewer`: how many dispatches the fusion saves. If relu's output
 * is kept after vkt_backward, the fused program still computes this output. */
static void agree(const net *n, uint32_t fewer)
{
    rig fused, plain;
    rig_make(&plain, n, false);
    rig_make(&fused, n, true);
    assert_int_equal(dispatches(&fused) + fewer, dispatches(&plain));
    write_inputs(&fused, n->source == AS_IT_IS);
    write_inputs(&plain, n->source == AS_IT_IS);
    for (int i = 0; i < 2; i++) {
        OK(vkt_program_run(fused.program, &(vkt_run){ .lr = 0.01f }, NULL));
        OK(vkt_program_run(plain.program, &(vkt_run){ .lr = 0.01f }, NULL));
        same_bits(&fused, &plain, fused.y);
        if (n->once) break;
        if (!n->forget) same_bits(&fused, &plain, fused.hidden);
        if (n->ask) same_bits(&fused, &plain, fused.asked);
        same_store(&fused, &plain, VKT_PART_GRADIENT);
        same_store(&fused, &plain, VKT_PART_VALUE);
    }
    rig_free(&fused);
    rig_free(&plain);
}

static void one_node_has_the_bits_of_two(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_rng rng = vkt_rng_make(11, VKT_STREAM_TEST, 7, 1);
    const bool few = vkt_env_int("VKT_TEST_SEEDS", 8) < 5;
    for (uint32_t i = 0; i < 8; i += few ? 3 : 1) {
        net n = { .source = i < 4 ? AS_IT_IS : CONV2D };
        n.x = vkt_shape4(vkt_rng_range(&rng, 1, 9), vkt_rng_range(&rng, 1, 3), vkt_rng_range(&rng, 3, 11),
                         vkt_rng_range(&rng, 3, 11));
        for (uint32_t k = 0; k < 2; k++) {
            n.pool.kernel[k] = vkt_rng_range(&rng, 2, 3);
            if (i % 3 == 0) continue;
            n.pool.stride[k] = vkt_rng_range(&rng, 1, 3);
            n.pool.pad[k] = vkt_rng_range(&rng, 0, 1);
        }
        n.pool.ceil_mode = i % 3 == 1;
        n.adaptive = i % 4 == 2 ? 2 : 0;
        if (i >= 6) n.precision = i % 2 ? VKT_PRECISION_F16 : VKT_PRECISION_BF16;
        /* Without a convolution, fusion saves the dispatch of relu's gradient. With a convolution, it saves nothing,
         * because the fused program has an additional dispatch for relu's output, which is kept. */
        agree(&n, n.source == AS_IT_IS);
    }
    agree(&(net){ CONV1D, vkt_shape3(5, 3, 19), { .kernel = { 0, 3 }, .stride = { 0, 2 } }, .adaptive = 0 }, 0);
}

/* The windows are disjoint, in images and in sequences. In an image of 7 x 9, some pixels belong to no window. */
static void a_convolution_joins_them(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const net nets[] = {
        { CONV2D, { 4, { 5, 3, 7, 9 } }, { .kernel = { 2, 2 } }, .forget = true },
        { CONV2D, { 4, { 33, 1, 8, 7 } }, { .kernel = { 3, 1 } }, .forget = true, .linear = true },
        { CONV2D, { 4, { 2, 3, 6, 8 } }, .adaptive = 2, .forget = true },
        { CONV1D, { 3, { 6, 5, 19 } }, { .kernel = { 0, 3 } }, .forget = true },
        { CONV1D, { 3, { 130, 2, 8 } }, { .kernel = { 0, 2 } }, .forget = true, .linear = true },
    };
    /* Fusion saves the dispatch of the pooling. If there is a relu, fusion saves the dispatch of its gradient, too. */
    for (size_t i = 0; i < VKT_COUNT(nets); i++) agree(&nets[i], nets[i].linear ? 1 : 2);
    harness_ctx->limits.choices.force = VKT_V(DIRECT_SHARED);
    for (size_t i = 0; i < VKT_COUNT(nets); i++) agree(&nets[i], nets[i].linear ? 1 : 2);
    harness_ctx->limits.choices.force = 0;
    for (vkt_precision p = VKT_PRECISION_F16; p <= VKT_PRECISION_BF16; p++) {
        net stored = nets[0];
        stored.precision = p;
        stored.once = true;
        agree(&stored, 2);
    }
    net shown = nets[0]; /* relu's output is kept after vkt_backward; convolution and relu run only for that output */
    shown.forget = false;
    agree(&shown, 1);
}

/* In some cases the windows overlap, are dilated, include padding, or are clipped by the edge. In the other cases, the
 * convolution has more than 40 products per element, or a variant with transforms may compute the convolution. In all
 * these cases, only relu is fused with the pooling. If a reshape is between relu and pooling, nothing is fused. */
static void other_poolings_leave_it_alone(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const net nets[] = {
        { CONV2D, { 4, { 5, 3, 7, 9 } }, { .kernel = { 2, 2 }, .stride = { 1, 2 } }, .forget = true },
        { CONV2D, { 4, { 5, 3, 7, 9 } }, { .kernel = { 2, 2 }, .pad = { 0, 1 } }, .forget = true },
        { CONV2D, { 4, { 5, 3, 7, 9 } }, { .kernel = { 2, 2 }, .ceil_mode = true }, .forget = true },
        { CONV2D, { 4, { 5, 3, 7, 9 } }, { .kernel = { 2, 2 }, .dilation = { 2, 1 } }, .forget = true },
        { CONV2D, { 4, { 5, 3, 7, 9 } }, .adaptive = 2, .forget = true },
        { CONV2D, { 4, { 5, 5, 7, 9 } }, { .kernel = { 2, 2 } }, .forget = true },
        { CONV2D, { 4, { 5, 4, 7, 9 } }, { .kernel = { 2, 2 } }, .forget = true }, /* 4 channels: transforms may run */
    };
    const net reshaped = { CONV2D, { 4, { 5, 3, 5, 4 } }, { .kernel = { 2, 2 } }, .forget = true, .reshaped = true };
    for (size_t i = 0; i < VKT_COUNT(nets); i++) agree(&nets[i], 1);
    agree(&reshaped, 0);
}

static void another_reader_keeps_them_apart(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const net n = { CONV2D, vkt_shape4(3, 2, 5, 7), { .kernel = { 2, 2 } }, .adaptive = 0 };
    net kept = n, forked = n, asked = n;
    kept.keep = true;
    forked.fork = true;
    asked.ask = true;
    agree(&kept, 0);
    agree(&forked, 0);
    agree(&asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_has_the_bits_of_two),
        cmocka_unit_test(a_convolution_joins_them),
        cmocka_unit_test(other_poolings_leave_it_alone),
        cmocka_unit_test(another_reader_keeps_them_apart),
    };
    return cmocka_run_group_tests_name("relu_pool", tests, harness_setup, harness_teardown);
}
