/* record/texture.c - copies between the images of an application and the arrays that are tied to them. */
#include "record/texture.h"

static const char *const names[] = { "reading a texture", "writing a texture" };

#define LANES 64u

/* Returns how many numbers the array has for each pixel: 1 to 4. Returns 0 if the array is not f32, if its shape does
 * not fit the rectangle, or if it has more than 4 numbers for each pixel. */
static uint32_t channels_of(const vkt_texture_params *p)
{
    const vkt_shape s = p->array->shape;
    const uint32_t channels = s.rank ? s.dim[s.rank - 1] : 0;
    const bool flat = s.rank == 2 && s.dim[0] == (uint64_t)p->width * p->height;
    const bool tall = s.rank == 3 && s.dim[0] == p->height && s.dim[1] == p->width;
    return p->array->dtype == VKT_F32 && (flat || tall) && channels <= 4 ? channels : 0;
}

/* Returns whether the library can read an image in this layout. If `sampled` is false, it reads the image as a storage
 * image. */
static bool is_readable(VkImageLayout layout, bool sampled, bool depth)
{
    if (layout == VK_IMAGE_LAYOUT_GENERAL) return true;
    if (!sampled) return false;
    return layout == VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL || layout == VK_IMAGE_LAYOUT_READ_ONLY_OPTIMAL ||
           (depth && (layout == VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL ||
                      layout == VK_IMAGE_LAYOUT_DEPTH_READ_ONLY_OPTIMAL ||
                      layout == VK_IMAGE_LAYOUT_DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL));
}

static vkt_result check_array(vkt_ctx *ctx, const vkt_texture_params *p, bool depth)
{
    const vkt_host *h = &ctx->host;
    const uint32_t channels = channels_of(p);
    char shape[80];
    if (channels == 0 || (uint64_t)p->width * p->height > UINT32_MAX)
        return vkt_fail(h, VKT_E_ARG, "texture: %u x %u pixels want f32 (%u,%u,C) or (%llu,C), C 1 to 4, got %s %s",
                        p->width, p->height, p->height, p->width, (unsigned long long)p->width * p->height,
                        vkt_dtype_name(p->array->dtype), vkt_shape_text(p->array->shape, shape));
    if (p->x > INT32_MAX - p->width || p->y > INT32_MAX - p->height)
        return vkt_fail(h, VKT_E_ARG, "texture: no image has the pixels (%u,%u) to (%llu,%llu)", p->x, p->y,
                        (unsigned long long)p->x + p->width, (unsigned long long)p->y + p->height);
    if (depth && channels != 1)
        return vkt_fail(h, VKT_E_ARG, "texture: depth has one channel: want an array with C = 1, got %u", channels);
    if (p->array->bytes > ctx->limits.max_storage_range_bytes)
        return vkt_fail(h, VKT_E_UNSUPPORTED, "texture: an array of %llu bytes, and this device binds at most %llu",
                        (unsigned long long)p->array->bytes, (unsigned long long)ctx->limits.max_storage_range_bytes);
    return VKT_OK;
}

static vkt_result check(vkt_ctx *ctx, const vkt_texture_params *p)
{
    const vkt_host *h = &ctx->host;
    const bool sampled = p->usage & VK_IMAGE_USAGE_SAMPLED_BIT, storage = p->usage & VK_IMAGE_USAGE_STORAGE_BIT;
    if (!p->image || !p->array || p->array->ctx != ctx)
        return vkt_fail(h, VKT_E_ARG, "texture: want an image, and an array of this context");
    const vkt_texture_format *f = vkt_texture_format_find(p->format);
    if (!f)
        return vkt_fail(h, VKT_E_ARG, "texture: no kernel supports VkFormat %d; want one of %s", p->format,
                        vkt_texture_format_names());
    const bool reads = storage && vkt_texture_kernel(ctx, f, false),
               writes = storage && vkt_texture_kernel(ctx, f, true);
    if (!sampled && !reads && !writes)
        return vkt_fail(h, VKT_E_ARG,
                        storage
                            ? "texture: this device has no storage images of %s for the library: want the usage SAMPLED"
                            : "texture: an image of %s wants the usage SAMPLED or STORAGE",
                        f->name);
    const bool depth = f->aspects & VK_IMAGE_ASPECT_DEPTH_BIT;
    if (!is_readable(p->layout, sampled, depth))
        return vkt_fail(h, VKT_E_ARG,
                        "texture: want the layout GENERAL, or with the usage SAMPLED %sSHADER_READ_ONLY_OPTIMAL or "
                        "READ_ONLY_OPTIMAL, got %d",
                        depth ? "DEPTH_STENCIL_READ_ONLY_OPTIMAL, DEPTH_READ_ONLY_OPTIMAL, "
                                "DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL, "
                              : "",
                        p->layout);
    return check_array(ctx, p, depth);
}

/* ---- creation ---- */

static vkt_result make_view(vkt_texture *t, const vkt_texture_params *p, bool storage)
{
    const VkImageViewUsageCreateInfo usage = { .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_USAGE_CREATE_INFO,
                                               .usage = p->usage & (VK_IMAGE_USAGE_SAMPLED_BIT |
                                                                    (storage ? VK_IMAGE_USAGE_STORAGE_BIT : 0u)) };
    const VkImageAspectFlags depth = vkt_texture_format_find(p->format)->aspects & VK_IMAGE_ASPECT_DEPTH_BIT;
    const VkImageViewCreateInfo info = { .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                         .pNext = &usage,
                                         .image = p->image,
                                         .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                         .format = p->format,
                                         .subresourceRange = { depth ? depth : VK_IMAGE_ASPECT_COLOR_BIT, p->level, 1,
                                                               p->layer, 1 } };
    const VkResult r = t->ctx->vk.CreateImageView(t->ctx->device, &info, t->ctx->allocation, &t->view);
    if (r != VK_SUCCESS) t->view = VK_NULL_HANDLE;
    return vkt_vk_check(t->ctx, r, "vkCreateImageView");
}

static vkt_result make_pool(vkt_texture *t)
{
    const VkDescriptorPoolSize sizes[] = { { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 },
                                           { VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 2 },
                                           { VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 1 } };
    const VkDescriptorPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                              .maxSets = 2,
                                              .poolSizeCount = VKT_COUNT(sizes),
                                              .pPoolSizes = sizes };
    const VkResult r = t->ctx->vk.CreateDescriptorPool(t->ctx->device, &info, t->ctx->allocation, &t->pool);
    if (r != VK_SUCCESS) t->pool = VK_NULL_HANDLE;
    return vkt_vk_check(t->ctx, r, "vkCreateDescriptorPool");
}

static vkt_result make_direction(vkt_texture *t, vkt_kernel_id kernel, vkt_texture_copies *w)
{
    vkt_ctx *ctx = t->ctx;
    const uint32_t spec[] = { VKT_MIN(LANES, ctx->limits.max_workgroup_lanes) };
    const vkt_pipeline *pipeline;
    VKT_TRY(vkt_pipeline_get(ctx, kernel, false, 0, spec, 1, &pipeline));
    const VkDescriptorSetAllocateInfo alloc = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                .descriptorPool = t->pool,
                                                .descriptorSetCount = 1,
                                                .pSetLayouts = &pipeline->set_layout };
    VKT_TRY(
        vkt_vk_check(ctx, ctx->vk.AllocateDescriptorSets(ctx->device, &alloc, &w->set), "vkAllocateDescriptorSets"));
    const bool sampled = vkt_kernel_get(kernel)->flags & VKT_KF_SAMPLED;
    const VkDescriptorImageInfo image = { .imageView = t->view, .imageLayout = t->layout };
    const vkt_buffer *b = t->array->buffer;
    const VkDescriptorBufferInfo buffer = { b->handle, b->base_bytes, vkt_round_up(t->array->bytes, 16) };
    const VkWriteDescriptorSet writes[] = {
        { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
          .dstSet = w->set,
          .dstBinding = TEXTURE_IMAGE,
          .descriptorCount = 1,
          .descriptorType = sampled ? VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
          .pImageInfo = &image },
        { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
          .dstSet = w->set,
          .dstBinding = TEXTURE_ARRAY,
          .descriptorCount = 1,
          .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
          .pBufferInfo = &buffer },
    };
    ctx->vk.UpdateDescriptorSets(ctx->device, VKT_COUNT(writes), writes, 0, NULL);
    w->pipeline = pipeline;
    return VKT_OK;
}

static vkt_result build(vkt_texture *t, const vkt_texture_params *p)
{
    vkt_ctx *ctx = t->ctx;
    const bool sampled = p->usage & VK_IMAGE_USAGE_SAMPLED_BIT, storage = p->usage & VK_IMAGE_USAGE_STORAGE_BIT;
    const vkt_texture_format *f = vkt_texture_format_find(p->format);
    const vkt_kernel_id write = storage ? vkt_texture_kernel(ctx, f, true) : VKT_K_NONE,
                        read = sampled   ? VKT_K_TEXTURE_READ_SAMPLED
                               : storage ? vkt_texture_kernel(ctx, f, false)
                                         : VKT_K_NONE;
    t->range = (VkImageSubresourceRange){ f->aspects, p->level, 1, p->layer, 1 };
    t->push = (vkt_texture_push){
        .left = p->x, .top = p->y, .width = p->width, .pixels = p->width * p->height, .channels = channels_of(p)
    };
    VKT_TRY(make_view(t, p, write || (read && !sampled)));
    VKT_TRY(make_pool(t));
    if (read) VKT_TRY(make_direction(t, read, &t->directions[VKT_TEXTURE_READ]));
    if (!write || p->layout != VK_IMAGE_LAYOUT_GENERAL) return VKT_OK;
    return make_direction(t, write, &t->directions[VKT_TEXTURE_WRITE]);
}

vkt_result vkt_texture_adopt(vkt_ctx *ctx, const vkt_texture_params *params, vkt_texture **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, out);
    VKT_WANT(&ctx->host, params);
    *out = NULL;
    VKT_TRY(vkt_lost_check(ctx, "adopting an image"));
    VKT_TRY(check(ctx, params));
    vkt_texture *t = vkt_alloc(&ctx->host, sizeof *t);
    if (!t) return vkt_fail_nomem(&ctx->host, "a texture", sizeof *t);
    *t = (vkt_texture){ .ctx = ctx, .array = params->array, .image = params->image, .layout = params->layout };
    const vkt_result r = build(t, params);
    if (r == VKT_OK)
        *out = t;
    else
        vkt_texture_destroy(&t);
    return r;
}

void vkt_texture_slices_free(vkt_ctx *ctx, vkt_texture_slices *s)
{
    vkt_series_destroy(ctx, &s->series);
    if (s->timer.pool) vkt_timer_destroy(ctx, &s->timer);
    if (s->times) vkt_buffer_destroy(ctx, &s->times);
    vkt_free(&ctx->host, s->values);
    *s = (vkt_texture_slices){ .next = 0 };
}

void vkt_texture_destroy(vkt_texture **pt)
{
    vkt_texture *t = pt ? *pt : NULL;
    if (!t) return;
    vkt_ctx *ctx = t->ctx;
    vkt_settle(ctx);
    for (int i = 0; i < 2; i++) {
        vkt_commands_destroy(ctx, &t->directions[i].commands);
        vkt_texture_slices_free(ctx, &t->directions[i].slices);
        vkt_commands_destroy(ctx, &t->handover[i].commands);
    }
    VKT_DROP(ctx, DescriptorPool, t->pool);
    VKT_DROP(ctx, ImageView, t->view);
    vkt_free(&ctx->host, t);
    *pt = NULL;
}

/* ---- use ---- */

void vkt_texture_dispatch(vkt_texture *t, int which, VkCommandBuffer cmd, uint32_t first, uint32_t pixels)
{
    vkt_ctx *ctx = t->ctx;
    const vkt_texture_copies *w = &t->directions[which];
    const uint32_t lanes = VKT_MIN(LANES, ctx->limits.max_workgroup_lanes);
    const uint32_t groups = VKT_MIN(pixels / lanes + (pixels % lanes != 0), ctx->limits.max_groups);
    vkt_texture_push push = t->push;
    push.first = first;
    push.pixels = pixels;
    push.lanes = groups * lanes;
    ctx->vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, w->pipeline->handle);
    ctx->vk.CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, w->pipeline->layout, 0, 1, &w->set, 0, NULL);
    ctx->vk.CmdPushConstants(cmd, w->pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    ctx->vk.CmdDispatch(cmd, groups, 1, 1);
}

vkt_result vkt_texture_check(const vkt_texture *t, int which)
{
    if (t->directions[which].pipeline) return VKT_OK;
    return vkt_fail(&t->ctx->host, VKT_E_STATE,
                    "%s: want the usage STORAGE, the layout GENERAL and a format that this device has for storage "
                    "images",
                    names[which]);
}

static vkt_result record(vkt_texture *t, int which, VkCommandBuffer cmd)
{
    VKT_TRY(vkt_texture_check(t, which));
    if (!cmd) return vkt_fail(&t->ctx->host, VKT_E_ARG, "%s: want a command buffer", names[which]);
    vkt_texture_dispatch(t, which, cmd, 0, t->push.pixels);
    return VKT_OK;
}

/* Records the commands of one direction. They stay valid for all later uses. */
static vkt_result prepare(vkt_texture *t, int which, vkt_commands *c)
{
    VKT_TRY(vkt_commands_create(t->ctx, names[which], c));
    VKT_TRY(vkt_commands_begin(t->ctx, c, true));
    const vkt_result r = record(t, which, c->cmd);
    const vkt_result ended = vkt_commands_end(t->ctx, c);
    return r != VKT_OK ? r : ended;
}

static vkt_result submit(vkt_texture *t, int which, const vkt_sync *sync)
{
    vkt_commands *c = &t->directions[which].commands;
    uint64_t value;
    if (!c->pool) {
        const vkt_result r = prepare(t, which, c);
        if (r != VKT_OK) {
            vkt_commands_destroy(t->ctx, c);
            return r;
        }
    }
    return vkt_submit_synced(t->ctx, c->cmd, sync, names[which], &value);
}

vkt_result vkt_texture_read(vkt_texture *t, const vkt_sync *sync)
{
    VKT_WANT(NULL, t);
    return submit(t, VKT_TEXTURE_READ, sync);
}

vkt_result vkt_texture_write(vkt_texture *t, const vkt_sync *sync)
{
    VKT_WANT(NULL, t);
    return submit(t, VKT_TEXTURE_WRITE, sync);
}

vkt_result vkt_texture_record_read(vkt_texture *t, VkCommandBuffer cmd)
{
    VKT_WANT(NULL, t);
    return record(t, VKT_TEXTURE_READ, cmd);
}

vkt_result vkt_texture_record_write(vkt_texture *t, VkCommandBuffer cmd)
{
    VKT_WANT(NULL, t);
    return record(t, VKT_TEXTURE_WRITE, cmd);
}

/* ---- ownership ---- */

/* Records one half of a transfer of ownership with a change of layout. The application records the other half, with the
 * same families and layouts. If `other` is the library's own family, there is no other half: only the layout
 * changes. */
static vkt_result record_handover(vkt_texture *t, bool acquire, uint32_t other, VkImageLayout layout, vkt_commands *c)
{
    vkt_ctx *ctx = t->ctx;
    const bool own = other == ctx->compute.family;
    const VkPipelineStageFlags2 all = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                compute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    const VkAccessFlags2 writes = t->directions[VKT_TEXTURE_WRITE].pipeline ? VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT : 0;
    const VkAccessFlags2 uses = writes | VK_ACCESS_2_SHADER_READ_BIT;
    const VkAccessFlags2 theirs = own ? VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT : VK_ACCESS_2_NONE;
    const VkImageMemoryBarrier2 b = { .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
                                      .srcStageMask = acquire ? all : compute,
                                      .srcAccessMask = acquire ? theirs & VK_ACCESS_2_MEMORY_WRITE_BIT : writes,
                                      .dstStageMask = acquire ? compute : all,
                                      .dstAccessMask = acquire ? uses : theirs,
                                      .oldLayout = acquire ? layout : t->layout,
                                      .newLayout = acquire ? t->layout : layout,
                                      .srcQueueFamilyIndex = acquire ? other : ctx->compute.family,
                                      .dstQueueFamilyIndex = acquire ? ctx->compute.family : other,
                                      .image = t->image,
                                      .subresourceRange = t->range };
    if (!c->pool) VKT_TRY(vkt_commands_create(ctx, "hand-over", c));
    VKT_TRY(vkt_commands_begin(ctx, c, true));
    ctx->vk.CmdPipelineBarrier2(c->cmd, &(VkDependencyInfo){ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                             .imageMemoryBarrierCount = 1,
                                                             .pImageMemoryBarriers = &b });
    return vkt_commands_end(ctx, c);
}

static vkt_result hand_over(vkt_texture *t, bool acquire, uint32_t other, VkImageLayout layout, const vkt_sync *sync)
{
    vkt_handover *h = &t->handover[acquire];
    if (!acquire && (layout == VK_IMAGE_LAYOUT_UNDEFINED || layout == VK_IMAGE_LAYOUT_PREINITIALIZED))
        return vkt_fail(&t->ctx->host, VKT_E_ARG, "hand-over: an image cannot get the layout %d", layout);
    if (!h->commands.cmd || h->family != other || h->layout != (uint32_t)layout) {
        VKT_TRY(vkt_check_other_family(t->ctx, other));
        VKT_TRY(vkt_wait(t->ctx, h->value)); /* the old commands must be done before this handover is recorded anew */
        const vkt_result r = record_handover(t, acquire, other, layout, &h->commands);
        if (r != VKT_OK) {
            vkt_commands_destroy(t->ctx, &h->commands);
            return r;
        }
        h->family = other;
        h->layout = (uint32_t)layout;
    }
    return vkt_submit_synced(t->ctx, h->commands.cmd, sync, acquire ? "acquire" : "release", &h->value);
}

vkt_result vkt_texture_acquire(vkt_texture *t, uint32_t from_family, VkImageLayout from_layout, const vkt_sync *sync)
{
    VKT_WANT(NULL, t);
    return hand_over(t, true, from_family, from_layout, sync);
}

vkt_result vkt_texture_release(vkt_texture *t, uint32_t to_family, VkImageLayout to_layout, const vkt_sync *sync)
{
    VKT_WANT(NULL, t);
    return hand_over(t, false, to_family, to_layout, sync);
}
