/* Adopts a device of the application. Tests the requirements of a device, the application's allocation callbacks and
 * lock, and that the library leaves nothing behind. */
#include <stdlib.h>
#include <string.h>

#include "embed/app.h"

static void the_library_works_on_it_and_leaves_it_alone(void **state)
{
    (void)state;
    app a;
    float want[NET_PARAMS], got[NET_PARAMS];
    const vkt_host host = vkt_test_host();
    app_open(&a, NULL);
    vkt_ctx *own = NULL, *ctx = app_adopt(&a);
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &host, &own), VKT_OK);
    assert_string_equal(vkt_ctx_device(ctx)->name, vkt_ctx_device(own)->name);
    assert_int_equal(vkt_ctx_device(ctx)->index, vkt_ctx_device(own)->index);
    net_expected(own, 5, want);
    net_expected(ctx, 5, got);
    assert_memory_equal(got, want, sizeof want);
    vkt_ctx_destroy(&own);
    vkt_ctx_destroy(&ctx);
    app_submit(&a, VK_NULL_HANDLE, NULL, 0);
    app_wait(&a);
    app_close(&a);
}

/* Two contexts are on one device, and a third context has a device of its own. The steps of all three contexts
 * alternate. When a context is destroyed, the contexts behind it in ctx[] still work. */
static void contexts_do_not_meet(void **state)
{
    (void)state;
    enum { N = 3 };
    app a;
    net n[N];
    float want[NET_PARAMS], got[NET_PARAMS];
    app_open(&a, NULL);
    vkt_ctx *ctx[N] = { app_adopt(&a), app_adopt(&a) };
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &a.host, &ctx[2]), VKT_OK);
    net_expected(ctx[0], 4, want);
    for (int i = 0; i < N; i++) net_make(&n[i], ctx[i], NULL, NULL);
    for (uint32_t s = 0; s < 4 * N; s++) {
        const vkt_run run = net_run(s / N);
        assert_int_equal(vkt_program_run(n[s % N].p, &run, NULL), VKT_OK);
    }
    for (int i = 0; i < N; i++) {
        net_params(&n[i], got);
        assert_memory_equal(got, want, sizeof want);
        net_free(&n[i]);
        vkt_ctx_destroy(&ctx[i]);
    }
    app_close(&a);
}

/* On CPU devices, the library uses kernels with texel loads. These kernels need shaderInt64, because they store words
 * of 64 bits. Without shaderInt64, kernels without texel loads do the work. */
static void texels_want_int64(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    for (int with = 0; with < 2; with++) {
        vkt_adopt_params offer = app_offer(&a);
        if (!with) offer.features = &a.v12;
        vkt_ctx *ctx;
        assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_OK);
        vkt_device_limits limits;
        vkt_ctx_limits(ctx, &limits);
        VkPhysicalDeviceProperties is;
        a.GetPhysicalDeviceProperties(a.phys, &is);
        const bool wanted = with && a.features.features.shaderInt64 && is.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
        assert_int_equal(limits.max_texel_elements > 0, wanted);
        vkt_ctx_destroy(&ctx);
    }
    app_close(&a);
}

static void a_device_without_a_feature_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = { "timelineSemaphore", "maintenance4", "synchronization2" };
    for (int i = 0; i < 3; i++) {
        app a;
        vkt_ctx *ctx = (vkt_ctx *)&a;
        app_open(&a, NULL);
        VkPhysicalDeviceVulkan13Features v13 = a.v13;
        VkPhysicalDeviceVulkan12Features v12 = a.v12;
        v12.pNext = &v13;
        if (i == 0) v12.timelineSemaphore = VK_FALSE;
        if (i == 1) v13.maintenance4 = VK_FALSE;
        if (i == 2) v13.synchronization2 = v13.maintenance4 = VK_FALSE;
        vkt_adopt_params offer = app_offer(&a);
        offer.features = &v12;
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_E_FEATURE);
        assert_null(ctx);
        vkt_test_error_contains(names[i]);
        if (i == 2) vkt_test_error_contains("maintenance4");
        offer.features = NULL;
        assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_E_FEATURE);
        vkt_test_error_contains("feature timelineSemaphore, feature synchronization2, feature maintenance4, "
                                "feature subgroupSizeControl, feature computeFullSubgroups");
        vkt_test_expect_errors(false);
        app_close(&a);
    }
}

/* A device that was made without maintenance4 is refused before any use of this feature. */
static void a_device_made_without_a_feature_is_refused(void **state)
{
    (void)state;
    app a;
    vkt_ctx *ctx = NULL;
    app_open(&a, "maintenance4");
    const vkt_adopt_params offer = app_offer(&a);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_E_FEATURE);
    vkt_test_error_contains("made without feature maintenance4 ");
    vkt_test_expect_errors(false);
    app_close(&a);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    app a;
    vkt_ctx *ctx = NULL;
    app_open(&a, NULL);
    vkt_test_expect_errors(true);
    for (int i = 0; i < 7; i++) {
        vkt_adopt_params offer = app_offer(&a);
        if (i == 0) offer.instance = VK_NULL_HANDLE;
        if (i == 1) offer.physical_device = VK_NULL_HANDLE;
        if (i == 2) offer.device = VK_NULL_HANDLE;
        if (i == 3) offer.queue = VK_NULL_HANDLE;
        if (i == 4) offer.queue_family = 77;
        if (i == 5) offer.lock_queue = free;
        if (i == 6) offer.physical_device = (VkPhysicalDevice)&offer;
        assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_E_ARG);
        assert_null(ctx);
    }
    VkPhysicalDeviceVulkan12Features only = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
    assert_int_equal(vkt_vk_add_features(&a.host, &only), VKT_E_ARG);
    vkt_test_error_contains("feature synchronization2, feature maintenance4");
    vkt_test_expect_errors(false);
    app_close(&a);
}

/* vkt_vk_add_features sets features in the structs that the application's chain has, and leaves the rest of the chain
 * unchanged. */
static void features_are_added_to_any_chain(void **state)
{
    (void)state;
    const vkt_host host = vkt_test_host();
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES
    };
    VkPhysicalDeviceVulkan13Features v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                             .pNext = &timeline,
                                             .dynamicRendering = VK_TRUE };
    VkPhysicalDeviceFeatures2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v13 };
    assert_int_equal(vkt_vk_add_features(&host, &core), VKT_OK);
    assert_true(timeline.timelineSemaphore && v13.synchronization2 && v13.maintenance4 && v13.subgroupSizeControl &&
                v13.computeFullSubgroups && v13.dynamicRendering);
    assert_false(v13.robustImageAccess || core.features.robustBufferAccess);
    const VkPhysicalDeviceVulkan12Features *needs = vkt_vk_get_needs()->features;
    assert_true(needs->timelineSemaphore);
}

/* ---- allocation callbacks ---- */

typedef struct counted {
    size_t made, live;
} counted;

static VKAPI_ATTR void *VKAPI_CALL count_allocate(void *user, size_t bytes, size_t align, VkSystemAllocationScope scope)
{
    (void)scope;
    counted *c = user;
    void *p;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes)) return NULL;
    __atomic_fetch_add(&c->made, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->live, 1, __ATOMIC_RELAXED);
    return p;
}

static VKAPI_ATTR void VKAPI_CALL count_free(void *user, void *p)
{
    counted *c = user;
    if (p) __atomic_fetch_sub(&c->live, 1, __ATOMIC_RELAXED);
    free(p);
}

static VKAPI_ATTR void *VKAPI_CALL count_resize(void *user, void *p, size_t bytes, size_t align,
                                                VkSystemAllocationScope scope)
{
    (void)align;
    if (!p) return count_allocate(user, bytes, align, scope);
    if (bytes == 0) {
        count_free(user, p);
        return NULL;
    }
    return realloc(p, bytes);
}

static void its_callbacks_allocate(void **state)
{
    (void)state;
    app a;
    counted c = { 0 };
    float params[NET_PARAMS];
    const VkAllocationCallbacks callbacks = {
        .pUserData = &c, .pfnAllocation = count_allocate, .pfnReallocation = count_resize, .pfnFree = count_free
    };
    app_open(&a, NULL);
    vkt_adopt_params offer = app_offer(&a);
    vkt_ctx *ctx = NULL;
    offer.allocation = &callbacks;
    assert_int_equal(vkt_ctx_adopt(&offer, &(vkt_ctx_params){ .no_pipeline_cache = true }, &a.host, &ctx), VKT_OK);
    net_expected(ctx, 4, params);
    vkt_ctx_destroy(&ctx);
    assert_true(c.made > 10); /* the number of allocations depends on the driver */
    assert_int_equal(c.live, 0);
    app_close(&a);
}

/* ---- the queue's lock ---- */

typedef struct lock {
    unsigned taken;
    bool held, broken;
} lock;

static lock the_lock;
static PFN_vkQueueSubmit2 real_submit;
static PFN_vkGetDeviceProcAddr real_device_proc;
static PFN_vkGetInstanceProcAddr real_proc;
static unsigned submits;
static bool hides_submit;
static VkResult submit_answer;

static VKAPI_ATTR VkResult VKAPI_CALL watched_submit(VkQueue q, uint32_t n, const VkSubmitInfo2 *infos, VkFence f)
{
    submits++;
    the_lock.broken |= !the_lock.held;
    return submit_answer ? submit_answer : real_submit(q, n, infos, f);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL watched_device_proc(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction found = real_device_proc(device, name);
    if (strcmp(name, "vkQueueSubmit2") != 0) return found;
    real_submit = (PFN_vkQueueSubmit2)found;
    return hides_submit ? NULL : (PFN_vkVoidFunction)watched_submit;
}

/* An application that watches each submission passes this function as its get_proc_addr. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL watched_proc(VkInstance instance, const char *name)
{
    const PFN_vkVoidFunction found = real_proc(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
    real_device_proc = (PFN_vkGetDeviceProcAddr)found;
    return (PFN_vkVoidFunction)watched_device_proc;
}

static void lock_queue(void *user)
{
    lock *l = user;
    l->broken |= l->held;
    l->held = true;
    l->taken++;
}

static void unlock_queue(void *user)
{
    lock *l = user;
    l->broken |= !l->held;
    l->held = false;
}

/* The test hides vkQueueSubmit2. An instance that was made for a version below Vulkan 1.3 also lacks this function. The
 * version of an instance cannot be queried, so the message names the likely cause. */
static void a_device_without_a_function_is_refused(void **state)
{
    (void)state;
    app a;
    vkt_ctx *ctx = NULL;
    app_open(&a, NULL);
    vkt_adopt_params offer = app_offer(&a);
    real_proc = a.get_proc;
    offer.get_proc_addr = watched_proc;
    hides_submit = true;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_adopt(&offer, NULL, &a.host, &ctx), VKT_E_DRIVER);
    vkt_test_error_contains("vkQueueSubmit2 is missing");
    vkt_test_error_contains("VkApplicationInfo.apiVersion");
    vkt_test_expect_errors(false);
    hides_submit = false;
    assert_null(ctx);
    app_close(&a);
}

static vkt_ctx *adopt_watched(app *a)
{
    vkt_adopt_params offer = app_offer(a);
    vkt_ctx *ctx = NULL;
    real_proc = a->get_proc;
    offer.get_proc_addr = watched_proc;
    offer.lock_queue = lock_queue;
    offer.unlock_queue = unlock_queue;
    offer.lock_user = &the_lock;
    the_lock = (lock){ 0 };
    submits = 0;
    submit_answer = VK_SUCCESS;
    assert_int_equal(vkt_ctx_adopt(&offer, &(vkt_ctx_params){ .no_pipeline_cache = true }, &a->host, &ctx), VKT_OK);
    return ctx;
}

static void each_submission_is_under_its_lock(void **state)
{
    (void)state;
    app a;
    float params[NET_PARAMS];
    app_open(&a, NULL);
    vkt_ctx *ctx = adopt_watched(&a);
    net_expected(ctx, 4, params);
    vkt_ctx_destroy(&ctx);
    assert_true(submits > 4);
    assert_int_equal(the_lock.taken, submits);
    assert_false(the_lock.held || the_lock.broken);
    app_close(&a);
}

static void a_lost_device_is_a_status_and_the_application_goes_on(void **state)
{
    (void)state;
    app a;
    net n;
    app_open(&a, NULL);
    vkt_ctx *ctx = adopt_watched(&a);
    net_make(&n, ctx, NULL, NULL);
    assert_int_equal(vkt_program_run(n.p, NULL, NULL), VKT_OK);
    uint64_t left_ns = 1; /* the call submits one slice, a part of the run: the device is lost before the rest */
    vkt_step_progress progress;
    assert_int_equal(vkt_step_budget(n.p, NULL, NULL, &left_ns, &progress), VKT_OK);
    assert_int_equal(progress.slice, 1);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    submit_answer = VK_ERROR_DEVICE_LOST;
    vkt_test_expect_errors(true);
    left_ns = 1;
    assert_int_equal(vkt_step_budget(n.p, NULL, NULL, &left_ns, &progress), VKT_E_DEVICE_LOST);
    assert_true(!progress.completed && progress.submitted_ns == 0);
    assert_false(the_lock.held);
    submit_answer = VK_SUCCESS;
    left_ns = 0;
    vkt_metrics metrics;
    assert_int_equal(vkt_step_budget(n.p, NULL, NULL, &left_ns, &progress), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_program_run(n.p, NULL, NULL), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_program_record(n.p, VK_NULL_HANDLE, NULL), VKT_E_DEVICE_LOST);
    assert_int_equal(vkt_program_recorded_metrics(n.p, &metrics), VKT_E_DEVICE_LOST);
    vkt_test_error_contains("lost");
    net_free(&n);
    vkt_ctx_destroy(&ctx);
    vkt_test_expect_errors(false);
    app_submit(&a, VK_NULL_HANDLE, NULL, 0);
    app_wait(&a);
    app_close(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_library_works_on_it_and_leaves_it_alone),
        TEST(contexts_do_not_meet),
        TEST(texels_want_int64),
        TEST(a_device_without_a_feature_is_refused),
        TEST(a_device_made_without_a_feature_is_refused),
        TEST(arguments_are_checked),
        TEST(features_are_added_to_any_chain),
        TEST(its_callbacks_allocate),
        TEST(a_device_without_a_function_is_refused),
        TEST(each_submission_is_under_its_lock),
        TEST(a_lost_device_is_a_status_and_the_application_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
