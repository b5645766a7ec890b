/* gpu/instance.c - opens the loader, creates the instance, and passes validation messages to the log of ctx->host. */
#include "gpu/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

/* Logs one message of a layer as one line, at the level of errors or of warnings. Skips messages of the loader. */
static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)types;
    const vkt_ctx *ctx = user;
    if (data->pMessageIdName && strcmp(data->pMessageIdName, "Loader Message") == 0) return VK_FALSE;
    char line[1000];
    snprintf(line, sizeof line, "%s", data->pMessage ? data->pMessage : "");
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    vkt_log_line(&ctx->host, error ? VKT_LOG_ERROR : VKT_LOG_WARN, "validation: %s", line);
    return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(vkt_ctx *ctx)
{
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = ctx,
    };
}

static vkt_result has_layer(vkt_ctx *ctx, const char *name, bool *found)
{
    uint32_t n = 0;
    *found = false;
    VKT_TRY(
        vkt_vk_check(ctx, ctx->vk.EnumerateInstanceLayerProperties(&n, NULL), "vkEnumerateInstanceLayerProperties"));
    VkLayerProperties *layers = vkt_alloc_array(&ctx->host, n, sizeof *layers);
    if (!layers) return vkt_fail_nomem(&ctx->host, "the list of layers", n * sizeof *layers);
    const VkResult r = ctx->vk.EnumerateInstanceLayerProperties(&n, layers);
    for (uint32_t i = 0; i < n && r >= 0; i++) *found = *found || strcmp(layers[i].layerName, name) == 0;
    vkt_free(&ctx->host, layers);
    return r < 0 ? vkt_vk_check(ctx, r, "vkEnumerateInstanceLayerProperties") : VKT_OK;
}

/* Sets *found to true if `layer` has the instance extension `name`. `layer` NULL means the loader, the drivers and
 * the implicit layers. If the extension is missing, *found does not change. */
static vkt_result has_extension(vkt_ctx *ctx, const char *layer, const char *name, bool *found)
{
    static const char *const what = "vkEnumerateInstanceExtensionProperties";
    uint32_t n = 0;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.EnumerateInstanceExtensionProperties(layer, &n, NULL), what));
    VkExtensionProperties *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of instance extensions", n * sizeof *list);
    const VkResult r = ctx->vk.EnumerateInstanceExtensionProperties(layer, &n, list);
    for (uint32_t i = 0; i < n && r >= 0; i++) *found = *found || strcmp(list[i].extensionName, name) == 0;
    vkt_free(&ctx->host, list);
    return r < 0 ? vkt_vk_check(ctx, r, what) : VKT_OK;
}

static bool wants_debug_utils(const vkt_ctx_params *params)
{
    const char *layers = getenv("VK_INSTANCE_LAYERS");
    return params->validation || params->debug_names || vkt_debug_level() >= 1 || (layers && *layers);
}

/* Creates the instance. `portable`: enables VK_KHR_portability_enumeration, without which the loader hides devices that
 * lack parts of Vulkan. */
static vkt_result create(vkt_ctx *ctx, bool layer, bool portable)
{
    const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(ctx);
    const char *const layers[] = { VALIDATION_LAYER };
    const char *extensions[2];
    uint32_t n_extensions = 0;
    if (ctx->has_debug_utils) extensions[n_extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    if (portable) extensions[n_extensions++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = ctx->has_debug_utils ? &messenger : NULL, /* for messages while the instance is made and destroyed */
        .flags = portable ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &(VkApplicationInfo){ .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                                  .pEngineName = "vktrain",
                                                  .apiVersion = VK_API_VERSION_1_3 },
        .enabledLayerCount = layer,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = n_extensions,
        .ppEnabledExtensionNames = extensions,
    };
    const VkResult r = ctx->vk.CreateInstance(&info, NULL, &ctx->instance);
    if (r == VK_ERROR_INCOMPATIBLE_DRIVER) return VKT_E_NO_DEVICE;
    if (r != VK_SUCCESS) ctx->instance = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateInstance"));
    const vkt_result loaded = vkt_vk_load_instance(&ctx->host, &ctx->vk, ctx->instance, ctx->has_debug_utils);
    if (loaded != VKT_OK || !ctx->has_debug_utils) return loaded;
    return vkt_vk_check(ctx, ctx->vk.CreateDebugUtilsMessengerEXT(ctx->instance, &messenger, NULL, &ctx->messenger),
                        "vkCreateDebugUtilsMessengerEXT");
}

vkt_result vkt_instance_open(vkt_ctx *ctx, const vkt_ctx_params *params, const vkt_loader *loader)
{
    VKT_TRY(vkt_vk_open(&ctx->host, loader, &ctx->vk, &ctx->loader));
    uint32_t version = 0;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.EnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion"));
    if (version < VK_API_VERSION_1_3)
        return vkt_fail(&ctx->host, VKT_E_FEATURE, "the Vulkan loader is of version %u.%u; want 1.3 or newer",
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    bool layer = false, portable = false;
    if (params->validation) {
        VKT_TRY(has_layer(ctx, VALIDATION_LAYER, &layer));
        if (!layer)
            return vkt_fail(&ctx->host, VKT_E_FEATURE,
                            "validation was asked for, but " VALIDATION_LAYER
                            " is not installed; on Debian or Ubuntu: apt install vulkan-validationlayers");
    }
    if (wants_debug_utils(params)) {
        static const char *const name = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        VKT_TRY(has_extension(ctx, NULL, name, &ctx->has_debug_utils));
        if (layer) VKT_TRY(has_extension(ctx, VALIDATION_LAYER, name, &ctx->has_debug_utils));
    }
    VKT_TRY(has_extension(ctx, NULL, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME, &portable));
    return create(ctx, layer, portable);
}

void vkt_instance_close(vkt_ctx *ctx)
{
    if (ctx->messenger) ctx->vk.DestroyDebugUtilsMessengerEXT(ctx->instance, ctx->messenger, NULL);
    if (ctx->instance && ctx->vk.DestroyInstance) ctx->vk.DestroyInstance(ctx->instance, NULL);
    ctx->messenger = VK_NULL_HANDLE;
    ctx->instance = VK_NULL_HANDLE;
}
