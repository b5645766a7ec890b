/* gpu/traits.c - finds the class of a device, and fills in its traits. The traits are those of the class
 * (base/traits.def). On a CPU driver some traits are changed for the CPU of this machine. $VKT_TRAITS changes single
 * traits. */
#include "gpu/internal.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/system.h"

#define MAX_FILE_BYTES ((uint64_t)1 << 16)

vkt_device_class vkt_class_of(uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type)
{
    static const struct {
        uint32_t vendor; /* PCI id of the vendor */
        vkt_device_class cls;
    } vendors[] = {
        { 0x10de, VKT_CLASS_NVIDIA }, { 0x1002, VKT_CLASS_AMD },    { 0x1022, VKT_CLASS_AMD },
        { 0x8086, VKT_CLASS_INTEL },  { 0x13b5, VKT_CLASS_MOBILE }, /* Arm */
        { 0x5143, VKT_CLASS_MOBILE },                               /* Qualcomm */
        { 0x106b, VKT_CLASS_MOBILE },                               /* Apple */
        { 0x1010, VKT_CLASS_MOBILE },                               /* Imagination */
        { 0x14e4, VKT_CLASS_MOBILE },                               /* Broadcom */
        { 0x144d, VKT_CLASS_MOBILE },                               /* Samsung */
    };
    if (type == VK_PHYSICAL_DEVICE_TYPE_CPU || driver == VK_DRIVER_ID_MESA_LLVMPIPE ||
        driver == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
        return VKT_CLASS_CPU;
    for (size_t i = 0; i < VKT_COUNT(vendors); i++)
        if (vendors[i].vendor == vendor) return vendors[i].cls;
    return VKT_CLASS_OTHER;
}

/* Sets the traits that depend on the CPU of this machine. If LLVM uses AVX-512, the 64-bit words of eight lanes are one
 * vector of 512 bits. On Intel's CPUs, a load from the upper half of such a vector is slow just after the vector was
 * stored (kernel/wide.c). So the trait words64 is false on Intel's CPUs with AVX-512. */
static void ask_this_machine(vkt_traits *t)
{
    t->words64 = vkt_cpu_avx512() != VKT_AVX512_INTEL;
    const uint64_t last = vkt_cpu_cache_bytes();
    if (last >= 1024) t->cache_kib = (uint32_t)VKT_MIN(last / 1024, 128 << 10);
    t->cores = vkt_cpu_count();
}

static vkt_result set_by_file(vkt_ctx *ctx, const char *path)
{
    void *text = NULL;
    size_t n;
    VKT_TRY(vkt_file_read(&ctx->host, path, MAX_FILE_BYTES, &text, &n));
    const vkt_result r =
        vkt_traits_parse(&ctx->host, path, text, ctx->limits.max_workgroup_lanes, &ctx->traits, &ctx->traits_set);
    vkt_free(&ctx->host, text);
    return r;
}

vkt_result vkt_traits_fill(vkt_ctx *ctx, uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type)
{
    const char *env = getenv("VKT_TRAITS");
    ctx->device_class = vkt_class_of(vendor, driver, type);
    ctx->traits = vkt_class_traits[ctx->device_class];
    ctx->traits_set = (vkt_traits_set){ { 0 } };
    if (ctx->device_class == VKT_CLASS_CPU) ask_this_machine(&ctx->traits);
    ctx->limits.traits = &ctx->traits;
    if (!env || !*env) return VKT_OK;
    vkt_log_line(&ctx->host, VKT_LOG_INFO, "VKT_TRAITS sets traits of the device: %s", env);
    if (*env == '@') return set_by_file(ctx, env + 1);
    return vkt_traits_parse(&ctx->host, "VKT_TRAITS", env, ctx->limits.max_workgroup_lanes, &ctx->traits,
                            &ctx->traits_set);
}
