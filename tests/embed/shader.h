/* embed/shader.h - a compute shader of an application, with storage buffers and push constants. A failure fails the
 * test. */
#ifndef VKT_TEST_SHADER_H
#define VKT_TEST_SHADER_H

#include "embed/app.h"

/* clang-format off */
#define SHADER_FUNCTIONS(X)                                                                                          \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)          \
    X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateComputePipelines) X(DestroyPipeline)                    \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)               \
    X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch)
/* clang-format on */

enum { SHADER_BINDINGS = 4, SHADER_PUSH_BYTES = 32 };

typedef struct shader {
    app *a;
#define SHADER_MEMBER(name) PFN_vk##name name;
    SHADER_FUNCTIONS(SHADER_MEMBER)
#undef SHADER_MEMBER
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet set;
} shader;

/* Makes a pipeline from a SPIR-V module with the entry point main. The bindings 0 to SHADER_BINDINGS - 1 are storage
 * buffers. */
void shader_open(shader *s, app *a, const uint32_t *words, size_t bytes);
void shader_close(shader *s);
/* Writes a binding. All bindings must be written before the first dispatch. */
void shader_bind(const shader *s, uint32_t binding, VkBuffer buffer, uint64_t offset, uint64_t bytes);
/* Runs `groups` work groups with SHADER_PUSH_BYTES of push constants, and waits for them. */
void shader_dispatch(shader *s, const void *push, uint32_t groups);

#endif
