/* gpu/context.c - opens and closes a device. Only this file distinguishes the device of an application from a device
 * that the engine creates. */
#include "gpu/internal.h"

#include "base/paths.h"
#include "base/system.h"

/* ---- the engine's own device ---- */

static vkt_ctx *ctx_new(const vkt_host *host)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_ctx *ctx = vkt_alloc(&h, sizeof *ctx);
    if (!ctx) {
        vkt_fail_nomem(&h, "a context", sizeof *ctx);
        return NULL;
    }
    ctx->host = h;
    ctx->counting = (vkt_counting){ h.alloc, &ctx->counters.host_allocs };
    ctx->host.alloc = (vkt_allocator){ vkt_counting_resize, &ctx->counting };
    ctx->owns_device = true;
    ctx->process = vkt_process_id();
    return ctx;
}

static vkt_result device_create(vkt_ctx *ctx, const vkt_candidate *c)
{
    static const float priority = 1;
    const VkDeviceQueueCreateInfo queues[] = {
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
          .queueFamilyIndex = c->compute_family,
          .queueCount = 1,
          .pQueuePriorities = &priority },
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
          .queueFamilyIndex = c->transfer_family,
          .queueCount = 1,
          .pQueuePriorities = &priority },
    };
    const char *extensions[6];
    uint32_t n_extensions = 0;
    if (c->has_memory_budget) extensions[n_extensions++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (c->has_host_import) extensions[n_extensions++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (ctx->has_coop) extensions[n_extensions++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    if (ctx->has_coop2) extensions[n_extensions++] = VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME;
    if (ctx->has_bfloat) extensions[n_extensions++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
    if (c->is_portable) extensions[n_extensions++] = VKT_PORTABILITY_SUBSET;
    vkt_coop_features with_coop;
    const void *chain = ctx->has_coop ? vkt_features_with_coop(&with_coop, ctx->has_coop2, ctx->has_bfloat)
                                      : vkt_vk_get_needs()->features;
    const VkPhysicalDeviceFeatures2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                             .pNext = (void *)(uintptr_t)chain,
                                             .features.shaderInt64 = ctx->has_int64 };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &core,
        .queueCreateInfoCount = ctx->has_transfer_queue ? 2 : 1,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = n_extensions,
        .ppEnabledExtensionNames = extensions,
    };
    ctx->capabilities = vkt_capabilities_of(&core);
    const VkResult r = ctx->vk.CreateDevice(c->phys, &info, NULL, &ctx->device);
    if (r != VK_SUCCESS) ctx->device = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreateDevice");
}

/* Chooses a device and opens it. If `unless` returns true for the chosen device, returns VKT_OK and opens nothing. */
static vkt_result device_open(vkt_ctx *ctx, const char *selector, vkt_unless_fn unless)
{
    vkt_candidate *list;
    const vkt_candidate *c;
    uint32_t n;
    VKT_TRY(vkt_candidates(ctx, &list, &n));
    vkt_result r = vkt_candidate_choose(ctx, list, n, selector, &c);
    if (r == VKT_OK && !(unless && unless(&c->info, c->driver))) {
        ctx->phys = c->phys;
        ctx->info = c->info;
        ctx->driver = c->driver;
        ctx->compute.family = c->compute_family;
        ctx->transfer.family = c->transfer_family;
        ctx->has_transfer_queue = c->transfer_family != VKT_NO_FAMILY && !vkt_env_disabled("transfer_queue");
        ctx->has_memory_budget = c->has_memory_budget;
        ctx->has_host_import = c->has_host_import;
        ctx->has_coop = c->has_coop && vkt_coop_offered(ctx, c->phys);
        ctx->has_coop2 = ctx->has_coop && c->has_coop2 && vkt_coop2_offered(ctx, c->phys);
        ctx->has_bfloat = ctx->has_coop && c->has_bfloat && vkt_bfloat_offered(ctx, c->phys);
        ctx->has_int64 = c->has_int64;
        r = device_create(ctx, c);
    }
    vkt_free(&ctx->host, list);
    return r;
}

/* ---- an application's device ---- */

/* Checks that the device has a queue family of this index, and that the family can compute. */
static vkt_result check_family(vkt_ctx *ctx, uint32_t family)
{
    uint32_t n = 0;
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(ctx->phys, &n, NULL);
    VkQueueFamilyProperties *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of queue families", n * sizeof *list);
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(ctx->phys, &n, list);
    const bool fits = family < n && (list[family].queueFlags & VK_QUEUE_COMPUTE_BIT);
    vkt_free(&ctx->host, list);
    if (fits) return VKT_OK;
    return vkt_fail(&ctx->host, VKT_E_ARG, "adopt: want a queue family with compute, got family %u of %u", family, n);
}

static vkt_result check_enabled(vkt_ctx *ctx, const void *chain)
{
    vkt_text names = { .h = &ctx->host };
    for (uint32_t i = 0; i < vkt_feature_count(); i++)
        if (!vkt_feature_is_on(chain, i)) vkt_text_add(&names, "%s%s", names.len ? ", " : "", vkt_feature_name(i));
    vkt_result r = VKT_OK;
    if (names.failed)
        r = vkt_fail_nomem(&ctx->host, "a message", 0);
    else if (names.len)
        r = vkt_fail(&ctx->host, VKT_E_FEATURE, "adopt: the device was made without %s (vkt_vk_add_features sets them)",
                     names.s);
    vkt_text_free(&names);
    return r;
}

/* Finds the application's device in the instance's list of devices, and copies its entry to *out. */
static vkt_result find_adopted(vkt_ctx *ctx, vkt_candidate *out)
{
    vkt_candidate *list;
    uint32_t n, i = 0;
    VKT_TRY(vkt_candidates(ctx, &list, &n));
    while (i < n && list[i].phys != ctx->phys) i++;
    if (i < n) *out = list[i];
    vkt_free(&ctx->host, list);
    return i < n ? VKT_OK : vkt_fail(&ctx->host, VKT_E_ARG, "the physical device is none of the instance's");
}

static vkt_result instance_adopt(vkt_ctx *ctx, PFN_vkGetInstanceProcAddr get_proc, VkInstance instance, bool names)
{
    const vkt_loader loader = { .get_proc = get_proc };
    VKT_TRY(vkt_vk_open(&ctx->host, get_proc ? &loader : NULL, &ctx->vk, &ctx->loader));
    ctx->instance = instance;
    ctx->has_debug_utils = names;
    return vkt_vk_load_instance(&ctx->host, &ctx->vk, instance, names);
}

static vkt_result device_adopt(vkt_ctx *ctx, const vkt_adopt_params *a, const vkt_ctx_params *params)
{
    if (!a->instance || !a->physical_device || !a->device || !a->queue)
        return vkt_fail(&ctx->host, VKT_E_ARG, "adopt: want an instance, a physical device, a device and a queue");
    if (!a->lock_queue != !a->unlock_queue)
        return vkt_fail(&ctx->host, VKT_E_ARG, "adopt: want both lock_queue and unlock_queue, or none");
    if (a->n_extensions) VKT_WANT(&ctx->host, a->extensions);
    VKT_TRY(instance_adopt(ctx, a->get_proc_addr, a->instance,
                           a->debug_utils && (params->debug_names || vkt_debug_level() >= 1)));
    ctx->phys = a->physical_device;
    vkt_candidate c;
    VKT_TRY(find_adopted(ctx, &c));
    if (!c.info.usable)
        return vkt_fail(&ctx->host, VKT_E_FEATURE, "adopt: device \"%s\" cannot be used: it %s", c.info.name,
                        c.info.reason);
    VKT_TRY(check_enabled(ctx, a->features));
    VKT_TRY(check_family(ctx, a->queue_family));
    for (uint32_t i = 0; i < a->n_extensions; i++)
        if (strcmp(a->extensions[i], VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0)
            ctx->has_memory_budget = true;
        else if (strcmp(a->extensions[i], VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0)
            ctx->has_host_import = c.has_host_import;
        else if (strcmp(a->extensions[i], VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) == 0)
            ctx->has_coop = vkt_features_have_coop(a->features);
        else if (strcmp(a->extensions[i], VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME) == 0)
            ctx->has_coop2 = vkt_features_have_coop2(a->features);
        else if (strcmp(a->extensions[i], VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME) == 0)
            ctx->has_bfloat = vkt_features_have_bfloat(a->features);
    ctx->has_bfloat = ctx->has_bfloat && ctx->has_coop;
    ctx->has_coop2 = ctx->has_coop2 && ctx->has_coop;
    ctx->has_int64 = vkt_features_have_int64(a->features);
    ctx->capabilities = vkt_capabilities_of(a->features);
    ctx->info = c.info;
    ctx->driver = c.driver;
    ctx->device = a->device;
    ctx->allocation = a->allocation;
    ctx->lock.acquire = a->lock_queue;
    ctx->lock.release = a->unlock_queue;
    ctx->lock.user = a->lock_user;
    ctx->compute = (vkt_queue){ .handle = a->queue, .family = a->queue_family };
    return VKT_OK;
}

/* ---- the rest of a context, for both kinds of device ---- */

static vkt_result open_queue(vkt_ctx *ctx, vkt_queue *q, const char *name)
{
    if (ctx->owns_device) {
        ctx->vk.GetDeviceQueue(ctx->device, q->family, 0, &q->handle);
        vkt_name(ctx, VK_OBJECT_TYPE_QUEUE, (uint64_t)(uintptr_t)q->handle, name);
    }
    return vkt_queue_create(ctx, q, name);
}

/* Sets ctx->lacks_tuning. */
static void look_for_tuning(vkt_ctx *ctx)
{
    char *path = NULL;
    if (!ctx->traits.tuning_pays || !ctx->keeps_cache || vkt_env_disabled("tuning")) return;
    if (vkt_cache_path(ctx, VKT_TUNING_SUFFIX, &path) == VKT_OK && path) ctx->lacks_tuning = !vkt_path_exists(path);
    vkt_free(&ctx->host, path);
}

/* Completes a context. The caller has set these members: instance, phys, device, info, driver, capabilities, the has_
 * flags, compute.family, and the global and instance functions in vk. For the engine's own device the caller has also
 * set transfer.family. For an application's device the caller has also set compute.handle. */
static vkt_result finish(vkt_ctx *ctx, const vkt_ctx_params *params)
{
    VKT_TRY(vkt_vk_load_device(&ctx->host, &ctx->vk, ctx->device));
    VKT_TRY(vkt_limits_fill(ctx));
    vkt_import_open(ctx);
    VKT_TRY(open_queue(ctx, &ctx->compute, "compute"));
    if (ctx->has_transfer_queue)
        VKT_TRY(open_queue(ctx, &ctx->transfer, "transfer"));
    else
        ctx->transfer = ctx->compute;
    ctx->max_submission_ns = params->max_submission_ns ? params->max_submission_ns : 100000000;
    ctx->block_bytes = params->block_bytes;
    ctx->staging_bytes = params->staging_bytes;
    VKT_TRY(vkt_memory_create(ctx, params->max_device_bytes));
    VKT_TRY(vkt_transfers_create(ctx));
    VKT_TRY(vkt_pipeline_cache_open(ctx, !params->no_pipeline_cache));
    look_for_tuning(ctx);
    char cap[24];
    vkt_memory_stats memory;
    vkt_ctx_memory(ctx, &memory);
    vkt_log_line(&ctx->host, VKT_LOG_INFO, "device %u \"%s\", driver %s, subgroups of %u, memory cap %s%s",
                 ctx->info.index, ctx->info.name, ctx->info.driver, ctx->limits.subgroup_size,
                 vkt_bytes_text(memory.cap_bytes, cap), ctx->has_transfer_queue ? ", transfer queue" : "");
    return VKT_OK;
}

static const vkt_ctx_params defaults = { 0 };

/* `r` is the result of opening the device. If `r` is VKT_OK, finishes the context and stores the context in *out. If
 * `r` is an error, or finishing fails, frees the context and returns the error. */
static vkt_result deliver(vkt_ctx *ctx, vkt_result r, const vkt_ctx_params *params, vkt_ctx **out)
{
    if (r == VKT_OK) r = finish(ctx, params);
    if (r == VKT_OK)
        *out = ctx;
    else
        vkt_ctx_destroy(&ctx);
    return r;
}

vkt_result vkt_ctx_open_unless(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                               vkt_unless_fn unless, vkt_ctx **out)
{
    if (!params) params = &defaults;
    *out = NULL;
    vkt_ctx *ctx = ctx_new(host);
    if (!ctx) return VKT_E_NOMEM;
    vkt_result r = vkt_instance_open(ctx, params, loader);
    if (r == VKT_E_NO_DEVICE) r = vkt_candidate_choose(ctx, NULL, 0, params->device, NULL);
    if (r == VKT_OK) r = device_open(ctx, params->device, unless);
    if (r != VKT_OK || ctx->device) return deliver(ctx, r, params, out);
    vkt_ctx_destroy(&ctx);
    return VKT_OK;
}

vkt_result vkt_ctx_open(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader, vkt_ctx **out)
{
    return vkt_ctx_open_unless(params, host, loader, NULL, out);
}

vkt_result vkt_ctx_adopt(const vkt_adopt_params *adopt, const vkt_ctx_params *params, const vkt_host *host,
                         vkt_ctx **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, adopt);
    if (!params) params = &defaults;
    *out = NULL;
    vkt_ctx *ctx = ctx_new(host);
    if (!ctx) return VKT_E_NOMEM;
    ctx->owns_device = false;
    return deliver(ctx, device_adopt(ctx, adopt, params), params, out);
}

vkt_result vkt_ctx_create(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out)
{
    VKT_WANT(host, out);
    return vkt_ctx_open(params, host, NULL, out);
}

/* Waits until the engine's work is done. For the engine's own device, the function calls vkDeviceWaitIdle, also after a
 * loss of the device. For an application's device, the function waits only for the engine's work. After a loss of an
 * application's device it does not wait, because no work runs any more. */
static void drain(vkt_ctx *ctx)
{
    if (ctx->owns_device)
        ctx->vk.DeviceWaitIdle(ctx->device);
    else if (ctx->lost == VKT_OK)
        (void)vkt_ctx_wait_idle(ctx);
}

static void device_close(vkt_ctx *ctx)
{
    if (!ctx->device || !ctx->vk.DeviceWaitIdle) return; /* the device was never opened, or its functions are missing */
    drain(ctx);
    if (ctx->kernels_destroy) ctx->kernels_destroy(ctx);
    vkt_pipeline_cache_close(ctx);
    vkt_transfers_destroy(ctx);
    vkt_memory_destroy(ctx);
    if (ctx->has_transfer_queue) vkt_queue_destroy(ctx, &ctx->transfer);
    vkt_queue_destroy(ctx, &ctx->compute);
    if (ctx->owns_device) ctx->vk.DestroyDevice(ctx->device, NULL);
}

void vkt_ctx_destroy(vkt_ctx **handle)
{
    if (!handle) return;
    vkt_ctx *ctx = *handle;
    if (!ctx) return;
    if (!vkt_is_forked(ctx)) { /* a forked child must not touch the device of its parent */
        device_close(ctx);
        if (ctx->owns_device) vkt_instance_close(ctx);
        vkt_vk_close(ctx->loader);
    }
    vkt_free(&ctx->host, ctx->tuned);
    const vkt_allocator alloc = ctx->counting.to; /* not ctx->host.alloc: its counters are in *ctx, which is freed */
    alloc.resize(alloc.user, ctx, 0);
    *handle = NULL;
}

/* ---- listing ---- */

vkt_result vkt_list_devices_of(const vkt_host *host, const vkt_loader *loader, vkt_device_info *infos,
                               uint32_t capacity, uint32_t *count)
{
    const vkt_ctx_params params = { 0 };
    vkt_candidate *list = NULL;
    uint32_t n = 0;
    *count = 0;
    vkt_ctx *ctx = ctx_new(host);
    if (!ctx) return VKT_E_NOMEM;
    vkt_result r = vkt_instance_open(ctx, &params, loader);
    if (r == VKT_OK)
        r = vkt_candidates(ctx, &list, &n);
    else if (r == VKT_E_NO_DEVICE)
        r = VKT_OK;
    if (r == VKT_OK && n == 0) {
        char why[512];
        vkt_explain_no_device(why);
        vkt_log_line(&ctx->host, VKT_LOG_WARN, "%s", why);
    }
    for (uint32_t i = 0; i < n && i < capacity; i++) infos[i] = list[i].info;
    *count = n;
    vkt_free(&ctx->host, list);
    vkt_ctx_destroy(&ctx);
    return r;
}

vkt_result vkt_list_devices(const vkt_host *host, vkt_device_info *infos, uint32_t capacity, uint32_t *count)
{
    if (capacity) VKT_WANT(host, infos);
    VKT_WANT(host, count);
    return vkt_list_devices_of(host, NULL, infos, capacity, count);
}

vkt_result vkt_vk_examine(const vkt_host *host, PFN_vkGetInstanceProcAddr get_proc_addr, VkInstance instance,
                          VkPhysicalDevice physical_device, vkt_device_info *out)
{
    VKT_WANT(host, out);
    *out = (vkt_device_info){ 0 };
    vkt_ctx *ctx = ctx_new(host);
    if (!ctx) return VKT_E_NOMEM;
    ctx->owns_device = false;
    vkt_candidate c;
    vkt_result r = instance && physical_device
                       ? instance_adopt(ctx, get_proc_addr, instance, false)
                       : vkt_fail(&ctx->host, VKT_E_ARG, "examine: want an instance and a physical device");
    ctx->phys = physical_device;
    if (r == VKT_OK) r = find_adopted(ctx, &c);
    if (r == VKT_OK) *out = c.info;
    vkt_ctx_destroy(&ctx);
    return r;
}

/* ---- switches ---- */

vkt_host vkt_ctx_host(const vkt_ctx *ctx)
{
    if (!ctx) return vkt_host_resolve(NULL);
    return ctx->host;
}

const vkt_device_info *vkt_ctx_device(const vkt_ctx *ctx)
{
    return ctx ? &ctx->info : NULL;
}

/* Moves all transfers to the compute queue. Frees the staging rings and their command buffers, which belong to the
 * family of the transfer queue. */
static vkt_result drop_transfer_queue(vkt_ctx *ctx)
{
    if (!ctx->has_transfer_queue) return VKT_OK;
    VKT_TRY(vkt_ctx_wait_idle(ctx));
    vkt_transfers_empty(ctx);
    vkt_queue_destroy(ctx, &ctx->transfer);
    ctx->has_transfer_queue = false;
    ctx->transfer = ctx->compute;
    return VKT_OK;
}

vkt_result vkt_ctx_disable(vkt_ctx *ctx, const char *feature)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, feature);
    vkt_variant v;
    if (strcmp(feature, "transfer_queue") == 0) return drop_transfer_queue(ctx);
    if (strcmp(feature, "texel") == 0)
        ctx->limits.max_texel_elements = 0;
    else if (strcmp(feature, "host_import") == 0)
        ctx->has_host_import = false;
    else if (vkt_variant_find(feature, &v))
        ctx->limits.choices.off |= (uint64_t)1 << v;
    else
        return vkt_fail(
            &ctx->host, VKT_E_NOT_FOUND,
            "disable: want \"texel\", \"transfer_queue\", \"host_import\" or a variant of an op, got \"%s\"", feature);
    return VKT_OK;
}
