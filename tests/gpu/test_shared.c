/* Tests buffers that the device and the host both read and write. Also tests gates: submitted work waits at a gate
 * until the host has written the data. Several tests run on all kinds of contexts (`view`), with and without imported
 * host memory. */
#include "fake.h"

#include <stdlib.h>

#define MiB ((uint64_t)1 << 20)
enum { WORDS = 20011, BYTES = WORDS * 4 }; /* BYTES is no multiple of the size of a memory page */

static vkt_memory_stats stats(const vkt_ctx *ctx)
{
    vkt_memory_stats s;
    vkt_ctx_memory(ctx, &s);
    return s;
}

static bool lists_the_extension(const vkt_ctx *ctx)
{
    VkExtensionProperties list[400];
    uint32_t n = VKT_COUNT(list);
    bool found = false;
    assert_true(ctx->vk.EnumerateDeviceExtensionProperties(ctx->phys, NULL, &n, list) >= 0);
    for (uint32_t i = 0; i < n; i++)
        found = found || strcmp(list[i].extensionName, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0;
    return found;
}

/* The kinds of contexts. The first two import host memory for shared buffers, if the device can do that. */
typedef enum view { IMPORTED, WITH_TRANSFER_QUEUE, WITHOUT_EXTENSION, SWITCHED_OFF, VIEWS } view;

static vkt_ctx *open_view(view v, uint64_t cap)
{
    const vkt_ctx_params params = { .max_device_bytes = cap, .no_pipeline_cache = true };
    fake_reset();
    if (v == WITHOUT_EXTENSION) fake.without = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (v == WITH_TRANSFER_QUEUE) fake.transfer_queue = true;
    vkt_ctx *ctx = rig_open(&params, fake_loader());
    if (v == SWITCHED_OFF) assert_int_equal(vkt_ctx_disable(ctx, "host_import"), VKT_OK);
    /* The function is loaded if and only if the device has the extension. */
    assert_true((ctx->vk.GetMemoryHostPointerPropertiesEXT != NULL) == lists_the_extension(ctx));
    if (v >= WITHOUT_EXTENSION)
        assert_false(ctx->has_host_import);
    else if (!ctx->has_host_import)
        print_message("SKIPPED: imported host memory: the device cannot import any\n");
    return ctx;
}

static vkt_buffer *make_shared(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, bytes, "shared", &b), VKT_OK);
    assert_non_null(b->mapped);
    assert_true((b->imported.memory != VK_NULL_HANDLE) == ctx->has_host_import);
    if (ctx->has_host_import) assert_int_equal((uintptr_t)b->mapped % ctx->host_import_align, 0);
    return b;
}

static vkt_buffer *make(vkt_ctx *ctx)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, BYTES, "device", &b), VKT_OK);
    return b;
}

static vkt_commands record_copy(vkt_ctx *ctx, const vkt_buffer *from, const vkt_buffer *to, bool host_wrote)
{
    vkt_commands c;
    assert_int_equal(vkt_commands_create(ctx, "copy", &c), VKT_OK);
    assert_int_equal(vkt_commands_begin(ctx, &c, true), VKT_OK);
    if (host_wrote) vkt_host_barrier(ctx, c.cmd);
    ctx->vk.CmdCopyBuffer(c.cmd, from->handle, to->handle, 1, &(VkBufferCopy){ .size = BYTES });
    assert_int_equal(vkt_commands_end(ctx, &c), VKT_OK);
    return c;
}

/* Exchanges data five times. The device writes to the shared buffer, the host changes these data, and the device reads
 * the changed data. The read is submitted before the host changes the data, and waits at the gate. */
static void exchange(vkt_ctx *ctx)
{
    vkt_buffer *in = make(ctx), *out = make(ctx), *shared = make_shared(ctx, BYTES);
    vkt_commands write = record_copy(ctx, in, shared, false), read = record_copy(ctx, shared, out, true);
    vkt_gate gate;
    assert_int_equal(vkt_gate_create(ctx, "gate", &gate), VKT_OK);
    uint32_t *words = shared->mapped, *src = malloc(BYTES), *got = malloc(BYTES);
    assert_true(src && got);
    for (uint32_t round = 1; round <= 5; round++) {
        for (uint32_t i = 0; i < WORDS; i++) src[i] = round << 24 | i;
        assert_int_equal(vkt_upload(ctx, in, 0, src, BYTES), VKT_OK);
        const VkSemaphoreSubmitInfo wait = vkt_gate_wait(&gate, 10 * round);
        const vkt_sync sync = { .waits = &wait, .n_waits = 1 };
        uint64_t wrote, done;
        assert_int_equal(vkt_submit(ctx, write.cmd, "write", &wrote), VKT_OK);
        assert_int_equal(vkt_submit_synced(ctx, read.cmd, &sync, "read", &done), VKT_OK);
        assert_int_equal(vkt_wait(ctx, wrote), VKT_OK);
        assert_memory_equal(words, src, BYTES);
        for (uint32_t i = 0; i < WORDS; i++) words[i] = words[i] * 3 + 1;
        /* This value of the gate is too small to end the wait. */
        if (round > 1) assert_int_equal(vkt_gate_open(ctx, &gate, 10 * round - 5), VKT_OK);
        assert_false(vkt_reached(ctx, done));
        assert_int_equal(vkt_gate_open(ctx, &gate, 10 * round), VKT_OK);
        assert_int_equal(vkt_wait(ctx, done), VKT_OK);
        assert_int_equal(vkt_readback(ctx, out, 0, got, BYTES), VKT_OK);
        for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(got[i], src[i] * 3 + 1);
    }
    free(src);
    free(got);
    vkt_gate_destroy(ctx, &gate);
    vkt_commands_destroy(ctx, &write);
    vkt_commands_destroy(ctx, &read);
    vkt_buffer_destroy(ctx, &in);
    vkt_buffer_destroy(ctx, &out);
    vkt_buffer_destroy(ctx, &shared);
}

static void host_and_device_exchange_data(void **state)
{
    (void)state;
    for (view v = 0; v < VIEWS; v++) {
        vkt_ctx *ctx = open_view(v, 0);
        exchange(ctx);
        const vkt_memory_stats once = stats(ctx); /* includes the buffers for uploads and readbacks, which stay */
        exchange(ctx);
        assert_int_equal(stats(ctx).used_total_bytes, once.used_total_bytes);
        assert_int_equal(stats(ctx).reserved_bytes, once.reserved_bytes);
        vkt_ctx_destroy(&ctx);
    }
}

static void the_environment_switches_imports_off(void **state)
{
    (void)state;
    assert_int_equal(setenv("VKT_NO_HOST_IMPORT", "1", 1), 0);
    vkt_ctx *ctx = rig_open(NULL, NULL);
    assert_false(ctx->has_host_import);
    vkt_buffer *b = make_shared(ctx, 100);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(unsetenv("VKT_NO_HOST_IMPORT"), 0);
}

/* A context on an application's device imports host memory only if the device was created with the extension
 * (`made_so`), and the application lists the extension (`listed`). */
static void an_adopted_device_imports_if_it_was_made_so(void **state)
{
    (void)state;
    const char *const name = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    bool recommended = false;
    for (uint32_t i = 0; i < needs->n_extensions; i++)
        recommended = recommended || strcmp(needs->extensions[i], name) == 0;
    assert_true(recommended);
    const vkt_host host = vkt_test_host();
    for (int made_so = 0; made_so <= 1; made_so++) {
        vkt_ctx *own = open_view(made_so ? IMPORTED : WITHOUT_EXTENSION, 0), *ctx;
        for (uint32_t listed = 0; listed <= 1; listed++) {
            const vkt_adopt_params offer = { own->instance, own->phys, own->device,         needs->features,
                                             &name,         listed,    own->compute.handle, own->compute.family };
            assert_int_equal(vkt_ctx_adopt(&offer, NULL, &host, &ctx), VKT_OK);
            if (!made_so || !listed) assert_false(ctx->has_host_import);
            if (made_so && listed) assert_int_equal(ctx->has_host_import, own->has_host_import);
            exchange(ctx);
            vkt_ctx_destroy(&ctx);
        }
        vkt_ctx_destroy(&own);
    }
}

static void shared_buffers_count_below_the_cap(void **state)
{
    (void)state;
    for (view v = 0; v < VIEWS; v++) {
        vkt_ctx *ctx = open_view(v, 10 * MiB);
        vkt_buffer *a = make_shared(ctx, 4 * MiB), *b = make_shared(ctx, 4 * MiB), *c = NULL;
        assert_int_equal(stats(ctx).used_bytes[VKT_MEM_STAGING], 8 * MiB);
        assert_int_equal(stats(ctx).used_total_bytes, 8 * MiB);
        assert_int_equal(stats(ctx).reserved_bytes, 8 * MiB);
        const unsigned errors = vkt_test_errors();
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, 3 * MiB, "over", &c), VKT_E_MEMORY_CAP);
        vkt_test_expect_errors(false);
        assert_null(c);
        assert_int_equal(vkt_test_errors(), errors + 1);
        vkt_test_error_contains("want 3.00 MiB");
        assert_int_equal(stats(ctx).used_total_bytes, 8 * MiB);
        assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, 2 * MiB, "rest", &c), VKT_OK);
        vkt_buffer_destroy(ctx, &c);
        vkt_buffer_destroy(ctx, &a);
        vkt_buffer_destroy(ctx, &b);
        a = make_shared(ctx, 10 * MiB); /* the engine frees its empty blocks to stay below the cap */
        assert_int_equal(stats(ctx).reserved_bytes, 10 * MiB);
        vkt_buffer_destroy(ctx, &a);
        vkt_ctx_trim(ctx);
        const vkt_memory_stats s = stats(ctx);
        assert_int_equal(s.used_total_bytes + s.reserved_bytes, 0);
        assert_int_equal(s.peak_bytes[VKT_MEM_STAGING], 10 * MiB);
        assert_int_equal(s.reserved_peak_bytes, 10 * MiB);
        vkt_ctx_destroy(&ctx);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_view(IMPORTED, 0);
    vkt_buffer *b = NULL;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, 0, "empty", &b), VKT_E_ARG);
    assert_int_equal(vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, UINT64_C(1) << 60, "huge", &b),
                     VKT_E_DEVICE_MEMORY);
    assert_null(b);
    vkt_ctx_destroy(&ctx);
}

/* ---- failures ---- */

static char said[256]; /* the last line about a failed import */

static void listen(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (level == VKT_LOG_DEBUG && strstr(line, "cannot be imported"))
        memcpy(said, line, VKT_MIN(strlen(line) + 1, 255u));
}

/* In each iteration, the n-th fallible Vulkan call (fake.c) fails. If the call belongs to the import, the driver
 * allocates the memory instead, and a debug message reports the failed import. With `for_good`, all later fallible
 * calls fail too, so the buffer cannot be created. No memory may be left; the validation layer checks this too. */
static void survives_every_failed_vulkan_call(void **state)
{
    (void)state;
    for (int for_good = 0; for_good <= 1; for_good++)
        for (view v = 0; v < VIEWS; v++) {
            vkt_ctx *ctx = open_view(v, 0);
            ctx->host.log = listen;
            ctx->host.log_level = VKT_LOG_DEBUG;
            int n = 1;
            for (;; n++) {
                vkt_buffer *b = NULL;
                said[0] = 0;
                fake.fail_call = n;
                fake.fail_for_good = for_good;
                fake.failed = NULL;
                const vkt_result r = vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, BYTES, "shared", &b);
                fake.fail_call = 0;
                if (!fake.failed) {
                    assert_int_equal(r, VKT_OK);
                    vkt_buffer_destroy(ctx, &b);
                    break;
                }
                if (ctx->has_host_import) {
                    assert_int_equal(r, for_good ? VKT_E_DEVICE_MEMORY : VKT_OK);
                    assert_non_null(strstr(said, "VK_ERROR_OUT_OF_DEVICE_MEMORY"));
                }
                assert_int_equal(r == VKT_OK, b != NULL);
                if (b) assert_true(b->mapped && !b->imported.memory);
                vkt_buffer_destroy(ctx, &b);
                assert_int_equal(stats(ctx).used_total_bytes, 0);
                vkt_ctx_trim(ctx);
                assert_int_equal(stats(ctx).reserved_bytes, 0);
            }
            assert_true(n > 3);
            vkt_ctx_destroy(&ctx);
        }
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    for (view v = 0; v < VIEWS; v++) {
        vkt_ctx *ctx = open_view(v, 0);
        const size_t before = vkt_test_live_blocks();
        for (unsigned n = 1;; n++) {
            vkt_buffer *b = NULL;
            vkt_test_fail_allocation(n);
            const vkt_result r = vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, BYTES, "shared", &b);
            const bool failed = vkt_test_allocation_failed();
            vkt_test_fail_allocation(0);
            /* If the host allocation for the import fails (n is 2), the driver allocates the memory instead. */
            if (!failed || (n == 2 && ctx->has_host_import)) assert_int_equal(r, VKT_OK);
            if (failed && n == 1) assert_int_equal(r, VKT_E_NOMEM);
            assert_int_equal(r == VKT_OK, b != NULL);
            vkt_buffer_destroy(ctx, &b);
            assert_int_equal(stats(ctx).used_total_bytes, 0);
            vkt_ctx_trim(ctx);
            if (!failed) break;
            /* + 1: the context may keep the host array that lists its blocks of device memory (gpu/memory.c) */
            assert_in_range(vkt_test_live_blocks(), before, before + 1);
        }
        vkt_ctx_destroy(&ctx);
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL no_type(VkDevice d, VkExternalMemoryHandleTypeFlagBits t, const void *at,
                                              VkMemoryHostPointerPropertiesEXT *out)
{
    (void)d, (void)t, (void)at;
    out->memoryTypeBits = 0;
    return VK_SUCCESS;
}

static void memory_that_no_type_fits_is_not_imported(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_view(IMPORTED, 0);
    ctx->vk.GetMemoryHostPointerPropertiesEXT = no_type;
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, BYTES, "shared", &b), VKT_OK);
    assert_true(b->mapped && !b->imported.memory);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

/* ---- gates ---- */

static void gates_want_growing_values(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_view(IMPORTED, 0);
    vkt_gate gate;
    vkt_test_expect_errors(true);
    fake.fail_call = 1;
    assert_int_equal(vkt_gate_create(ctx, "gate", &gate), VKT_E_DEVICE_MEMORY);
    assert_true(gate.semaphore == VK_NULL_HANDLE);
    vkt_gate_destroy(ctx, &gate); /* allowed, although there is no gate */
    assert_int_equal(vkt_gate_create(ctx, "gate", &gate), VKT_OK);
    assert_int_equal(vkt_gate_open(ctx, &gate, 0), VKT_E_ARG);
    fake.fail_call = 1;
    assert_int_equal(vkt_gate_open(ctx, &gate, 3), VKT_E_DEVICE_MEMORY);
    assert_int_equal(gate.value, 0);
    assert_int_equal(vkt_gate_open(ctx, &gate, 3), VKT_OK);
    assert_int_equal(vkt_gate_open(ctx, &gate, 3), VKT_E_ARG);
    vkt_test_error_contains("want a value above 3, got 3");
    assert_int_equal(vkt_gate_open(ctx, &gate, 2), VKT_E_ARG);
    assert_int_equal(vkt_gate_open(ctx, &gate, 7), VKT_OK);
    uint64_t now = 0;
    assert_int_equal(ctx->vk.GetSemaphoreCounterValue(ctx->device, gate.semaphore, &now), VK_SUCCESS);
    assert_int_equal(now, 7);
    ctx->lost = VKT_E_DEVICE_LOST; /* the loss is simulated */
    assert_int_equal(vkt_gate_open(ctx, &gate, 8), VKT_E_DEVICE_LOST);
    ctx->lost = VKT_OK;
    vkt_gate_destroy(ctx, &gate);
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
        TEST(host_and_device_exchange_data),
        TEST(the_environment_switches_imports_off),
        TEST(an_adopted_device_imports_if_it_was_made_so),
        TEST(shared_buffers_count_below_the_cap),
        TEST(nonsense_is_refused),
        TEST(survives_every_failed_vulkan_call),
        TEST(survives_every_failed_allocation),
        TEST(memory_that_no_type_fits_is_not_imported),
        TEST(gates_want_growing_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
