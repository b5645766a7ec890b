/* record/commands.c - pipelines, descriptor sets, and the commands that run dispatches. */
#include "record/record.h"

#include <stdio.h>

vkt_access vkt_access_of(const vkt_dispatch *d)
{
    const vkt_kernel_entry *row = vkt_kernel_get((vkt_kernel_id)d->kernel);
    vkt_access a =
        d->shader ? (vkt_access){ d->shader->reads, d->shader->writes } : (vkt_access){ row->reads, row->writes };
    if (d->conditional) a.reads |= 1u << (d->n_bind - 1); /* the last binding has the numbers of work groups */
    return a;
}

const char *vkt_dispatch_name(const vkt_dispatch *d)
{
    return d->shader ? d->shader->name : vkt_kernel_get((vkt_kernel_id)d->kernel)->name;
}

/* Returns whether the dispatch uses texel loads. The kernel must have a texel variant, and the device's limits must
 * allow texel loads. Each range that the variant loads as texels must fit into a buffer view, and its buffer must have
 * the usage for texel buffers. */
static bool use_texels(const vkt_program *p, const vkt_dispatch *d, const vkt_kernel_entry *row)
{
    const uint64_t most = p->ctx->limits.max_texel_elements;
    if (!row->texels || most == 0) return false;
    for (uint32_t b = 0; b < vkt_shader_bindings(d); b++)
        for (uint32_t side = 0; side < p->sides; side++) {
            if (!(row->texels >> b & 1) || !d->bind[b].t.id) continue;
            const vkt_range r = vkt_range_of(p, &d->bind[b], side);
            if (r.bytes / 16 > most || !(r.buffer->usage & VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT)) return false;
        }
    return true;
}

/* Checks the bindings of a dispatch. Bit b of `texels`: binding b is a texel buffer. The limit for the size of texel
 * buffers differs from the limit for storage buffers. */
static vkt_result check_dispatch(const vkt_program *p, const vkt_dispatch *d, uint32_t texels)
{
    const vkt_access access = vkt_access_of(d);
    const vkt_host *h = &p->ctx->host;
    for (uint32_t b = 0; b < VKT_MAX_BINDINGS; b++) {
        if (d->conditional && b + 1 == d->n_bind) continue;
        const bool wanted = (access.reads | access.writes) >> b & 1, given = b < d->n_bind && d->bind[b].t.id;
        if (wanted != given)
            return vkt_fail(h, VKT_E_STATE, "%s: binding %u of kernel %s is %s", p->g->nodes[d->node]->op->name, b,
                            vkt_dispatch_name(d), given ? "bound but not declared" : "declared but not bound");
        if (!given) continue;
        const vkt_range r = vkt_range_of(p, &d->bind[b], 0); /* side 0 is enough: on side 1 (vkt_program.sides), offset
                                                              * and size are the same */
        const uint64_t most =
            texels >> b & 1 ? 16 * p->ctx->limits.max_texel_elements : p->ctx->limits.max_storage_range_bytes;
        if (r.bytes > most || r.offset_bytes % VKT_ALIGN_BYTES) {
            char a[24], c[24];
            return vkt_fail(h, VKT_E_UNSUPPORTED, "%s: %s of %s is bound as a whole, and this device binds at most %s",
                            p->g->nodes[d->node]->op->name, vkt_lowered_value(&p->lowered, d->bind[b].t)->name,
                            vkt_bytes_text(r.bytes, a), vkt_bytes_text(most, c));
        }
    }
    return VKT_OK;
}

/* Checks all dispatches. Lists the pipelines that they need, except the pipelines of the application's shaders. *n gets
 * the length of the list. */
static vkt_result find_wants(const vkt_program *p, vkt_pipeline_want *wants, uint32_t *n)
{
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        const vkt_kernel_entry *row = vkt_kernel_get((vkt_kernel_id)d->kernel);
        const bool texel = !d->shader && use_texels(p, d, row);
        VKT_TRY(check_dispatch(p, d, texel ? row->texels : 0));
        if (d->shader) continue;
        wants[(*n)++] = (vkt_pipeline_want){ (vkt_kernel_id)d->kernel, texel, d->storage, d->spec, d->n_spec };
    }
    return VKT_OK;
}

/* Makes the pipelines of the application's shaders. The first n entries of p->pipelines are the pipelines of kernels.
 * This function moves the pipelines of kernels to the indices of their dispatches. */
static vkt_result make_shaders(vkt_program *p, size_t n)
{
    const size_t shaders = p->lowered.n - n;
    if (!shaders) return VKT_OK;
    p->shaders = vkt_alloc_array(&p->ctx->host, shaders, sizeof *p->shaders);
    if (!p->shaders) return vkt_fail_nomem(&p->ctx->host, "a program", shaders * sizeof *p->shaders);
    p->n_shaders = shaders;
    size_t next = shaders;
    for (size_t i = p->lowered.n; i-- > 0;) {
        const vkt_shader *s = p->lowered.list[i].shader;
        if (s) VKT_TRY(vkt_shader_pipeline_make(p->ctx, s, &p->shaders[--next]));
        p->pipelines[i] = s ? &p->shaders[next] : p->pipelines[--n];
    }
    return VKT_OK;
}

static vkt_result make_pipelines(vkt_program *p)
{
    const vkt_host *h = &p->ctx->host;
    vkt_pipeline_want *wants = vkt_alloc_array(h, p->lowered.n, sizeof *wants);
    if (!wants) return vkt_fail_nomem(h, "a program", p->lowered.n * sizeof *wants);
    uint32_t n = 0;
    vkt_result r = find_wants(p, wants, &n);
    if (r == VKT_OK) r = vkt_pipelines_get(p->ctx, wants, n, p->pipelines);
    vkt_free(h, wants);
    return r == VKT_OK ? make_shaders(p, n) : r;
}

static vkt_result make_pool(vkt_program *p)
{
    vkt_ctx *ctx = p->ctx;
    uint32_t buffers = 0, texels = 0;
    for (size_t i = 0; i < p->lowered.n; i++)
        for (uint32_t b = 0; b < vkt_shader_bindings(&p->lowered.list[i]); b++)
            if (p->lowered.list[i].bind[b].t.id) (*(p->pipelines[i]->texels >> b & 1 ? &texels : &buffers))++;
    const VkDescriptorPoolSize sizes[2] = { { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, p->sides * buffers + 1 },
                                            { VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, p->sides * texels + 1 } };
    const VkDescriptorPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                              .maxSets = p->sides * (uint32_t)p->lowered.n,
                                              .poolSizeCount = 2,
                                              .pPoolSizes = sizes };
    const VkResult r = ctx->vk.CreateDescriptorPool(ctx->device, &info, ctx->allocation, &p->pool);
    if (r != VK_SUCCESS) p->pool = VK_NULL_HANDLE;
    VKT_TRY(vkt_vk_check(ctx, r, "vkCreateDescriptorPool"));
    p->views = vkt_alloc_array(&ctx->host, p->sides * texels + 1, sizeof *p->views);
    return p->views ? VKT_OK : vkt_fail_nomem(&ctx->host, "buffer views", p->sides * texels * sizeof *p->views);
}

/* Creates a buffer view with the format that shaders/lib/load.glsl declares. */
static vkt_result make_view(vkt_program *p, vkt_range r, VkBufferView *out)
{
    vkt_ctx *ctx = p->ctx;
    const VkBufferViewCreateInfo info = { .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                          .buffer = r.buffer->handle,
                                          .format = VK_FORMAT_R32G32B32A32_UINT,
                                          .offset = r.buffer->base_bytes + r.offset_bytes,
                                          .range = r.bytes };
    VKT_TRY(
        vkt_vk_check(ctx, ctx->vk.CreateBufferView(ctx->device, &info, ctx->allocation, out), "vkCreateBufferView"));
    p->views[p->n_views++] = *out;
    return VKT_OK;
}

static vkt_result write_set(vkt_program *p, uint32_t side, size_t i)
{
    vkt_ctx *ctx = p->ctx;
    const vkt_dispatch *d = &p->lowered.list[i];
    const VkDescriptorSetAllocateInfo alloc = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                .descriptorPool = p->pool,
                                                .descriptorSetCount = 1,
                                                .pSetLayouts = &p->pipelines[i]->set_layout };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.AllocateDescriptorSets(ctx->device, &alloc, &p->sets[side][i]),
                         "vkAllocateDescriptorSets"));
    VkWriteDescriptorSet writes[VKT_MAX_BINDINGS];
    VkDescriptorBufferInfo infos[VKT_MAX_BINDINGS];
    VkBufferView views[VKT_MAX_BINDINGS];
    uint32_t n = 0;
    for (uint32_t b = 0; b < vkt_shader_bindings(d); b++) {
        if (!d->bind[b].t.id) continue;
        const vkt_range r = vkt_range_of(p, &d->bind[b], side);
        const bool texel = p->pipelines[i]->texels >> b & 1;
        if (texel) VKT_TRY(make_view(p, r, &views[n]));
        infos[n] = (VkDescriptorBufferInfo){ r.buffer->handle, r.buffer->base_bytes + r.offset_bytes, r.bytes };
        writes[n] = (VkWriteDescriptorSet){ .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = p->sets[side][i],
                                            .dstBinding = b,
                                            .descriptorCount = 1,
                                            .descriptorType = texel ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER
                                                                    : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &infos[n],
                                            .pTexelBufferView = &views[n] };
        n++;
    }
    ctx->vk.UpdateDescriptorSets(ctx->device, n, writes, 0, NULL);
    return VKT_OK;
}

/* Records a barrier between dispatches: later dispatches wait for earlier dispatches and see their writes.
 * `conditional`: the barrier also orders the indirect reads, by which conditional dispatches get their numbers of
 * work groups. */
static void barrier(vkt_ctx *ctx, VkCommandBuffer cmd, bool conditional)
{
    const VkPipelineStageFlags2 counts = conditional ? VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT : 0;
    const VkAccessFlags2 reads = conditional ? VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT : 0;
    const VkMemoryBarrier2 m = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                 .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | counts,
                                 .srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT,
                                 .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | counts,
                                 .dstAccessMask = VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT | reads };
    const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = &m };
    ctx->vk.CmdPipelineBarrier2(cmd, &info);
}

static void record_dispatch(vkt_program *p, VkCommandBuffer cmd, uint32_t side, size_t i, bool all)
{
    vkt_ctx *ctx = p->ctx;
    const vkt_dispatch *d = &p->lowered.list[i];
    const vkt_pipeline *pipe = p->pipelines[i];
    char label[96];
    snprintf(label, sizeof label, "%s.%u %s", p->g->nodes[d->node]->op->name, d->node, vkt_dispatch_name(d));
    vkt_label_begin(ctx, cmd, label);
    ctx->vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipe->handle);
    ctx->vk.CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipe->layout, 0, 1, &p->sets[side][i], 0, NULL);
    if (d->push_bytes)
        ctx->vk.CmdPushConstants(cmd, pipe->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d->push_bytes, d->push);
    if (d->conditional && !all) {
        const vkt_range r = vkt_range_of(p, &d->bind[d->n_bind - 1], side);
        ctx->vk.CmdDispatchIndirect(cmd, r.buffer->handle, r.buffer->base_bytes + r.offset_bytes + 4ull * d->counts);
    } else {
        ctx->vk.CmdDispatch(cmd, d->groups[0], d->groups[1], d->groups[2]);
    }
    vkt_label_end(ctx, cmd);
}

/* Returns whether a dispatch between barrier k - 1 and barrier k + 1 is conditional. */
static bool has_conditional(const vkt_program *p, size_t k)
{
    const vkt_plan *plan = &p->plan;
    const uint32_t first = k ? plan->barriers[k - 1].before : 0;
    const uint32_t end = k + 1 < plan->n_barriers ? plan->barriers[k + 1].before : (uint32_t)p->lowered.n;
    for (uint32_t i = first; i < end; i++)
        if (p->lowered.list[i].conditional) return true;
    return false;
}

void vkt_record_range(vkt_program *p, VkCommandBuffer cmd, uint32_t side, uint32_t first, uint32_t end,
                      vkt_timer *timer, bool all)
{
    const vkt_plan *plan = &p->plan;
    size_t next = 0;
    while (next < plan->n_barriers && plan->barriers[next].before <= first) next++;
    for (uint32_t i = first; i < end; i++) {
        if (next < plan->n_barriers && plan->barriers[next].before == i) {
            barrier(p->ctx, cmd, has_conditional(p, next));
            next++;
        }
        if (timer) vkt_timer_mark(p->ctx, cmd, timer, 2 * i);
        record_dispatch(p, cmd, side, i, all);
        if (timer) vkt_timer_mark(p->ctx, cmd, timer, 2 * i + 1);
    }
}

static bool keeps_any(const vkt_graph *g)
{
    for (size_t i = 1; i < g->n_values; i++)
        if (g->values[i].keep) return true;
    return false;
}

vkt_result vkt_bind_all(vkt_program *p)
{
    vkt_ctx *ctx = p->ctx;
    const size_t n = p->lowered.n;
    if (n == 0 && keeps_any(p->g)) return VKT_OK; /* a kept value may be a reshape of an input, without a dispatch */
    if (n == 0 || n > UINT32_MAX / 2) return vkt_fail(&ctx->host, VKT_E_ARG, "program: the graph computes nothing");
    p->pipelines = vkt_alloc_array(&ctx->host, n, sizeof *p->pipelines);
    if (!p->pipelines) return vkt_fail_nomem(&ctx->host, "a program", n * sizeof(void *));
    for (uint32_t side = 0; side < p->sides; side++) {
        p->sets[side] = vkt_alloc_array(&ctx->host, n, sizeof *p->sets[0]);
        if (!p->sets[side]) return vkt_fail_nomem(&ctx->host, "a program", n * sizeof *p->sets[0]);
    }
    VKT_TRY(make_pipelines(p));
    VKT_TRY(make_pool(p));
    for (uint32_t side = 0; side < p->sides; side++)
        for (size_t i = 0; i < n; i++) VKT_TRY(write_set(p, side, i));
    return VKT_OK;
}

void vkt_bind_free(vkt_program *p)
{
    vkt_ctx *ctx = p->ctx;
    for (size_t i = 0; i < p->n_views; i++) VKT_DROP(ctx, BufferView, p->views[i]);
    VKT_DROP(ctx, DescriptorPool, p->pool);
    for (size_t i = 0; i < p->n_shaders; i++) vkt_shader_pipeline_destroy(ctx, &p->shaders[i]);
    vkt_free(&ctx->host, p->shaders);
    vkt_free(&ctx->host, p->views);
    for (int side = 0; side < 2; side++) vkt_free(&ctx->host, p->sets[side]);
    vkt_free(&ctx->host, p->pipelines);
}
