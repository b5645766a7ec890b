/* Tests buffers in memory blocks: contents, the cap, trimming, statistics, and refusals of the driver. A block is an
 * allocation of device memory from which buffers get ranges. */
#include "fake.h"

#include <stdlib.h>

#include "base/philox.h"

#define MiB ((uint64_t)1 << 20)

static vkt_memory_stats stats(const vkt_ctx *ctx)
{
    vkt_memory_stats s;
    vkt_ctx_memory(ctx, &s);
    return s;
}

static vkt_ctx *open_capped(uint64_t cap)
{
    return rig_open(&(vkt_ctx_params){ .max_device_bytes = cap, .no_pipeline_cache = true }, NULL);
}

static vkt_buffer *make(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, cls, bytes, "test", &b), VKT_OK);
    return b;
}

static void fill_pattern(uint32_t *words, uint64_t n, uint32_t seed)
{
    for (uint64_t i = 0; i < n; i++) words[i] = seed * 2654435761u + (uint32_t)i;
}

/* Buffers are created and freed in random order. Each must keep the data that were uploaded to it. */
static void buffers_keep_their_contents(void **state)
{
    (void)state;
    enum { SLOTS = 48, ITERATIONS = 600, WORDS = 1 << 18 };
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_rng r = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
    vkt_buffer *live[SLOTS] = { 0 };
    uint64_t words[SLOTS];
    uint32_t seed[SLOTS];
    uint32_t *want = malloc(WORDS * 4), *got = malloc(WORDS * 4);
    assert_true(want && got);
    uint64_t sum = 0;
    vkt_buffer *half = make(ctx, VKT_MEM_DATA, 64 * MiB); /* its block stays; all buffers fit into this block */
    vkt_buffer_destroy(ctx, &half);
    for (uint32_t iteration = 0; iteration < ITERATIONS; iteration++) {
        const uint32_t i = vkt_rng_range(&r, 0, SLOTS - 1);
        if (live[i]) {
            fill_pattern(want, words[i], seed[i]);
            assert_int_equal(vkt_readback(ctx, live[i], 0, got, words[i] * 4), VKT_OK);
            assert_memory_equal(want, got, words[i] * 4);
            sum -= live[i]->bytes;
            vkt_buffer_destroy(ctx, &live[i]);
            assert_null(live[i]);
        } else {
            words[i] = vkt_rng_range(&r, 1, vkt_rng_range(&r, 0, 3) ? 5000 : WORDS);
            seed[i] = vkt_rng_u32(&r);
            live[i] = make(ctx, VKT_MEM_DATA, words[i] * 4);
            assert_int_equal(live[i]->bytes % VKT_ALIGN_BYTES, 0);
            sum += live[i]->bytes;
            fill_pattern(want, words[i], seed[i]);
            assert_int_equal(vkt_upload(ctx, live[i], 0, want, words[i] * 4), VKT_OK);
        }
        assert_int_equal(stats(ctx).used_bytes[VKT_MEM_DATA], sum);
    }
    for (uint32_t i = 0; i < SLOTS; i++) vkt_buffer_destroy(ctx, &live[i]);
    assert_int_equal(stats(ctx).used_bytes[VKT_MEM_DATA], 0);
    /* The free ranges of the block were merged. So this buffer fits, even if the staging rings (the buffers for uploads
     * and readbacks) are in the block. */
    const uint64_t before = ctx->counters.device_allocs;
    half = make(ctx, VKT_MEM_DATA, 16 * MiB);
    assert_int_equal(ctx->counters.device_allocs, before);
    vkt_buffer_destroy(ctx, &half);
    free(want);
    free(got);
    vkt_ctx_destroy(&ctx);
}

static void statistics_count_by_class(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *a = make(ctx, VKT_MEM_PARAMETERS, 1000), *b = make(ctx, VKT_MEM_SCRATCH, 3 * MiB);
    vkt_memory_stats s = stats(ctx);
    assert_int_equal(s.used_bytes[VKT_MEM_PARAMETERS], 1024);
    assert_int_equal(s.used_bytes[VKT_MEM_SCRATCH], 3 * MiB);
    assert_int_equal(s.used_total_bytes, 3 * MiB + 1024);
    assert_true(s.reserved_bytes >= s.used_total_bytes && s.reserved_bytes <= s.cap_bytes);
    vkt_buffer_destroy(ctx, &b);
    b = make(ctx, VKT_MEM_SCRATCH, MiB);
    s = stats(ctx);
    assert_int_equal(s.used_bytes[VKT_MEM_SCRATCH], MiB);
    assert_int_equal(s.peak_bytes[VKT_MEM_SCRATCH], 3 * MiB);
    assert_int_equal(s.peak_total_bytes, 3 * MiB + 1024);
    assert_int_equal(ctx->counters.buffers_created, 3);
    vkt_buffer_destroy(ctx, &a);
    vkt_buffer_destroy(ctx, &b);
    assert_true(vkt_ctx_trim(ctx) == s.reserved_bytes && vkt_ctx_trim(ctx) == 0);
    assert_int_equal(stats(ctx).reserved_bytes, 0);
    assert_int_equal(stats(ctx).reserved_peak_bytes, s.reserved_bytes);
    vkt_ctx_destroy(&ctx);
}

/* Each block but the first is as large as all blocks before it together, up to a limit. */
static void blocks_grow(void **state)
{
    (void)state;
    enum { N = 40 };
    static const uint64_t limits[] = { 0, 2 * MiB };
    for (int k = 0; k < 2; k++) {
        const vkt_ctx_params params = { .no_pipeline_cache = true, .block_bytes = limits[k] };
        vkt_ctx *ctx = rig_open(&params, NULL);
        vkt_buffer *b[N];
        const uint64_t allocs = ctx->counters.device_allocs;
        for (uint32_t i = 0; i < N; i++) {
            b[i] = make(ctx, VKT_MEM_DATA, MiB / 2);
            const vkt_memory_stats s = stats(ctx);
            if (i < 2) assert_int_equal(s.reserved_bytes, MiB);
            assert_true(s.reserved_bytes <= VKT_MAX(2 * s.used_total_bytes, MiB));
        }
        /* All buffers together have 20 MiB. With the default limit the blocks have 1, 1, 2, 4, 8 and 16 MiB. With the
         * limit of 2 MiB there are two blocks of 1 MiB and nine blocks of 2 MiB. */
        assert_int_equal(ctx->counters.device_allocs - allocs, k ? 11 : 6);
        for (uint32_t i = 0; i < N; i++) vkt_buffer_destroy(ctx, &b[i]);
        vkt_ctx_destroy(&ctx);
    }
}

static void the_cap_holds(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_capped(10 * MiB);
    assert_int_equal(stats(ctx).cap_bytes, 10 * MiB);
    /* Buffers a and b each need more than half of the next block's standard size (next_block_bytes in gpu/memory.c). So
     * each of them gets a block of exactly its size. */
    vkt_buffer *a = make(ctx, VKT_MEM_DATA, 4 * MiB), *b = make(ctx, VKT_MEM_DATA, 4 * MiB), *c = NULL;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 3 * MiB, "over", &c), VKT_E_MEMORY_CAP);
    assert_null(c);
    vkt_test_error_contains("want 3.00 MiB");
    vkt_test_error_contains("cap of 10.0 MiB");
    vkt_test_error_contains("8.00 MiB in use");
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, UINT64_C(1) << 40, "huge", &c),
                     VKT_E_DEVICE_MEMORY);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 0, "empty", &c), VKT_E_ARG);
    vkt_test_expect_errors(false);
    /* Blocks without buffers stay allocated. The engine frees them when a request needs their memory. */
    vkt_buffer_destroy(ctx, &a);
    vkt_buffer_destroy(ctx, &b);
    assert_int_equal(stats(ctx).reserved_bytes, 8 * MiB);
    c = make(ctx, VKT_MEM_DATA, 10 * MiB);
    assert_int_equal(stats(ctx).reserved_bytes, 10 * MiB);
    assert_int_equal(stats(ctx).reserved_peak_bytes, 10 * MiB);
    vkt_buffer_destroy(ctx, &c);
    vkt_ctx_destroy(&ctx);
}

static void the_default_cap_is_a_share_of_what_is_free(void **state)
{
    (void)state;
    fake.budget = 100 * MiB;
    fake.usage = 40 * MiB;
    vkt_ctx *ctx = rig_open(NULL, fake_loader());
    assert_int_equal(stats(ctx).cap_bytes, 48 * MiB);
    assert_int_equal(stats(ctx).heap_budget_bytes, 100 * MiB);
    vkt_ctx_destroy(&ctx);
    fake_reset();
    ctx = rig_open(NULL, NULL);
    assert_true(stats(ctx).cap_bytes > 0 && stats(ctx).cap_bytes < ctx->info.memory_bytes);
    vkt_ctx_destroy(&ctx);
}

static void host_memory_is_mapped(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *up, *back, *device = make(ctx, VKT_MEM_DATA, 4096);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_UPLOAD, VKT_MEM_STAGING, 4096, "up", &up), VKT_OK);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_READBACK, VKT_MEM_STAGING, 4096, "back", &back), VKT_OK);
    assert_null(device->mapped);
    assert_true(up->mapped && back->mapped && up->mapped != back->mapped);
    uint32_t got[1024];
    fill_pattern(up->mapped, 1024, 9);
    assert_int_equal(vkt_readback(ctx, up, 0, got, sizeof got), VKT_OK);
    assert_memory_equal(got, up->mapped, sizeof got);
    assert_int_equal(vkt_upload(ctx, back, 0, got, sizeof got), VKT_OK);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK); /* after the wait, the host sees the data */
    assert_memory_equal(got, back->mapped, sizeof got);
    vkt_buffer_destroy(ctx, &up);
    vkt_buffer_destroy(ctx, &back);
    vkt_buffer_destroy(ctx, &device);
    vkt_ctx_destroy(&ctx);
}

/* ---- a driver with little memory: `scarce` replaces its vkAllocateMemory ---- */

static PFN_vkAllocateMemory real_allocate;
static uint64_t largest; /* in bytes: a larger allocation fails */

static VKAPI_ATTR VkResult VKAPI_CALL scarce(VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a,
                                             VkDeviceMemory *out)
{
    return i->allocationSize > largest ? VK_ERROR_OUT_OF_DEVICE_MEMORY : real_allocate(d, i, a, out);
}

/* The first blocks have 1, 1 and 2 MiB. The driver refuses a block of 4 MiB, so the next block is as large as its
 * buffer: 1 MiB. A buffer of 3 MiB is refused, and nothing changes. */
static void asks_for_less_when_the_driver_refuses(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    real_allocate = ctx->vk.AllocateMemory;
    ctx->vk.AllocateMemory = scarce;
    largest = 2 * MiB;
    vkt_buffer *a[5], *b = NULL;
    for (size_t i = 0; i < VKT_COUNT(a); i++) {
        static const uint64_t reserved[] = { 1, 2, 4, 4, 5 };
        a[i] = make(ctx, VKT_MEM_DATA, MiB);
        assert_int_equal(stats(ctx).reserved_bytes, reserved[i] * MiB);
    }
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 3 * MiB, "refused", &b),
                     VKT_E_DEVICE_MEMORY);
    vkt_test_error_contains("out of memory: want 3.00 MiB");
    assert_null(b);
    vkt_memory_stats s = stats(ctx);
    assert_int_equal(s.used_total_bytes, VKT_COUNT(a) * MiB);
    assert_int_equal(s.reserved_bytes, 5 * MiB);
    for (size_t i = 0; i < VKT_COUNT(a); i++) vkt_buffer_destroy(ctx, &a[i]);
    vkt_ctx_destroy(&ctx);
}

/* No block is larger than the largest allocation that the device allows. */
static void blocks_are_no_larger_than_an_allocation(void **state)
{
    (void)state;
    const vkt_ctx_params params = { .no_pipeline_cache = true, .block_bytes = 8 * MiB };
    vkt_ctx *ctx = rig_open(&params, NULL);
    real_allocate = ctx->vk.AllocateMemory;
    ctx->vk.AllocateMemory = scarce;
    largest = ctx->limits.max_allocation_bytes = 2 * MiB;
    vkt_buffer *b[8];
    const uint64_t allocs = ctx->counters.device_allocs;
    for (size_t i = 0; i < VKT_COUNT(b); i++) b[i] = make(ctx, VKT_MEM_DATA, 3 * MiB / 4);
    assert_int_equal(ctx->counters.device_allocs - allocs, 5); /* two blocks of 0.75 MiB, three of 2 MiB; no failure */
    for (size_t i = 0; i < VKT_COUNT(b); i++) vkt_buffer_destroy(ctx, &b[i]);
    vkt_ctx_destroy(&ctx);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const size_t before = vkt_test_live_blocks();
    for (unsigned n = 1;; n++) {
        vkt_buffer *b[40] = { 0 };
        vkt_result r = VKT_OK;
        vkt_test_fail_allocation(n);
        for (size_t i = 0; i < VKT_COUNT(b) && r == VKT_OK; i++)
            r = vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 1000 * (i + 1), "b", &b[i]);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        for (size_t i = 0; i < VKT_COUNT(b); i += 2) vkt_buffer_destroy(ctx, &b[i]); /* leaves holes */
        for (size_t i = 1; i < VKT_COUNT(b); i += 2) vkt_buffer_destroy(ctx, &b[i]);
        vkt_test_fail_allocation(0);
        assert_int_equal(stats(ctx).used_total_bytes, 0);
        vkt_ctx_trim(ctx);
        if (!failed) break;
        assert_in_range(vkt_test_live_blocks(), before, before + 1); /* + 1: ctx may keep its list of device memory */
    }
    vkt_ctx_destroy(&ctx);
}

static int setup(void **state)
{
    fake_reset();
    return vkt_test_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buffers_keep_their_contents),
        TEST(statistics_count_by_class),
        TEST(blocks_grow),
        TEST(the_cap_holds),
        TEST(the_default_cap_is_a_share_of_what_is_free),
        TEST(host_memory_is_mapped),
        TEST(asks_for_less_when_the_driver_refuses),
        TEST(blocks_are_no_larger_than_an_allocation),
        TEST(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
