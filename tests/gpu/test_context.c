/* Tests how devices are opened and closed: the list of devices, the choice of one, missing features, and failures while
 * a device is opened. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

static const vkt_ctx_params no_cache = { .no_pipeline_cache = true };

/* Checks that opening fails with `want` and that the message contains `part`. */
static void refuses(const vkt_ctx_params *params, vkt_result want, const char *part)
{
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = (vkt_ctx *)&host;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_open(params, &host, fake_loader(), &ctx), want);
    assert_null(ctx);
    vkt_test_error_contains(part);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void opens_and_closes(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_device_info *info = vkt_ctx_device(ctx);
    assert_true(info->usable);
    assert_true(info->name[0] && info->driver[0] && info->reason[0]);
    assert_true(info->api_version >= VK_API_VERSION_1_3);
    assert_int_equal(info->subgroup_size, ctx->limits.subgroup_size);
    assert_true(ctx->limits.max_push_bytes >= 128 && ctx->limits.max_storage_range_bytes >= 128u << 20);
    assert_int_equal(ctx->device_class == VKT_CLASS_CPU, info->kind == VKT_DEVICE_CPU);
    assert_ptr_equal(ctx->limits.traits, &ctx->traits);
    assert_int_equal(ctx->limits.max_texel_elements > 0, ctx->traits.texel_loads);
    vkt_device_limits limits;
    vkt_ctx_limits(ctx, &limits);
    assert_int_equal(limits.subgroup_size, info->subgroup_size);
    assert_int_equal(limits.max_binding_bytes, ctx->limits.max_storage_range_bytes);
    assert_int_equal(limits.max_texel_elements, ctx->limits.max_texel_elements);
    assert_true(limits.max_workgroup_lanes >= 128 && limits.max_workgroups >= 65535 && limits.shared_bytes >= 16384);
    assert_true(limits.max_allocation_bytes >= 1u << 30 && limits.timestamp_ns >= 0);
    assert_int_equal(limits.transfer_queue, ctx->has_transfer_queue);
    assert_int_equal(limits.memory_budget, ctx->has_memory_budget);
    assert_int_equal(limits.host_import, ctx->has_host_import);
    assert_true(ctx->has_coop || limits.matrix[0] == 0);
    assert_true(ctx->has_bfloat || limits.matrix_bf16[0] == 0);
    assert_int_equal(limits.matrix[2], ctx->limits.coop.k);
    assert_int_equal(limits.matrix_bf16[2], ctx->limits.coop_bf16.k);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    vkt_ctx_destroy(&ctx);
    assert_null(ctx);
    vkt_ctx_destroy(&ctx);
}

/* Sizes of buffers and bindings are rounded up to multiples of VKT_ALIGN_BYTES, so the limits are such multiples. */
static void limits_are_rounded_down(void **state)
{
    (void)state;
    fake.odd_limits = true;
    vkt_ctx *ctx = rig_open(NULL, fake_loader());
    vkt_device_limits limits;
    vkt_ctx_limits(ctx, &limits);
    assert_int_equal(limits.max_binding_bytes, (UINT64_C(1) << 32) - VKT_ALIGN_BYTES);
    assert_int_equal(limits.max_allocation_bytes, (UINT64_C(1) << 32) - VKT_ALIGN_BYTES);
    vkt_ctx_destroy(&ctx);
}

static void lists_what_it_opens(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_host host = vkt_test_host();
    vkt_device_info infos[16];
    uint32_t n = 0, none = 0;
    assert_int_equal(vkt_list_devices(&host, infos, VKT_COUNT(infos), &n), VKT_OK);
    assert_in_range(n, 1, VKT_COUNT(infos));
    assert_int_equal(vkt_list_devices(&host, NULL, 0, &none), VKT_OK);
    assert_int_equal(none, n);
    const vkt_device_info *info = vkt_ctx_device(ctx), *listed = &infos[info->index];
    assert_int_equal(listed->index, info->index);
    assert_string_equal(listed->name, info->name);
    assert_string_equal(listed->reason, info->reason);
    vkt_ctx_destroy(&ctx);
}

static void the_named_device_is_chosen(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_device_info first = *vkt_ctx_device(ctx);
    vkt_ctx_destroy(&ctx);

    char index[16], part[8];
    snprintf(index, sizeof index, "%u", first.index);
    snprintf(part, sizeof part, "%.5s", first.name);
    for (char *c = part; *c; c++) *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    const char *const selectors[] = { index, first.name, part, "" };
    for (size_t i = 0; i < VKT_COUNT(selectors); i++) {
        ctx = rig_open(&(vkt_ctx_params){ .device = selectors[i], .no_pipeline_cache = true }, NULL);
        assert_string_equal(vkt_ctx_device(ctx)->name, first.name);
        vkt_ctx_destroy(&ctx);
    }
    refuses(&(vkt_ctx_params){ .device = "no such device" }, VKT_E_NO_DEVICE, first.name);
    refuses(&(vkt_ctx_params){ .device = "1000" }, VKT_E_NO_DEVICE, "\"1000\"");
    refuses(&(vkt_ctx_params){ .device = "99999999999999999999999" }, VKT_E_NO_DEVICE, "9999");
    refuses(&(vkt_ctx_params){ .device = "0x" }, VKT_E_NO_DEVICE, "\"0x\"");

    assert_int_equal(setenv("VKT_DEVICE", "no such device", 1), 0);
    refuses(&no_cache, VKT_E_NO_DEVICE, "VKT_DEVICE");
    /* Params have priority over the environment. */
    ctx = rig_open(&(vkt_ctx_params){ .device = index, .no_pipeline_cache = true }, NULL);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(setenv("VKT_DEVICE", index, 1), 0);
    ctx = rig_open(NULL, NULL);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(unsetenv("VKT_DEVICE"), 0);
}

/* Chooses among simulated devices. If a selector matches several usable devices, a device of the best kind is chosen.
 * If several devices have this kind, the device with the lowest index is chosen. */
static void ranks_devices(void **state)
{
    (void)state;
    vkt_ctx ctx = { .host = vkt_test_host() };
    vkt_candidate list[] = {
        { .info = { .index = 0, .name = "llvmpipe", .kind = VKT_DEVICE_CPU, .usable = true } },
        { .info = { .index = 1, .name = "Virtio", .kind = VKT_DEVICE_VIRTUAL, .usable = true } },
        { .info = { .index = 2, .name = "Iris", .kind = VKT_DEVICE_INTEGRATED, .usable = true } },
        { .info = { .index = 3, .name = "Old Radeon", .kind = VKT_DEVICE_DISCRETE, .reason = "lacks Vulkan 1.3" } },
        { .info = { .index = 4, .name = "Radeon A", .kind = VKT_DEVICE_DISCRETE, .usable = true } },
        { .info = { .index = 5, .name = "Radeon B", .kind = VKT_DEVICE_DISCRETE, .usable = true } },
        { .info = { .index = 6, .name = "thing", .kind = VKT_DEVICE_OTHER, .usable = true } },
    };
    const uint32_t n = VKT_COUNT(list);
    const struct {
        const char *selector;
        uint32_t want;
    } cases[] = { { "", 4 },  { NULL, 4 }, { "radeon", 4 }, { "N B", 5 },
                  { "5", 5 }, { "0", 0 },  { "i", 2 },      { "iris", 2 } };
    const vkt_candidate *got;
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        assert_int_equal(vkt_candidate_choose(&ctx, list, n, cases[i].selector, &got), VKT_OK);
        assert_int_equal(got->info.index, cases[i].want);
    }
    /* `order`: the devices from best to worst. After each choice, the test makes the chosen device unusable. */
    const uint32_t order[] = { 4, 5, 2, 1, 0, 6 };
    for (size_t i = 0; i < VKT_COUNT(order); i++) {
        assert_int_equal(vkt_candidate_choose(&ctx, list, n, "", &got), VKT_OK);
        assert_int_equal(got->info.index, order[i]);
        list[order[i]].info.usable = false;
    }
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_candidate_choose(&ctx, list, n, "3", &got), VKT_E_FEATURE);
    vkt_test_error_contains("lacks Vulkan 1.3");
    assert_int_equal(vkt_candidate_choose(&ctx, list, n, "", &got), VKT_E_FEATURE);
    assert_int_equal(vkt_candidate_choose(&ctx, NULL, 0, "", &got), VKT_E_NO_DEVICE);
}

static void without_a_loader_the_message_names_what_to_install(void **state)
{
    (void)state;
    static const char *const names[] = { "libno-such-loader.so.1", NULL };
    const vkt_loader none = { .names = names };
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = NULL;
    uint32_t n = 7;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_open(NULL, &host, &none, &ctx), VKT_E_NO_LOADER);
    vkt_test_error_contains("apt install libvulkan1 mesa-vulkan-drivers");
    assert_int_equal(vkt_list_devices_of(&host, &none, NULL, 0, &n), VKT_E_NO_LOADER);
    assert_int_equal(n, 0);
    static const char *const no_vulkan[] = { "libm.so.6", NULL }; /* a library, but not the Vulkan loader */
    assert_int_equal(vkt_ctx_open(NULL, &host, &(vkt_loader){ .names = no_vulkan }, &ctx), VKT_E_DRIVER);
    vkt_test_error_contains("vkGetInstanceProcAddr");
}

static void no_device_is_no_error_of_a_list(void **state)
{
    (void)state;
    const vkt_host host = vkt_test_host();
    uint32_t n = 7;
    fake.no_devices = true;
    assert_int_equal(vkt_list_devices_of(&host, fake_loader(), NULL, 0, &n), VKT_OK);
    assert_int_equal(n, 0);
    refuses(NULL, VKT_E_NO_DEVICE, "apt install mesa-vulkan-drivers");
    fake_reset();
    n = 7;
    fake.create_instance = VK_ERROR_INCOMPATIBLE_DRIVER; /* a loader without a driver */
    assert_int_equal(vkt_list_devices_of(&host, fake_loader(), NULL, 0, &n), VKT_OK);
    assert_int_equal(n, 0);
    refuses(NULL, VKT_E_NO_DEVICE, "apt install mesa-vulkan-drivers");
    fake.create_instance = VK_ERROR_INITIALIZATION_FAILED;
    refuses(NULL, VKT_E_DRIVER, "vkCreateInstance: VK_ERROR_INITIALIZATION_FAILED");
}

static void names_what_a_device_lacks(void **state)
{
    (void)state;
    static const char *const needed[] = { "timelineSemaphore",
                                          "synchronization2",
                                          "maintenance4",
                                          "subgroupSizeControl",
                                          "computeFullSubgroups",
                                          "basic",
                                          "vote",
                                          "ballot",
                                          "shuffle",
                                          "arithmetic",
                                          "subgroups in compute",
                                          "12 storage buffers",
                                          "compute queue" };
    vkt_ctx *ctx = rig_open(NULL, fake_loader()); /* no feature is missing */
    vkt_ctx_destroy(&ctx);
    for (size_t i = 0; i < VKT_COUNT(needed); i++) {
        fake.without = needed[i];
        refuses(&no_cache, VKT_E_FEATURE, needed[i]);
        uint32_t reported = 0;
        for (uint32_t k = 0; vkt_device_need(k); k++) reported += strstr(vkt_device_need(k), needed[i]) != NULL;
        assert_int_equal(reported, 1);
    }
    const uint32_t n_needs = VKT_COUNT(needed) + 2; /* the other two: Vulkan 1.3, NEED_SIZE of gpu/device.c */
    assert_non_null(vkt_device_need(n_needs - 1));
    assert_null(vkt_device_need(n_needs));
    fake_reset();
    fake.api_version = VK_API_VERSION_1_2;
    refuses(&no_cache, VKT_E_FEATURE, "lacks Vulkan 1.3: the driver offers 1.2");
    const vkt_host host = vkt_test_host();
    vkt_device_info info;
    uint32_t n;
    assert_int_equal(vkt_list_devices_of(&host, fake_loader(), &info, 1, &n), VKT_OK);
    assert_false(info.usable);
    assert_non_null(strstr(info.reason, "lacks Vulkan 1.3"));
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = rig_open(NULL, NULL); /* skips the test if there is no device */
    vkt_ctx_destroy(&ctx);
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_ctx_create(NULL, &host, &ctx); /* with the pipeline cache */
        if (!vkt_test_allocation_failed()) {
            assert_int_equal(r, VKT_OK);
            break;
        }
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(ctx);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    assert_true(n > 5);
    vkt_test_fail_allocation(0);
    vkt_ctx_destroy(&ctx);
    uint32_t count;
    for (n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_list_devices(&host, NULL, 0, &count);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
}

/* Opens a context, uploads and reads back, so that memory, submissions and transfers are used too. */
static vkt_result open_and_use(vkt_ctx **ctx)
{
    const vkt_host host = vkt_test_host();
    uint32_t in[64] = { 1, 2, 3 }, out[64] = { 0 };
    vkt_buffer *b = NULL;
    VKT_TRY(vkt_ctx_open(&no_cache, &host, fake_loader(), ctx));
    vkt_result r = vkt_buffer_create(*ctx, VKT_MEMORY_DEVICE, VKT_MEM_OTHER, sizeof in, "used", &b);
    if (r == VKT_OK) r = vkt_upload(*ctx, b, 0, in, sizeof in);
    if (r == VKT_OK) r = vkt_readback(*ctx, b, 0, out, sizeof out);
    if (r == VKT_OK) r = memcmp(in, out, sizeof in) == 0 ? VKT_OK : VKT_E_STATE;
    (void)vkt_ctx_wait_idle(*ctx);
    vkt_buffer_destroy(*ctx, &b);
    return r;
}

static void survives_every_failed_vulkan_call(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, fake_loader());
    vkt_ctx_destroy(&ctx);
    vkt_test_expect_errors(true);
    int32_t n = 1;
    for (;; n++) {
        fake.fail_call = n;
        fake.failed = NULL;
        ctx = NULL;
        const vkt_result r = open_and_use(&ctx);
        vkt_ctx_destroy(&ctx);
        if (!fake.failed) {
            assert_int_equal(r, VKT_OK);
            break;
        }
        /* Buffers get their memory from blocks. If the memory of a block cannot be allocated or mapped, the engine
         * requests a smaller block. If the buffer for readbacks cannot be created or bound, the engine frees the upload
         * ring (the buffer for uploads) and tries again. If another buffer cannot be created or bound, this is an
         * error. */
        const bool recovers = strcmp(fake.failed, "AllocateMemory") == 0 || strcmp(fake.failed, "MapMemory") == 0;
        const bool may = strcmp(fake.failed, "CreateBuffer") == 0 || strcmp(fake.failed, "BindBufferMemory") == 0;
        if (!may || r != VKT_OK) assert_int_equal(r == VKT_OK, recovers);
        assert_int_not_equal(r, VKT_E_STATE);
    }
    assert_true(n > 15);
}

static void contexts_do_not_meet(void **state)
{
    (void)state;
    vkt_ctx *a = rig_open(NULL, NULL), *b = rig_open(NULL, NULL);
    assert_ptr_not_equal(a->device, b->device);
    vkt_buffer *in_a, *in_b;
    uint32_t got_a[64], got_b[64];
    assert_int_equal(vkt_buffer_create(a, VKT_MEMORY_DEVICE, VKT_MEM_DATA, sizeof got_a, "a", &in_a), VKT_OK);
    assert_int_equal(vkt_buffer_create(b, VKT_MEMORY_DEVICE, VKT_MEM_DATA, sizeof got_b, "b", &in_b), VKT_OK);
    assert_int_equal(vkt_fill(a, in_a, 0, sizeof got_a, 0xaaaaaaaa), VKT_OK);
    assert_int_equal(vkt_fill(b, in_b, 0, sizeof got_b, 0xbbbbbbbb), VKT_OK);
    assert_int_equal(vkt_readback(a, in_a, 0, got_a, sizeof got_a), VKT_OK);
    vkt_buffer_destroy(a, &in_a);
    vkt_ctx_destroy(&a);
    assert_int_equal(vkt_readback(b, in_b, 0, got_b, sizeof got_b), VKT_OK);
    vkt_buffer_destroy(b, &in_b);
    vkt_ctx_destroy(&b);
    for (size_t i = 0; i < VKT_COUNT(got_a); i++) assert_true(got_a[i] == 0xaaaaaaaa && got_b[i] == 0xbbbbbbbb);
}

/* Cooperative matrices need four features. A chain of feature structs has a feature in the struct of a Vulkan version,
 * or in the struct of the extension that introduced the feature. The test checks chains of both kinds. */
static void cooperative_matrices_want_four_features(void **state)
{
    (void)state;
    vkt_coop_features own;
    const void *all = vkt_features_with_coop(&own, false, false);
    assert_false(vkt_features_have_bfloat(all));
    for (uint32_t i = 0; i < vkt_feature_count(); i++) assert_true(vkt_feature_is_on(all, i));
    assert_true(vkt_features_have_coop(all));
    assert_false(vkt_features_have_coop2(all));
    assert_false(vkt_features_have_coop(vkt_vk_get_needs()->features));
    assert_false(vkt_features_have_coop(NULL));
    VkPhysicalDeviceShaderFloat16Int8Features f16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, .pNext = &own.coop
    };
    VkPhysicalDeviceVulkanMemoryModelFeatures model = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, .pNext = &f16
    };
    VkBool32 *const needs[] = { &f16.shaderFloat16, &model.vulkanMemoryModel, &model.vulkanMemoryModelDeviceScope,
                                &own.coop.cooperativeMatrix };
    for (size_t off = 0; off <= VKT_COUNT(needs); off++) {
        for (size_t i = 0; i < VKT_COUNT(needs); i++) *needs[i] = i != off;
        assert_int_equal(vkt_features_have_coop(&model), off == VKT_COUNT(needs));
    }
}

static void flexible_matrices_want_three_more_features(void **state)
{
    (void)state;
    for (int bfloat = 0; bfloat < 2; bfloat++) {
        vkt_coop_features own;
        const void *all = vkt_features_with_coop(&own, true, bfloat);
        for (uint32_t i = 0; i < vkt_feature_count(); i++) assert_true(vkt_feature_is_on(all, i));
        assert_true(vkt_features_have_coop(all) && vkt_features_have_coop2(all));
        assert_int_equal(vkt_features_have_bfloat(all), bfloat);
        VkPhysicalDeviceVulkan11Features v11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES };
        own.coop2.pNext = &v11;
        VkBool32 *const needs[] = { &v11.storageBuffer16BitAccess, &own.coop2.cooperativeMatrixFlexibleDimensions,
                                    &own.coop2.cooperativeMatrixPerElementOperations };
        for (size_t off = 0; off <= VKT_COUNT(needs); off++) {
            for (size_t i = 0; i < VKT_COUNT(needs); i++) *needs[i] = i != off;
            assert_int_equal(vkt_features_have_coop2(all), off == VKT_COUNT(needs));
        }
    }
}

static void matrices_of_bfloat16_want_two_more_features(void **state)
{
    (void)state;
    vkt_coop_features own;
    const void *all = vkt_features_with_coop(&own, false, true);
    VkBool32 *const needs[] = { &own.bfloat.shaderBFloat16Type, &own.bfloat.shaderBFloat16CooperativeMatrix };
    for (uint32_t i = 0; i < vkt_feature_count(); i++) assert_true(vkt_feature_is_on(all, i));
    assert_true(vkt_features_have_coop(all) && vkt_features_have_bfloat(all));
    assert_false(vkt_features_have_coop2(all));
    assert_false(own.bfloat.shaderBFloat16DotProduct);
    for (size_t off = 0; off < VKT_COUNT(needs); off++) {
        *needs[off] = VK_FALSE;
        assert_true(vkt_features_have_coop(all));
        assert_false(vkt_features_have_bfloat(all));
        *needs[off] = VK_TRUE;
    }
}

/* A device with VK_KHR_portability_subset lacks parts of Vulkan. New loaders hide such devices unless the instance asks
 * for them. vkCreateDevice must enable VK_KHR_portability_subset if the device has it. */
static void devices_with_a_part_of_vulkan_are_used(void **state)
{
    (void)state;
    for (int offers = 0; offers < 2; offers++) {
        for (int portable = 0; portable < 2; portable++) {
            fake_reset();
            fake.portability = portable;
            /* Old loaders do not offer VK_KHR_portability_enumeration. */
            fake.without = offers ? NULL : VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
            vkt_ctx *ctx = rig_open(NULL, fake_loader());
            assert_int_equal(fake.lists_portable, offers);
            assert_int_equal(fake.enables_subset, portable);
            vkt_ctx_destroy(&ctx);
        }
    }
}

static void fast_paths_are_switched_off_by_name(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    assert_int_equal(vkt_ctx_disable(ctx, "texel"), VKT_OK);
    assert_int_equal(ctx->limits.max_texel_elements, 0);
    assert_int_equal(vkt_ctx_disable(ctx, "transfer_queue"), VKT_OK);
    assert_true(ctx->limits.choices.off == 0);
    assert_int_equal(vkt_ctx_disable(ctx, "tile"), VKT_OK);
    assert_true(ctx->limits.choices.off == VKT_V(TILE));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_disable(ctx, "warp drive"), VKT_E_NOT_FOUND);
    vkt_test_error_contains("warp drive");
    vkt_ctx_destroy(&ctx);

    assert_int_equal(setenv("VKT_TRAITS", "texel_loads=1", 1), 0);
    ctx = rig_open(NULL, NULL);
    assert_true(ctx->limits.max_texel_elements >= 65536);
    vkt_ctx_destroy(&ctx);
    for (int on = 0; on <= 1; on++) {
        assert_int_equal(setenv("VKT_TRAITS", on ? "texel_loads=1,words64=1" : "texel_loads=1,words64=0", 1), 0);
        ctx = rig_open(NULL, NULL);
        assert_true(ctx->traits.words64 == on);
        vkt_ctx_destroy(&ctx);
    }
    assert_int_equal(setenv("VKT_NO_TEXEL", "1", 1) | setenv("VKT_NO_DIRECT", "1", 1), 0);
    ctx = rig_open(NULL, NULL);
    assert_int_equal(ctx->limits.max_texel_elements, 0);
    assert_true(ctx->limits.choices.off == VKT_V(DIRECT));
    vkt_ctx_destroy(&ctx);
    assert_int_equal(unsetenv("VKT_TRAITS") | unsetenv("VKT_NO_TEXEL") | unsetenv("VKT_NO_DIRECT"), 0);
}

/* Errors of the validation layer become error lines of the log, and the test host counts these lines. Tests that expect
 * no such line rely on this count. */
static void validation_messages_reach_the_log(void **state)
{
    (void)state;
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_ctx_destroy(&ctx);
    vkt_test_expect_errors(true);
    const vkt_result r =
        vkt_ctx_create(&(vkt_ctx_params){ .validation = true, .no_pipeline_cache = true }, &host, &ctx);
    if (r == VKT_E_FEATURE) {
        vkt_test_error_contains("apt install vulkan-validationlayers");
        print_message("SKIPPED: VK_LAYER_KHRONOS_validation is not installed\n");
        return;
    }
    assert_int_equal(r, VKT_OK);
    VkSemaphore semaphore;
    const VkSemaphoreCreateInfo wrong = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .flags = 1 /* reserved */ };
    assert_int_equal(vkt_test_messages(), 0);
    assert_int_equal(ctx->vk.CreateSemaphore(ctx->device, &wrong, NULL, &semaphore), VK_SUCCESS);
    assert_int_equal(vkt_test_messages(), 1);
    vkt_test_error_contains("validation: ");
    vkt_test_error_contains("VkSemaphoreCreateInfo");
    ctx->vk.DestroySemaphore(ctx->device, semaphore, NULL);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(vkt_test_live_blocks(), 0);
    vkt_test_setup(state); /* clears the count, because the message was expected */
}

static int setup(void **state)
{
    fake_reset();
    return vkt_test_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, vkt_test_teardown)
int main(void)
{
    char cache[] = "/tmp/vkt-test-XXXXXX"; /* no test uses the user's cache */
    if (!mkdtemp(cache) || setenv("XDG_CACHE_HOME", cache, 1)) return 1;
    const struct CMUnitTest tests[] = {
        TEST(opens_and_closes),
        TEST(limits_are_rounded_down),
        TEST(lists_what_it_opens),
        TEST(the_named_device_is_chosen),
        TEST(ranks_devices),
        TEST(without_a_loader_the_message_names_what_to_install),
        TEST(no_device_is_no_error_of_a_list),
        TEST(names_what_a_device_lacks),
        TEST(survives_every_failed_allocation),
        TEST(survives_every_failed_vulkan_call),
        TEST(contexts_do_not_meet),
        TEST(validation_messages_reach_the_log),
        TEST(cooperative_matrices_want_four_features),
        TEST(flexible_matrices_want_three_more_features),
        TEST(matrices_of_bfloat16_want_two_more_features),
        TEST(devices_with_a_part_of_vulkan_are_used),
        TEST(fast_paths_are_switched_off_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
