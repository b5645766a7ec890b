/* gpu/gate.c - timeline semaphores that the host signals, and the barrier for memory that the host wrote. */
#include "gpu/gpu.h"

vkt_result vkt_gate_create(vkt_ctx *ctx, const char *name, vkt_gate *out)
{
    const VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                             .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    const VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
    *out = (vkt_gate){ 0 };
    VKT_TRY(vkt_lost_check(ctx, "creating a gate"));
    const VkResult r = ctx->vk.CreateSemaphore(ctx->device, &info, ctx->allocation, &out->semaphore);
    if (r != VK_SUCCESS) out->semaphore = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateSemaphore"));
    vkt_name(ctx, VK_OBJECT_TYPE_SEMAPHORE, (uint64_t)out->semaphore, name);
    return VKT_OK;
}

vkt_result vkt_gate_open(vkt_ctx *ctx, vkt_gate *gate, uint64_t value)
{
    VKT_TRY(vkt_lost_check(ctx, "opening a gate"));
    if (value <= gate->value)
        return vkt_fail(&ctx->host, VKT_E_ARG, "gate: want a value above %llu, got %llu",
                        (unsigned long long)gate->value, (unsigned long long)value);
    const VkSemaphoreSignalInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                         .semaphore = gate->semaphore,
                                         .value = value };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.SignalSemaphore(ctx->device, &info), "vkSignalSemaphore"));
    gate->value = value;
    return VKT_OK;
}

void vkt_gate_destroy(vkt_ctx *ctx, vkt_gate *gate)
{
    VKT_DROP(ctx, Semaphore, gate->semaphore);
    *gate = (vkt_gate){ 0 };
}

VkSemaphoreSubmitInfo vkt_gate_wait(const vkt_gate *gate, uint64_t value)
{
    return (VkSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                    .semaphore = gate->semaphore,
                                    .value = value,
                                    .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
}

/* Records the barrier for what the host has written. A wait for a semaphore does not hold back the stage HOST. So a
 * barrier with only HOST in srcStageMask could run before the wait ends. With ALL_COMMANDS in srcStageMask, the barrier
 * runs after the wait, and covers all writes before the end of the wait. */
void vkt_host_barrier(vkt_ctx *ctx, VkCommandBuffer cmd)
{
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_HOST_BIT | VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .srcAccessMask = VK_ACCESS_2_HOST_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
        .dstAccessMask = VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_READ_BIT |
                         VK_ACCESS_2_TRANSFER_WRITE_BIT,
    };
    ctx->vk.CmdPipelineBarrier2(cmd, &(VkDependencyInfo){ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                          .memoryBarrierCount = 1,
                                                          .pMemoryBarriers = &barrier });
}
