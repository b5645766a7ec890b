/* record/host.c - functions for an application with its own device. They record runs into the application's command
 * buffers, make a vkt_array from a buffer of the application, and transfer the ownership of arrays between queue
 * families. They also return the engine's buffers, for the application's shaders, and the engine's timeline
 * semaphore. */
#include "record/record.h"

#include "abi/step.abi.h"

/* ---- runs in the application's command buffer ---- */

static void barrier(vkt_ctx *ctx, VkCommandBuffer cmd, VkPipelineStageFlags2 from, VkAccessFlags2 by,
                    VkPipelineStageFlags2 to, VkAccessFlags2 what)
{
    const VkMemoryBarrier2 m = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                 .srcStageMask = from,
                                 .srcAccessMask = by,
                                 .dstStageMask = to,
                                 .dstAccessMask = what };
    const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = &m };
    ctx->vk.CmdPipelineBarrier2(cmd, &info);
}

static void set_words(vkt_program *p, VkCommandBuffer cmd, const uint32_t words[RING_WORDS])
{
    p->ctx->vk.CmdUpdateBuffer(cmd, p->words->handle, RING_SLOTS * RING_WORDS * 4, RING_WORDS * 4, words);
}

/* Records a run. The words of the run (abi/step.abi.h) are in slot RING_SLOTS of the ring. While the run executes, the
 * word RING_RECORDED of this slot is 1, so that the kernels read this slot. Else the word is 0. When the run is done,
 * the host may read the metrics of the run. */
vkt_result vkt_program_record(vkt_program *p, VkCommandBuffer cmd, const vkt_run *run)
{
    VKT_WANT(NULL, p);
    vkt_ctx *ctx = p->ctx;
    uint32_t words[RING_WORDS];
    VKT_TRY(vkt_lost_check(ctx, p->name));
    if (!cmd) return vkt_fail(&ctx->host, VKT_E_ARG, "%s: want a command buffer", p->name);
    VKT_TRY(vkt_run_words(p, run, words));
    words[RING_RECORDED] = 1;
    if (p->words) {
        set_words(p, cmd, words);
        barrier(ctx, cmd, VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT);
    }
    if (p->given.series.n) {
        vkt_given_record(p, cmd, RING_SLOTS);
        barrier(ctx, cmd, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT);
    }
    vkt_record_range(p, cmd, run && run->swap && p->sides == 2, 0, (uint32_t)p->lowered.n, NULL, false);
    if (p->words) {
        barrier(ctx, cmd, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
                VK_ACCESS_2_TRANSFER_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT);
        words[RING_RECORDED] = 0;
        set_words(p, cmd, words);
    }
    p->recorded = true;
    return VKT_OK;
}

void vkt_program_barriers(const vkt_program *p, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after)
{
    if (!p || !before || !after) return;
    VkPipelineStageFlags2 stages = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    VkAccessFlags2 writes = VK_ACCESS_2_SHADER_WRITE_BIT;
    if (p->words) {
        stages |= VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
        writes |= VK_ACCESS_2_TRANSFER_WRITE_BIT;
    }
    *before = (VkMemoryBarrier2){ .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                  .dstStageMask = stages,
                                  .dstAccessMask = writes | VK_ACCESS_2_SHADER_READ_BIT };
    *after = (VkMemoryBarrier2){ .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                 .srcStageMask = stages,
                                 .srcAccessMask = writes };
}

/* ---- the application's buffers ---- */

vkt_result vkt_array_adopt(vkt_ctx *ctx, const vkt_array_adopt_params *params, vkt_array **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, out);
    VKT_WANT(&ctx->host, params);
    uint64_t bytes;
    *out = NULL;
    if (params->shape.rank > VKT_MAX_RANK || (unsigned)params->dtype >= VKT_DTYPE_COUNT ||
        !vkt_physical_bytes(params->shape, VKT_ROWS, params->dtype, &bytes) || bytes == 0)
        return vkt_fail(&ctx->host, VKT_E_ARG, "array: the shape or element type makes no sense");
    if (params->at.bytes < vkt_round_up(bytes, 16))
        return vkt_fail(&ctx->host, VKT_E_ARG, "array: want a buffer of %llu bytes (a multiple of 16), got %llu",
                        (unsigned long long)vkt_round_up(bytes, 16), (unsigned long long)params->at.bytes);
    vkt_array *a = vkt_alloc(&ctx->host, sizeof *a);
    if (!a) return vkt_fail_nomem(&ctx->host, "an array", sizeof *a);
    *a = (vkt_array){ .ctx = ctx, .dtype = params->dtype, .shape = params->shape, .bytes = bytes };
    const vkt_result r = vkt_buffer_adopt(ctx, &params->at, params->usage, &a->buffer);
    if (r == VKT_OK)
        *out = a;
    else
        vkt_array_destroy(&a);
    return r;
}

vkt_result vkt_check_other_family(vkt_ctx *ctx, uint32_t family)
{
    uint32_t n = 0;
    ctx->vk.GetPhysicalDeviceQueueFamilyProperties(ctx->phys, &n, NULL);
    if (family < n || family == VK_QUEUE_FAMILY_EXTERNAL || family == VK_QUEUE_FAMILY_FOREIGN_EXT) return VKT_OK;
    return vkt_fail(&ctx->host, VKT_E_ARG,
                    "hand-over: want a queue family below %u, VK_QUEUE_FAMILY_EXTERNAL or _FOREIGN_EXT, got %u", n,
                    family);
}

/* Records one half of a transfer of ownership. The application records the other half, over the same range. */
static vkt_result record_handover(vkt_array *a, bool acquire, uint32_t other, vkt_commands *c)
{
    vkt_ctx *ctx = a->ctx;
    const VkPipelineStageFlags2 stage = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    const VkAccessFlags2 reads = VK_ACCESS_2_SHADER_READ_BIT, writes = VK_ACCESS_2_SHADER_WRITE_BIT;
    const VkBufferMemoryBarrier2 b = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2,
        .srcStageMask = acquire ? VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT : stage, /* ALL_COMMANDS, so that the barrier
                                                                                 * comes after the submission's waits
                                                                                 * for semaphores */
        .srcAccessMask = acquire ? VK_ACCESS_2_NONE : writes,
        .dstStageMask = acquire ? stage : VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .dstAccessMask = acquire ? reads | writes : VK_ACCESS_2_NONE,
        .srcQueueFamilyIndex = acquire ? other : ctx->compute.family,
        .dstQueueFamilyIndex = acquire ? ctx->compute.family : other,
        .buffer = a->buffer->handle,
        .offset = a->buffer->base_bytes,
        .size = a->buffer->lent ? a->buffer->bytes : a->bytes, /* the range that the application knows */
    };
    if (!c->pool) VKT_TRY(vkt_commands_create(ctx, "hand-over", c));
    VKT_TRY(vkt_commands_begin(ctx, c, true));
    ctx->vk.CmdPipelineBarrier2(c->cmd, &(VkDependencyInfo){ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                             .bufferMemoryBarrierCount = 1,
                                                             .pBufferMemoryBarriers = &b });
    return vkt_commands_end(ctx, c);
}

static vkt_result hand_over(vkt_array *a, bool acquire, uint32_t other, const vkt_sync *sync)
{
    vkt_handover *h = &a->handover[acquire];
    if (!h->commands.cmd || h->family != other) {
        VKT_TRY(vkt_check_other_family(a->ctx, other));
        VKT_TRY(vkt_wait(a->ctx, h->value)); /* the old commands must be done before this handover is recorded anew */
        const vkt_result r = record_handover(a, acquire, other, &h->commands);
        if (r != VKT_OK) {
            vkt_commands_destroy(a->ctx, &h->commands);
            return r;
        }
        h->family = other;
    }
    return vkt_submit_synced(a->ctx, h->commands.cmd, sync, acquire ? "acquire" : "release", &h->value);
}

vkt_result vkt_array_acquire(vkt_array *a, uint32_t from_family, const vkt_sync *sync)
{
    VKT_WANT(NULL, a);
    return hand_over(a, true, from_family, sync);
}

vkt_result vkt_array_release(vkt_array *a, uint32_t to_family, const vkt_sync *sync)
{
    VKT_WANT(NULL, a);
    return hand_over(a, false, to_family, sync);
}

/* ---- the engine's buffers for the application's shaders ---- */

static vkt_vk_buffer range_in(const vkt_buffer *b, uint64_t offset_bytes, uint64_t bytes)
{
    return (vkt_vk_buffer){ b->handle, b->base_bytes + offset_bytes, bytes };
}

vkt_vk_buffer vkt_array_buffer(const vkt_array *a)
{
    if (!a) return (vkt_vk_buffer){ 0 };
    return range_in(a->buffer, 0, a->bytes);
}

vkt_vk_buffer vkt_store_buffer(const vkt_store *s, uint32_t i, vkt_store_part part)
{
    if (!s) return (vkt_vk_buffer){ 0 };
    if (i >= s->n || !vkt_store_has(s, part)) return (vkt_vk_buffer){ 0 };
    return range_in(s->part[part], s->entries[i].offset_bytes, s->entries[i].bytes);
}

vkt_result vkt_program_buffer(const vkt_program *p, vkt_tensor t, vkt_vk_buffer *out, vkt_layout *layout)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_vk_buffer){ 0 };
    VKT_TRY(vkt_check_readable(p, t));
    const vkt_value *v = &p->lowered.values[t.id];
    if (v->storage != VKT_PRECISION_F32 && v->dtype != VKT_F16)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: '%s' is stored in 16 bits", v->name);
    const vkt_range r = vkt_range_of_value(p, t);
    *out = range_in(r.buffer, r.offset_bytes, v->bytes);
    if (layout) *layout = v->layout;
    return VKT_OK;
}

void vkt_ctx_timeline(const vkt_ctx *ctx, VkSemaphore *semaphore, uint64_t *value)
{
    if (!ctx || !semaphore || !value) return;
    *semaphore = ctx->compute.timeline;
    *value = ctx->compute.submitted;
}
