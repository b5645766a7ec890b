/* Tests submissions, waits, timestamps, and a lost device. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

/* Records a fill of the buffer with `word`, as work for a submission. */
static vkt_commands record_fill(vkt_ctx *ctx, vkt_buffer *b, uint32_t word)
{
    vkt_commands c;
    assert_int_equal(vkt_commands_create(ctx, "fill", &c), VKT_OK);
    assert_int_equal(vkt_commands_begin(ctx, &c, true), VKT_OK);
    vkt_label_begin(ctx, c.cmd, "fill");
    ctx->vk.CmdFillBuffer(c.cmd, b->handle, 0, VK_WHOLE_SIZE, word);
    vkt_label_end(ctx, c.cmd);
    assert_int_equal(vkt_commands_end(ctx, &c), VKT_OK);
    return c;
}

static vkt_buffer *make(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, bytes, "data", &b), VKT_OK);
    return b;
}

static void values_count_submissions(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *b = make(ctx, 1 << 20);
    vkt_commands c = record_fill(ctx, b, 3);
    uint64_t last = 0;
    assert_true(vkt_reached(ctx, 0));
    for (int i = 0; i < 20; i++) {
        uint64_t value;
        /* The same commands may be pending more than once. */
        assert_int_equal(vkt_submit(ctx, c.cmd, "fill", &value), VKT_OK);
        assert_true(value > last);
        last = value;
    }
    assert_false(vkt_reached(ctx, last + 1));
    assert_int_equal(vkt_wait(ctx, last), VKT_OK);
    assert_true(vkt_reached(ctx, last));
    const uint64_t waits = ctx->counters.waits;
    assert_int_equal(vkt_wait(ctx, last), VKT_OK); /* the work is done, so the call does not wait */
    assert_int_equal(vkt_wait(ctx, 1), VKT_OK);
    assert_int_equal(ctx->counters.waits, waits);
    assert_int_equal(ctx->counters.submits, 20);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_wait(ctx, last + 1), VKT_E_ARG); /* the wait would never end */
    vkt_commands_destroy(ctx, &c);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

/* Submissions need no barriers between them: each submission sees the writes of all earlier submissions. */
static void submissions_are_in_order(void **state)
{
    (void)state;
    enum { WORDS = 1 << 18 };
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *a = make(ctx, WORDS * 4), *b = make(ctx, WORDS * 4);
    vkt_commands fill[2] = { record_fill(ctx, a, 1), record_fill(ctx, a, 2) }, copy;
    const VkBufferCopy all = { .size = WORDS * 4 };
    assert_int_equal(vkt_commands_create(ctx, "copy", &copy), VKT_OK);
    assert_int_equal(vkt_commands_begin(ctx, &copy, true), VKT_OK);
    ctx->vk.CmdCopyBuffer(copy.cmd, a->handle, b->handle, 1, &all);
    assert_int_equal(vkt_commands_end(ctx, &copy), VKT_OK);
    uint32_t *got = malloc(WORDS * 4);
    assert_non_null(got);
    assert_int_equal(vkt_submit(ctx, fill[0].cmd, "fill", NULL), VKT_OK);
    assert_int_equal(vkt_submit(ctx, copy.cmd, "copy", NULL), VKT_OK);
    assert_int_equal(vkt_submit(ctx, fill[1].cmd, "fill", NULL), VKT_OK);
    assert_int_equal(vkt_readback(ctx, b, 0, got, WORDS * 4), VKT_OK);
    for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(got[i], 1);
    free(got);
    for (int i = 0; i < 2; i++) vkt_commands_destroy(ctx, &fill[i]);
    vkt_commands_destroy(ctx, &copy);
    vkt_buffer_destroy(ctx, &a);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

static void timestamps_grow(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_timer t = { 0 };
    if (ctx->timestamp_period_ns == 0) {
        vkt_ctx_destroy(&ctx);
        puts("SKIPPED: timestamps: the queue has none");
        skip();
    }
    vkt_buffer *b = make(ctx, 64 << 20);
    vkt_commands c;
    uint64_t ns[3], value;
    assert_int_equal(vkt_timer_create(ctx, 3, &t), VKT_OK);
    assert_int_equal(vkt_commands_create(ctx, "timed", &c), VKT_OK);
    assert_int_equal(vkt_commands_begin(ctx, &c, false), VKT_OK);
    vkt_timer_reset(ctx, c.cmd, &t, 0, t.count);
    vkt_timer_mark(ctx, c.cmd, &t, 0);
    ctx->vk.CmdFillBuffer(c.cmd, b->handle, 0, VK_WHOLE_SIZE, 1);
    vkt_timer_mark(ctx, c.cmd, &t, 1);
    vkt_timer_mark(ctx, c.cmd, &t, 2);
    assert_int_equal(vkt_commands_end(ctx, &c), VKT_OK);
    const uint64_t start = vkt_now_ns();
    assert_int_equal(vkt_submit(ctx, c.cmd, "timed", &value), VKT_OK);
    assert_int_equal(vkt_wait(ctx, value), VKT_OK);
    const uint64_t host = vkt_now_ns() - start;
    assert_int_equal(vkt_timer_read(ctx, &t, ns), VKT_OK);
    assert_int_equal(ns[0], 0);
    assert_true(ns[1] > 0 && ns[2] >= ns[1]);
    assert_true(ns[2] <= host); /* the time on the host includes the time on the device */
    vkt_timer_destroy(ctx, &t);
    vkt_commands_destroy(ctx, &c);
    vkt_buffer_destroy(ctx, &b);
    ctx->timestamp_period_ns = 0; /* simulates a queue without timestamps */
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_timer_create(ctx, 3, &t), VKT_E_UNSUPPORTED);
    vkt_ctx_destroy(&ctx);
}

static uint32_t n_barriers;
static PFN_vkCmdPipelineBarrier2 driver_barrier;

static VKAPI_ATTR void VKAPI_CALL counted_barrier(VkCommandBuffer cmd, const VkDependencyInfo *info)
{
    n_barriers++;
    driver_barrier(cmd, info);
}

/* With the trait late_timestamps (base/traits.def), a barrier follows each timestamp. Without this trait, there is no
 * barrier. */
static void late_timestamps_want_a_barrier(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_timer t = { 0 };
    if (ctx->timestamp_period_ns == 0) {
        vkt_ctx_destroy(&ctx);
        puts("SKIPPED: barriers of timestamps: the queue has no timestamps");
        skip();
    }
    vkt_commands c;
    assert_int_equal(vkt_timer_create(ctx, 2, &t), VKT_OK);
    assert_int_equal(vkt_commands_create(ctx, "marks", &c), VKT_OK);
    driver_barrier = ctx->vk.CmdPipelineBarrier2;
    ctx->vk.CmdPipelineBarrier2 = counted_barrier;
    n_barriers = 0;
    assert_int_equal(vkt_commands_begin(ctx, &c, false), VKT_OK);
    vkt_timer_reset(ctx, c.cmd, &t, 0, t.count);
    ctx->traits.late_timestamps = false;
    vkt_timer_mark(ctx, c.cmd, &t, 0);
    assert_int_equal(n_barriers, 0);
    ctx->traits.late_timestamps = true;
    vkt_timer_mark(ctx, c.cmd, &t, 1);
    assert_int_equal(n_barriers, 1);
    assert_int_equal(vkt_commands_end(ctx, &c), VKT_OK);
    ctx->vk.CmdPipelineBarrier2 = driver_barrier;
    vkt_timer_destroy(ctx, &t);
    vkt_commands_destroy(ctx, &c);
    vkt_ctx_destroy(&ctx);
}

/* ---- lost device ---- */

static VKAPI_ATTR VkResult VKAPI_CALL lost_submit(VkQueue q, uint32_t n, const VkSubmitInfo2 *i, VkFence f)
{
    (void)q, (void)n, (void)i, (void)f;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL lost_wait(VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t timeout)
{
    (void)d, (void)i, (void)timeout;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL lost_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
    (void)d, (void)s, (void)value;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL counter_at_zero(VkDevice d, VkSemaphore s, uint64_t *value)
{
    (void)d, (void)s;
    *value = 0;
    return VK_SUCCESS;
}

/* Checks that functions that return a vkt_result report the lost device and submit no work. Then frees everything. The
 * teardown of the test fails if memory is left. */
static void everything_is_lost(vkt_ctx *ctx, vkt_buffer *b, vkt_commands *c)
{
    uint32_t word = 0;
    vkt_buffer *more = NULL;
    const uint64_t submits = ctx->counters.submits;
    assert_int_equal(vkt_submit(ctx, c->cmd, "more", NULL), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_wait(ctx, 1), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_upload(ctx, b, 0, &word, 4), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_fill(ctx, b, 0, 4, 0), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_readback(ctx, b, 0, &word, 4), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 4, "more", &more), VKT_E_DEVICE_LOST);
    assert_true(vkt_reached(ctx, 1000));
    assert_int_equal(ctx->counters.submits, submits);
    vkt_commands_destroy(ctx, c);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        vkt_ctx *ctx = rig_open(NULL, NULL);
        vkt_buffer *b = make(ctx, 1 << 20);
        vkt_commands c = record_fill(ctx, b, 1);
        vkt_test_expect_errors(true);
        if (where == 0) {
            ctx->vk.QueueSubmit2 = lost_submit;
            assert_int_equal(vkt_submit(ctx, c.cmd, "conv1 backward", NULL), VKT_E_DEVICE_LOST);
        } else {
            assert_int_equal(vkt_submit(ctx, c.cmd, "conv1 backward", NULL), VKT_OK);
            assert_int_equal(ctx->vk.DeviceWaitIdle(ctx->device), VK_SUCCESS); /* the work ends before the fake loss */
            ctx->vk.WaitSemaphores = lost_wait;
            ctx->vk.GetSemaphoreCounterValue = where == 1 ? counter_at_zero : lost_counter;
            assert_int_equal(vkt_wait(ctx, 1), VKT_E_DEVICE_LOST);
        }
        assert_string_equal(ctx->last_label, "conv1 backward");
        vkt_test_error_contains("VK_ERROR_DEVICE_LOST");
        everything_is_lost(ctx, b, &c);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_count_submissions),       TEST(submissions_are_in_order), TEST(timestamps_grow),
        TEST(late_timestamps_want_a_barrier), TEST(a_lost_device_stays_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
