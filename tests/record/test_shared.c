/* Tests arrays that the device and the host both read and write. The host may write such an array after it submits
 * the kernels that read the array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

enum { N = 5003 };

static vkt_array *make(vkt_dtype dtype, vkt_shape shape)
{
    vkt_array *a = NULL;
    OK(vkt_array_create_shared(harness_ctx, dtype, shape, "shared", &a));
    assert_non_null(vkt_array_map(a));
    assert_true((a->buffer->imported.memory != VK_NULL_HANDLE) == harness_ctx->has_host_import);
    return a;
}

/* Records a command buffer that has only the barrier of vkt_host_barrier. The test submits this command buffer with a
 * wait for the gate, a semaphore that the host opens later. The barrier orders the work of all later submissions behind
 * this wait, so this work also runs after the gate opens. */
static vkt_commands record_barrier(void)
{
    vkt_commands c;
    OK(vkt_commands_create(harness_ctx, "host writes", &c));
    OK(vkt_commands_begin(harness_ctx, &c, true));
    vkt_host_barrier(harness_ctx, c.cmd);
    OK(vkt_commands_end(harness_ctx, &c));
    return c;
}

/* Runs a program that writes the squares of the array `in` to the array `out`. In the loop over `run`, the host writes
 * `in` only after the program is submitted. */
static void square_later(void)
{
    const vkt_shape shape = vkt_shape1(N);
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    const vkt_tensor x = vkt_external(g, "x", VKT_F32, shape), y = vkt_external(g, "y", VKT_F32, shape);
    vkt_write(g, vkt_mul(g, x, x), y);
    vkt_array *in = make(VKT_F32, shape), *out = make(VKT_F32, shape);
    const vkt_binding arrays[] = { { x, in }, { y, out } };
    vkt_program *p;
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = arrays, .n_arrays = 2 }, &p));
    float *numbers = vkt_array_map(in), *squares = vkt_array_map(out);
    for (int i = 0; i < N; i++) assert_true(numbers[i] == 0 && squares[i] == 0);
    vkt_commands barrier = record_barrier();
    vkt_gate gate;
    OK(vkt_gate_create(harness_ctx, "gate", &gate));
    /* The third run reads the timestamps of the second run. With some drivers this read waits for all submitted work.
     * Behind a closed gate it would wait forever, so the first three runs have no gate. */
    for (int i = 0; i < 3; i++) OK(vkt_program_run(p, NULL, NULL));
    for (uint64_t run = 1; run <= 5; run++) {
        const VkSemaphoreSubmitInfo wait = vkt_gate_wait(&gate, run);
        OK(vkt_submit_synced(harness_ctx, barrier.cmd, &(vkt_sync){ .waits = &wait, .n_waits = 1 }, "gate", NULL));
        OK(vkt_program_run(p, NULL, NULL));
        for (int i = 0; i < N; i++) numbers[i] = (float)((i + (int)run * 7) % 4001); /* integers: no rounding */
        OK(vkt_gate_open(harness_ctx, &gate, run));
        OK(vkt_ctx_wait_idle(harness_ctx));
        for (int i = 0; i < N; i++) assert_true(squares[i] == numbers[i] * numbers[i]);
    }
    vkt_gate_destroy(harness_ctx, &gate);
    vkt_commands_destroy(harness_ctx, &barrier);
    vkt_program_destroy(&p);
    vkt_array_destroy(&in);
    vkt_array_destroy(&out);
    vkt_graph_destroy(&g);
}

static void kernels_read_what_the_host_writes_later(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const bool imports = harness_ctx->has_host_import;
    square_later();
    harness_forget(harness_ctx);
    harness_ctx->has_host_import = false;
    square_later();
    harness_forget(harness_ctx);
    harness_ctx->has_host_import = imports;
}

/* A new array is zero, even if its memory was used before. The buffer is a little larger than the 1001 bytes of the
 * array, and the bytes behind the array are zero too. */
static void new_arrays_are_zero(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const bool imports = harness_ctx->has_host_import;
    for (int i = 0; i < 4; i++) {
        harness_ctx->has_host_import = imports && i < 2;
        vkt_array *a = make(VKT_U8, vkt_shape1(1001));
        unsigned char *bytes = vkt_array_map(a);
        for (uint64_t k = 0; k < a->buffer->bytes; k++) assert_int_equal(bytes[k], 0);
        memset(bytes, 0xee, a->buffer->bytes);
        vkt_array_destroy(&a);
    }
    harness_ctx->has_host_import = imports;
}

static void failures_are_a_status(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_array *a = NULL;
    vkt_test_expect_errors(true);
    vkt_shape wrong = vkt_shape1(4);
    wrong.rank = VKT_MAX_RANK + 1;
    assert_int_equal(vkt_array_create_shared(harness_ctx, VKT_F32, wrong, NULL, &a), VKT_E_ARG);
    assert_int_equal(vkt_array_create_shared(harness_ctx, VKT_DTYPE_COUNT, vkt_shape1(4), NULL, &a), VKT_E_ARG);
    const bool imports = harness_ctx->has_host_import;
    for (int way = 0; way < 2; way++) {
        harness_ctx->has_host_import = imports && way == 0;
        const size_t before = vkt_test_live_blocks();
        for (unsigned n = 1;; n++) {
            vkt_test_fail_allocation(n);
            const vkt_result r = vkt_array_create_shared(harness_ctx, VKT_F32, vkt_shape1(N), NULL, &a);
            const bool failed = vkt_test_allocation_failed();
            vkt_test_fail_allocation(0);
            if (r != VKT_OK) assert_int_equal(r, VKT_E_NOMEM);
            assert_int_equal(r == VKT_OK, a != NULL);
            vkt_array_destroy(&a);
            if (!failed) break;
        }
        vkt_ctx_trim(harness_ctx);
        assert_in_range(vkt_test_live_blocks(), 0, before + 1); /* + 1: the list of the device's memory blocks */
    }
    harness_ctx->has_host_import = imports;
}

static void the_cap_holds(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_host h = vkt_test_host();
    vkt_ctx *small;
    vkt_array *a = NULL;
    OK(vkt_ctx_create(&(vkt_ctx_params){ .max_device_bytes = 1 << 20, .no_pipeline_cache = true }, &h, &small));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_array_create_shared(small, VKT_F32, vkt_shape1((1 << 18) + 1), NULL, &a), VKT_E_MEMORY_CAP);
    assert_null(a);
    vkt_test_expect_errors(false);
    OK(vkt_array_create_shared(small, VKT_F32, vkt_shape1(1 << 18), NULL, &a));
    vkt_memory_stats s;
    vkt_ctx_memory(small, &s);
    assert_int_equal(s.used_bytes[VKT_MEM_STAGING], 1 << 20);
    vkt_array_destroy(&a);
    vkt_ctx_destroy(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_read_what_the_host_writes_later),
        cmocka_unit_test(new_arrays_are_zero),
        cmocka_unit_test(failures_are_a_status),
        cmocka_unit_test(the_cap_holds),
    };
    return cmocka_run_group_tests_name("shared", tests, harness_setup, harness_teardown);
}
