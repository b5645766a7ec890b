/* view/pipelines.c - the three pipelines of a frame: see draw.h. Target and panel share a fragment shader. */
#include "view/draw.h"

#include "shaders.h"

typedef struct module {
    const uint32_t *words;
    size_t bytes;
} module;

static vkt_result make_module(const device *d, module from, VkShaderModule *out)
{
    const VkShaderModuleCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = from.bytes,
                                            .pCode = from.words };
    TRY_VK(&d->vk, CreateShaderModule, d->handle, &info, NULL, out);
    return VKT_OK;
}

static bool encodes(VkFormat f)
{
    return f == VK_FORMAT_B8G8R8A8_SRGB || f == VK_FORMAT_R8G8B8A8_SRGB || f == VK_FORMAT_A8B8G8R8_SRGB_PACK32;
}

/* Makes a pipeline. `constants` are ENCODES and WHICH of the fragment shaders. */
static vkt_result make_pipeline(const renderer *a, VkFormat format, VkShaderModule vertex, VkShaderModule fragment,
                                const uint32_t constants[2], VkPipeline *out)
{
    static const VkSpecializationMapEntry entries[] = { { 0, 0, 4 }, { 1, 4, 4 } };
    const VkSpecializationInfo special = { 2, entries, 8, constants };
    const VkPipelineShaderStageCreateInfo stages[] = { { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                         .stage = VK_SHADER_STAGE_VERTEX_BIT,
                                                         .module = vertex,
                                                         .pName = "main" },
                                                       { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                         .stage = VK_SHADER_STAGE_FRAGMENT_BIT,
                                                         .module = fragment,
                                                         .pName = "main",
                                                         .pSpecializationInfo = &special } };
    static const VkPipelineVertexInputStateCreateInfo input = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO
    };
    static const VkPipelineInputAssemblyStateCreateInfo assembly = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST
    };
    static const VkPipelineViewportStateCreateInfo viewport = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .scissorCount = 1
    };
    static const VkPipelineRasterizationStateCreateInfo raster = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1
    };
    static const VkPipelineMultisampleStateCreateInfo samples = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT
    };
    static const VkPipelineColorBlendAttachmentState all = { .colorWriteMask = 15 };
    static const VkPipelineColorBlendStateCreateInfo blend = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &all
    };
    static const VkDynamicState dynamic[] = { VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR };
    static const VkPipelineDynamicStateCreateInfo states = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO, .dynamicStateCount = 2, .pDynamicStates = dynamic
    };
    const VkPipelineRenderingCreateInfo rendering = { .sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO,
                                                      .colorAttachmentCount = 1,
                                                      .pColorAttachmentFormats = &format };
    const VkGraphicsPipelineCreateInfo info = { .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                                .pNext = &rendering,
                                                .stageCount = 2,
                                                .pStages = stages,
                                                .pVertexInputState = &input,
                                                .pInputAssemblyState = &assembly,
                                                .pViewportState = &viewport,
                                                .pRasterizationState = &raster,
                                                .pMultisampleState = &samples,
                                                .pColorBlendState = &blend,
                                                .pDynamicState = &states,
                                                .layout = a->layout };
    TRY_VK(&a->d->vk, CreateGraphicsPipelines, a->d->handle, VK_NULL_HANDLE, 1, &info, NULL, out);
    return VKT_OK;
}

vkt_result renderer_make_pipelines(renderer *a, VkFormat format)
{
    static const module texts[] = { { vkt_spv_whole, sizeof vkt_spv_whole },
                                    { vkt_spv_texture, sizeof vkt_spv_texture },
                                    { vkt_spv_network, sizeof vkt_spv_network } };
    const uint32_t target[] = { encodes(format), 0 }, panel[] = { encodes(format), 1 };
    VkShaderModule m[3] = { VK_NULL_HANDLE };
    vkt_result r = VKT_OK;
    for (int i = 0; r == VKT_OK && i < 3; i++) r = make_module(a->d, texts[i], &m[i]);
    if (r == VKT_OK) r = make_pipeline(a, format, m[0], m[1], target, &a->draws_target);
    if (r == VKT_OK) r = make_pipeline(a, format, m[0], m[1], panel, &a->draws_panel);
    if (r == VKT_OK) r = make_pipeline(a, format, m[0], m[2], target, &a->draws_network);
    for (int i = 0; i < 3; i++)
        if (m[i]) a->d->vk.DestroyShaderModule(a->d->handle, m[i], NULL);
    return r;
}
