/* view/draw.c - see draw.h. */
#include "view/draw.h"

#include <stdio.h>
#include <string.h>

#include "view/panel.h"
#include "graphics/pipeline.h"
#include "graphics/upload.h"
#include "shaders.h"

enum { GAP = 8, MIN_WIDTH = 720 };

/* ---- the layout of a frame ---- */

static rect fit(rect room, const rgba_image *p)
{
    rect r = room;
    if ((uint64_t)p->width * room.height > (uint64_t)p->height * room.width)
        r.height = (uint32_t)((uint64_t)room.width * p->height / p->width);
    else
        r.width = (uint32_t)((uint64_t)room.height * p->width / p->height);
    if (r.width == 0) r.width = 1;
    if (r.height == 0) r.height = 1;
    r.x += (room.width - r.width) / 2;
    r.y += (room.height - r.height) / 2;
    return r;
}

arrangement arrange(VkExtent2D e, const rgba_image *p)
{
    const uint32_t panel = e.height > PANEL_HEIGHT ? PANEL_HEIGHT : e.height;
    const uint32_t height = e.height - panel > 2 * GAP ? e.height - panel - 2 * GAP : 1;
    const uint32_t width = e.width > 3 * GAP + 2 ? (e.width - 3 * GAP) / 2 : 1;
    const uint32_t top = e.height - panel > 2 * GAP ? GAP : 0;
    return (arrangement){ .target = fit((rect){ GAP, top, width, height }, p),
                          .network = fit((rect){ 2 * GAP + width, top, width, height }, p),
                          .panel = { 0, e.height - panel, e.width, panel } };
}

VkExtent2D natural_frame(const rgba_image *p)
{
    const uint32_t width = 2 * p->width + 3 * GAP;
    return (VkExtent2D){ width < MIN_WIDTH ? MIN_WIDTH : width, p->height + 2 * GAP + PANEL_HEIGHT };
}

/* ---- the renderer's objects ---- */

static vkt_result make_sampler(renderer *a)
{
    const VkSamplerCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                       .magFilter = VK_FILTER_LINEAR,
                                       .minFilter = VK_FILTER_LINEAR,
                                       .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                       .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                       .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE };
    TRY_VK(&a->d->vk, CreateSampler, a->d->handle, &info, NULL, &a->sampler);
    return VKT_OK;
}

/* Makes the pipeline layout and the descriptor set. The set has the textures of the target and the panel, the level
 * table and the parameters. */
static vkt_result make_set(renderer *a)
{
    const vk_table *vk = &a->d->vk;
    VkDescriptorSetLayoutBinding bindings[VIEW_BINDINGS] = {
        [VIEW_IMAGES] = { .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, .descriptorCount = 2 },
        [VIEW_LEVEL_TABLE] = { .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, .descriptorCount = 1 },
        [VIEW_PARAMETERS] = { .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1 }
    };
    for (uint32_t i = 0; i < VIEW_BINDINGS; i++) {
        bindings[i].binding = i;
        bindings[i].stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT;
    }
    const VkDescriptorSetLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                     .bindingCount = VIEW_BINDINGS,
                                                     .pBindings = bindings };
    TRY_VK(vk, CreateDescriptorSetLayout, a->d->handle, &layout, NULL, &a->set_layout);
    const VkDescriptorPoolSize sizes[] = { { VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 2 },
                                           { VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1 },
                                           { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 } };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 3, .pPoolSizes = sizes
    };
    TRY_VK(vk, CreateDescriptorPool, a->d->handle, &pool, NULL, &a->pool);
    const VkDescriptorSetAllocateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = a->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &a->set_layout };
    TRY_VK(vk, AllocateDescriptorSets, a->d->handle, &set, &a->set);
    const VkPipelineLayoutCreateInfo pipelines = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                   .setLayoutCount = 1,
                                                   .pSetLayouts = &a->set_layout };
    TRY_VK(vk, CreatePipelineLayout, a->d->handle, &pipelines, NULL, &a->layout);
    return VKT_OK;
}

static void put_image(const renderer *a, uint32_t which, VkImageView view)
{
    const VkDescriptorImageInfo image = { a->sampler, view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL };
    const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = a->set,
                                         .dstBinding = VIEW_IMAGES,
                                         .dstArrayElement = which,
                                         .descriptorCount = 1,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                         .pImageInfo = &image };
    a->d->vk.UpdateDescriptorSets(a->d->handle, 1, &write, 0, NULL);
}

/* Writes and binds the level table. Also binds a range of the library's buffer, from the start of the first parameter
 * to the end of the last one. */
static vkt_result put_network(renderer *a, const renderer_params *p)
{
    struct {
        vkt_hash_grid_level levels[VIEW_LEVELS];
        uint32_t first[(VIEW_N_PARAMETERS + 3) / 4 * 4];
    } table = { 0 };
    VkDescriptorBufferInfo floats = { p->parameters[0].buffer, p->parameters[0].offset_bytes };
    VkDeviceSize end = 0;
    for (uint32_t i = 0; i < VIEW_N_PARAMETERS; i++) {
        const vkt_vk_buffer *b = &p->parameters[i]; /* all parameters are in one buffer */
        if (b->offset_bytes < floats.offset) floats.offset = b->offset_bytes;
        if (b->offset_bytes + b->bytes > end) end = b->offset_bytes + b->bytes;
    }
    for (uint32_t i = 0; i < VIEW_N_PARAMETERS; i++)
        table.first[i] = (uint32_t)((p->parameters[i].offset_bytes - floats.offset) / sizeof(float));
    floats.range = end - floats.offset;
    memcpy(table.levels, p->levels, sizeof table.levels);
    TRY(buffer_create(a->d, sizeof table, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT, &a->levels));
    memcpy(a->levels.map, &table, sizeof table);
    const VkDescriptorBufferInfo levels = { a->levels.handle, 0, sizeof table };
    const VkWriteDescriptorSet writes[] = { { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                              .dstSet = a->set,
                                              .dstBinding = VIEW_LEVEL_TABLE,
                                              .descriptorCount = 1,
                                              .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                              .pBufferInfo = &levels },
                                            { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                              .dstSet = a->set,
                                              .dstBinding = VIEW_PARAMETERS,
                                              .descriptorCount = 1,
                                              .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                              .pBufferInfo = &floats } };
    a->d->vk.UpdateDescriptorSets(a->d->handle, 2, writes, 0, NULL);
    return VKT_OK;
}

/* ---- the panel ---- */

static void forget_panel(renderer *a)
{
    image_destroy(a->d, &a->panel);
    for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++) buffer_destroy(a->d, &a->upload[i]);
}

vkt_result renderer_set_width(renderer *a, uint32_t width)
{
    forget_panel(a);
    for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++)
        TRY(buffer_create(a->d, 4 * (VkDeviceSize)width * PANEL_HEIGHT, VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
                          &a->upload[i]));
    TRY(image_create(a->d, (VkExtent2D){ width, PANEL_HEIGHT }, VK_FORMAT_B8G8R8A8_UNORM, UPLOAD_USAGE, &a->panel));
    put_image(a, 1, a->panel.view);
    return VKT_OK;
}

static vkt_result make_pipelines(renderer *a, VkFormat format)
{
    drawing_params p = { .d = a->d,
                         .layout = a->layout,
                         .format = format,
                         .vertex = SHADER_CODE(whole),
                         .fragment = SHADER_CODE(texture),
                         .constants = { format_encodes(format), 0 } };
    TRY(drawing_create(&p, &a->draws_target));
    p.constants[1] = 1;
    TRY(drawing_create(&p, &a->draws_panel));
    p.fragment = SHADER_CODE(network);
    return drawing_create(&p, &a->draws_network);
}

vkt_result renderer_create(const renderer_params *p, renderer *a)
{
    *a = (renderer){ .d = p->d, .p = p->target };
    TRY(make_sampler(a));
    TRY(make_set(a));
    put_image(a, 0, p->texture->view);
    TRY(put_network(a, p));
    return make_pipelines(a, p->format);
}

void renderer_destroy(renderer *a)
{
    if (!a->d) return;
    const vk_table *vk = &a->d->vk;
    const VkPipeline pipelines[] = { a->draws_target, a->draws_panel, a->draws_network };
    for (int i = 0; i < 3; i++)
        if (pipelines[i]) vk->DestroyPipeline(a->d->handle, pipelines[i], NULL);
    if (a->layout) vk->DestroyPipelineLayout(a->d->handle, a->layout, NULL);
    if (a->pool) vk->DestroyDescriptorPool(a->d->handle, a->pool, NULL);
    if (a->set_layout) vk->DestroyDescriptorSetLayout(a->d->handle, a->set_layout, NULL);
    if (a->sampler) vk->DestroySampler(a->d->handle, a->sampler, NULL);
    forget_panel(a);
    buffer_destroy(a->d, &a->levels);
    a->d = NULL;
}

/* ---- a frame ---- */

void renderer_record(renderer *a, const frame *f, const canvas *to)
{
    const arrangement at = arrange(to->extent, a->p);
    upload_record(a->d, f->cmd, &a->upload[f->slot], &a->panel);
    canvas_begin(a->d, f->cmd, to);
    a->d->vk.CmdBindDescriptorSets(f->cmd, VK_PIPELINE_BIND_POINT_GRAPHICS, a->layout, 0, 1, &a->set, 0, NULL);
    canvas_draw(a->d, f->cmd, a->draws_target, at.target);
    canvas_draw(a->d, f->cmd, a->draws_network, at.network);
    canvas_draw(a->d, f->cmd, a->draws_panel, at.panel);
    a->d->vk.CmdEndRendering(f->cmd);
}
