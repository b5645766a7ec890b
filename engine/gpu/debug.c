/* gpu/debug.c - converts results of Vulkan calls, checks for a lost device and a fork, sets names and labels. */
#include "gpu/internal.h"

#include "base/system.h"

vkt_result vkt_vk_check(vkt_ctx *ctx, VkResult r, const char *what)
{
    vkt_result result;
    switch (r) {
    case VK_SUCCESS: return VKT_OK;
    case VK_ERROR_DEVICE_LOST:
        if (ctx->lost == VKT_OK)
            vkt_log_line(&ctx->host, VKT_LOG_ERROR, "the device was lost; the last work submitted was \"%s\"",
                         ctx->last_label);
        result = ctx->lost = VKT_E_DEVICE_LOST;
        break;
    case VK_ERROR_OUT_OF_HOST_MEMORY: result = VKT_E_NOMEM; break;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: result = VKT_E_DEVICE_MEMORY; break;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT: result = VKT_E_FEATURE; break;
    default: result = VKT_E_DRIVER;
    }
    return vkt_fail(&ctx->host, result, "%s: %s", what, vkt_vk_result_name(r));
}

bool vkt_is_forked(const vkt_ctx *ctx)
{
    return ctx->process != vkt_process_id();
}

vkt_result vkt_lost_check(vkt_ctx *ctx, const char *what)
{
    if (vkt_is_forked(ctx))
        return vkt_fail(&ctx->host, VKT_E_STATE,
                        "%s: the context belongs to process %lld, of which this is a fork; open a context in the child",
                        what, (long long)ctx->process);
    return ctx->lost == VKT_OK ? VKT_OK : vkt_fail(&ctx->host, ctx->lost, "%s: the device was lost before", what);
}

void vkt_name(vkt_ctx *ctx, VkObjectType type, uint64_t handle, const char *name)
{
    if (!ctx->has_debug_utils || !name) return;
    ctx->vk.SetDebugUtilsObjectNameEXT(ctx->device, &(VkDebugUtilsObjectNameInfoEXT){
                                                        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                                        .objectType = type,
                                                        .objectHandle = handle,
                                                        .pObjectName = name,
                                                    });
}

void vkt_label_begin(vkt_ctx *ctx, VkCommandBuffer cmd, const char *text)
{
    if (!ctx->has_debug_utils) return;
    ctx->vk.CmdBeginDebugUtilsLabelEXT(cmd, &(VkDebugUtilsLabelEXT){
                                                .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                                .pLabelName = text,
                                            });
}

void vkt_label_end(vkt_ctx *ctx, VkCommandBuffer cmd)
{
    if (ctx->has_debug_utils) ctx->vk.CmdEndDebugUtilsLabelEXT(cmd);
}
