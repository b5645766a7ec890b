/* record/given.c - runs whose learning rate, number of rows and index of the first row are in an array that the device
 * wrote (vkt_program_params.run_values). An additional dispatch copies these values to the run's slot of the ring of
 * words (abi/step.abi.h). In other programs, the host writes these values to the slot. In both cases the kernels read
 * the slot. */
#include "record/record.h"

#include "abi/abi.h"
#include "abi/run_words.abi.h"
#include "abi/step.abi.h"

_Static_assert(sizeof(vkt_run_values) == 12 && offsetof(vkt_run_values, lr) == 4 * VALUES_LR &&
                   offsetof(vkt_run_values, rows) == 4 * VALUES_ROWS &&
                   offsetof(vkt_run_values, first) == 4 * VALUES_FIRST,
               "the public header and the shader agree");

void vkt_given_record(const vkt_program *p, VkCommandBuffer cmd, uint32_t slot)
{
    vkt_ctx *ctx = p->ctx;
    const vkt_pipeline *pipeline = p->given.pipeline;
    const vkt_run_words_push push = { .slot = slot, .most_rows = p->most_rows ? p->most_rows : ROWS_ALL };
    ctx->vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    ctx->vk.CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout, 0, 1, &p->given.set, 0, NULL);
    ctx->vk.CmdPushConstants(cmd, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    ctx->vk.CmdDispatch(cmd, 1, 1, 1);
}

static vkt_result make_set(vkt_program *p, const vkt_array *values)
{
    vkt_ctx *ctx = p->ctx;
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 };
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size
    };
    const VkResult r = ctx->vk.CreateDescriptorPool(ctx->device, &info, ctx->allocation, &p->given.pool);
    if (r != VK_SUCCESS) p->given.pool = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateDescriptorPool"));
    const VkDescriptorSetAllocateInfo alloc = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                .descriptorPool = p->given.pool,
                                                .descriptorSetCount = 1,
                                                .pSetLayouts = &p->given.pipeline->set_layout };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.AllocateDescriptorSets(ctx->device, &alloc, &p->given.set),
                         "vkAllocateDescriptorSets"));
    const VkDescriptorBufferInfo buffers[] = {
        [RUN_WORDS_ARRAY] = { values->buffer->handle, values->buffer->base_bytes, sizeof(vkt_run_values) },
        [RUN_WORDS_SLOTS] = { p->words->handle, p->words->base_bytes, RING_WORDS * RING_ALL * 4 },
    };
    const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = p->given.set,
                                         .descriptorCount = VKT_COUNT(buffers),
                                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                         .pBufferInfo = buffers };
    ctx->vk.UpdateDescriptorSets(ctx->device, 1, &write, 0, NULL);
    return VKT_OK;
}

vkt_result vkt_given_create(vkt_program *p, const vkt_array *values)
{
    vkt_ctx *ctx = p->ctx;
    static const uint32_t lanes[] = { 1 };
    if (!values) return VKT_OK;
    if (values->ctx != ctx || values->dtype != VKT_U32 || values->bytes < sizeof(vkt_run_values))
        return vkt_fail(&ctx->host, VKT_E_ARG, "program: run_values wants an array of this context of 3 or more u32");
    if (!p->words) return VKT_OK; /* no kernel reads the values of a run */
    VKT_TRY(vkt_pipeline_get(ctx, VKT_K_RUN_WORDS, false, 0, lanes, 1, &p->given.pipeline));
    VKT_TRY(make_set(p, values));
    VKT_TRY(vkt_series_create(ctx, p->name, RING_SLOTS, &p->given.series));
    for (uint32_t i = 0; i < RING_SLOTS; i++) {
        VKT_TRY(vkt_series_begin(ctx, &p->given.series, i));
        vkt_given_record(p, p->given.series.cmds[i], i);
        VKT_TRY(vkt_series_end(ctx, &p->given.series, i));
    }
    return VKT_OK;
}

void vkt_given_free(vkt_program *p)
{
    vkt_series_destroy(p->ctx, &p->given.series);
    VKT_DROP(p->ctx, DescriptorPool, p->given.pool);
}

vkt_result vkt_given_submit(vkt_program *p, const vkt_sync *sync, vkt_sync *rest)
{
    const uint32_t slot = (uint32_t)(p->runs % RING_SLOTS);
    uint64_t value;
    *rest = sync ? *sync : (vkt_sync){ .n_waits = 0 };
    if (!p->given.series.n) return VKT_OK;
    VKT_TRY(vkt_check_sync(p->ctx, sync, p->name));
    VKT_TRY(vkt_series_submit(p->ctx, &p->given.series, slot, slot + 1, &(vkt_sync){ rest->waits, rest->n_waits },
                              p->name, &value));
    rest->waits = NULL;
    rest->n_waits = 0;
    return VKT_OK;
}
