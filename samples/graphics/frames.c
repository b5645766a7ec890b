/* graphics/frames.c - see frames.h. */
#include "graphics/frames.h"

vkt_result frames_create(const device *d, frames *f)
{
    *f = (frames){ .d = d };
    const vk_table *vk = &d->vk;
    for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++) {
        frame *s = &f->slots[i];
        s->slot = i;
        const VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                               .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                               .queueFamilyIndex = d->family };
        TRY_VK(vk, CreateCommandPool, d->handle, &pool, NULL, &s->pool);
        const VkCommandBufferAllocateInfo commands = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                       .commandPool = s->pool,
                                                       .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                       .commandBufferCount = 1 };
        TRY_VK(vk, AllocateCommandBuffers, d->handle, &commands, &s->cmd);
        const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
                                          .flags = VK_FENCE_CREATE_SIGNALED_BIT };
        TRY_VK(vk, CreateFence, d->handle, &fence, NULL, &s->done);
        const VkSemaphoreCreateInfo semaphore = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO };
        TRY_VK(vk, CreateSemaphore, d->handle, &semaphore, NULL, &s->acquired);
    }
    return VKT_OK;
}

void frames_destroy(frames *f)
{
    for (uint32_t i = 0; f->d && i < FRAMES_IN_FLIGHT; i++) {
        const frame *s = &f->slots[i];
        if (s->acquired) f->d->vk.DestroySemaphore(f->d->handle, s->acquired, NULL);
        if (s->done) f->d->vk.DestroyFence(f->d->handle, s->done, NULL);
        if (s->pool) f->d->vk.DestroyCommandPool(f->d->handle, s->pool, NULL);
    }
    *f = (frames){ .d = NULL };
}

vkt_result frames_begin(frames *f, frame **out)
{
    frame *s = &f->slots[f->n % FRAMES_IN_FLIGHT];
    const VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                             .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT };
    *out = s;
    TRY_VK(&f->d->vk, WaitForFences, f->d->handle, 1, &s->done, VK_TRUE, UINT64_MAX);
    TRY_VK(&f->d->vk, ResetCommandPool, f->d->handle, s->pool, 0);
    TRY_VK(&f->d->vk, BeginCommandBuffer, s->cmd, &begin);
    return VKT_OK;
}

vkt_result frames_submit(frames *f, const frame *now, VkSemaphore wait, VkSemaphore signal)
{
    const vk_table *vk = &f->d->vk;
    TRY_VK(vk, EndCommandBuffer, now->cmd);
    TRY_VK(vk, ResetFences, f->d->handle, 1, &now->done);
    const VkSemaphoreSubmitInfo waits = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                          .semaphore = wait,
                                          .stageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT };
    const VkSemaphoreSubmitInfo signals = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                            .semaphore = signal,
                                            .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
    const VkCommandBufferSubmitInfo commands = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                                 .commandBuffer = now->cmd };
    const VkSubmitInfo2 submit = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                                   .waitSemaphoreInfoCount = wait != VK_NULL_HANDLE,
                                   .pWaitSemaphoreInfos = &waits,
                                   .commandBufferInfoCount = 1,
                                   .pCommandBufferInfos = &commands,
                                   .signalSemaphoreInfoCount = signal != VK_NULL_HANDLE,
                                   .pSignalSemaphoreInfos = &signals };
    TRY_VK(vk, QueueSubmit2, f->d->queue, 1, &submit, now->done);
    f->n++;
    return VKT_OK;
}
