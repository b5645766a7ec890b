/* fault.c - proves that tests/package/apps.sh sees messages of the validation layer: two commands write one buffer, and
 * no barrier is between them. Returns 77 if the layer is not installed. */
#include <string.h>

#include "device.h"

static bool has_layer(void)
{
    VkLayerProperties layers[64];
    uint32_t n = 64;
    bool found = false;
    WANT(vkEnumerateInstanceLayerProperties(&n, layers) >= 0);
    for (uint32_t i = 0; i < n; i++) found = found || strcmp(layers[i].layerName, "VK_LAYER_KHRONOS_validation") == 0;
    return found;
}

int main(void)
{
    gpu g;
    VkCommandBuffer cmd;
    if (!has_layer()) return 77;
    gpu_open(&g, NULL);
    host_buffer b = gpu_buffer(&g, 256, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    const VkCommandBufferAllocateInfo c = { TYPE(COMMAND_BUFFER_ALLOCATE_INFO), NULL, g.pool, 0, 1 };
    const VkSubmitInfo s = { TYPE(SUBMIT_INFO), .commandBufferCount = 1, .pCommandBuffers = &cmd };
    VK(vkAllocateCommandBuffers(g.device, &c, &cmd));
    VK(vkBeginCommandBuffer(cmd, &(VkCommandBufferBeginInfo){ TYPE(COMMAND_BUFFER_BEGIN_INFO) }));
    vkCmdFillBuffer(cmd, b.handle, 0, 256, 1);
    vkCmdFillBuffer(cmd, b.handle, 0, 256, 2);
    VK(vkEndCommandBuffer(cmd));
    VK(vkQueueSubmit(g.queue, 1, &s, VK_NULL_HANDLE));
    VK(vkQueueWaitIdle(g.queue));
    gpu_free(&g, &b);
    gpu_close(&g);
    return 0;
}
