/* Tests vkt_find_sizes. It finds the same largest batch and largest context as a search through all sizes. A step with
 * the largest context runs under the memory limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gpu/gpu.h"
#include "ir/ir.h"
#include "support/host.h"
#include "vktrain/vktrain.h"

#define OK(call) assert_int_equal((call), VKT_OK)

enum { WIDTH = 64, TABLE = 4096, MOST = 40 };

typedef struct model {
    vkt_array *table; /* the table of embeddings; NULL: it is not on the device */
    uint32_t most;    /* the largest context for which `build` succeeds */
    vkt_result error; /* what `build` returns for a larger context */
    unsigned calls;
} model;

/* Builds one block of a language model. The model's table of embeddings is frozen. */
static vkt_result build(void *user, uint32_t batch, uint32_t context, vkt_graph *g)
{
    model *m = user;
    m->calls++;
    if (context > m->most) return vkt_fail(&g->host, m->error, "a context of %u is too long", context);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(batch, context));
    const vkt_shape s = vkt_shape2(TABLE, WIDTH);
    const vkt_tensor table =
        m->table ? vkt_external_array(g, "table", m->table, VKT_F32, s) : vkt_external(g, "table", VKT_F32, s);
    const vkt_tensor x = vkt_embedding(g, ids, table, VKT_NO_PADDING);
    const vkt_tensor qkv = vkt_linear(g, x, vkt_param(g, "qkv", vkt_shape2(3 * WIDTH, WIDTH)), (vkt_tensor){ 0 });
    const vkt_tensor y = vkt_attention_packed(g, qkv, 4, NULL);
    const vkt_tensor z = vkt_linear(g, y, vkt_param(g, "out", vkt_shape2(1000, WIDTH)), (vkt_tensor){ 0 });
    const vkt_tensor loss = vkt_mean(g, vkt_mul(g, z, z));
    VKT_TRY(vkt_backward(g, loss));
    VKT_TRY(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(g, loss, (vkt_tensor){ 0 });
    return vkt_graph_status(g);
}

static vkt_ctx *open_device(uint64_t cap)
{
    const vkt_host h = vkt_test_host();
    const vkt_ctx_params params = {
        .max_device_bytes = cap, .block_bytes = 1 << 20, .staging_bytes = 1 << 16, .no_pipeline_cache = true
    };
    vkt_ctx *ctx = NULL;
    const vkt_result r = vkt_ctx_create(&params, &h, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    OK(r);
    return ctx;
}

static uint64_t need(vkt_ctx *ctx, uint32_t batch, uint32_t context)
{
    model m = { .most = UINT32_MAX };
    vkt_memory_needs n;
    vkt_graph *g;
    const vkt_host h = vkt_test_host();
    OK(vkt_graph_create(&h, &g));
    OK(build(&m, batch, context, g));
    OK(vkt_program_needs(ctx, g, NULL, &n));
    vkt_graph_destroy(&g);
    assert_int_equal(n.array_bytes, 4 * TABLE * WIDTH);
    return n.cap_bytes;
}

/* Returns the largest context (`of_context`) or the largest batch that fits, or 0 if none fits. Tries MOST and all
 * multiples of `step` below MOST. `other` is the batch or the context that is fixed. */
static uint32_t largest(vkt_ctx *ctx, bool of_context, uint32_t other, uint32_t step, uint64_t limit)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i <= MOST; i++)
        if ((i % step == 0 || i == MOST) && (of_context ? need(ctx, other, i) : need(ctx, i, other)) <= limit) best = i;
    return best;
}

static void the_largest_sizes_are_found(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device(0);
    const uint64_t least = need(ctx, 1, 1), most = need(ctx, MOST, MOST);
    uint32_t found = 0, middle = 0;
    for (uint32_t wanted = 4; wanted <= MOST; wanted += 9)
        for (uint32_t step = 1; step <= 7; step += 6)
            for (int part = -1; part <= 9; part += 2) {
                model m = { .most = UINT32_MAX };
                vkt_sizes s;
                const uint64_t limit =
                    part < 0 ? least - 1 : least + (most - least) * (uint64_t)part * (uint64_t)part / 80;
                const vkt_size_params p = { .build = build,
                                            .user = &m,
                                            .batch = wanted,
                                            .context = 24,
                                            .most_batch = MOST,
                                            .most_context = MOST,
                                            .context_step = step,
                                            .max_bytes = limit + 1000,
                                            .other_bytes = 1000 };
                OK(vkt_find_sizes(ctx, &p, &s));
                assert_true(s.planned);
                assert_int_equal(s.limit_bytes, limit + 1000);
                assert_int_equal(s.need_bytes, need(ctx, wanted, 24) + 1000);
                assert_int_equal(s.fits, s.need_bytes <= s.limit_bytes);
                assert_int_equal(s.batch, largest(ctx, false, 24, 1, limit));
                const uint32_t context = largest(ctx, true, wanted, step, limit);
                assert_int_equal(s.context, s.fits ? VKT_MAX(context, 24) : context);
                assert_int_equal(s.plans, m.calls);
                assert_true(s.plans <= 16);
                found += s.batch > 0;
                middle += s.batch > 0 && s.batch < MOST && s.context > 0 && s.context < MOST;
            }
    assert_true(found > 0 && middle > 0);
    vkt_ctx_destroy(&ctx);
}

/* A step with the largest context runs on a vkt_ctx whose memory cap is the limit of the search. The table of
 * embeddings is on the device before the search. */
static void the_largest_sizes_run(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device(12 << 20);
    model m = { .most = 512 };
    vkt_sizes sizes;
    OK(vkt_array_create(ctx, &(vkt_array_params){ .dtype = VKT_F32, .shape = vkt_shape2(TABLE, WIDTH) }, &m.table));
    const vkt_size_params p = { .build = build, .user = &m, .batch = 2, .context = 16, .most_context = 512 };
    OK(vkt_find_sizes(ctx, &p, &sizes));
    assert_true(sizes.fits && sizes.batch == 2 && sizes.context > 16 && sizes.context < 512);
    assert_int_equal(sizes.limit_bytes, 12 << 20);
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_store *s;
    vkt_program *program;
    OK(vkt_graph_create(&h, &g));
    OK(build(&m, 2, sizes.context, g));
    OK(vkt_store_create(ctx, g, &s));
    OK(vkt_program_create(ctx, g, s, NULL, &program));
    OK(vkt_program_run(program, NULL, NULL));
    OK(vkt_program_wait(program));
    vkt_program_destroy(&program);
    vkt_store_destroy(&s);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&m.table);
    vkt_ctx_destroy(&ctx);
}

static void what_a_device_cannot_run_does_not_fit(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device(0);
    vkt_sizes s;
    model m = { .most = 13, .error = VKT_E_DEVICE_MEMORY };
    vkt_size_params p = { .build = build, .user = &m, .batch = 3, .context = 6, .most_context = 99 };
    OK(vkt_find_sizes(ctx, &p, &s));
    assert_true(s.planned && s.fits && s.batch == 3 && s.context == 13);
    p.context = 20;
    vkt_test_expect_errors(true); /* the reason why the wanted sizes cannot run is logged */
    OK(vkt_find_sizes(ctx, &p, &s));
    vkt_test_error_contains("a context of 20 is too long");
    vkt_test_expect_errors(false);
    assert_true(!s.planned && !s.fits && s.batch == 0 && s.context == 13);
    assert_int_equal(s.needs.total_bytes, 0);
    vkt_ctx_destroy(&ctx);
}

static void errors_end_the_search(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device(0);
    vkt_sizes s;
    model m = { .most = 8, .error = VKT_E_SHAPE };
    vkt_size_params p = { .build = build, .user = &m, .batch = 1, .context = 6, .most_context = 9 };
    assert_int_equal(vkt_find_sizes(ctx, &p, &s), VKT_E_SHAPE); /* `build` fails for context 9 */
    assert_true(!s.planned && !s.fits && s.limit_bytes == 0 && s.need_bytes == 0 && s.batch == 0 && s.plans == 0);
    p.most_context = 8;
    OK(vkt_find_sizes(ctx, &p, &s));
    assert_int_equal(s.context, 8);
    vkt_test_expect_errors(true);
    p.most_context = 5;
    assert_int_equal(vkt_find_sizes(ctx, &p, &s), VKT_E_ARG);
    vkt_test_error_contains("a context of 1 to 5, got 1 and 6");
    p = (vkt_size_params){ .build = build, .user = &m, .batch = 0, .context = 6 };
    assert_int_equal(vkt_find_sizes(ctx, &p, &s), VKT_E_ARG);
    p = (vkt_size_params){ .user = &m, .batch = 1, .context = 6 };
    assert_int_equal(vkt_find_sizes(ctx, &p, &s), VKT_E_ARG);
    p = (vkt_size_params){ .build = build, .user = &m, .batch = 1, .context = 6 };
    p.program = &(vkt_program_params){ .precision = (vkt_precision)99 };
    assert_int_equal(vkt_find_sizes(ctx, &p, &s), VKT_E_ARG);
    vkt_test_error_contains("vkt_precision");
    vkt_test_expect_errors(false);
    vkt_ctx_destroy(&ctx);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device(0);
    vkt_sizes s;
    model m = { .most = 13, .error = VKT_E_DEVICE_MEMORY };
    const vkt_size_params p = { .build = build, .user = &m, .batch = 3, .context = 4, .most_context = 5 };
    OK(vkt_find_sizes(ctx, &p, &s)); /* the first search also makes allocations that ctx keeps */
    const size_t blocks = vkt_test_live_blocks();
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_find_sizes(ctx, &p, &s);
        if (!vkt_test_allocation_failed()) {
            assert_int_equal(r, VKT_OK);
            break;
        }
        /* If vkt_find_sizes cannot plan the memory for the wanted sizes, it tries this once more, to log the error. The
         * second attempt succeeds, because only one allocation fails. */
        assert_true(r == VKT_E_NOMEM || (r == VKT_OK && s.planned && s.context == 5));
        assert_int_equal(vkt_test_live_blocks(), blocks);
    }
    vkt_test_fail_allocation(0);
    vkt_ctx_destroy(&ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_largest_sizes_are_found), TEST(the_largest_sizes_run),     TEST(what_a_device_cannot_run_does_not_fit),
        TEST(errors_end_the_search),       TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
