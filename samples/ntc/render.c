/* ntc/render.c - see render.h. */
#include "ntc/render.h"

#include <string.h>

#include "graphics/pipeline.h"
#include "shaders.h"

enum { BINDINGS = 3 };

/* Push constants of texture.frag. */
typedef struct show_push {
    uint32_t view, first, channels;
} show_push;

vkt_result parameters_upload(const device *d, const ntc_set *s, buffer *to, parameters *p)
{
    size_t n = ntc_weights(s), at = 0;
    for (uint32_t i = 0; i < s->n_grids; i++) n += ntc_latents(&s->grids[i]);
    TRY(buffer_create(d, n * sizeof(float), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, to));
    float *floats = to->map;
    for (uint32_t i = 0; i < s->n_grids; i++) {
        const ntc_grid *g = &s->grids[i];
        p->grids[i] = (uint32_t)at;
        for (size_t k = 0; k < ntc_latents(g); k++) floats[at++] = (float)g->levels[k] / (float)ntc_steps(g);
    }
    for (uint32_t i = 0; i < NTC_LAYERS; i++) {
        const ntc_layer l = ntc_layer_of(s, i);
        p->weight[i] = (uint32_t)(at + l.weight);
        p->bias[i] = (uint32_t)(at + l.bias);
    }
    memcpy(floats + at, s->weights, ntc_weights(s) * sizeof *s->weights);
    p->buffer = (vkt_vk_buffer){ .buffer = to->handle, .offset_bytes = 0, .bytes = n * sizeof(float) };
    return VKT_OK;
}

static vkt_result make_facts(renderer *r, const ntc_set *s, const parameters *p)
{
    TRY(buffer_create(r->d, NTC_FACTS * sizeof(uint32_t), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, &r->facts));
    uint32_t *facts = r->facts.map;
    memset(facts, 0, NTC_FACTS * sizeof *facts);
    facts[NTC_FACT_WIDTH] = s->width;
    facts[NTC_FACT_HEIGHT] = s->height;
    facts[NTC_FACT_GRIDS] = s->n_grids;
    facts[NTC_FACT_PLACE] = ntc_place_scale(s) / NTC_BLOCK;
    for (uint32_t i = 0; i < s->n_grids; i++) {
        const ntc_grid *g = &s->grids[i];
        const uint32_t of[] = {
            g->scale / NTC_BLOCK, g->height, g->width, g->features, g->bits, g->corners, p->grids[i]
        };
        memcpy(facts + NTC_FACT_GRID + 8 * i, of, sizeof of);
    }
    for (uint32_t i = 0; i < NTC_LAYERS; i++) {
        facts[NTC_FACT_LAYER + 2 * i] = p->weight[i];
        facts[NTC_FACT_LAYER + 2 * i + 1] = p->bias[i];
    }
    return VKT_OK;
}

static vkt_result make_texels(renderer *r, const ntc_set *s, const uint8_t *original)
{
    const size_t n = (size_t)s->width * s->height * s->channels;
    TRY(buffer_create(r->d, (n + 3) / 4 * 4, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, &r->texels));
    memcpy(r->texels.map, original, n);
    return VKT_OK;
}

static vkt_result make_set(renderer *r)
{
    const vk_table *vk = &r->d->vk;
    VkDescriptorSetLayoutBinding bindings[BINDINGS];
    for (uint32_t i = 0; i < BINDINGS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){ .binding = i,
                                                      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                      .descriptorCount = 1,
                                                      .stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT };
    const VkDescriptorSetLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                     .bindingCount = BINDINGS,
                                                     .pBindings = bindings };
    TRY_VK(vk, CreateDescriptorSetLayout, r->d->handle, &layout, NULL, &r->set_layout);
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BINDINGS };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size
    };
    TRY_VK(vk, CreateDescriptorPool, r->d->handle, &pool, NULL, &r->pool);
    const VkDescriptorSetAllocateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = r->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &r->set_layout };
    TRY_VK(vk, AllocateDescriptorSets, r->d->handle, &set, &r->set);
    const VkPushConstantRange push = { VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(show_push) };
    const VkPipelineLayoutCreateInfo pipelines = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                   .setLayoutCount = 1,
                                                   .pSetLayouts = &r->set_layout,
                                                   .pushConstantRangeCount = 1,
                                                   .pPushConstantRanges = &push };
    TRY_VK(vk, CreatePipelineLayout, r->d->handle, &pipelines, NULL, &r->layout);
    return VKT_OK;
}

static void fill_set(renderer *r, const parameters *p)
{
    const VkDescriptorBufferInfo buffers[BINDINGS] = {
        [NTC_SET_PARAMETERS] = { p->buffer.buffer, p->buffer.offset_bytes, p->buffer.bytes },
        [NTC_SET_TEXELS] = { r->texels.handle, 0, VK_WHOLE_SIZE },
        [NTC_SET_FACTS] = { r->facts.handle, 0, VK_WHOLE_SIZE }
    };
    const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = r->set,
                                         .descriptorCount = BINDINGS,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                         .pBufferInfo = buffers };
    r->d->vk.UpdateDescriptorSets(r->d->handle, 1, &write, 0, NULL);
}

vkt_result renderer_create(const device *d, const ntc_set *s, const uint8_t *original, const parameters *p,
                           VkFormat format, renderer *r)
{
    *r = (renderer){ .d = d };
    TRY(make_facts(r, s, p));
    TRY(make_texels(r, s, original));
    TRY(make_set(r));
    fill_set(r, p);
    const drawing_params drawing = { .d = d,
                                     .layout = r->layout,
                                     .format = format,
                                     .vertex = SHADER_CODE(whole),
                                     .fragment = SHADER_CODE(texture),
                                     .constants = { format_encodes(format), ntc_inputs(s), s->hidden, s->channels } };
    return drawing_create(&drawing, &r->draws);
}

void renderer_destroy(renderer *r)
{
    if (!r->d) return;
    const vk_table *vk = &r->d->vk;
    if (r->draws) vk->DestroyPipeline(r->d->handle, r->draws, NULL);
    if (r->layout) vk->DestroyPipelineLayout(r->d->handle, r->layout, NULL);
    if (r->pool) vk->DestroyDescriptorPool(r->d->handle, r->pool, NULL);
    if (r->set_layout) vk->DestroyDescriptorSetLayout(r->d->handle, r->set_layout, NULL);
    buffer_destroy(r->d, &r->facts);
    buffer_destroy(r->d, &r->texels);
    r->d = NULL;
}

void renderer_draw(const renderer *r, VkCommandBuffer cmd, const ntc_set *s, uint32_t view, uint32_t i, rect to)
{
    const vk_table *vk = &r->d->vk;
    show_push push = { .view = view, .channels = s->textures[i].channels };
    for (uint32_t k = 0; k < i; k++) push.first += s->textures[k].channels;
    vk->CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_GRAPHICS, r->layout, 0, 1, &r->set, 0, NULL);
    vk->CmdPushConstants(cmd, r->layout, VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof push, &push);
    canvas_draw(r->d, cmd, r->draws, to);
}
