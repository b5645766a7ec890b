/* gpu/context.c - opening and closing a device. The only file that asks whether the device is the host's. */
#include "gpu/internal.h"

/* ---- the host's allocator, counted ---- */

static void *counted_resize(void *user, void *p, size_t bytes)
{
    vkt_ctx *ctx = user;
    if (bytes) __atomic_fetch_add(&ctx->counters.host_allocs, 1, __ATOMIC_RELAXED); /* worker threads allocate too */
    return ctx->host_alloc.resize(ctx->host_alloc.user, p, bytes);
}

static vkt_ctx *ctx_new(const vkt_host *host)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_ctx *ctx = vkt_alloc(&h, sizeof *ctx);
    if (!ctx) {
        vkt_fail_nomem(&h, "a context", sizeof *ctx);
        return NULL;
    }
    ctx->host = h;
    ctx->host_alloc = h.alloc;
    ctx->host.alloc = (vkt_allocator){ counted_resize, ctx };
    ctx->owns_device = true;
    return ctx;
}

/* ---- a device of our own ---- */

static vkt_result device_create(vkt_ctx *ctx, const vkt_candidate *c)
{
    static const float priority = 1;
    vkt_features features;
    vkt_features_required(&features, ctx->has_coop);
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
    const char *extensions[2];
    uint32_t n_extensions = 0;
    if (c->has_memory_budget) extensions[n_extensions++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (ctx->has_coop) extensions[n_extensions++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features.core,
        .queueCreateInfoCount = ctx->has_transfer_queue ? 2 : 1,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = n_extensions,
        .ppEnabledExtensionNames = extensions,
    };
    const VkResult r = ctx->vk.CreateDevice(c->phys, &info, NULL, &ctx->device);
    if (r != VK_SUCCESS) ctx->device = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreateDevice");
}

static vkt_result device_open(vkt_ctx *ctx, const char *wish)
{
    vkt_candidate *list;
    const vkt_candidate *c;
    uint32_t n;
    VKT_TRY(vkt_candidates(ctx, &list, &n));
    vkt_result r = vkt_candidate_choose(ctx, list, n, wish, &c);
    if (r == VKT_OK) {
        ctx->phys = c->phys;
        ctx->info = c->info;
        ctx->compute.family = c->compute_family;
        ctx->transfer.family = c->transfer_family;
        ctx->has_transfer_queue = c->transfer_family != VKT_NO_FAMILY && !vkt_env_disabled("transfer_queue");
        ctx->has_memory_budget = c->has_memory_budget;
        ctx->has_coop = c->has_coop && vkt_coop_offered(ctx, c->phys);
        r = device_create(ctx, c);
    }
    vkt_free(&ctx->host, list);
    return r;
}

/* ---- everything above the device, whoever made it ---- */

/* Wants: vk's global and instance functions, instance, phys, device, info, the families of both queues and the has_
 * flags. */
static vkt_result finish(vkt_ctx *ctx, const vkt_ctx_params *params)
{
    VKT_TRY(vkt_vk_load_device(&ctx->host, &ctx->vk, ctx->device));
    VKT_TRY(vkt_limits_fill(ctx));
    VKT_TRY(vkt_queue_create(ctx, &ctx->compute, ctx->compute.family, "compute"));
    if (ctx->has_transfer_queue)
        VKT_TRY(vkt_queue_create(ctx, &ctx->transfer, ctx->transfer.family, "transfer"));
    else
        ctx->transfer = ctx->compute;
    ctx->max_submission_ns = params->max_submission_ns ? params->max_submission_ns : 100000000;
    VKT_TRY(vkt_memory_create(ctx, params->max_device_bytes));
    VKT_TRY(vkt_transfers_create(ctx));
    VKT_TRY(vkt_pipeline_cache_open(ctx, !params->no_pipeline_cache));
    char cap[24];
    vkt_memory_stats memory;
    vkt_ctx_memory(ctx, &memory);
    vkt_say(&ctx->host, VKT_LOG_INFO, "device %u \"%s\", driver %s, subgroups of %u, memory cap %s%s", ctx->info.index,
            ctx->info.name, ctx->info.driver, ctx->limits.subgroup_size, vkt_bytes_text(memory.cap_bytes, cap),
            ctx->has_transfer_queue ? ", transfer queue" : "");
    return VKT_OK;
}

vkt_result vkt_ctx_open(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader, vkt_ctx **out)
{
    static const vkt_ctx_params defaults = { 0 };
    if (!params) params = &defaults;
    *out = NULL;
    vkt_ctx *ctx = ctx_new(host);
    if (!ctx) return VKT_E_NOMEM;
    vkt_result r = vkt_instance_open(ctx, params, loader);
    if (r == VKT_E_NO_DEVICE) r = vkt_candidate_choose(ctx, NULL, 0, params->device, NULL);
    if (r == VKT_OK) r = device_open(ctx, params->device);
    if (r == VKT_OK) r = finish(ctx, params);
    if (r != VKT_OK) {
        vkt_ctx_destroy(&ctx);
        return r;
    }
    *out = ctx;
    return VKT_OK;
}

vkt_result vkt_ctx_create(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out)
{
    return vkt_ctx_open(params, host, NULL, out);
}

/* Our own work only: a host's device is never idled. After a loss nothing runs any more, but a driver may want to be
 * asked. */
static void drain(vkt_ctx *ctx)
{
    if (ctx->owns_device)
        ctx->vk.DeviceWaitIdle(ctx->device);
    else if (ctx->lost == VKT_OK)
        (void)vkt_ctx_wait_idle(ctx);
}

static void device_close(vkt_ctx *ctx)
{
    if (!ctx->device || !ctx->vk.DeviceWaitIdle) return; /* not opened, or without functions to close it by */
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
    vkt_ctx *ctx = *handle;
    if (!ctx) return;
    device_close(ctx);
    if (ctx->owns_device) vkt_instance_close(ctx);
    vkt_vk_close(ctx->loader);
    vkt_free(&ctx->host, ctx->tuned);
    const vkt_allocator alloc = ctx->host_alloc;
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
    for (uint32_t i = 0; i < n && i < capacity; i++) infos[i] = list[i].info;
    *count = n;
    vkt_free(&ctx->host, list);
    vkt_ctx_destroy(&ctx);
    return r;
}

vkt_result vkt_list_devices(const vkt_host *host, vkt_device_info *infos, uint32_t capacity, uint32_t *count)
{
    return vkt_list_devices_of(host, NULL, infos, capacity, count);
}

/* ---- switches ---- */

vkt_host vkt_ctx_host(const vkt_ctx *ctx)
{
    return ctx->host;
}

const vkt_device_info *vkt_ctx_device(const vkt_ctx *ctx)
{
    return &ctx->info;
}

/* Transfers go through the compute queue from here on; the rings are made anew, for its family. */
static vkt_result drop_transfer_queue(vkt_ctx *ctx)
{
    if (!ctx->has_transfer_queue) return VKT_OK;
    VKT_TRY(vkt_ctx_wait_idle(ctx));
    vkt_transfers_destroy(ctx);
    vkt_queue_destroy(ctx, &ctx->transfer);
    ctx->has_transfer_queue = false;
    ctx->transfer = ctx->compute;
    return vkt_transfers_create(ctx);
}

vkt_result vkt_ctx_disable(vkt_ctx *ctx, const char *feature)
{
    vkt_variant v;
    if (strcmp(feature, "transfer_queue") == 0) return drop_transfer_queue(ctx);
    if (strcmp(feature, "texel") == 0)
        ctx->limits.max_texel_elements = 0;
    else if (vkt_variant_find(feature, &v))
        ctx->limits.choices.off |= (uint64_t)1 << v;
    else
        return vkt_fail(&ctx->host, VKT_E_NOT_FOUND,
                        "disable: want \"texel\", \"transfer_queue\" or a variant of an op, got \"%s\"", feature);
    return VKT_OK;
}
