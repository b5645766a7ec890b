/* Tests the cross-entropy of a linear layer (ops/loss/linear_xent_emit.c), computed in several slices of rows and
 * several ranges of the vocabulary. This file also computes the formula in double precision, to compare the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "kernel/ids.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "record/record.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { B = 8, TOKENS = 12, R = B * TOKENS, V = 201, D = 32, IGNORE = 7 };
/* With 8 KiB of logits, a slice has up to 10 rows. With 32 KiB of logits, a slice has up to 32 rows. With 4 KiB of
 * weights, a range has up to 32 classes. */
enum { LOGITS_KIB = 8, MORE_LOGITS_KIB = 32, WEIGHTS_KIB = 4, BOUND_KIB = 7 };

typedef struct problem {
    float x[R * D], w[V * D];
    uint32_t t[R], words[V * D];
    float loss, count, dx[R * D], dw[V * D];
    double want_loss, want_dx[R * D], want_dw[V * D];
} problem;

/* Generates x and the weights. The weights are exact in bfloat16, so w and `words` have the same weights. */
static void draw(problem *p)
{
    vkt_rng r = vkt_rng_make(11, VKT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < R * D; i++) p->x[i] = vkt_rng_uniform(&r, -1, 1);
    memset(p->words, 0, sizeof p->words);
    for (size_t i = 0; i < V * D; i++) {
        p->w[i] = (float)vkt_rng_range(&r, 0, 254) / 256 - 0.5f + 1.0f / 256;
        uint32_t bits;
        memcpy(&bits, &p->w[i], sizeof bits);
        p->words[i / 2] |= bits >> 16 << 16 * (i % 2);
    }
}

/* Generates labels. Of each 9 rows, the first `every` rows have labels that count. The other labels are ignored. */
static void draw_labels(problem *p, uint32_t every)
{
    vkt_rng r = vkt_rng_make(12, VKT_STREAM_TEST, 0, 0);
    for (uint32_t b = 0; b < R; b++) {
        const uint32_t label = vkt_rng_range(&r, 0, V - 1);
        p->t[b] = b % 9 < every && label != IGNORE ? label : b % 9 < every ? IGNORE + 1 : IGNORE;
    }
}

/* Computes loss and gradients of the first `rows` samples in double precision. A sample has TOKENS rows of x. Returns
 * the number of labels that count. */
static uint32_t compute(problem *p, uint32_t rows, bool sum)
{
    static double z[V];
    uint32_t count = 0;
    p->want_loss = 0;
    memset(p->want_dx, 0, sizeof p->want_dx);
    memset(p->want_dw, 0, sizeof p->want_dw);
    for (uint32_t b = 0; b < rows * TOKENS; b++) count += p->t[b] != IGNORE;
    for (uint32_t b = 0; b < rows * TOKENS; b++) {
        double all = 0;
        const double norm = sum ? 1 : count;
        if (p->t[b] == IGNORE) continue;
        for (size_t k = 0; k < V; k++) {
            z[k] = 0;
            for (size_t i = 0; i < D; i++) z[k] += (double)p->x[b * D + i] * (double)p->w[k * D + i];
            all += exp(z[k]);
        }
        p->want_loss += (log(all) - z[p->t[b]]) / norm;
        for (size_t k = 0; k < V; k++)
            for (size_t i = 0; i < D; i++) {
                const double dz = (exp(z[k]) / all - (k == p->t[b])) / norm;
                p->want_dx[b * D + i] += dz * (double)p->w[k * D + i];
                p->want_dw[k * D + i] += dz * (double)p->x[b * D + i];
            }
    }
    return count;
}

/* A way to build and run the problem. */
typedef struct way {
    bool quantized, sum;
    bool scaled; /* the graph's loss is 3 times the cross-entropy, so the logits are computed twice */
    /* If true, bindings have 8 KiB, and x, dx, w and dw are larger. Slices of logits and ranges of weights have up to
     * 7 KiB. */
    bool bound;
    uint32_t rows;
    /* A set of variants. Products must use one of these variants if they can. If the set is not empty and `bound` is
     * false, slices have 32 rows. */
    uint64_t force;
    vkt_precision precision;
} way;

typedef struct model {
    vkt_graph *g;
    vkt_tensor x, w, t, loss, count, px;
} model;

/* Builds the graph. x is parameter 0, so the test can read the gradient of x from the store. w is parameter 1.
 * Quantized weights are an input, without a gradient. */
static model build(const way *o)
{
    model m = { .g = harness_graph() };
    vkt_linear_cross_entropy_params params = { true, IGNORE, o->sum, &m.count };
    m.t = vkt_input(m.g, "t", VKT_U32, VKT_ROWS, vkt_shape2(B, TOKENS));
    m.px = vkt_param(m.g, "x", vkt_shape3(B, TOKENS, D));
    if (o->quantized) {
        m.w = vkt_input(m.g, "w", VKT_U32, VKT_ROWS, vkt_shape1(V * D / 2));
        m.loss = vkt_linear_cross_entropy_quantized(m.g, m.px, m.w, VKT_QUANT_BF16, V, m.t, &params);
    } else {
        m.w = vkt_param(m.g, "w", vkt_shape2(V, D));
        m.loss = vkt_linear_cross_entropy(m.g, m.px, m.w, m.t, &params);
    }
    vkt_keep(m.g, m.loss);
    vkt_keep(m.g, m.count);
    OK(vkt_backward(m.g, o->scaled ? vkt_scale(m.g, m.loss, 3, 0) : m.loss));
    return m;
}

/* Creates a program with several slices of rows and several ranges of classes. With forced variants, a product of the
 * variant SPLIT_K may also split sums of only 32 terms. */
static vkt_program *make(vkt_graph *g, vkt_store *store, const way *o)
{
    vkt_program *p = NULL;
    const vkt_limits real = harness_ctx->limits;
    vkt_limits *lim = &harness_ctx->limits;
    vkt_traits traits = *real.traits;
    traits.xent_logits_kib = o->bound ? BOUND_KIB : o->force ? MORE_LOGITS_KIB : LOGITS_KIB;
    traits.xent_weights_kib = o->bound ? BOUND_KIB : WEIGHTS_KIB;
    traits.slice_shared = o->force ? 8 : traits.slice_shared;
    lim->traits = &traits;
    lim->choices.force = o->force;
    if (o->force) lim->cores = 64;
    if (o->bound) {
        lim->max_storage_range_bytes = 8192;
        lim->max_texel_elements = VKT_MIN(real.max_texel_elements, 512u);
    }
    const vkt_result made =
        vkt_program_create_guarded(harness_ctx, g, store, &(vkt_program_params){ .precision = o->precision }, &p);
    harness_ctx->limits = real;
    OK(made);
    return p;
}

static uint32_t dispatches_of(const vkt_emit *e, uint16_t kernel)
{
    uint32_t n = 0;
    for (size_t i = 0; i < e->n; i++) n += e->list[i].kernel == kernel;
    return n;
}

/* Checks that the program is as `o` describes. If BLOCKS is forced, at least half of the products with quantized
 * weights unpack the weights themselves. If other variants are forced, they compute at least half of the products. If
 * the rows of dx and dw do not fit into one binding, several dispatches clear them. */
static void check_way(const vkt_program *p, const way *o)
{
    size_t forced = 0, blocks = 0, unpacked = 0;
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        forced += o->force >> p->lowered.picked[i].variant & 1;
        blocks += p->lowered.picked[i].variant == VKT_V_BLOCKS;
        unpacked += p->lowered.picked[i].variant == VKT_V_UNPACKED;
    }
    if (o->force & VKT_V(BLOCKS))
        assert_true(blocks > 0 && blocks >= unpacked);
    else
        assert_true(!o->force || (forced && 2 * forced >= p->lowered.n_picked));
    if (o->bound) assert_true(dispatches_of(&p->lowered, VKT_K_LABEL_CLEAR) >= (o->quantized ? 2 : 6));
}

static void read_results(vkt_program *p, const model *m, vkt_store *store, problem *s)
{
    harness_read_f32(p, m->g, m->loss, &s->loss);
    harness_read_f32(p, m->g, m->count, &s->count);
    OK(vkt_store_read(store, 0, VKT_PART_GRADIENT, s->dx));
    if (store->n > 1) OK(vkt_store_read(store, 1, VKT_PART_GRADIENT, s->dw));
}

/* Runs the problem three times. The first two runs of a program may run all dispatches, to measure them. The third run
 * skips slices without labels that count. Its results must have the same bits as those of the first run. */
static void run(problem *s, const way *o)
{
    static problem first;
    model m = build(o);
    vkt_store *store = NULL;
    OK(vkt_store_create(harness_ctx, m.g, &store));
    vkt_program *p = make(m.g, store, o);
    check_way(p, o);
    OK(vkt_store_write(store, 0, VKT_PART_VALUE, s->x));
    if (o->quantized)
        OK(vkt_program_write(p, m.w, s->words, 2 * V * D));
    else
        OK(vkt_store_write(store, 1, VKT_PART_VALUE, s->w));
    OK(vkt_program_write(p, m.t, s->t, sizeof s->t));
    for (int i = 0; i < 3; i++) {
        OK(vkt_program_run(p, &(vkt_run){ .rows = o->rows }, NULL));
        if (i == 0) read_results(p, &m, store, &first);
    }
    read_results(p, &m, store, s);
    assert_memory_equal(&first.loss, &s->loss, sizeof s->loss);
    assert_memory_equal(first.dx, s->dx, sizeof s->dx);
    if (!o->quantized) assert_memory_equal(first.dw, s->dw, sizeof s->dw);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&m.g);
    harness_forget(harness_ctx);
}

static void check(problem *s, const way *o, uint32_t count)
{
    for (size_t i = 0; i < R * D && o->scaled; i++) s->dx[i] /= 3;
    for (size_t i = 0; i < V * D && o->scaled; i++) s->dw[i] /= 3;
    assert_true(s->count == (float)count);
    if (count == 0 && !o->sum)
        assert_true(isnan(s->loss));
    else
        assert_true(harness_close("loss", &s->loss, &s->want_loss, 1, 2e-6, 1e-7));
    assert_true(harness_close("dx", s->dx, s->want_dx, R * D, 2e-6, 2e-6));
    if (!o->quantized) assert_true(harness_close("dw", s->dw, s->want_dw, V * D, 2e-6, 2e-6));
    for (uint32_t b = 0; b < R; b++)
        for (uint32_t i = 0; i < D && (s->t[b] == IGNORE || (o->rows && b >= o->rows * TOKENS)); i++)
            assert_true(s->dx[b * D + i] == 0);
}

static void slices_and_ranges_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static problem s;
    static const way ways[] = { { .quantized = true },
                                { .sum = true },
                                { .scaled = true },
                                { .rows = 5 },
                                { .bound = true },
                                { .bound = true, .quantized = true },
                                { .quantized = true, .force = VKT_V(BLOCKS) },
                                { .quantized = true, .force = VKT_V(BLOCKS) | VKT_V(PACKED) },
                                { .quantized = true, .bound = true, .force = VKT_V(BLOCKS) },
                                { .force = VKT_V(SHARED) },
                                { .force = VKT_V(SPLIT_K) },
                                { .force = VKT_V(PLACED) },
                                { .force = VKT_V(PACKED) } };
    draw(&s);
    for (size_t k = 0; k < VKT_COUNT(ways); k++)
        for (uint32_t i = 0; i < 3; i++) {
            if (vkt_test_leaves_out(k + i, 3)) continue;
            draw_labels(&s, (const uint32_t[]){ 0, 4, 9 }[i]);
            const uint32_t count = compute(&s, ways[k].rows ? ways[k].rows : B, ways[k].sum);
            run(&s, &ways[k]);
            check(&s, &ways[k], count);
        }
}

static void one_label_is_enough(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static problem s;
    const way o = { .quantized = false };
    draw(&s);
    draw_labels(&s, 0);
    s.t[R - 1] = V - 1;
    assert_int_equal(compute(&s, B, false), 1);
    run(&s, &o);
    check(&s, &o, 1);
}

/* A label that is neither a class nor ignored makes the loss NaN. The other rows keep their gradients. */
static void a_label_that_is_no_class_shows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static problem s;
    const way o = { .quantized = false };
    draw(&s);
    draw_labels(&s, 9);
    s.t[40] = IGNORE;
    compute(&s, B, false);
    s.t[40] = V;
    run(&s, &o);
    assert_true(isnan(s.loss) && s.count == R - 1);
    assert_true(harness_close("dx", s.dx, s.want_dx, R * D, 2e-6, 2e-6));
    assert_true(harness_close("dw", s.dw, s.want_dw, V * D, 2e-6, 2e-6));
}

/* In a program of float16 with an optimizer, the gradient of the loss is the loss scale. Two steps must change the
 * weights as in float32, except for rounding. */
static void a_scaled_loss_trains_alike(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static problem s;
    static float w[2][V * D];
    const vkt_precision precisions[2] = { VKT_PRECISION_F32, VKT_PRECISION_F16 };
    draw(&s);
    draw_labels(&s, 4);
    for (int i = 0; i < 2; i++) {
        const way o = { .precision = precisions[i] };
        model m = build(&o);
        vkt_store *store = NULL;
        OK(vkt_update(m.g, &(vkt_optimizer){ .kind = VKT_SGD }));
        OK(vkt_store_create(harness_ctx, m.g, &store));
        vkt_program *p = make(m.g, store, &o);
        OK(vkt_store_write(store, 0, VKT_PART_VALUE, s.x));
        OK(vkt_store_write(store, 1, VKT_PART_VALUE, s.w));
        OK(vkt_program_write(p, m.t, s.t, sizeof s.t));
        for (int k = 0; k < 2; k++) OK(vkt_program_run(p, &(vkt_run){ .lr = 1 }, NULL));
        OK(vkt_store_read(store, 1, VKT_PART_VALUE, w[i]));
        vkt_program_destroy(&p);
        vkt_store_destroy(&store);
        vkt_graph_destroy(&m.g);
        harness_forget(harness_ctx);
    }
    for (size_t k = 0; k < V * D; k++) s.want_dw[k] = (double)w[0][k] - (double)s.w[k];
    for (size_t k = 0; k < V * D; k++) w[1][k] -= s.w[k];
    assert_true(harness_close("step", w[1], s.want_dw, V * D, 4e-3, 1e-3));
    for (size_t k = 0; k < V * D; k++)
        if (w[1][k] != 0) return;
    fail_msg("the weights have not changed");
}

/* ---- what is stored and computed ---- */

static uint32_t nodes_of(const vkt_graph *g, const vkt_op *op)
{
    uint32_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->op == op;
    return n;
}

static void lower(const vkt_graph *g, vkt_device_class cls, vkt_emit *e)
{
    const vkt_limits lim = { .traits = &vkt_class_traits[cls],
                             .subgroup_size = cls == VKT_CLASS_CPU ? 8 : 32,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .max_push_bytes = 128,
                             .shared_bytes = 49152,
                             .max_storage_range_bytes = 1u << 27,
                             .max_texel_elements = 1u << 27 };
    OK(vkt_lower(g, &lim, NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, e));
}

/* Builds the loss of `rows` labels of a large vocabulary, with a gradient of x if `train`. */
static vkt_graph *large(uint32_t rows, uint32_t classes, uint32_t width, bool train)
{
    vkt_graph *g = harness_graph();
    const vkt_shape xs = vkt_shape2(rows, width);
    const vkt_tensor x = train ? vkt_param(g, "x", xs) : vkt_input(g, "x", VKT_F32, VKT_ROWS, xs);
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(rows));
    const uint32_t words = (uint32_t)(vkt_quantized_bytes(VKT_QUANT_Q8_0, classes, width) / 4 + 1);
    const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1(words));
    const vkt_tensor loss = vkt_linear_cross_entropy_quantized(g, x, w, VKT_QUANT_Q8_0, classes, t, NULL);
    vkt_keep(g, loss);
    if (train) OK(vkt_backward(g, loss));
    return g;
}

/* Rows, classes and width of losses whose logits have 1.6 and 2.5 GB. */
static const uint32_t sizes[][3] = { { 8192, 49152, 576 }, { 4096, 151936, 1024 } };

/* No scratch and no activation is larger than 64 MiB. */
static void no_value_holds_all_logits(void **state)
{
    (void)state;
    for (size_t k = 0; k < VKT_COUNT(sizes); k++)
        for (int cls = 0; cls < VKT_CLASS_COUNT; cls++) {
            vkt_graph *g = large(sizes[k][0], sizes[k][1], sizes[k][2], true);
            vkt_emit e;
            lower(g, (vkt_device_class)cls, &e);
            for (size_t i = 0; i < e.n_extra; i++)
                if (e.extra[i].bytes > 64u << 20)
                    fail_msg("%s has %llu bytes", e.extra[i].name, (unsigned long long)e.extra[i].bytes);
            for (size_t i = 1; i < g->n_values; i++)
                assert_true(g->values[i].role != VKT_ROLE_ACTIVATION || g->values[i].bytes <= 64u << 20);
            vkt_lower_free(&e);
            vkt_graph_destroy(&g);
        }
}

/* The values that need memory at the same time are far smaller than all logits. They are a slice of logits, some rows
 * of x and dx, and on CPUs a range of unpacked weights. If the size of an unpacked row is a multiple of a page (4 KiB),
 * there is also this range in panels, the layout for tiles in registers (ops/product/gemm.h). The test only makes the
 * memory plan. */
static void logits_are_never_stored(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits real = harness_ctx->limits;
    for (size_t k = 0; k < VKT_COUNT(sizes); k++)
        for (int cls = 0; cls < VKT_CLASS_COUNT; cls++) {
            vkt_graph *g = large(sizes[k][0], sizes[k][1], sizes[k][2], true);
            vkt_program *p = NULL;
            vkt_plan_info plan;
            harness_ctx->limits.traits = &vkt_class_traits[cls];
            const vkt_result made = vkt_program_plan_least(harness_ctx, g, NULL, &p);
            harness_ctx->limits = real;
            OK(made);
            vkt_program_plan(p, &plan);
            assert_in_range(plan.total_bytes, 48u << 20, 128u << 20);
            vkt_program_destroy(&p);
            vkt_graph_destroy(&g);
        }
}

/* In the first graph, which has no gradient, all products compute logits. In the second graph, a single node computes
 * the loss and dx. This node computes the logits only once, so half of its products are for dx. */
static void logits_are_computed_once(void **state)
{
    (void)state;
    vkt_emit e;
    vkt_graph *g = large(640, 49152, 576, false);
    lower(g, VKT_CLASS_CPU, &e);
    const uint32_t products = dispatches_of(&e, VKT_K_GEMM_TILE);
    assert_true(products > 0 && dispatches_of(&e, VKT_K_LABEL_SCATTER) == 0);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
    g = large(640, 49152, 576, true);
    assert_int_equal(nodes_of(g, &vkt_op_linear_cross_entropy), 0);
    assert_int_equal(nodes_of(g, &vkt_op_linear_cross_entropy_dx), 1);
    lower(g, VKT_CLASS_CPU, &e);
    assert_int_equal(dispatches_of(&e, VKT_K_GEMM_TILE), 2 * products);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_and_ranges_add_up),       cmocka_unit_test(one_label_is_enough),
        cmocka_unit_test(a_label_that_is_no_class_shows), cmocka_unit_test(a_scaled_loss_trains_alike),
        cmocka_unit_test(no_value_holds_all_logits),      cmocka_unit_test(logits_are_never_stored),
        cmocka_unit_test(logits_are_computed_once),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
