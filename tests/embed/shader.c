/* embed/shader.c - see shader.h. */
#include "embed/shader.h"

#define VK(call) assert_int_equal((call), VK_SUCCESS)

static void make_pipeline(shader *s, const uint32_t *words, size_t bytes)
{
    VkShaderModule module;
    const VkDevice device = s->a->device;
    VK(s->CreateShaderModule(device,
                             &(VkShaderModuleCreateInfo){ .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                          .codeSize = bytes,
                                                          .pCode = words },
                             NULL, &module));
    const VkComputePipelineCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                               .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                          .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                          .module = module,
                                                          .pName = "main" },
                                               .layout = s->layout };
    VK(s->CreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &s->pipeline));
    s->DestroyShaderModule(device, module, NULL);
}

static void make_layouts(shader *s)
{
    VkDescriptorSetLayoutBinding binding[SHADER_BINDINGS];
    const VkDevice device = s->a->device;
    for (uint32_t i = 0; i < SHADER_BINDINGS; i++)
        binding[i] = (VkDescriptorSetLayoutBinding){ .binding = i,
                                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                     .descriptorCount = 1,
                                                     .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT };
    const VkDescriptorSetLayoutCreateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                  .bindingCount = SHADER_BINDINGS,
                                                  .pBindings = binding };
    VK(s->CreateDescriptorSetLayout(device, &set, NULL, &s->set_layout));
    const VkPushConstantRange range = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = SHADER_PUSH_BYTES };
    const VkPipelineLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                .setLayoutCount = 1,
                                                .pSetLayouts = &s->set_layout,
                                                .pushConstantRangeCount = 1,
                                                .pPushConstantRanges = &range };
    VK(s->CreatePipelineLayout(device, &layout, NULL, &s->layout));
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, SHADER_BINDINGS };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size
    };
    VK(s->CreateDescriptorPool(device, &pool, NULL, &s->pool));
    const VkDescriptorSetAllocateInfo one = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = s->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &s->set_layout };
    VK(s->AllocateDescriptorSets(device, &one, &s->set));
}

void shader_open(shader *s, app *a, const uint32_t *words, size_t bytes)
{
    *s = (shader){ .a = a };
#define FIND(name)                                                \
    s->name = (PFN_vk##name)a->get_proc(a->instance, "vk" #name); \
    assert_non_null(s->name);
    SHADER_FUNCTIONS(FIND)
#undef FIND
    make_layouts(s);
    make_pipeline(s, words, bytes);
}

void shader_close(shader *s)
{
    s->DestroyDescriptorPool(s->a->device, s->pool, NULL);
    s->DestroyPipeline(s->a->device, s->pipeline, NULL);
    s->DestroyPipelineLayout(s->a->device, s->layout, NULL);
    s->DestroyDescriptorSetLayout(s->a->device, s->set_layout, NULL);
}

void shader_bind(const shader *s, uint32_t binding, VkBuffer buffer, uint64_t offset, uint64_t bytes)
{
    const VkDescriptorBufferInfo info = { buffer, offset, bytes };
    const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = s->set,
                                         .dstBinding = binding,
                                         .descriptorCount = 1,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                         .pBufferInfo = &info };
    s->UpdateDescriptorSets(s->a->device, 1, &write, 0, NULL);
}

void shader_dispatch(shader *s, const void *push, uint32_t groups)
{
    app *a = s->a;
    VkCommandBuffer cmd = app_begin(a, false);
    s->CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, s->pipeline);
    s->CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &s->set, 0, NULL);
    s->CmdPushConstants(cmd, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, SHADER_PUSH_BYTES, push);
    s->CmdDispatch(cmd, groups, 1, 1);
    app_barrier(a, cmd);
    app_end(a, cmd);
    app_submit(a, cmd, NULL, 0);
    app_wait(a);
}
