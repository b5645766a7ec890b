/* Tests the ops of a step that is split into shards (ops/step/shard.c). A shard is a part of the step's batch, and a
 * rank computes one or more shards. The op shard_sum adds up the gradients of the rank's shards. The sum has the bits
 * of a sum on the host, and the op writes nothing outside of its bucket, a range of the gradients. Each shard begins
 * with the same states, for instance running means. The next state is the mean of the states of all shards, weighted by
 * the rows of each shard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { BLOCK = VKT_ALIGN_BYTES / 4, MOST_LEVELS = 3, MOST_PARTS = 3, MOST_RUNS = MOST_PARTS << MOST_LEVELS };
static const uint32_t poison = 0x7fff7fffu; /* a quiet NaN */

/* ---- the sum on the host ---- */

static float from_bits(uint32_t b)
{
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return b;
}

static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? 0.0f : x;
}

/* Rounds to bfloat16, to nearest, ties to even. */
static float narrow(float x)
{
    const uint32_t b = bits_of(x), rest = b & 0xffffu, odd = b >> 16 & 1u;
    if (isnan(x)) return x;
    return from_bits((b & 0xffff0000u) + (rest > 0x8000u || (rest == 0x8000u && odd) ? 0x10000u : 0));
}

/* The runs of one step: 2^levels shards with `parts` runs each. A binary tree of `levels` levels adds the shards. Run i
 * has rows[i] rows, and a gradient of n numbers. */
typedef struct shard_runs {
    uint32_t levels, parts, n;
    bool bf16;
    const float *g; /* (runs,n) */
    const uint32_t *rows;
} shard_runs;

static float sum_of_shard(const shard_runs *s, uint32_t shard, uint32_t i)
{
    float sum = 0;
    for (uint32_t p = 0; p < s->parts; p++) {
        const uint32_t run = shard * s->parts + p;
        const float one = s->rows[run] ? flush((float)s->rows[run] * s->g[(size_t)run * s->n + i]) : 0;
        sum = p ? flush(sum + one) : one;
    }
    return sum;
}

static float sum_of(const shard_runs *s, uint32_t first, uint32_t shards, uint32_t i)
{
    if (shards == 1) return sum_of_shard(s, first, i);
    float a = sum_of(s, first, shards / 2, i), b = sum_of(s, first + shards / 2, shards / 2, i);
    if (s->bf16) {
        a = narrow(a);
        b = narrow(b);
    }
    return flush(a + b);
}

/* ---- a graph of shards without a network: the test writes the gradients ---- */

typedef struct rig {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_shard_values v;
    vkt_array *sum, *planes, *saved;
    uint64_t ends[8];
    uint32_t n; /* how many numbers the arena has */
} rig;

static vkt_array *vector_for(rig *r, vkt_tensor t)
{
    if (!t.id) return NULL;
    vkt_array *a;
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .shape = vkt_tensor_shape(r->g, t) }, &a));
    const uint32_t n = (uint32_t)vkt_shape_elements(vkt_tensor_shape(r->g, t));
    float *nan = test_malloc(n * sizeof *nan);
    for (uint32_t i = 0; i < n; i++) nan[i] = from_bits(poison);
    OK(vkt_array_write(a, 0, nan, n * sizeof *nan));
    test_free(nan);
    return a;
}

/* Makes the store, the vectors and the program of r->g, with the limits that `change` (may be NULL) sets. */
static void make_program(rig *r, void (*change)(vkt_limits *))
{
    OK(vkt_graph_status(r->g));
    OK(vkt_store_create(harness_ctx, r->g, &r->store));
    r->sum = vector_for(r, r->v.sum);
    r->planes = vector_for(r, r->v.planes);
    r->saved = vector_for(r, r->v.saved);
    vkt_binding arrays[3] = { { r->v.sum, r->sum } };
    uint32_t n = 1;
    if (r->planes) arrays[n++] = (vkt_binding){ r->v.planes, r->planes };
    if (r->saved) arrays[n++] = (vkt_binding){ r->v.saved, r->saved };
    const vkt_program_params p = { .arrays = arrays, .n_arrays = n };
    const vkt_limits real = harness_ctx->limits;
    if (change) change(&harness_ctx->limits);
    const vkt_result made = vkt_program_create_guarded(harness_ctx, r->g, r->store, &p, &r->p);
    harness_ctx->limits = real;
    OK(made);
    OK(vkt_program_poison(r->p, poison));
}

static void rig_free(rig *r)
{
    bool intact;
    const char *bad;
    OK(vkt_program_check_guards(r->p, poison, &intact, &bad));
    if (!intact) fail_msg("words behind %s were written to", bad);
    vkt_program_destroy(&r->p);
    vkt_store_destroy(&r->store);
    vkt_array_destroy(&r->sum);
    vkt_array_destroy(&r->planes);
    vkt_array_destroy(&r->saved);
    vkt_graph_destroy(&r->g);
    harness_forget(harness_ctx);
}

/* Makes a graph of shards and its program. The graph has one parameter of `blocks` * BLOCK numbers. The arena is
 * divided into `buckets` buckets. */
static rig rig_make(const shard_runs *s, uint32_t blocks, uint32_t buckets, void (*change)(vkt_limits *))
{
    rig r = { .g = harness_graph(), .n = blocks * BLOCK };
    vkt_param(r.g, "p", vkt_shape1(r.n));
    vkt_graph_arena(r.g, VKT_ROLE_GRAD);
    for (uint32_t i = 0; i < buckets; i++) r.ends[i] = (uint64_t)blocks * (i + 1) / buckets * VKT_ALIGN_BYTES;
    const vkt_shard_params p = { .levels = s->levels,
                                 .parts = s->parts,
                                 .draws = s->parts << s->levels,
                                 .bf16 = s->bf16,
                                 .ends = r.ends,
                                 .n_ends = buckets };
    OK(vkt_shard_sums(r.g, &p, &r.v));
    make_program(&r, change);
    return r;
}

static void run(rig *r, uint32_t shard, uint32_t part, uint32_t rows)
{
    const vkt_shard_run words = { .shard = shard, .part = part, .draw = 1 };
    uint64_t index;
    OK(vkt_program_run_sections(r->p, &(vkt_run){ .rows = rows }, &words, NULL, NULL, &index));
    OK(vkt_program_wait(r->p));
}

/* Runs a whole step and compares the sum with sum_of, the sum on the host. */
static void check_step(rig *r, const shard_runs *s)
{
    for (uint32_t i = 0; i < s->parts << s->levels; i++) {
        OK(vkt_store_write(r->store, 0, VKT_PART_GRADIENT, s->g + (size_t)i * s->n));
        run(r, i / s->parts, i % s->parts, s->rows[i]);
    }
    float *got = test_malloc(s->n * sizeof *got);
    OK(vkt_readback(harness_ctx, r->sum->buffer, 0, got, s->n * sizeof *got));
    for (uint32_t i = 0; i < s->n; i++) {
        const float want = sum_of(s, 0, 1u << s->levels, i);
        if (isnan(want) ? isnan(got[i]) : bits_of(want) == bits_of(got[i])) continue;
        fail_msg("levels %u, parts %u, %s, number %u of %u: %a, want %a", s->levels, s->parts, s->bf16 ? "bf16" : "f32",
                 i, s->n, (double)got[i], (double)want);
    }
    test_free(got);
}

/* Returns random gradients. The caller frees them. About one in eight is special: infinite, a NaN, -0, or a number that
 * is hard to round. None is subnormal: a device may round a subnormal number to 0 before it multiplies, or may
 * not. */
static float *draw(uint32_t seed, uint32_t runs, uint32_t n)
{
    static const uint32_t odd[] = { 0x00800000u, 0x80800001u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x80000000u,
                                    0x7f7fffffu, 0x3f808000u, 0x3f818000u, 0x33800000u, 0x00ffffffu, 0x3f808001u };
    float *g = test_malloc((size_t)runs * n * sizeof *g);
    vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_TEST, 21, 0);
    for (size_t i = 0; i < (size_t)runs * n; i++) {
        const float x = ((float)vkt_rng_range(&rng, 0, 1u << 24) - 0x1p23f) * 0x1p-22f;
        const uint32_t kind = vkt_rng_range(&rng, 0, 7);
        g[i] = kind ? x : from_bits(odd[vkt_rng_range(&rng, 0, VKT_COUNT(odd) - 1)]);
    }
    return g;
}

static void small_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 4096;
}

static void tiny_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 1024;
}

static void every_tree_is_that_of_the_host(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t blocks[] = { 1, 13, 37, 64 };
    uint32_t c = 0;
    for (uint32_t levels = 0; levels <= MOST_LEVELS; levels++)
        for (uint32_t parts = 1; parts <= MOST_PARTS; parts++)
            for (int bf16 = 0; bf16 < 2; bf16++, c++) {
                const uint32_t n = blocks[c % VKT_COUNT(blocks)] * BLOCK, runs = parts << levels;
                uint32_t rows[MOST_RUNS];
                for (uint32_t i = 0; i < runs; i++) rows[i] = (i * 5 + c) % 4; /* some runs have no rows */
                shard_runs s = { levels, parts, n, bf16, draw(c, runs, n), rows };
                rig r = rig_make(&s, n / BLOCK, n / BLOCK < 4 ? 1 : 1 + c % 4, c % 3 ? small_storage : NULL);
                check_step(&r, &s);
                for (uint32_t i = 0; i < runs; i++) rows[i] = 1 + (i + c) % 3;
                check_step(&r, &s); /* a second step: its sums contain nothing of the first step */
                rig_free(&r);
                test_free((void *)(uintptr_t)s.g);
            }
}

/* A run with 0 rows adds zeros, even if its gradient and all partial sums (planes) are NaN. */
static void a_run_without_rows_adds_nothing(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 3 * BLOCK, RUNS = 8 };
    static const uint32_t rows[][RUNS] = { { 0 }, { 3, 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0, 2 }, { 2, 2, 1 } };
    float g[RUNS * N];
    for (size_t c = 0; c < VKT_COUNT(rows); c++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            for (uint32_t i = 0; i < RUNS * N; i++) g[i] = rows[c][i / N] ? (float)(i % 19) : NAN;
            const shard_runs s = { parts == 2 ? 2 : 3, parts, N, false, g, rows[c] };
            rig r = rig_make(&s, 3, 2, NULL);
            check_step(&r, &s);
            for (uint32_t i = 0; i < N; i++) assert_true(isfinite(sum_of(&s, 0, 1u << s.levels, i)));
            rig_free(&r);
        }
}

/* A binary tree and a plain loop over the shards give different sums of these numbers. */
static void the_sum_is_a_tree(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = BLOCK, RUNS = 4 };
    static const uint32_t rows[RUNS] = { 1, 1, 1, 1 };
    static const float by_shard[RUNS] = { 0x1p24f, 1, 1, 1 }; /* tree: (2^24 + 1) + (1 + 1) = 2^24 + 2; loop: 2^24 */
    float g[RUNS * N];
    for (uint32_t i = 0; i < RUNS * N; i++) g[i] = by_shard[i / N];
    const shard_runs s = { 2, 1, N, false, g, rows };
    rig r = rig_make(&s, 1, 1, NULL);
    check_step(&r, &s);
    float sum;
    OK(vkt_readback(harness_ctx, r.sum->buffer, 0, &sum, sizeof sum));
    assert_true(sum == 0x1p24f + 2);
    rig_free(&r);
}

/* The bucket is in the middle of the arena. The op writes only the bucket's part of the sum and of the planes (partial
 * sums), also if bindings are small. */
static void only_the_bucket_is_written(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { BLOCKS = 23, FIRST = 5, COUNT = 11, LEVELS = 2, PLANES = LEVELS + 1, N = BLOCKS * BLOCK };
    for (int small = 0; small < 2; small++) {
        rig r = { .g = harness_graph(), .n = N };
        vkt_param(r.g, "p", vkt_shape1(N));
        const vkt_tensor grad = vkt_graph_arena(r.g, VKT_ROLE_GRAD);
        r.g->draws = 8;
        vkt_step_advance(r.g, false);
        r.g->has_advance = true;
        r.v.sum = vkt_external(r.g, "sum", VKT_F32, vkt_shape1(N));
        r.v.planes = vkt_external(r.g, "planes", VKT_F32, vkt_shape1(PLANES * N));
        const vkt_shard_sum_attr a = {
            .offset_bytes = FIRST * VKT_ALIGN_BYTES, .bytes = COUNT * VKT_ALIGN_BYTES, .levels = LEVELS, .parts = 2
        };
        const vkt_tensor in[] = { grad, r.v.sum, r.v.planes };
        vkt_apply(r.g, &vkt_op_shard_sum, in, VKT_COUNT(in), &a, NULL);
        make_program(&r, small ? small_storage : NULL);
        float *v = test_malloc(PLANES * N * sizeof *v);
        for (uint32_t i = 0; i < N; i++) v[i] = 1;
        OK(vkt_store_write(r.store, 0, VKT_PART_GRADIENT, v));
        for (uint32_t i = 0; i < 8; i++) run(&r, i / 2, i % 2, 1);
        OK(vkt_readback(harness_ctx, r.sum->buffer, 0, v, N * sizeof *v));
        for (uint32_t i = 0; i < N; i++) {
            const bool inside = i >= FIRST * BLOCK && i < (FIRST + COUNT) * BLOCK;
            assert_true(inside ? v[i] == 8 : bits_of(v[i]) == poison);
        }
        OK(vkt_readback(harness_ctx, r.planes->buffer, 0, v, PLANES * N * sizeof *v));
        for (uint32_t i = 0; i < PLANES * N; i++) {
            const bool inside = i >= PLANES * FIRST * BLOCK && i < PLANES * (FIRST + COUNT) * BLOCK;
            assert_true(inside ? isfinite(v[i]) : bits_of(v[i]) == poison);
        }
        test_free(v);
        rig_free(&r);
    }
}

/* ---- states ---- */

enum { PARAMS = 6, MOST = 70 };
static const struct {
    const char *name;
    uint32_t n;
    bool state;
} params[PARAMS] = { { "a", 64, false }, { "mean", 5, true }, { "var", MOST, true },
                     { "b", 3, false },  { "last", 1, true }, { "c", 65, false } };

/* Declares `params` in g. No node writes the states, because the test does it. So the function itself says that the
 * states change. */
static void declare(vkt_graph *g)
{
    for (uint32_t i = 0; i < PARAMS; i++) {
        const vkt_tensor t = (params[i].state ? vkt_state : vkt_param)(g, params[i].name, vkt_shape1(params[i].n));
        g->values[t.id].changes = params[i].state;
    }
    vkt_graph_arena(g, VKT_ROLE_GRAD);
}

static void fill(float *v, uint32_t i, float by)
{
    for (uint32_t k = 0; k < params[i].n; k++) v[k] = by + (float)(k % 8) * 0.25f;
}

static void expect(rig *r, uint32_t i, vkt_store_part part, float by)
{
    float got[MOST], want[MOST];
    OK(vkt_store_read(r->store, i, part, got));
    fill(want, i, by);
    assert_memory_equal(got, want, params[i].n * sizeof *got);
}

/* Makes two steps of two shards. Before each run, the test writes other states, as the forward pass of the previous
 * shard would. The first run of a step saves the states, and the second run restores them. */
static void every_shard_begins_with_the_same_states(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    rig r = { .g = harness_graph() };
    declare(r.g);
    r.ends[0] = r.g->arena_bytes;
    OK(vkt_shard_sums(r.g, &(vkt_shard_params){ 1, 1, 2, false, r.ends, 1 }, &r.v));
    make_program(&r, NULL);
    assert_int_equal(vkt_shard_saved_bytes(r.g), 4 * VKT_ALIGN_BYTES); /* `mean` and `last`: 1 BLOCK each; `var`: 2 */
    float v[MOST];
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t shard = 0; shard < 2; shard++) {
            for (uint32_t i = 0; i < PARAMS; i++) {
                fill(v, i, (float)(step * 10 + shard * 3 + i + 1));
                OK(vkt_store_write(r.store, i, VKT_PART_VALUE, v));
                fill(v, i, (float)(shard + 1));
                OK(vkt_store_write(r.store, i, VKT_PART_GRADIENT, v));
            }
            run(&r, shard, 0, 1 + shard);
            for (uint32_t i = 0; i < PARAMS; i++) {
                const float saved = (float)(step * 10 + i + 1), now = (float)(step * 10 + shard * 3 + i + 1);
                expect(&r, i, VKT_PART_VALUE, params[i].state ? saved : now);
                expect(&r, i, VKT_PART_GRADIENT, params[i].state ? saved : (float)(shard + 1));
            }
        }
        float *sum = test_malloc(r.g->arena_bytes);
        OK(vkt_readback(harness_ctx, r.sum->buffer, 0, sum, r.g->arena_bytes));
        for (uint32_t i = 0; i < PARAMS; i++) {
            const float *got = sum + r.g->values[r.g->params[i]].arena_offset_bytes / 4;
            float one[MOST], two[MOST];
            fill(one, i, params[i].state ? (float)(step * 10 + i + 1) : 1);
            fill(two, i, params[i].state ? (float)(step * 10 + i + 1) : 2);
            for (uint32_t k = 0; k < params[i].n; k++) assert_true(got[k] == one[k] + 2 * two[k]);
        }
        test_free(sum);
    }
    rig_free(&r);
}

/* With bf16, summands of gradients are rounded, but those of states are not. All numbers are 1 + 2^-10, which bfloat16
 * rounds to 1. Several dispatches compute the sum if `small`, and a bucket ends between two states. */
static void states_are_not_rounded(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int small = 0; small < 2; small++) {
        rig r = { .g = harness_graph() };
        float v[MOST], sum[9 * BLOCK];
        declare(r.g);
        assert_true(r.g->arena_bytes <= sizeof sum);
        r.ends[0] = r.g->values[r.g->params[2]].arena_offset_bytes;
        r.ends[1] = r.g->arena_bytes;
        OK(vkt_shard_sums(r.g, &(vkt_shard_params){ 1, 1, 2, true, r.ends, 2 }, &r.v));
        make_program(&r, small ? tiny_storage : NULL);
        for (uint32_t k = 0; k < MOST; k++) v[k] = 1 + 0x1p-10f;
        for (uint32_t i = 0; i < PARAMS; i++) {
            OK(vkt_store_write(r.store, i, VKT_PART_VALUE, v));
            OK(vkt_store_write(r.store, i, VKT_PART_GRADIENT, v));
        }
        for (uint32_t shard = 0; shard < 2; shard++) run(&r, shard, 0, 1);
        OK(vkt_readback(harness_ctx, r.sum->buffer, 0, sum, r.g->arena_bytes));
        for (uint32_t i = 0; i < PARAMS; i++) {
            const float *got = sum + r.g->values[r.g->params[i]].arena_offset_bytes / 4;
            for (uint32_t k = 0; k < params[i].n; k++) assert_true(got[k] == (params[i].state ? 2 * v[k] : 2));
        }
        rig_free(&r);
    }
}

/* The ops of states leave out a state that no node of the graph writes. */
static void a_state_that_nothing_writes_has_no_nodes(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph(), *update = harness_graph();
    enum { CHANNELS = 3 };
    vkt_batch_norm_params bn = { .running_mean = vkt_state(g, "mean", vkt_shape1(CHANNELS)),
                                 .running_var = vkt_state(g, "var", vkt_shape1(CHANNELS)),
                                 .evaluate = true };
    const vkt_tensor gamma = vkt_param(g, "gamma", vkt_shape1(CHANNELS));
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(4, CHANNELS));
    const vkt_tensor scaled = vkt_batch_norm(g, x, &(vkt_batch_norm_params){ .gamma = gamma });
    OK(vkt_backward(g, vkt_mean(g, vkt_mul(g, vkt_batch_norm(g, scaled, &bn), x))));
    const uint64_t end = g->arena_bytes;
    const vkt_shard_params p = { 1, 1, 2, true, &end, 1 };
    vkt_shard_values v;
    OK(vkt_shard_sums(g, &p, &v));
    OK(vkt_update_by_sum(update, g, &(vkt_optimizer){ 0 }, &p, &v.update));
    assert_int_equal(v.saved.id, 0);
    for (size_t i = 0; i < g->n_nodes; i++)
        assert_true(g->nodes[i]->op != &vkt_op_shard_begin && g->nodes[i]->op != &vkt_op_shard_give);
    for (size_t i = 0; i < update->n_nodes; i++) assert_true(update->nodes[i]->op != &vkt_op_shard_take);
    vkt_graph_destroy(&update);
    vkt_graph_destroy(&g);
}

/* The update stores the mean over all rows as the next state. With SGD and a learning rate of 0, the update changes no
 * parameter. */
static void the_mean_over_the_rows_is_the_next_state(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    rig of = { .g = harness_graph() }, r = { .g = harness_graph() };
    declare(of.g);
    of.ends[0] = VKT_ALIGN_BYTES; /* the first bucket has only the first parameter */
    of.ends[1] = of.g->arena_bytes;
    const vkt_shard_params p = { 0, 1, 1, false, of.ends, 2 };
    OK(vkt_update_by_sum(r.g, of.g, &(vkt_optimizer){ 0 }, &p, &r.v.sum));
    make_program(&r, NULL);
    float *sum = test_calloc(1, r.g->arena_bytes), v[MOST];
    for (uint32_t i = 0; i < PARAMS; i++) {
        fill(v, i, 1);
        OK(vkt_store_write(r.store, i, VKT_PART_VALUE, v));
        fill(v, i, 7);
        for (uint32_t k = 0; k < params[i].n; k++)
            sum[r.g->values[r.g->params[i]].arena_offset_bytes / 4 + k] = 8 * v[k];
    }
    OK(vkt_array_write(r.sum, 0, sum, r.g->arena_bytes));
    OK(vkt_program_run(r.p, &(vkt_run){ .lr = 0, .rows = 8 }, NULL));
    OK(vkt_program_wait(r.p));
    for (uint32_t i = 0; i < PARAMS; i++) expect(&r, i, VKT_PART_VALUE, params[i].state ? 7 : 1);
    OK(vkt_program_run(r.p, &(vkt_run){ .lr = 1, .rows = 8 }, NULL));
    OK(vkt_program_wait(r.p));
    OK(vkt_store_read(r.store, 0, VKT_PART_VALUE, v));
    /* The value was 1 + c and the mean gradient is 7 + c, with c = 0.25 * (k % 8). The learning rate is 1. */
    for (uint32_t k = 0; k < params[0].n; k++) assert_true(v[k] == -6);
    test_free(sum);
    vkt_graph_destroy(&of.g);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tree_is_that_of_the_host),
        cmocka_unit_test(a_run_without_rows_adds_nothing),
        cmocka_unit_test(the_sum_is_a_tree),
        cmocka_unit_test(only_the_bucket_is_written),
        cmocka_unit_test(every_shard_begins_with_the_same_states),
        cmocka_unit_test(states_are_not_rounded),
        cmocka_unit_test(a_state_that_nothing_writes_has_no_nodes),
        cmocka_unit_test(the_mean_over_the_rows_is_the_next_state),
    };
    return cmocka_run_group_tests_name("shards", tests, harness_setup, harness_teardown);
}
