/* gpu/device.c - lists the devices and the features that each device lacks, chooses a device, and reads the limits of
 * the chosen device. */
#include "gpu/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"

/* ---- requirements ---- */

/* X(bit of VkSubgroupFeatureFlagBits, name) */
#define REQUIRED_SUBGROUP_OPS(X) \
    X(BASIC, "basic")            \
    X(VOTE, "vote")              \
    X(BALLOT, "ballot")          \
    X(SHUFFLE, "shuffle")        \
    X(ARITHMETIC, "arithmetic")

_Static_assert(VKT_MAX_BINDINGS == 12, "the sentence below says the number");
#define NEED_BINDINGS "12 storage buffers in a compute shader"
#define NEED_QUEUE "a compute queue"
#define NEED_STAGE "subgroups in compute shaders"
#define NEED_SIZE "a choice of the subgroup size in compute shaders"

const char *vkt_device_need(uint32_t i)
{
    static const char *const needs[] = {
        "Vulkan 1.3",
        NEED_QUEUE,
        NEED_BINDINGS,
#define NAME(bit, name) "subgroup operations " name,
        REQUIRED_SUBGROUP_OPS(NAME)
#undef NAME
            NEED_STAGE,
        NEED_SIZE ", where there are several",
    };
    if (i < VKT_COUNT(needs)) return needs[i];
    i -= (uint32_t)VKT_COUNT(needs);
    return i < vkt_feature_count() ? vkt_feature_name(i) : NULL;
}

/* The properties of a Vulkan 1.3 device, as a chain of structs. */
typedef struct properties {
    VkPhysicalDeviceProperties2 core;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceVulkan13Properties v13;
} properties;

static void properties_get(vkt_ctx *ctx, VkPhysicalDevice phys, properties *p)
{
    *p = (properties){ 0 };
    p->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    p->core.pNext = &p->v11;
    p->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    p->v11.pNext = &p->v12;
    p->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    p->v12.pNext = &p->v13;
    p->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
    ctx->vk.GetPhysicalDeviceProperties2(phys, &p->core);
}

/* A text that lists missing features. It is truncated if its buffer is too small. */
typedef struct shortage {
    char *text;
    size_t len, cap;
} shortage;

static void lacks(shortage *s, const char *kind, const char *name)
{
    const int n = snprintf(s->text + s->len, s->cap - s->len, "%s%s%s", s->len ? ", " : "lacks ", kind, name);
    s->len = VKT_MIN(s->len + (size_t)VKT_MAX(n, 0), s->cap - 1);
}

static void check_features(vkt_ctx *ctx, vkt_candidate *c, const properties *p, shortage *s)
{
    VkPhysicalDeviceVulkan13Features v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES };
    VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                             .pNext = &v13 };
    VkPhysicalDeviceFeatures2 has = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12 };
    ctx->vk.GetPhysicalDeviceFeatures2(c->phys, &has);
    c->has_int64 = vkt_features_have_int64(&has);
    for (uint32_t i = 0; i < vkt_feature_count(); i++)
        if (!vkt_feature_is_on(&has, i)) lacks(s, "", vkt_feature_name(i));
#define CHECK(bit, name) \
    if (!(p->v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_##bit##_BIT)) lacks(s, "subgroup operations ", name);
    REQUIRED_SUBGROUP_OPS(CHECK)
#undef CHECK
    if (!(p->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) lacks(s, "", NEED_STAGE);
    if (p->core.properties.limits.maxPerStageDescriptorStorageBuffers < VKT_MAX_BINDINGS) lacks(s, "", NEED_BINDINGS);
    const bool varies = p->v13.minSubgroupSize != p->v13.maxSubgroupSize;
    if (varies && !(p->v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) lacks(s, "", NEED_SIZE);
}

/* ---- descriptions ---- */

/* Finds the queue families. Prefers a compute family without graphics, because its work does not block a desktop. The
 * transfer family must be one that can only transfer: a family that can also compute or process graphics or video is
 * not used for transfers. */
static vkt_result find_families(vkt_ctx *ctx, vkt_candidate *c)
{
    uint32_t n = 0;
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(c->phys, &n, NULL);
    VkQueueFamilyProperties *family = vkt_alloc_array(&ctx->host, n, sizeof *family);
    if (!family) return vkt_fail_nomem(&ctx->host, "the list of queue families", n * sizeof *family);
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(c->phys, &n, family);
    const VkQueueFlags only_transfer = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
    bool with_graphics = true;
    c->compute_family = c->transfer_family = VKT_NO_FAMILY;
    for (uint32_t i = 0; i < n; i++) {
        const VkQueueFlags flags = family[i].queueFlags;
        const bool graphics = (flags & VK_QUEUE_GRAPHICS_BIT) != 0;
        if (family[i].queueCount == 0) continue;
        if ((flags & VK_QUEUE_COMPUTE_BIT) && (c->compute_family == VKT_NO_FAMILY || (with_graphics && !graphics))) {
            c->compute_family = i;
            with_graphics = graphics;
        }
        if ((flags & VK_QUEUE_TRANSFER_BIT) && !(flags & ~only_transfer) && c->transfer_family == VKT_NO_FAMILY)
            c->transfer_family = i;
    }
    vkt_free(&ctx->host, family);
    return VKT_OK;
}

static vkt_result find_extensions(vkt_ctx *ctx, vkt_candidate *c)
{
    static const char *const what = "vkEnumerateDeviceExtensionProperties";
    uint32_t n = 0;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.EnumerateDeviceExtensionProperties(c->phys, NULL, &n, NULL), what));
    VkExtensionProperties *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of device extensions", n * sizeof *list);
    const VkResult r = ctx->vk.EnumerateDeviceExtensionProperties(c->phys, NULL, &n, list);
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        const char *name = list[i].extensionName;
        if (strcmp(name, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0) c->has_host_import = true;
        if (strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0) c->has_memory_budget = true;
        if (strcmp(name, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) == 0) c->has_coop = true;
        if (strcmp(name, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME) == 0) c->has_coop2 = true;
        if (strcmp(name, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME) == 0) c->has_bfloat = true;
        if (strcmp(name, VKT_PORTABILITY_SUBSET) == 0) c->is_portable = true;
    }
    vkt_free(&ctx->host, list);
    return r < 0 ? vkt_vk_check(ctx, r, what) : VKT_OK;
}

/* For each VkPhysicalDeviceType: its vkt_device_kind, and whether devices of this type are chosen before or after those
 * of other types, as a number (`rank`) and in words (`reason`). */
static const struct {
    vkt_device_kind kind;
    int rank; /* 0: chosen first */
    const char *reason;
} kinds[] = {
    [VK_PHYSICAL_DEVICE_TYPE_OTHER] = { VKT_DEVICE_OTHER, 4, "neither GPU nor CPU: chosen last" },
    [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = { VKT_DEVICE_INTEGRATED, 1,
                                                 "integrated GPU: chosen after discrete GPUs" },
    [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = { VKT_DEVICE_DISCRETE, 0, "discrete GPU: chosen first" },
    [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = { VKT_DEVICE_VIRTUAL, 2, "virtual GPU: chosen after real GPUs" },
    [VK_PHYSICAL_DEVICE_TYPE_CPU] = { VKT_DEVICE_CPU, 3, "CPU: chosen where there is no GPU" },
};

static int rank_of(vkt_device_kind kind)
{
    for (size_t i = 0; i < VKT_COUNT(kinds); i++)
        if (kinds[i].kind == kind) return kinds[i].rank;
    return 4;
}

/* Returns the subgroup size that is nearest to `wanted` lanes, in the range that pipelines may require. If `wanted` is
 * 0, or if pipelines may not require a size, returns the size that the driver reports. */
static uint32_t pick_subgroup_size(const properties *p, uint32_t wanted)
{
    const uint32_t lo = p->v13.minSubgroupSize, hi = p->v13.maxSubgroupSize;
    const bool free = p->v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
    return VKT_MIN(VKT_MAX(wanted && free ? wanted : p->v11.subgroupSize, lo), hi);
}

/* Some kernels have a trait of their own for the subgroup size. `wanted` is the value of this trait. If `wanted` is 0,
 * the function returns the trait lanes_subgroup, as for all other kernels. */
static uint32_t own_size(const vkt_traits *t, uint32_t wanted)
{
    return wanted ? wanted : t->lanes_subgroup;
}

static vkt_result describe(vkt_ctx *ctx, vkt_candidate *c, uint32_t index)
{
    vkt_device_info *info = &c->info;
    VkPhysicalDeviceProperties core;
    ctx->vk.GetPhysicalDeviceProperties(c->phys, &core);
    const size_t type = (unsigned)core.deviceType < VKT_COUNT(kinds) ? core.deviceType : VK_PHYSICAL_DEVICE_TYPE_OTHER;
    info->index = index;
    info->kind = kinds[type].kind;
    info->api_version = core.apiVersion;
    snprintf(info->name, sizeof info->name, "%s", core.deviceName);
    VkPhysicalDeviceMemoryProperties memory;
    ctx->vk.GetPhysicalDeviceMemoryProperties(c->phys, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            info->memory_bytes = VKT_MAX(info->memory_bytes, memory.memoryHeaps[i].size);
    VKT_TRY(find_families(ctx, c));

    shortage s = { info->reason, 0, sizeof info->reason };
    if (core.apiVersion < VK_API_VERSION_1_3) {
        /* The function ends here, because the queries below need a device with Vulkan 1.3. */
        snprintf(info->reason, sizeof info->reason, "lacks Vulkan 1.3: the driver offers %u.%u",
                 VK_API_VERSION_MAJOR(core.apiVersion), VK_API_VERSION_MINOR(core.apiVersion));
        return VKT_OK;
    }
    VKT_TRY(find_extensions(ctx, c));
    properties p;
    properties_get(ctx, c->phys, &p);
    snprintf(info->driver, sizeof info->driver, "%.120s %.190s", p.v12.driverName, p.v12.driverInfo);
    const vkt_device_class cls = vkt_class_of(core.vendorID, p.v12.driverID, core.deviceType);
    info->subgroup_size = pick_subgroup_size(&p, vkt_class_traits[cls].lanes_subgroup);
    c->driver = p.v12.driverID;
    if (c->compute_family == VKT_NO_FAMILY) lacks(&s, "", NEED_QUEUE);
    check_features(ctx, c, &p, &s);
    info->usable = s.len == 0;
    if (info->usable) snprintf(info->reason, sizeof info->reason, "%s", kinds[type].reason);
    return VKT_OK;
}

vkt_result vkt_candidates(vkt_ctx *ctx, vkt_candidate **list, uint32_t *count)
{
    static const char *const what = "vkEnumeratePhysicalDevices";
    uint32_t n = 0;
    *list = NULL;
    *count = 0;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.EnumeratePhysicalDevices(ctx->instance, &n, NULL), what));
    if (n == 0) return VKT_OK;
    VkPhysicalDevice *phys = vkt_alloc_array(&ctx->host, n, sizeof *phys);
    vkt_candidate *c = vkt_alloc_array(&ctx->host, n, sizeof *c);
    vkt_result r = phys && c ? VKT_OK : vkt_fail_nomem(&ctx->host, "the list of devices", n * sizeof *c);
    if (r == VKT_OK) {
        const VkResult got = ctx->vk.EnumeratePhysicalDevices(ctx->instance, &n, phys);
        if (got < 0) r = vkt_vk_check(ctx, got, what);
    }
    for (uint32_t i = 0; i < n && r == VKT_OK; i++) {
        c[i].phys = phys[i];
        r = describe(ctx, &c[i], i);
    }
    vkt_free(&ctx->host, phys);
    if (r != VKT_OK) {
        vkt_free(&ctx->host, c);
        return r;
    }
    *list = c;
    *count = n;
    return VKT_OK;
}

/* ---- choice ---- */

static bool contains_ignoring_case(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && vkt_upper(text[i]) == vkt_upper(part[i])) i++;
        if (!part[i]) return true;
    }
    return !*part;
}

/* Returns whether the selector names the device. A selector that is a number is the index of a device. Any other text
 * is a part of a device's name; small letters and capitals are equal. "" names each device. */
static bool matches(const vkt_candidate *c, const char *selector)
{
    if (!*selector || selector[strspn(selector, "0123456789")]) return contains_ignoring_case(c->info.name, selector);
    return strtoull(selector, NULL, 10) == c->info.index;
}

static bool better(const vkt_candidate *a, const vkt_candidate *b)
{
    if (!b || a->info.usable != b->info.usable) return !b || a->info.usable;
    return rank_of(a->info.kind) < rank_of(b->info.kind);
}

/* Returns the name of the environment variable that gives the loader its list of drivers. NULL: no such variable is
 * set, and the loader searches for drivers. */
static const char *driver_variable(void)
{
    static const char *const names[] = { "VK_DRIVER_FILES", "VK_ICD_FILENAMES" }; /* in the order in which the loader
                                                                                   * checks them */
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return names[i];
    }
    return NULL;
}

void vkt_explain_no_device(char out[512])
{
    const char *variable = driver_variable(), *value = variable ? getenv(variable) : "";
    if (!variable) {
        snprintf(out, 512, "no Vulkan device was found; on Debian or Ubuntu: apt install mesa-vulkan-drivers");
        return;
    }
    char first[256];
    snprintf(first, sizeof first, "%.*s", (int)vkt_path_list_first(value), value);
    snprintf(
        out, 512,
        "no Vulkan device was found: %s is set to \"%.160s\", so the loader looks for no other driver, and %s; unset "
        "it, or have it name a driver's file (apt install mesa-vulkan-drivers puts some into /usr/share/vulkan/icd.d)",
        variable, value,
        vkt_path_is_readable(first) ? "could load none of these" : "the first of these cannot be read");
}

vkt_result vkt_candidate_choose(vkt_ctx *ctx, const vkt_candidate *list, uint32_t count, const char *selector,
                                const vkt_candidate **out)
{
    const char *env = getenv("VKT_DEVICE");
    const bool by_env = (!selector || !*selector) && env && *env;
    if (!selector || !*selector) selector = env ? env : "";
    const vkt_candidate *best = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (matches(&list[i], selector) && better(&list[i], best)) best = &list[i];
    if (best && best->info.usable) {
        *out = best;
        return VKT_OK;
    }
    if (best)
        return vkt_fail(&ctx->host, VKT_E_FEATURE, "device %u \"%s\" cannot be used: it %s", best->info.index,
                        best->info.name, best->info.reason);
    if (count == 0) {
        char why[512];
        vkt_explain_no_device(why);
        return vkt_fail(&ctx->host, VKT_E_NO_DEVICE, "%s", why);
    }
    vkt_text names = { .h = &ctx->host };
    for (uint32_t i = 0; i < count; i++)
        vkt_text_add(&names, "%s%u \"%s\"", i ? ", " : "", list[i].info.index, list[i].info.name);
    const vkt_result r = names.failed
                             ? vkt_fail_nomem(&ctx->host, "a message", 0)
                             : vkt_fail(&ctx->host, VKT_E_NO_DEVICE, "no device matches \"%s\"%s; there are: %s",
                                        selector, by_env ? " (from VKT_DEVICE)" : "", names.s);
    vkt_text_free(&names);
    return r;
}

/* ---- limits of the chosen device ---- */

static vkt_result timestamp_bits(vkt_ctx *ctx, uint32_t family, uint32_t *bits)
{
    uint32_t n = 0;
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(ctx->phys, &n, NULL);
    VkQueueFamilyProperties *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of queue families", n * sizeof *list);
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(ctx->phys, &n, list);
    *bits = family < n ? list[family].timestampValidBits : 0;
    vkt_free(&ctx->host, list);
    return VKT_OK;
}

/* Returns a limit of the device for buffers, rounded down. Buffers and bindings have sizes that are rounded up, so a
 * tensor of the largest size must not be rounded up beyond the limit. */
static uint64_t whole(uint64_t bytes)
{
    return bytes / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
}

vkt_result vkt_limits_fill(vkt_ctx *ctx)
{
    uint32_t bits = 0;
    VKT_TRY(timestamp_bits(ctx, ctx->compute.family, &bits));
    properties p;
    properties_get(ctx, ctx->phys, &p);
    const VkPhysicalDeviceLimits *l = &p.core.properties.limits;
    const uint32_t *groups = l->maxComputeWorkGroupCount;
    ctx->limits = (vkt_limits){
        .max_workgroup_lanes = VKT_MIN(l->maxComputeWorkGroupInvocations, l->maxComputeWorkGroupSize[0]),
        .max_groups = VKT_MIN(groups[0], VKT_MIN(groups[1], groups[2])),
        .max_push_bytes = l->maxPushConstantsSize,
        .shared_bytes = l->maxComputeSharedMemorySize,
        .max_storage_range_bytes = whole(l->maxStorageBufferRange),
        .max_allocation_bytes = whole(VKT_MIN(p.v11.maxMemoryAllocationSize, p.v13.maxBufferSize)),
        .max_local = { l->maxComputeWorkGroupSize[0], l->maxComputeWorkGroupSize[1], l->maxComputeWorkGroupSize[2] },
        .max_local_lanes = l->maxComputeWorkGroupInvocations,
        .capabilities = ctx->capabilities | vkt_capabilities_of_subgroups(p.v11.subgroupSupportedOperations),
        .choices.off = vkt_variants_off(),
    };
    VKT_TRY(vkt_traits_fill(ctx, p.core.properties.vendorID, p.v12.driverID, p.core.properties.deviceType));
    VKT_TRY(vkt_cores_fill(ctx));
    ctx->limits.subgroup_size = pick_subgroup_size(&p, ctx->traits.lanes_subgroup);
    ctx->limits.subgroup_short = pick_subgroup_size(&p, own_size(&ctx->traits, ctx->traits.lanes_subgroup_short));
    ctx->limits.subgroup_shuffles = pick_subgroup_size(&p, own_size(&ctx->traits, ctx->traits.lanes_subgroup_shuffles));
    ctx->info.subgroup_size = ctx->limits.subgroup_size;
    if (ctx->has_int64 && ctx->traits.texel_loads && !vkt_env_disabled("texel"))
        ctx->limits.max_texel_elements = l->maxTexelBufferElements;
    ctx->subgroup_size_varies = p.v13.minSubgroupSize != p.v13.maxSubgroupSize;
    ctx->timestamp_period_ns = bits ? l->timestampPeriod : 0;
    ctx->timestamp_mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (ctx->has_coop) VKT_TRY(vkt_coop_sizes(ctx, VK_COMPONENT_TYPE_FLOAT16_KHR, &ctx->limits.coop));
    if (ctx->has_bfloat) VKT_TRY(vkt_coop_sizes(ctx, VK_COMPONENT_TYPE_BFLOAT16_KHR, &ctx->limits.coop_bf16));
    return ctx->has_coop2 ? vkt_coop2_steps(ctx, &ctx->limits.coop2) : VKT_OK;
}

void vkt_ctx_limits(const vkt_ctx *ctx, vkt_device_limits *out)
{
    if (!ctx || !out) return;
    const vkt_limits *l = &ctx->limits;
    *out = (vkt_device_limits){ .cores = l->cores,
                                .subgroup_size = l->subgroup_size,
                                .max_workgroup_lanes = l->max_workgroup_lanes,
                                .max_workgroups = l->max_groups,
                                .shared_bytes = l->shared_bytes,
                                .max_binding_bytes = l->max_storage_range_bytes,
                                .max_texel_elements = l->max_texel_elements,
                                .max_allocation_bytes = l->max_allocation_bytes,
                                .timestamp_ns = (double)ctx->timestamp_period_ns,
                                .transfer_queue = ctx->has_transfer_queue,
                                .memory_budget = ctx->has_memory_budget,
                                .host_import = ctx->has_host_import,
                                .lacks_tuning = ctx->lacks_tuning,
                                .matrix = { l->coop.m, l->coop.n, l->coop.k },
                                .matrix_bf16 = { l->coop_bf16.m, l->coop_bf16.n, l->coop_bf16.k } };
}
