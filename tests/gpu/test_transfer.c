/* Tests uploads, fills and readbacks: sizes near the limits of the staging rings, and the order of transfers relative
 * to each other and to compute work. The staging rings are the host-visible buffers for transfers: one for uploads, one
 * for readbacks (gpu/transfer.c). */
#include "fake.h"

#include <stdlib.h>

#include "base/philox.h"

#define MiB ((uint64_t)1 << 20)

static vkt_buffer *make(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, bytes, "data", &b), VKT_OK);
    return b;
}

/* Makes a context with the queues of the device, or with a fake transfer queue. */
static vkt_ctx *open_with(bool transfer_queue)
{
    fake_reset();
    fake.transfer_queue = transfer_queue;
    vkt_ctx *ctx = rig_open(NULL, fake_loader());
    if (transfer_queue) assert_true(ctx->has_transfer_queue && ctx->transfer.timeline != ctx->compute.timeline);
    return ctx;
}

/* Makes random transfers to and from a buffer. Makes the same changes to `want`. Compares the buffer with `want`. */
static void follow(vkt_ctx *ctx, uint64_t bytes, uint32_t iterations, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    vkt_buffer *b = make(ctx, bytes);
    const uint32_t n = (uint32_t)(bytes / 4);
    uint32_t *want = malloc(bytes), *got = malloc(bytes), *src = malloc(bytes);
    assert_true(want && got && src);
    assert_int_equal(vkt_fill(ctx, b, 0, bytes, 0xdeadbeef), VKT_OK);
    for (uint32_t i = 0; i < n; i++) want[i] = 0xdeadbeef;
    for (uint32_t iteration = 0; iteration < iterations; iteration++) {
        const uint32_t at = vkt_rng_range(&r, 0, n - 1), len = vkt_rng_range(&r, 1, n - at);
        const uint32_t what = vkt_rng_range(&r, 0, 4), word = vkt_rng_u32(&r);
        if (what < 3) {
            for (uint32_t i = 0; i < len; i++) want[at + i] = src[i] = word + i;
            assert_int_equal(vkt_upload(ctx, b, at * 4, src, len * 4), VKT_OK);
            memset(src, 0xee, len * 4); /* the call must have read `src` before it returned */
        } else if (what == 3) {
            for (uint32_t i = 0; i < len; i++) want[at + i] = word;
            assert_int_equal(vkt_fill(ctx, b, at * 4, len * 4, word), VKT_OK);
        } else {
            assert_int_equal(vkt_readback(ctx, b, at * 4, got, len * 4), VKT_OK);
            assert_memory_equal(got, want + at, len * 4);
        }
    }
    assert_int_equal(vkt_readback(ctx, b, 0, got, bytes), VKT_OK);
    assert_memory_equal(got, want, bytes);
    vkt_buffer_destroy(ctx, &b);
    free(want);
    free(got);
    free(src);
}

static void transfers_follow_each_other(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++) {
        vkt_ctx *ctx = open_with(queue);
        follow(ctx, 256, 200, 1);            /* many transfers, but the ring has only 16 command buffers */
        follow(ctx, 300 * 1024, 300, 2);     /* the transfers reach the end of the ring many times */
        follow(ctx, 21 * MiB + 1024, 10, 3); /* the buffer is larger than the ring */
        vkt_ctx_destroy(&ctx);
    }
}

static void sizes_around_a_piece(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_with(false);
    const uint64_t piece = VKT_RING_BYTES / 4;
    const uint64_t sizes[] = {
        4, 252, 260, piece - 4, piece, piece + 4, 2 * piece, VKT_RING_BYTES, VKT_RING_BYTES + 4
    };
    vkt_buffer *b = make(ctx, VKT_RING_BYTES + 8);
    char *src = malloc(VKT_RING_BYTES + 8), *got = malloc(VKT_RING_BYTES + 8);
    assert_true(src && got);
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        memset(src, (int)i + 1, sizes[i]);
        memset(got, 0, VKT_RING_BYTES + 8);
        assert_int_equal(vkt_fill(ctx, b, 0, VKT_RING_BYTES + 8, 0), VKT_OK);
        assert_int_equal(vkt_upload(ctx, b, 4, src, sizes[i]), VKT_OK);
        assert_int_equal(vkt_readback(ctx, b, 0, got, sizes[i] + 4), VKT_OK);
        assert_int_equal(*(uint32_t *)(void *)got, 0);
        assert_memory_equal(got + 4, src, sizes[i]);
        if (sizes[i] + 8 > VKT_RING_BYTES) continue;
        assert_int_equal(vkt_readback(ctx, b, sizes[i] + 4, got, 4), VKT_OK);
        assert_int_equal(*(uint32_t *)(void *)got, 0); /* the word behind the data was not written */
    }
    free(src);
    free(got);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

/* The staging rings begin small, and grow with the size of the transfers, up to a limit. */
static void rings_grow_to_their_limit(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit, bytes, ring;
    } cases[] = { { 0, 300, 64 << 10 },           { 0, 16 << 10, 64 << 10 },         { 0, (16 << 10) + 4, 128 << 10 },
                  { 0, 5 * MiB, 8 * MiB },        { 256 << 10, 5 * MiB, 256 << 10 }, { 100 << 10, 5 * MiB, 64 << 10 },
                  { 32 * MiB, 5 * MiB, 32 * MiB } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_ctx_params params = { .no_pipeline_cache = true, .staging_bytes = cases[i].limit };
        vkt_ctx *ctx = rig_open(&params, NULL);
        vkt_buffer *b = make(ctx, cases[i].bytes);
        unsigned char *src = malloc(cases[i].bytes), *got = malloc(cases[i].bytes);
        assert_true(src && got);
        for (uint64_t k = 0; k < cases[i].bytes; k++) src[k] = (unsigned char)(k * 7 >> 3);
        vkt_memory_stats m;
        assert_int_equal(vkt_upload(ctx, b, 0, src, 256), VKT_OK); /* makes the first ring */
        assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
        assert_int_equal(vkt_upload(ctx, b, 0, src, cases[i].bytes), VKT_OK);
        vkt_ctx_memory(ctx, &m);
        assert_int_equal(m.used_bytes[VKT_MEM_STAGING], cases[i].ring);
        assert_int_equal(vkt_readback(ctx, b, 0, got, 256), VKT_OK);
        assert_int_equal(vkt_readback(ctx, b, 0, got, cases[i].bytes), VKT_OK);
        vkt_ctx_memory(ctx, &m);
        assert_int_equal(m.used_bytes[VKT_MEM_STAGING], cases[i].ring + cases[i].ring / 2);
        assert_memory_equal(src, got, cases[i].bytes);
        free(src);
        free(got);
        vkt_buffer_destroy(ctx, &b);
        vkt_ctx_destroy(&ctx);
    }
}

/* Near the memory cap, the rings are small, but transfers of any size still work, and no error is logged. Once there is
 * more memory, the rings grow. */
static void small_rings_are_better_than_none(void **state)
{
    (void)state;
    enum { BYTES = 5 << 20, CAP = 16 << 20 };
    const vkt_ctx_params params = { .no_pipeline_cache = true, .max_device_bytes = CAP, .block_bytes = MiB };
    /* The bytes that stay free below the cap. If 2 MiB are free, the upload ring may use all of them. If there
     * is no readback buffer yet, a readback must then free the upload ring. */
    const uint64_t left[] = { 100 << 10, 3 << 20, 2 << 20 };
    unsigned char *src = malloc(BYTES), *got = malloc(BYTES);
    assert_true(src && got);
    for (size_t i = 0; i < 2 * VKT_COUNT(left); i++) {
        vkt_ctx *ctx = rig_open(&params, NULL);
        const bool warm = i % 2;
        vkt_memory_stats m;
        vkt_buffer *b = make(ctx, BYTES);
        for (uint64_t k = 0; k < BYTES; k++) src[k] = (unsigned char)(k * (7 + 2 * i) >> 3);
        if (warm) { /* the rings exist, with their first size */
            assert_int_equal(vkt_upload(ctx, b, 0, src, 256), VKT_OK);
            assert_int_equal(vkt_readback(ctx, b, 0, got, 256), VKT_OK);
        }
        vkt_ctx_memory(ctx, &m);
        vkt_buffer *filler = make(ctx, (CAP - m.reserved_bytes - left[i / 2]) / 256 * 256);
        assert_int_equal(vkt_upload(ctx, b, 0, src, BYTES), VKT_OK);
        assert_int_equal(vkt_readback(ctx, b, 0, got, BYTES), VKT_OK);
        assert_memory_equal(src, got, BYTES);
        vkt_ctx_memory(ctx, &m);
        assert_true(m.reserved_bytes <= CAP);
        if (left[i / 2] > 2 * MiB) assert_true(m.used_bytes[VKT_MEM_STAGING] > MiB);
        assert_int_equal(vkt_test_errors(), 0);
        vkt_buffer_destroy(ctx, &filler);
        assert_int_equal(vkt_upload(ctx, b, 0, src, BYTES), VKT_OK);
        vkt_ctx_memory(ctx, &m);
        assert_true(m.used_bytes[VKT_MEM_STAGING] >= 8 * MiB);
        vkt_buffer_destroy(ctx, &b);
        vkt_ctx_destroy(&ctx);
    }
    free(src);
    free(got);
}

/* An upload that needs a larger ring does not wait for earlier uploads, because these may wait for a gate that this
 * thread has not opened yet. */
static void a_larger_ring_waits_for_no_upload(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    for (int queue = 0; queue < 2; queue++) {
        vkt_ctx *ctx = open_with(queue);
        vkt_buffer *b = make(ctx, BYTES);
        vkt_gate gate;
        uint64_t value;
        unsigned char *src = malloc(BYTES), *got = malloc(BYTES);
        assert_true(src && got);
        for (uint64_t k = 0; k < BYTES; k++) src[k] = (unsigned char)(k * 11 >> 3);
        assert_int_equal(vkt_gate_create(ctx, "gate", &gate), VKT_OK);
        const VkSemaphoreSubmitInfo wait = vkt_gate_wait(&gate, 1);
        assert_int_equal(
            vkt_submit_synced(ctx, VK_NULL_HANDLE, &(vkt_sync){ .n_waits = 1, .waits = &wait }, "closed", &value),
            VKT_OK);
        for (uint64_t bytes = 256; bytes <= BYTES / 2; bytes *= 2) /* each upload from 32 KiB on needs a larger ring */
            assert_int_equal(vkt_upload(ctx, b, bytes, src + bytes, bytes), VKT_OK);
        assert_int_equal(vkt_upload(ctx, b, 0, src, 256), VKT_OK);
        assert_false(vkt_reached(ctx, value));
        assert_int_equal(vkt_gate_open(ctx, &gate, 1), VKT_OK);
        assert_int_equal(vkt_readback(ctx, b, 0, got, BYTES), VKT_OK);
        assert_memory_equal(src, got, BYTES);
        vkt_memory_stats m;
        assert_int_equal(vkt_readback(ctx, b, 0, got, 256), VKT_OK); /* the readback also frees the replaced rings */
        vkt_ctx_memory(ctx, &m);
        assert_int_equal(m.used_bytes[VKT_MEM_STAGING], 2 * BYTES + 2 * BYTES);
        vkt_gate_destroy(ctx, &gate);
        free(src);
        free(got);
        vkt_buffer_destroy(ctx, &b);
        vkt_ctx_destroy(&ctx);
    }
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_with(false);
    vkt_buffer *b = make(ctx, 1024);
    uint32_t words[4] = { 0 };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_upload(ctx, b, 2, words, 4), VKT_E_ARG);
    assert_int_equal(vkt_upload(ctx, b, 0, words, 3), VKT_E_ARG);
    assert_int_equal(vkt_upload(ctx, b, 1024, words, 4), VKT_E_ARG);
    assert_int_equal(vkt_upload(ctx, b, UINT64_MAX - 3, words, 8), VKT_E_ARG);
    assert_int_equal(vkt_readback(ctx, b, 1020, words, 8), VKT_E_ARG);
    vkt_test_error_contains("readback: want multiples of 4 inside a buffer of 1024 bytes, got offset 1020, 8 bytes");
    assert_int_equal(vkt_fill(ctx, b, 0, 1028, 0), VKT_E_ARG);
    assert_int_equal(ctx->counters.submits, 0);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_upload(ctx, b, 1024, words, 0), VKT_OK);
    assert_int_equal(vkt_fill(ctx, b, 0, 0, 1), VKT_OK);
    assert_int_equal(vkt_readback(ctx, b, 0, words, 0), VKT_OK);
    assert_int_equal(ctx->counters.submits, 0);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

/* Copies run on the compute queue between uploads. Each copy must see the upload before it, and not the next upload. */
static void uploads_are_ordered_with_compute(void **state)
{
    (void)state;
    enum { WORDS = 1 << 16, ITERATIONS = 8 };
    for (int queue = 0; queue < 2; queue++) {
        vkt_ctx *ctx = open_with(queue);
        vkt_buffer *in = make(ctx, WORDS * 4), *out = make(ctx, (uint64_t)ITERATIONS * WORDS * 4);
        vkt_commands c[ITERATIONS];
        uint32_t *src = malloc(WORDS * 4), *got = malloc((size_t)ITERATIONS * WORDS * 4);
        assert_true(src && got);
        for (uint32_t t = 0; t < ITERATIONS; t++) {
            const VkBufferCopy copy = { .dstOffset = (uint64_t)t * WORDS * 4, .size = WORDS * 4 };
            assert_int_equal(vkt_commands_create(ctx, "copy", &c[t]), VKT_OK);
            assert_int_equal(vkt_commands_begin(ctx, &c[t], false), VKT_OK);
            ctx->vk.CmdCopyBuffer(c[t].cmd, in->handle, out->handle, 1, &copy);
            assert_int_equal(vkt_commands_end(ctx, &c[t]), VKT_OK);
        }
        for (uint32_t t = 0; t < ITERATIONS; t++) {
            for (uint32_t i = 0; i < WORDS; i++) src[i] = t << 20 | i;
            assert_int_equal(vkt_upload(ctx, in, 0, src, WORDS * 4), VKT_OK);
            assert_int_equal(vkt_submit(ctx, c[t].cmd, "copy", NULL), VKT_OK);
        }
        assert_int_equal(vkt_readback(ctx, out, 0, got, (uint64_t)ITERATIONS * WORDS * 4), VKT_OK);
        for (uint32_t t = 0; t < ITERATIONS; t++)
            for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(got[t * WORDS + i], t << 20 | i);
        for (uint32_t t = 0; t < ITERATIONS; t++) vkt_commands_destroy(ctx, &c[t]);
        free(src);
        free(got);
        vkt_buffer_destroy(ctx, &in);
        vkt_buffer_destroy(ctx, &out);
        vkt_ctx_destroy(&ctx);
    }
}

/* With two queues, semaphores set the order of submissions. The test checks the semaphore and the value that each
 * submission waits for. The comments below number the submissions from 0. */
static void queues_wait_for_each_other(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_with(true);
    const VkSemaphore compute = ctx->compute.timeline, transfer = ctx->transfer.timeline;
    vkt_buffer *b = make(ctx, 1024);
    uint32_t words[4] = { 0 };
    fake.n_submits = 0;
    assert_int_equal(vkt_upload(ctx, b, 0, words, 16), VKT_OK);           /* submission 0 waits for nothing */
    assert_int_equal(vkt_upload(ctx, b, 0, words, 16), VKT_OK);           /* 1 waits for nothing */
    assert_int_equal(vkt_submit(ctx, VK_NULL_HANDLE, "a", NULL), VKT_OK); /* 2 waits for both uploads */
    /* 3 waits for nothing, because 2 has waited for the uploads. */
    assert_int_equal(vkt_submit(ctx, VK_NULL_HANDLE, "b", NULL), VKT_OK);
    assert_int_equal(vkt_upload(ctx, b, 0, words, 16), VKT_OK);            /* 4 waits for 2 and 3 */
    assert_int_equal(vkt_upload_after(ctx, b, 512, words, 16, 1), VKT_OK); /* 5 waits for 2 only */
    assert_int_equal(vkt_upload_after(ctx, b, 256, words, 16, 0), VKT_OK); /* 6 waits for nothing */
    assert_int_equal(vkt_submit(ctx, VK_NULL_HANDLE, "c", NULL), VKT_OK);  /* 7 waits for three uploads */
    assert_int_equal(vkt_readback(ctx, b, 0, words, 16), VKT_OK);          /* 8 waits for all compute work */
    const fake_submit want[] = { { .wait = VK_NULL_HANDLE },
                                 { .wait = VK_NULL_HANDLE },
                                 { .wait = transfer, .wait_value = 2 },
                                 { .wait = VK_NULL_HANDLE },
                                 { .wait = compute, .wait_value = 2 },
                                 { .wait = compute, .wait_value = 1 },
                                 { .wait = VK_NULL_HANDLE },
                                 { .wait = transfer, .wait_value = 5 },
                                 { .wait = compute, .wait_value = 3 } };
    assert_int_equal(fake.n_submits, VKT_COUNT(want));
    for (size_t i = 0; i < VKT_COUNT(want); i++) {
        assert_true(fake.submits[i].wait == want[i].wait);
        assert_int_equal(fake.submits[i].wait_value, want[i].wait_value);
    }
    /* Without the transfer queue, all work uses the compute queue, and no submission waits for a semaphore. */
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_ctx_disable(ctx, "transfer_queue"), VKT_OK); /* the call needs no host memory */
    vkt_test_fail_allocation(0);
    assert_false(ctx->has_transfer_queue);
    fake.n_submits = 0;
    assert_int_equal(vkt_upload(ctx, b, 0, (uint32_t[]){ 5, 6, 7, 8 }, 16), VKT_OK);
    assert_int_equal(vkt_submit(ctx, VK_NULL_HANDLE, "d", NULL), VKT_OK);
    assert_int_equal(vkt_readback(ctx, b, 0, words, 16), VKT_OK);
    assert_int_equal(words[3], 8);
    for (uint32_t i = 0; i < fake.n_submits; i++) assert_true(fake.submits[i].wait == VK_NULL_HANDLE);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);

    assert_int_equal(setenv("VKT_NO_TRANSFER_QUEUE", "1", 1), 0);
    ctx = rig_open(NULL, fake_loader());
    assert_false(ctx->has_transfer_queue);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(unsetenv("VKT_NO_TRANSFER_QUEUE"), 0);
}

/* After the first iterations, an upload allocates and creates nothing. */
static void the_steady_state_allocates_nothing(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_with(false);
    vkt_buffer *b = make(ctx, 64 * 1024);
    char *src = calloc(1, 64 * 1024);
    assert_non_null(src);
    vkt_gpu_counters warm = { 0 };
    for (int i = 0; i < 200; i++) {
        if (i == 20) warm = ctx->counters;
        assert_int_equal(vkt_upload(ctx, b, 0, src, 64 * 1024), VKT_OK);
    }
    assert_int_equal(ctx->counters.host_allocs, warm.host_allocs);
    assert_int_equal(ctx->counters.device_allocs, warm.device_allocs);
    assert_int_equal(ctx->counters.buffers_created, warm.buffers_created);
    assert_int_equal(ctx->counters.submits, warm.submits + 180);
    free(src);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

/* If a call fails in the middle of a transfer, pieces of the transfer may still run. The next transfer must not
 * overwrite the staging memory of these pieces. */
static void a_transfer_that_failed_halfway_harms_no_later_one(void **state)
{
    (void)state;
    enum { BYTES = 12 << 20 };
    vkt_ctx *ctx = open_with(false);
    vkt_buffer *b = make(ctx, BYTES);
    uint32_t *src = malloc(BYTES), *got = calloc(1, BYTES);
    assert_true(src && got);
    for (uint32_t i = 0; i < BYTES / 4; i++) src[i] = i * 2654435761u;
    assert_int_equal(vkt_upload(ctx, b, 0, src, BYTES), VKT_OK);
    assert_int_equal(vkt_readback(ctx, b, 0, got, BYTES), VKT_OK);
    vkt_test_expect_errors(true);
    for (int n = 1;; n++) {
        fake.fail_call = n;
        fake.failed = NULL;
        memset(got, 0, BYTES);
        vkt_result r = vkt_readback(ctx, b, 0, got, BYTES);
        if (r == VKT_OK) r = vkt_upload(ctx, b, 0, src, BYTES);
        fake.fail_call = 0;
        assert_int_equal(r, fake.failed ? VKT_E_DEVICE_MEMORY : VKT_OK);
        assert_int_equal(vkt_readback(ctx, b, 0, got, BYTES), VKT_OK);
        assert_memory_equal(got, src, BYTES);
        if (!fake.failed) break;
    }
    vkt_test_expect_errors(false);
    free(src);
    free(got);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(transfers_follow_each_other),        TEST(sizes_around_a_piece),
        TEST(small_rings_are_better_than_none),   TEST(a_larger_ring_waits_for_no_upload),
        TEST(rings_grow_to_their_limit),          TEST(refuses_what_does_not_fit),
        TEST(uploads_are_ordered_with_compute),   TEST(queues_wait_for_each_other),
        TEST(the_steady_state_allocates_nothing), TEST(a_transfer_that_failed_halfway_harms_no_later_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
