/* Tests the class of a device, its traits, and single traits set by $VKT_TRAITS. */
#define _XOPEN_SOURCE 700 /* setenv */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "kernel/tuning.h"
#include "support/temp_dir.h"

static const vkt_ctx_params no_cache = { .no_pipeline_cache = true };

static void simulated_devices_have_the_right_class(void **state)
{
    (void)state;
    static const struct {
        uint32_t vendor;
        VkDriverId driver;
        VkPhysicalDeviceType type;
        vkt_device_class want;
    } devices[] = {
        { 0x10005, VK_DRIVER_ID_MESA_LLVMPIPE, VK_PHYSICAL_DEVICE_TYPE_CPU, VKT_CLASS_CPU },
        { 0x1ae0, VK_DRIVER_ID_GOOGLE_SWIFTSHADER, VK_PHYSICAL_DEVICE_TYPE_CPU, VKT_CLASS_CPU },
        { 0x8086, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_PHYSICAL_DEVICE_TYPE_CPU, VKT_CLASS_CPU },
        { 0x10de, VK_DRIVER_ID_NVIDIA_PROPRIETARY, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VKT_CLASS_NVIDIA },
        { 0x10de, VK_DRIVER_ID_MESA_NVK, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VKT_CLASS_NVIDIA },
        { 0x1002, VK_DRIVER_ID_MESA_RADV, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VKT_CLASS_AMD },
        { 0x8086, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VKT_CLASS_INTEL },
        { 0x13b5, VK_DRIVER_ID_ARM_PROPRIETARY, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VKT_CLASS_MOBILE },
        { 0x5143, VK_DRIVER_ID_QUALCOMM_PROPRIETARY, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VKT_CLASS_MOBILE },
        { 0x106b, VK_DRIVER_ID_MOLTENVK, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VKT_CLASS_MOBILE },
        { 0x1234, (VkDriverId)0, VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, VKT_CLASS_OTHER },
        { 0, (VkDriverId)0, VK_PHYSICAL_DEVICE_TYPE_OTHER, VKT_CLASS_OTHER },
    };
    for (size_t i = 0; i < VKT_COUNT(devices); i++) {
        const vkt_device_class got = vkt_class_of(devices[i].vendor, devices[i].driver, devices[i].type);
        if (got != devices[i].want) fail_msg("device %zu: want %d, got %d", i, devices[i].want, got);
    }
}

/* A device reports one subgroup size, and a range of sizes (`least` to `most`) that pipelines may require. The traits
 * of its class choose three sizes: `want` for most kernels, `few` for kernels that are short of registers, and
 * `shuffles` for kernels that shuffle much. */
static void a_subgroup_has_the_size_of_the_trait(void **state)
{
    (void)state;
    static const struct {
        uint32_t vendor, reported, least, most, want, few, shuffles;
    } devices[] = {
        { 0x8086, 32, 8, 32, 16, 8, 16 },     /* Arc and older GPUs of Intel */
        { 0x8086, 16, 16, 32, 16, 16, 16 },   /* Battlemage */
        { 0x8086, 32, 32, 32, 32, 32, 32 },   /* a driver with one size */
        { 0x5143, 128, 64, 128, 64, 64, 64 }, /* Adreno */
        { 0x13b5, 16, 16, 16, 16, 16, 16 },   /* Mali: has only 16, although the trait is 64 */
        { 0x1002, 64, 32, 64, 64, 64, 32 },   /* RDNA */
        { 0x1002, 64, 64, 64, 64, 64, 64 },   /* Vega */
        { 0x10de, 32, 32, 32, 32, 32, 32 },   /* NVIDIA */
        { 0x1234, 48, 16, 64, 48, 48, 48 },   /* a device of an unknown vendor gets the size that it reports */
    };
    for (size_t i = 0; i < VKT_COUNT(devices); i++) {
        const vkt_host host = vkt_test_host();
        vkt_device_info info;
        uint32_t n;
        fake_reset();
        fake.vendor = devices[i].vendor;
        memcpy(fake.subgroup_sizes, &devices[i].reported, sizeof fake.subgroup_sizes);
        assert_int_equal(vkt_list_devices_of(&host, fake_loader(), &info, 1, &n), VKT_OK);
        if (n == 0) skip();
        if (info.subgroup_size != devices[i].want)
            fail_msg("device %zu: want %u lanes, got %u", i, devices[i].want, info.subgroup_size);
        vkt_ctx *ctx = rig_open(NULL, fake_loader());
        const vkt_limits *l = &ctx->limits;
        if (l->subgroup_size != devices[i].want || l->subgroup_short != devices[i].few ||
            l->subgroup_shuffles != devices[i].shuffles)
            fail_msg("device %zu: %u, %u and %u lanes", i, l->subgroup_size, l->subgroup_short, l->subgroup_shuffles);
        vkt_ctx_destroy(&ctx);
    }
    fake_reset();
}

/* Three vendors have an extension that reports the number of cores. limits.cores is the reported number, with two
 * exceptions: if the user sets the trait `cores`, or if no extension reports a number above 0, limits.cores has the
 * value of the trait. */
static void cores_are_reported_or_estimated(void **state)
{
    (void)state;
    const struct {
        const char *extension;
        VkStructureType type;
        size_t at;
    } sources[] = {
        { "VK_NV_shader_sm_builtins", VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV,
          offsetof(VkPhysicalDeviceShaderSMBuiltinsPropertiesNV, shaderSMCount) },
        { "VK_AMD_shader_core_properties2", VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD,
          offsetof(VkPhysicalDeviceShaderCoreProperties2AMD, activeComputeUnitCount) },
        { "VK_ARM_shader_core_builtins", VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM,
          offsetof(VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM, shaderCoreCount) },
    };
    for (size_t i = 0; i < 3 * VKT_COUNT(sources); i++) {
        const uint32_t cores = i < VKT_COUNT(sources) ? 77 : 0; /* a driver may report 0 */
        const bool set = i / VKT_COUNT(sources) == 2;
        fake_reset();
        fake.cores_extension = sources[i % 3].extension;
        fake.cores_type = sources[i % 3].type;
        fake.cores_at = (uint32_t)sources[i % 3].at;
        fake.cores = set ? 77 : cores;
        if (set) setenv("VKT_TRAITS", "cores=5", 1);
        vkt_ctx *ctx = rig_open(NULL, fake_loader());
        assert_int_equal(ctx->limits.cores, set ? 5 : cores ? cores : ctx->traits.cores);
        vkt_ctx_destroy(&ctx);
        unsetenv("VKT_TRAITS");
    }
    fake_reset();
}

/* On a GPU, limits.lacks_tuning is true if the context uses the cache directory, but this directory has no tuning file
 * of the GPU. If VKT_NO_TUNING is set, lacks_tuning is false. If lacks_tuning is true, the programs of samples/ suggest
 * to measure the kernels. */
static void a_gpu_without_a_tuning_file_says_so(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const vkt_tuned entry = { 1, VKT_V(SHARED) };
    const uint32_t sizes[3] = { 32, 32, 32 };
    const char *const before = getenv("XDG_CACHE_HOME");
    char *const kept = before ? strdup(before) : NULL;
    setenv("XDG_CACHE_HOME", dir.path, 1);
    /* i = 0: the real device. 1: a fake GPU. 2: the fake GPU, but the context does not use the cache directory. 3: the
     * fake GPU with the tuning file that iteration 1 wrote. */
    for (int i = 0; i < 4; i++) {
        vkt_device_limits limits;
        fake_reset();
        if (i) fake.vendor = 0x10de;
        memcpy(fake.subgroup_sizes, sizes, sizeof sizes);
        vkt_ctx *ctx = rig_open(&(vkt_ctx_params){ .no_pipeline_cache = i == 2 }, fake_loader());
        vkt_ctx_limits(ctx, &limits);
        assert_int_equal(limits.lacks_tuning, i == 1 || (i == 0 && ctx->device_class != VKT_CLASS_CPU));
        if (i == 1) assert_int_equal(vkt_tuning_add(ctx, &entry, 1), VKT_OK);
        vkt_ctx_destroy(&ctx);
    }
    fake_reset();
    if (kept)
        setenv("XDG_CACHE_HOME", kept, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(kept);
    vkt_temp_dir_remove(&dir);
}

/* A context has the traits of its device's class. On a CPU driver, three traits depend on the CPU of the machine. */
static void a_context_has_the_traits_of_its_class(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const bool cpu = ctx->device_class == VKT_CLASS_CPU;
    assert_int_equal(cpu, vkt_ctx_device(ctx)->kind == VKT_DEVICE_CPU);
    assert_ptr_equal(ctx->limits.traits, &ctx->traits);
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++) {
        assert_false(vkt_trait_is_set(&ctx->traits_set, i));
        if (cpu && (i == VKT_T_words64 || i == VKT_T_cache_kib || i == VKT_T_cores)) continue;
        assert_true(vkt_trait_value(&ctx->traits, i) == vkt_trait_value(&vkt_class_traits[ctx->device_class], i));
    }
    if (cpu) assert_int_equal(ctx->traits.words64, vkt_cpu_avx512() != VKT_AVX512_INTEL);
    assert_in_range(ctx->traits.cache_kib, 1, 128 << 10);
    vkt_ctx_destroy(&ctx);
}

/* Checks that the context has the traits that the caller has set. Then destroys the context. */
static void check_set(vkt_ctx *ctx)
{
    assert_int_equal(ctx->traits.items_move, 7);
    assert_int_equal(ctx->traits.largest_loop, 5000);
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++)
        assert_int_equal(vkt_trait_is_set(&ctx->traits_set, i), i == VKT_T_items_move || i == VKT_T_largest_loop);
    vkt_ctx_destroy(&ctx);
}

static void the_environment_and_files_set_traits(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    static const char text[] = "# an experiment\nitems_move = 7\nlargest_loop=5000 # iterations\n";
    char at[300];
    setenv("VKT_TRAITS", "items_move=7,largest_loop=5000", 1);
    check_set(rig_open(NULL, NULL));
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "traits"), text, strlen(text)), VKT_OK);
    snprintf(at, sizeof at, "@%s", vkt_temp_dir_file(&dir, "traits"));
    setenv("VKT_TRAITS", at, 1);
    check_set(rig_open(NULL, NULL));
    setenv("VKT_TRAITS", "", 1);
    vkt_ctx *ctx = rig_open(NULL, NULL);
    assert_int_equal(ctx->traits.items_move, vkt_class_traits[ctx->device_class].items_move);
    vkt_ctx_destroy(&ctx);
    unsetenv("VKT_TRAITS");
    vkt_temp_dir_remove(&dir);
}

/* Checks that no context is made with this value of VKT_TRAITS, and that the message contains `says` and `also`. */
static void refuses(const char *value, vkt_result want, const char *says, const char *also)
{
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx = NULL;
    setenv("VKT_TRAITS", value, 1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_create(&no_cache, &h, &ctx), want);
    assert_null(ctx);
    vkt_test_error_contains(says);
    vkt_test_error_contains(also);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_test_live_blocks(), 0);
    unsetenv("VKT_TRAITS");
}

static void wrong_settings_are_a_status(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL); /* skips the test if there is no device */
    vkt_ctx_destroy(&ctx);
    refuses("lane_move=1", VKT_E_ARG, "VKT_TRAITS: want name=value of a trait, got \"lane_move=1\"", "lanes_move");
    refuses("pack_read=1", VKT_E_ARG, "similar names: ",
            "lanes_pack, lanes_pack_matrix, items_pack, groups_pack_matrix, classes_spread, pack_reads");
    refuses("xyz=1", VKT_E_ARG, "got \"xyz=1\"", "vkt-info prints all traits");
    refuses("lanes_items_groups_cost_fft=1", VKT_E_ARG, ", ...",
            "vkt-info prints all traits"); /* more names are similar than the message lists */
    refuses("lanes_move=3", VKT_E_ARG, "VKT_TRAITS: want lanes_move=N", "got \"3\"");
    refuses("@/nowhere/traits", VKT_E_NOT_FOUND, "/nowhere/traits", "");
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    char at[300];
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "wrong"), "items_move=none", 15), VKT_OK);
    snprintf(at, sizeof at, "@%s", vkt_temp_dir_file(&dir, "wrong"));
    refuses(at, VKT_E_ARG, at + 1, "want items_move=N");
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(simulated_devices_have_the_right_class),
        TEST(a_subgroup_has_the_size_of_the_trait),
        TEST(cores_are_reported_or_estimated),
        TEST(a_gpu_without_a_tuning_file_says_so),
        TEST(a_context_has_the_traits_of_its_class),
        TEST(the_environment_and_files_set_traits),
        TEST(wrong_settings_are_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
