/* kernel/wide.c - see wide.h.
 *
 * llvmpipe runs a subgroup as one vector. The vector has the width that LP_NATIVE_VECTOR_WIDTH had when the driver was
 * loaded. Without this variable, the vector has 256 bits on x86 CPUs with AVX. The loader loads the driver when a
 * process makes its first instance, and unloads it when the last instance is destroyed. Therefore this file identifies
 * the device with one instance, destroys that instance, and then sets the variable. */
#include "kernel/wide.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/system.h"

#define WIDTH "LP_NATIVE_VECTOR_WIDTH"
enum { DEFAULT_LANES = 8, WIDE_LANES = 16 };

/* Drivers that are faster with vectors of 512 bits than with 256 bits, on the CPUs of this_cpu_gains. Each entry is the
 * start of vkt_device_info.driver, which names the version of Mesa. (The driverVersion of llvmpipe is always 1.) Mesa
 * 22.3.6 was measured, and passed the tests of ops and training with 512 bits. No other driver is in this list: on Mesa
 * 25.0.7 a product of 1024 x 1024 took 150 ms instead of 12 ms, and Mesa 26 ended the process. */
static const char *const gaining[] = { "llvmpipe Mesa 22.3." };

/* Returns whether the CPU is from AMD and has AVX-512. Some CPUs from Intel have AVX-512, but llvmpipe is slower on
 * them with 512 bits. llvmpipe stores a vector to its stack once for each 32-bit word that it extracts. Intel's CPUs do
 * not forward the upper half of a 512-bit store to a load; the load waits 16 cycles for the cache instead. On Emerald
 * Rapids, a word of the upper half took 5.6 ns, and a word of a 256-bit vector 0.6 ns. A step of the MNIST network took
 * 64 ms with 512 bits and 55 ms with 256 bits. */
static bool this_cpu_gains(void)
{
    return vkt_cpu_avx512() == VKT_AVX512_AMD;
}

static bool gains(const vkt_device_info *info, VkDriverId driver)
{
    if (driver != VK_DRIVER_ID_MESA_LLVMPIPE || info->subgroup_size != DEFAULT_LANES) return false;
    for (size_t i = 0; i < VKT_COUNT(gaining); i++)
        if (strncmp(info->driver, gaining[i], strlen(gaining[i])) == 0) return true;
    return false;
}

/* Opens a context like vkt_ctx_open_unless. Runs the self-test if the context's vectors have 512 bits, even if the user
 * has set the width. VKT_E_WRONG: the self-test has found a wrong result. After a failure, `why` is a text with the
 * reason. */
static vkt_result open_tested(const vkt_ctx_params *params, const vkt_host *h, const vkt_loader *loader,
                              vkt_unless_fn unless, vkt_ctx **out, char why[80])
{
    uint32_t wrong = 0;
    vkt_result r = vkt_ctx_open_unless(params, h, loader, unless, out);
    const vkt_ctx *ctx = *out;
    if (ctx && ctx->driver == VK_DRIVER_ID_MESA_LLVMPIPE && ctx->limits.subgroup_size == WIDE_LANES)
        r = vkt_self_test(*out, &wrong);
    if (wrong) r = VKT_E_WRONG;
    if (r == VKT_OK) return r;
    vkt_ctx_destroy(out);
    if (wrong)
        snprintf(why, 80, "%s: %u numbers of the self-test are wrong", vkt_result_name(r), wrong);
    else
        snprintf(why, 80, "%s: %s", vkt_result_name(r), vkt_result_text(r));
    return r;
}

/* Opens a context with the driver's default width. VKT_E_WRONG: the driver does not go back to this width. */
static vkt_result fall_back(const vkt_ctx_params *params, const vkt_host *h, const vkt_loader *loader, vkt_ctx **out,
                            const char *why)
{
    vkt_log_line(h, VKT_LOG_WARN, "vectors of 512 bits cannot be used (%s); back to the driver's default", why);
    (void)vkt_env_set(WIDTH, NULL);
    VKT_TRY(vkt_ctx_open(params, h, loader, out));
    const uint32_t lanes = (*out)->limits.subgroup_size;
    if (lanes == DEFAULT_LANES) return VKT_OK;
    vkt_ctx_destroy(out);
    return vkt_fail(h, VKT_E_WRONG,
                    "subgroups of %u lanes cannot be used (%s), and the driver, which another instance of this process "
                    "holds, does not go back to %u: set " WIDTH "=256 before the program starts",
                    lanes, why, DEFAULT_LANES);
}

static vkt_result open_at_512(const vkt_ctx_params *params, const vkt_host *h, const vkt_loader *loader, vkt_ctx **out)
{
    char why[80];
    if (!vkt_env_set(WIDTH, "512")) return vkt_fail_nomem(h, "the environment", sizeof WIDTH "=512");
    const vkt_result r = open_tested(params, h, loader, NULL, out, why);
    if (r == VKT_E_ARG || r == VKT_E_NOT_FOUND || r == VKT_E_IO) { /* VKT_TRAITS, or the file that it names, is wrong */
        (void)vkt_env_set(WIDTH, NULL);
        return r;
    }
    if (r != VKT_OK) return fall_back(params, h, loader, out, why);
    if ((*out)->limits.subgroup_size == WIDE_LANES) return VKT_OK;
    (void)vkt_env_set(WIDTH, NULL);
    vkt_log_line(h, VKT_LOG_INFO,
                 "vectors stay at 256 bits: the driver did not use the width (another instance may hold it)");
    return VKT_OK;
}

vkt_result vkt_ctx_open_wide(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                             bool cpu_gains, vkt_ctx **out)
{
    const vkt_host h = vkt_host_resolve(host);
    const vkt_unless_fn unless = !getenv(WIDTH) && cpu_gains ? gains : NULL;
    char why[80];
    *out = NULL;
    const vkt_result r = open_tested(params, &h, loader, unless, out, why);
    if (r == VKT_E_WRONG)
        return vkt_fail(&h, r, "subgroups of %d lanes cannot be used (%s): set " WIDTH "=256", WIDE_LANES, why);
    return r == VKT_OK && !*out ? open_at_512(params, &h, loader, out) : r;
}

vkt_result vkt_ctx_create_wide(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out)
{
    VKT_WANT(NULL, out);
    return vkt_ctx_open_wide(params, host, NULL, this_cpu_gains(), out);
}
