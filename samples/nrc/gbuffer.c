/* nrc/gbuffer.c - see gbuffer.h. */
#include "nrc/gbuffer.h"

#include <string.h>

enum { PUSH_BYTES = 64 };

static const VkPipelineStageFlags2 stages =
    VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;

void gbuffer_barrier(const gbuffer *p, VkCommandBuffer cmd)
{
    const VkMemoryBarrier2 barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                       .srcStageMask = stages,
                                       .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                       .dstStageMask = stages,
                                       .dstAccessMask =
                                           VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT };
    memory_barrier(p->d, cmd, &barrier);
}

/* ---- creation ---- */

static vkt_result make_images(gbuffer *p, frames *f)
{
    const stage_access before = { stages, VK_ACCESS_2_NONE, VK_IMAGE_LAYOUT_UNDEFINED },
                       after = { stages, VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                 VK_IMAGE_LAYOUT_GENERAL };
    frame *now;
    for (uint32_t i = 0; i < NRC_IMAGES; i++)
        TRY(image_create(p->d, p->extent, VK_FORMAT_R32G32B32A32_SFLOAT, VK_IMAGE_USAGE_STORAGE_BIT, &p->image[i]));
    TRY(frames_begin(f, &now));
    for (uint32_t i = 0; i < NRC_IMAGES; i++) image_barrier(p->d, now->cmd, p->image[i].handle, before, after);
    TRY(frames_submit(f, now, VK_NULL_HANDLE, VK_NULL_HANDLE));
    TRY_VK(&p->d->vk, DeviceWaitIdle, p->d->handle);
    return VKT_OK;
}

static vkt_result make_set(gbuffer *p)
{
    const vk_table *vk = &p->d->vk;
    const VkShaderStageFlags both = VK_SHADER_STAGE_FRAGMENT_BIT | VK_SHADER_STAGE_COMPUTE_BIT;
    VkDescriptorSetLayoutBinding bindings[NRC_PARAMETERS + 1];
    for (uint32_t i = 0; i <= NRC_PARAMETERS; i++)
        bindings[i] =
            (VkDescriptorSetLayoutBinding){ .binding = i,
                                            .descriptorType = i == NRC_PARAMETERS    ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                              : i == NRC_LEVEL_TABLE ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                                                     : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                            .descriptorCount = 1,
                                            .stageFlags = both };
    const VkDescriptorSetLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                     .bindingCount = NRC_PARAMETERS + 1,
                                                     .pBindings = bindings };
    TRY_VK(vk, CreateDescriptorSetLayout, p->d->handle, &layout, NULL, &p->set_layout);
    const VkDescriptorPoolSize sizes[] = { { VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, NRC_IMAGES },
                                           { VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1 },
                                           { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 } };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 3, .pPoolSizes = sizes
    };
    TRY_VK(vk, CreateDescriptorPool, p->d->handle, &pool, NULL, &p->pool);
    const VkDescriptorSetAllocateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = p->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &p->set_layout };
    TRY_VK(vk, AllocateDescriptorSets, p->d->handle, &set, &p->set);
    const VkPushConstantRange push = { both, 0, PUSH_BYTES };
    const VkPipelineLayoutCreateInfo pipelines = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                   .setLayoutCount = 1,
                                                   .pSetLayouts = &p->set_layout,
                                                   .pushConstantRangeCount = 1,
                                                   .pPushConstantRanges = &push };
    TRY_VK(vk, CreatePipelineLayout, p->d->handle, &pipelines, NULL, &p->layout);
    return VKT_OK;
}

static void put_images(const gbuffer *p)
{
    VkDescriptorImageInfo images[NRC_IMAGES];
    for (uint32_t i = 0; i < NRC_IMAGES; i++)
        images[i] = (VkDescriptorImageInfo){ VK_NULL_HANDLE, p->image[i].view, VK_IMAGE_LAYOUT_GENERAL };
    const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = p->set,
                                         .descriptorCount = NRC_IMAGES,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                         .pImageInfo = images };
    p->d->vk.UpdateDescriptorSets(p->d->handle, 1, &write, 0, NULL);
}

vkt_result gbuffer_create(const device *d, frames *f, VkExtent2D extent, gbuffer *p)
{
    *p = (gbuffer){ .d = d, .extent = extent };
    TRY(make_images(p, f));
    TRY(make_set(p));
    put_images(p);
    return VKT_OK;
}

vkt_result gbuffer_bind_network(gbuffer *p, const vkt_hash_grid_level levels[NRC_LEVELS], vkt_vk_buffer parameters)
{
    const VkDeviceSize bytes = NRC_LEVELS * sizeof *levels;
    TRY(buffer_create(p->d, bytes, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT, &p->levels));
    memcpy(p->levels.map, levels, bytes);
    const VkDescriptorBufferInfo table = { p->levels.handle, 0, bytes },
                                 store = { parameters.buffer, parameters.offset_bytes, parameters.bytes };
    const VkWriteDescriptorSet writes[] = { { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                              .dstSet = p->set,
                                              .dstBinding = NRC_LEVEL_TABLE,
                                              .descriptorCount = 1,
                                              .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                              .pBufferInfo = &table },
                                            { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                              .dstSet = p->set,
                                              .dstBinding = NRC_PARAMETERS,
                                              .descriptorCount = 1,
                                              .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                              .pBufferInfo = &store } };
    p->d->vk.UpdateDescriptorSets(p->d->handle, 2, writes, 0, NULL);
    return VKT_OK;
}

void gbuffer_destroy(gbuffer *p)
{
    if (!p->d) return;
    const vk_table *vk = &p->d->vk;
    if (p->layout) vk->DestroyPipelineLayout(p->d->handle, p->layout, NULL);
    if (p->pool) vk->DestroyDescriptorPool(p->d->handle, p->pool, NULL);
    if (p->set_layout) vk->DestroyDescriptorSetLayout(p->d->handle, p->set_layout, NULL);
    buffer_destroy(p->d, &p->levels);
    for (uint32_t i = 0; i < NRC_IMAGES; i++) image_destroy(p->d, &p->image[i]);
    p->d = NULL;
}
