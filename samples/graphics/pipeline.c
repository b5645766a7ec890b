/* graphics/pipeline.c - see pipeline.h. */
#include "graphics/pipeline.h"

static vkt_result make_module(const device *d, shader_code from, VkShaderModule *out)
{
    const VkShaderModuleCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = from.bytes,
                                            .pCode = from.words };
    TRY_VK(&d->vk, CreateShaderModule, d->handle, &info, NULL, out);
    return VKT_OK;
}

bool format_encodes(VkFormat f)
{
    return f == VK_FORMAT_B8G8R8A8_SRGB || f == VK_FORMAT_R8G8B8A8_SRGB || f == VK_FORMAT_A8B8G8R8_SRGB_PACK32;
}

static vkt_result make_drawing(const drawing_params *p, VkShaderModule vertex, VkShaderModule fragment, VkPipeline *out)
{
    VkSpecializationMapEntry entries[DRAWING_CONSTANTS];
    for (uint32_t i = 0; i < DRAWING_CONSTANTS; i++) entries[i] = (VkSpecializationMapEntry){ i, 4 * i, 4 };
    const VkSpecializationInfo special = { DRAWING_CONSTANTS, entries, sizeof p->constants, p->constants };
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
                                                      .pColorAttachmentFormats = &p->format };
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
                                                .layout = p->layout };
    TRY_VK(&p->d->vk, CreateGraphicsPipelines, p->d->handle, VK_NULL_HANDLE, 1, &info, NULL, out);
    return VKT_OK;
}

vkt_result drawing_create(const drawing_params *p, VkPipeline *out)
{
    VkShaderModule vertex = VK_NULL_HANDLE, fragment = VK_NULL_HANDLE;
    vkt_result r = make_module(p->d, p->vertex, &vertex);
    if (r == VKT_OK) r = make_module(p->d, p->fragment, &fragment);
    if (r == VKT_OK) r = make_drawing(p, vertex, fragment, out);
    if (vertex) p->d->vk.DestroyShaderModule(p->d->handle, vertex, NULL);
    if (fragment) p->d->vk.DestroyShaderModule(p->d->handle, fragment, NULL);
    return r;
}

vkt_result compute_create(const device *d, shader_code shader, VkPipelineLayout layout, VkPipeline *out)
{
    VkComputePipelineCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                         .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                    .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                    .pName = "main" },
                                         .layout = layout };
    TRY(make_module(d, shader, &info.stage.module));
    const VkResult r = d->vk.CreateComputePipelines(d->handle, VK_NULL_HANDLE, 1, &info, NULL, out);
    d->vk.DestroyShaderModule(d->handle, info.stage.module, NULL);
    return vk_check(r, "vkCreateComputePipelines");
}
