/* kernel/shader.c - pipelines of the shaders of applications (vktrain/custom.h). A program owns these pipelines,
 * because the table of a context (kernel.c) would keep the pipelines of graphs that no longer exist. The driver's
 * pipeline cache keeps the compiled code. */
#include "kernel/kernel.h"

#include <stdio.h>

static vkt_result make_set_layout(vkt_ctx *ctx, const vkt_shader *s, vkt_pipeline *p)
{
    VkDescriptorSetLayoutBinding bindings[VKT_MAX_BINDINGS];
    VkDescriptorSetLayoutCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                             .pBindings = bindings };
    for (uint32_t b = 0; b < VKT_MAX_BINDINGS; b++)
        if ((s->reads | s->writes) >> b & 1)
            bindings[info.bindingCount++] =
                (VkDescriptorSetLayoutBinding){ .binding = b,
                                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                .descriptorCount = 1,
                                                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT };
    const VkResult r = ctx->vk.CreateDescriptorSetLayout(ctx->device, &info, ctx->allocation, &p->set_layout);
    if (r != VK_SUCCESS) p->set_layout = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreateDescriptorSetLayout");
}

static vkt_result make_layout(vkt_ctx *ctx, vkt_pipeline *p)
{
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, ctx->limits.max_push_bytes };
    const VkPipelineLayoutCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                              .setLayoutCount = 1,
                                              .pSetLayouts = &p->set_layout,
                                              .pushConstantRangeCount = 1,
                                              .pPushConstantRanges = &push };
    const VkResult r = ctx->vk.CreatePipelineLayout(ctx->device, &info, ctx->allocation, &p->layout);
    if (r != VK_SUCCESS) p->layout = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreatePipelineLayout");
}

static vkt_result make_pipeline(vkt_ctx *ctx, const vkt_shader *s, vkt_pipeline *p)
{
    VkShaderModule module;
    char what[96];
    const VkShaderModuleCreateInfo code = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = s->bytes,
                                            .pCode = s->words };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.CreateShaderModule(ctx->device, &code, ctx->allocation, &module),
                         "vkCreateShaderModule"));
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                   .module = module,
                   .pName = s->entry },
        .layout = p->layout,
    };
    const VkResult r =
        ctx->vk.CreateComputePipelines(ctx->device, ctx->pipeline_cache, 1, &info, ctx->allocation, &p->handle);
    if (r != VK_SUCCESS) p->handle = VK_NULL_HANDLE;
    ctx->vk.DestroyShaderModule(ctx->device, module, ctx->allocation);
    snprintf(what, sizeof what, "vkCreateComputePipelines for %s", s->name);
    return vkt_vk_check(ctx, r, what);
}

vkt_result vkt_shader_pipeline_make(vkt_ctx *ctx, const vkt_shader *s, vkt_pipeline *out)
{
    VKT_TRY(make_set_layout(ctx, s, out));
    VKT_TRY(make_layout(ctx, out));
    VKT_TRY(make_pipeline(ctx, s, out));
    vkt_name(ctx, VK_OBJECT_TYPE_PIPELINE, (uint64_t)out->handle, s->name);
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "pipeline %s", s->name);
    return VKT_OK;
}

void vkt_shader_pipeline_destroy(vkt_ctx *ctx, vkt_pipeline *p)
{
    VKT_DROP(ctx, Pipeline, p->handle);
    VKT_DROP(ctx, PipelineLayout, p->layout);
    VKT_DROP(ctx, DescriptorSetLayout, p->set_layout);
    *p = (vkt_pipeline){ .handle = VK_NULL_HANDLE };
}
