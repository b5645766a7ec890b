/* gpu/timer.c - writes, copies and reads GPU timestamps. */
#include "gpu/gpu.h"

vkt_result vkt_timer_create(vkt_ctx *ctx, uint32_t count, vkt_timer *out)
{
    if (ctx->timestamp_period_ns == 0)
        return vkt_fail(&ctx->host, VKT_E_UNSUPPORTED, "the queue of \"%s\" has no timestamps", ctx->info.name);
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = count,
    };
    vkt_timer t = { .count = count };
    VKT_TRY(
        vkt_vk_check(ctx, ctx->vk.CreateQueryPool(ctx->device, &info, ctx->allocation, &t.pool), "vkCreateQueryPool"));
    *out = t;
    return VKT_OK;
}

void vkt_timer_destroy(vkt_ctx *ctx, vkt_timer *t)
{
    VKT_DROP(ctx, QueryPool, t->pool);
    *t = (vkt_timer){ 0 };
}

void vkt_timer_reset(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t first, uint32_t count)
{
    ctx->vk.CmdResetQueryPool(cmd, t->pool, first, count);
}

void vkt_timer_mark(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t i)
{
    ctx->vk.CmdWriteTimestamp2(cmd, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, t->pool, i);
    if (!ctx->traits.late_timestamps) return;
    ctx->vk.CmdPipelineBarrier2(cmd, &(VkDependencyInfo){
                                         .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                         .memoryBarrierCount = 1,
                                         .pMemoryBarriers =
                                             &(VkMemoryBarrier2){
                                                 .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                                 .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                                 .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                             },
                                     });
}

void vkt_timer_copy_pair(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t first, vkt_buffer *to)
{
    ctx->vk.CmdCopyQueryPoolResults(cmd, t->pool, first, 2, to->handle, to->base_bytes + 8ull * first, 8,
                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

uint64_t vkt_timer_between(const vkt_ctx *ctx, uint64_t start, uint64_t end)
{
    return (uint64_t)((double)((end - start) & ctx->timestamp_mask) * (double)ctx->timestamp_period_ns);
}

vkt_result vkt_timer_read(vkt_ctx *ctx, vkt_timer *t, uint64_t *ns)
{
    const VkResult r = ctx->vk.GetQueryPoolResults(ctx->device, t->pool, 0, t->count, t->count * sizeof *ns, ns,
                                                   sizeof *ns, VK_QUERY_RESULT_64_BIT);
    if (r == VK_NOT_READY) return vkt_fail(&ctx->host, VKT_E_STATE, "timestamps were read before the work was done");
    VKT_TRY(vkt_vk_check(ctx, r, "vkGetQueryPoolResults"));
    /* On some devices only the low bits of a timestamp are valid, so timestamps wrap around. vkt_timer_between uses
     * only the valid bits of the difference. */
    const uint64_t start = ns[0];
    for (uint32_t i = 0; i < t->count; i++) ns[i] = vkt_timer_between(ctx, start, ns[i]);
    return VKT_OK;
}
