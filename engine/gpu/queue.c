/* gpu/queue.c - submits work, counts the submissions by a timeline semaphore, and waits for them.
 *
 * Every submission ends with the same pre-recorded full barrier. So later submissions on the same queue start after all
 * earlier work and see its writes, and no other barrier is needed between submissions. The host sees the writes after
 * it has waited. Work of another queue is ordered by a wait for the timeline of that queue: after the wait, the earlier
 * work of that queue is complete, and its writes are visible. */
#include "gpu/internal.h"

#include <stdio.h>

vkt_result vkt_commands_create_for(vkt_ctx *ctx, uint32_t family, const char *name, vkt_commands *out)
{
    vkt_commands c = { 0 };
    const VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                           .queueFamilyIndex = family };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.CreateCommandPool(ctx->device, &pool, ctx->allocation, &c.pool),
                         "vkCreateCommandPool"));
    const VkCommandBufferAllocateInfo one = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = c.pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkResult r = ctx->vk.AllocateCommandBuffers(ctx->device, &one, &c.cmd);
    if (r != VK_SUCCESS) {
        ctx->vk.DestroyCommandPool(ctx->device, c.pool, ctx->allocation);
        return vkt_vk_check(ctx, r, "vkAllocateCommandBuffers");
    }
    vkt_name(ctx, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)c.cmd, name);
    *out = c;
    return VKT_OK;
}

vkt_result vkt_commands_create(vkt_ctx *ctx, const char *name, vkt_commands *out)
{
    return vkt_commands_create_for(ctx, ctx->compute.family, name, out);
}

vkt_result vkt_commands_begin(vkt_ctx *ctx, vkt_commands *c, bool reusable)
{
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = reusable ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    if (c->pool) VKT_TRY(vkt_vk_check(ctx, ctx->vk.ResetCommandPool(ctx->device, c->pool, 0), "vkResetCommandPool"));
    ctx->counters.recordings++;
    return vkt_vk_check(ctx, ctx->vk.BeginCommandBuffer(c->cmd, &info), "vkBeginCommandBuffer");
}

vkt_result vkt_commands_end(vkt_ctx *ctx, vkt_commands *c)
{
    return vkt_vk_check(ctx, ctx->vk.EndCommandBuffer(c->cmd), "vkEndCommandBuffer");
}

void vkt_commands_destroy(vkt_ctx *ctx, vkt_commands *c)
{
    VKT_DROP(ctx, CommandPool, c->pool);
    *c = (vkt_commands){ 0 };
}

/* ---- queues ---- */

static vkt_result record_fence(vkt_ctx *ctx, vkt_queue *q)
{
    const VkMemoryBarrier2 all = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
        .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT,
    };
    VKT_TRY(vkt_commands_create_for(ctx, q->family, "fence", &q->fence));
    VKT_TRY(vkt_commands_begin(ctx, &q->fence, true));
    ctx->vk.CmdPipelineBarrier2(q->fence.cmd, &(VkDependencyInfo){
                                                  .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                  .memoryBarrierCount = 1,
                                                  .pMemoryBarriers = &all,
                                              });
    return vkt_commands_end(ctx, &q->fence);
}

vkt_result vkt_queue_create(vkt_ctx *ctx, vkt_queue *q, const char *name)
{
    const VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                             .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    const VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
    const VkResult r = ctx->vk.CreateSemaphore(ctx->device, &info, ctx->allocation, &q->timeline);
    if (r != VK_SUCCESS) q->timeline = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateSemaphore"));
    vkt_name(ctx, VK_OBJECT_TYPE_SEMAPHORE, (uint64_t)q->timeline, name);
    return record_fence(ctx, q);
}

void vkt_queue_destroy(vkt_ctx *ctx, vkt_queue *q)
{
    vkt_commands_destroy(ctx, &q->fence);
    VKT_DROP(ctx, Semaphore, q->timeline);
    *q = (vkt_queue){ 0 };
}

/* Submits the infos. Each of them adds 1 to the queue's timeline. */
static vkt_result submit_all(vkt_ctx *ctx, vkt_queue *q, const VkSubmitInfo2 *infos, uint32_t n, const char *label,
                             uint64_t *value)
{
    snprintf(ctx->last_label, sizeof ctx->last_label, "%s", label);
    if (ctx->lock.acquire) ctx->lock.acquire(ctx->lock.user);
    const VkResult r = ctx->vk.QueueSubmit2(q->handle, n, infos, VK_NULL_HANDLE);
    if (ctx->lock.release) ctx->lock.release(ctx->lock.user);
    VKT_TRY(vkt_vk_check(ctx, r, "vkQueueSubmit2"));
    ctx->counters.submits += n;
    q->submitted += n;
    if (value) *value = q->submitted;
    return VKT_OK;
}

vkt_result vkt_queue_submit(vkt_ctx *ctx, vkt_queue *q, VkCommandBuffer cmd, const vkt_queue *wait, uint64_t wait_value,
                            const char *label, uint64_t *value)
{
    VKT_TRY(vkt_lost_check(ctx, label));
    const VkCommandBufferSubmitInfo cmds[] = {
        { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = cmd },
        { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = q->fence.cmd },
    };
    const VkSemaphoreSubmitInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = q->timeline,
        .value = q->submitted + 1,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    const VkSemaphoreSubmitInfo before = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = wait ? wait->timeline : VK_NULL_HANDLE,
        .value = wait_value,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    const VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = wait != NULL,
        .pWaitSemaphoreInfos = &before,
        .commandBufferInfoCount = cmd ? 2 : 1,
        .pCommandBufferInfos = cmd ? cmds : cmds + 1,
        .signalSemaphoreInfoCount = 1,
        .pSignalSemaphoreInfos = &signal,
    };
    return submit_all(ctx, q, &info, 1, label, value);
}

/* Updates q->done without blocking. */
static vkt_result poll(vkt_ctx *ctx, vkt_queue *q)
{
    uint64_t now = 0;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.GetSemaphoreCounterValue(ctx->device, q->timeline, &now),
                         "vkGetSemaphoreCounterValue"));
    q->done = VKT_MAX(q->done, now);
    return VKT_OK;
}

vkt_result vkt_queue_wait(vkt_ctx *ctx, vkt_queue *q, uint64_t value)
{
    VKT_TRY(vkt_lost_check(ctx, "waiting for the device"));
    if (value > q->submitted)
        return vkt_fail(&ctx->host, VKT_E_ARG, "wait for submission %llu: only %llu were made",
                        (unsigned long long)value, (unsigned long long)q->submitted);
    if (q->done < value) VKT_TRY(poll(ctx, q));
    if (q->done >= value) return VKT_OK;
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &q->timeline,
        .pValues = &value,
    };
    const uint64_t start = vkt_now_ns(), cpu_ns = vkt_thread_cpu_ns();
    const VkResult r = ctx->vk.WaitSemaphores(ctx->device, &info, UINT64_MAX);
    ctx->counters.waits++;
    ctx->counters.wait_ns += vkt_now_ns() - start;
    ctx->counters.wait_cpu_ns += vkt_thread_cpu_ns() - cpu_ns;
    VKT_TRY(vkt_vk_check(ctx, r, "vkWaitSemaphores"));
    q->done = VKT_MAX(q->done, value);
    return VKT_OK;
}

/* ---- submissions to the compute queue, for higher layers ---- */

/* Returns whether there are uploads that no compute submission waits for yet. If a submission waits for an upload, all
 * later submissions of its queue wait too. So only one submission needs to wait for each upload. */
static bool has_new_uploads(const vkt_ctx *ctx)
{
    return ctx->has_transfer_queue && ctx->transfer.submitted > ctx->uploads_awaited;
}

/* ---- series ---- */

static vkt_result allocate(vkt_ctx *ctx, const char *name, vkt_series *s)
{
    const VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                           .queueFamilyIndex = ctx->compute.family };
    VkResult r = ctx->vk.CreateCommandPool(ctx->device, &pool, ctx->allocation, &s->pool);
    if (r != VK_SUCCESS) s->pool = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateCommandPool"));
    const VkCommandBufferAllocateInfo all = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = s->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = s->n };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.AllocateCommandBuffers(ctx->device, &all, s->cmds), "vkAllocateCommandBuffers"));
    for (uint32_t i = 0; i < s->n; i++)
        vkt_name(ctx, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)s->cmds[i], name);
    return VKT_OK;
}

static void fill_infos(const vkt_ctx *ctx, vkt_series *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        VkCommandBufferSubmitInfo *b = &s->buffers[2 * i];
        b[0] = b[1] = (VkCommandBufferSubmitInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO };
        b[0].commandBuffer = s->cmds[i];
        b[1].commandBuffer = ctx->compute.fence.cmd;
        s->signals[i] = (VkSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                                 .semaphore = ctx->compute.timeline,
                                                 .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
        s->infos[i] = (VkSubmitInfo2){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                                       .commandBufferInfoCount = 2,
                                       .pCommandBufferInfos = b,
                                       .signalSemaphoreInfoCount = 1,
                                       .pSignalSemaphoreInfos = &s->signals[i] };
    }
}

vkt_result vkt_series_create(vkt_ctx *ctx, const char *name, uint32_t n, vkt_series *out)
{
    vkt_series s = { .n = n };
    s.cmds = vkt_alloc_array(&ctx->host, n, sizeof *s.cmds);
    s.buffers = vkt_alloc_array(&ctx->host, 2 * (size_t)n, sizeof *s.buffers);
    s.signals = vkt_alloc_array(&ctx->host, n, sizeof *s.signals);
    s.infos = vkt_alloc_array(&ctx->host, n, sizeof *s.infos);
    vkt_result r = s.cmds && s.buffers && s.signals && s.infos
                       ? allocate(ctx, name, &s)
                       : vkt_fail_nomem(&ctx->host, "command buffers", n * sizeof *s.infos);
    if (r == VKT_OK) {
        fill_infos(ctx, &s);
        *out = s;
    } else {
        vkt_series_destroy(ctx, &s);
    }
    return r;
}

void vkt_series_destroy(vkt_ctx *ctx, vkt_series *s)
{
    VKT_DROP(ctx, CommandPool, s->pool);
    vkt_free(&ctx->host, s->cmds);
    vkt_free(&ctx->host, s->buffers);
    vkt_free(&ctx->host, s->signals);
    vkt_free(&ctx->host, s->infos);
    *s = (vkt_series){ 0 };
}

vkt_result vkt_series_begin(vkt_ctx *ctx, vkt_series *s, uint32_t i)
{
    return vkt_commands_begin(ctx, &(vkt_commands){ .cmd = s->cmds[i] }, true);
}

vkt_result vkt_series_end(vkt_ctx *ctx, vkt_series *s, uint32_t i)
{
    return vkt_commands_end(ctx, &(vkt_commands){ .cmd = s->cmds[i] });
}

/* Returns the index of the first null handle; n: there is none. If `s` is NULL, all handles count as null. */
static uint32_t first_null(const VkSemaphoreSubmitInfo *s, uint32_t n)
{
    uint32_t i = 0;
    while (s && i < n && s[i].semaphore) i++;
    return i;
}

vkt_result vkt_check_sync(const vkt_ctx *ctx, const vkt_sync *sync, const char *label)
{
    if (!sync) return VKT_OK;
    if (sync->n_waits > VKT_SYNC_MAX || sync->n_signals > VKT_SYNC_MAX)
        return vkt_fail(&ctx->host, VKT_E_ARG,
                        "%s: want at most %d semaphores to wait for and to signal, got %u and %u", label, VKT_SYNC_MAX,
                        sync->n_waits, sync->n_signals);
    const uint32_t wait = first_null(sync->waits, sync->n_waits), signal = first_null(sync->signals, sync->n_signals);
    if (wait == sync->n_waits && signal == sync->n_signals) return VKT_OK;
    return vkt_fail(&ctx->host, VKT_E_ARG, "%s: semaphore %u of vkt_sync.%s is VK_NULL_HANDLE", label,
                    wait < sync->n_waits ? wait : signal, wait < sync->n_waits ? "waits" : "signals");
}

/* Collects the semaphores that a compute submission waits for: the timeline of the transfer queue if there are new
 * uploads, and sync->waits (vkt_check_sync has checked their number). Returns the number of semaphores in `out`. */
static uint32_t gather_waits(const vkt_ctx *ctx, const vkt_sync *sync, VkSemaphoreSubmitInfo out[1 + VKT_SYNC_MAX])
{
    uint32_t n = 0;
    if (has_new_uploads(ctx))
        out[n++] = (VkSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                            .semaphore = ctx->transfer.timeline,
                                            .value = ctx->transfer.submitted,
                                            .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
    for (uint32_t i = 0; sync && i < sync->n_waits; i++) out[n++] = sync->waits[i];
    return n;
}

vkt_result vkt_series_submit(vkt_ctx *ctx, vkt_series *s, uint32_t first, uint32_t end, const vkt_sync *sync,
                             const char *label, uint64_t *value)
{
    VKT_TRY(vkt_lost_check(ctx, label));
    VKT_TRY(vkt_check_sync(ctx, sync, label));
    const bool uploads = has_new_uploads(ctx);
    const uint64_t upload = ctx->transfer.submitted;
    VkSemaphoreSubmitInfo waits[1 + VKT_SYNC_MAX], signals[1 + VKT_SYNC_MAX];
    const VkSubmitInfo2 saved[2] = { s->infos[first], s->infos[end - 1] };
    s->infos[first].waitSemaphoreInfoCount = gather_waits(ctx, sync, waits);
    s->infos[first].pWaitSemaphoreInfos = waits;
    for (uint32_t i = first; i < end; i++) s->signals[i].value = ctx->compute.submitted + 1 + i - first;
    if (sync && sync->n_signals) {
        signals[0] = s->signals[end - 1];
        memcpy(signals + 1, sync->signals, sync->n_signals * sizeof *signals);
        s->infos[end - 1].signalSemaphoreInfoCount = 1 + sync->n_signals;
        s->infos[end - 1].pSignalSemaphoreInfos = signals;
    }
    const vkt_result r = submit_all(ctx, &ctx->compute, s->infos + first, end - first, label, value);
    s->infos[end - 1] = saved[1];
    s->infos[first] = saved[0];
    if (r == VKT_OK && uploads) ctx->uploads_awaited = upload;
    return r;
}

vkt_result vkt_submit_synced(vkt_ctx *ctx, VkCommandBuffer cmd, const vkt_sync *sync, const char *label,
                             uint64_t *value)
{
    vkt_series one = { .n = 1 };
    VkCommandBufferSubmitInfo buffers[2];
    VkSemaphoreSubmitInfo signals[1 + VKT_SYNC_MAX];
    VkSubmitInfo2 info;
    one.cmds = &cmd;
    one.buffers = buffers;
    one.signals = signals;
    one.infos = &info;
    fill_infos(ctx, &one);
    if (!cmd) info.pCommandBufferInfos = &buffers[--info.commandBufferInfoCount];
    return vkt_series_submit(ctx, &one, 0, 1, sync, label, value);
}

vkt_result vkt_submit(vkt_ctx *ctx, VkCommandBuffer cmd, const char *label, uint64_t *value)
{
    return vkt_submit_synced(ctx, cmd, NULL, label, value);
}

/* ---- waits, for higher layers ---- */

vkt_result vkt_wait(vkt_ctx *ctx, uint64_t value)
{
    return vkt_queue_wait(ctx, &ctx->compute, value);
}

void vkt_settle(vkt_ctx *ctx)
{
    if (!vkt_is_forked(ctx)) (void)vkt_wait(ctx, ctx->compute.submitted);
}

bool vkt_queue_reached(vkt_ctx *ctx, vkt_queue *q, uint64_t value)
{
    if (q->done >= value || ctx->lost != VKT_OK || vkt_is_forked(ctx)) return true;
    const vkt_result r = poll(ctx, q);
    return r == VKT_OK ? q->done >= value : ctx->lost != VKT_OK;
}

bool vkt_reached(vkt_ctx *ctx, uint64_t value)
{
    return vkt_queue_reached(ctx, &ctx->compute, value);
}

void vkt_ctx_waits(const vkt_ctx *ctx, vkt_wait_stats *out)
{
    if (!ctx || !out) return;
    const vkt_gpu_counters *c = &ctx->counters;
    *out = (vkt_wait_stats){ .waits = c->waits, .wall_ns = c->wait_ns, .cpu_ns = c->wait_cpu_ns };
}

vkt_result vkt_ctx_wait_idle(vkt_ctx *ctx)
{
    VKT_WANT(NULL, ctx);
    if (ctx->has_transfer_queue) VKT_TRY(vkt_queue_wait(ctx, &ctx->transfer, ctx->transfer.submitted));
    return vkt_queue_wait(ctx, &ctx->compute, ctx->compute.submitted);
}

/* ---- transfers ---- */

vkt_queue *vkt_transfer_queue(vkt_ctx *ctx)
{
    return ctx->has_transfer_queue ? &ctx->transfer : &ctx->compute;
}

void vkt_upload_finish(vkt_ctx *ctx, const vkt_buffer *dst)
{
    /* dst->upload may be a value of a transfer queue that has been disabled since. The upload is complete in this case.
     * But the value may be larger than `submitted` of the compute queue, and a wait for the value would fail. So the
     * code waits for at most `submitted`. */
    const uint64_t value = VKT_MIN(dst->upload, vkt_transfer_queue(ctx)->submitted);
    if (value && ctx->lost == VKT_OK && !vkt_is_forked(ctx)) (void)vkt_queue_wait(ctx, vkt_transfer_queue(ctx), value);
}
