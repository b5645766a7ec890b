/* kernel/self_test.c - runs shaders/kernel/self_test.comp on the device, and compares its results with the host's. */
#include "base/philox.h"
#include "kernel/kernel.h"
#include "kernel/wide.h"

#include "abi/abi.h"
#include "abi/self_test.abi.h"

/* Each element of x is a whole number from 0 to 31. The largest results are the sum of 64 products (ITERATIONS) of two
 * elements each, plus the sum of up to 128 elements (MAX_LANES): at most 64 * 31^2 + 128 * 31, which is below 2^24. So
 * all results are exact in f32. */
enum { N = 1024, ITERATIONS = 64, GROUPS = 8, MAX_LANES = 128 };
static const float untouched = -1;

/* ---- expected results ---- */

typedef struct vec4 {
    float v[4];
} vec4;

/* The values that a lane computes before it reads the sums of other lanes. */
typedef struct lane_state {
    vec4 sum[4], fetched, apart;
} lane_state;

static vec4 plus(vec4 a, vec4 b)
{
    for (int i = 0; i < 4; i++) a.v[i] += b.v[i];
    return a;
}

static void fill_x(vec4 *x)
{
    for (uint32_t i = 0; i < N; i++) {
        const vkt_philox r = vkt_philox4x32((vkt_philox){ { i, 0, 0, VKT_STREAM_TEST } }, 0);
        for (int k = 0; k < 4; k++) x[i].v[k] = (float)(r.w[k] >> 27);
    }
}

static lane_state expect_lane(const vec4 *x, uint32_t group, uint32_t lane)
{
    lane_state s = { 0 };
    for (uint32_t t = 0; t < ITERATIONS; t++) {
        s.fetched = plus(s.fetched, x[(5 * lane + 11 * group + (lane + 1) * t) % N]);
        const vec4 b = x[(3 * lane + 7 * group + 2 * t) % N];
        for (uint32_t m = 0; m < 4; m++) {
            const uint32_t from = lane ^ m;
            const float a = x[(5 * from + 11 * group + (from + 1) * t) % N].v[m];
            for (int i = 0; i < 4; i++) s.sum[m].v[i] += a * b.v[i];
        }
    }
    if (lane & 1) s.apart = x[lane * lane % N];
    for (uint32_t i = 0; i <= lane && !(lane & 1); i++) s.apart = plus(s.apart, x[(group + i) % N]);
    return s;
}

/* Returns how many of a work group's numbers in y are wrong. */
static uint32_t count_wrong(const vec4 *x, uint32_t group, uint32_t lanes, const vec4 *y)
{
    lane_state s[MAX_LANES];
    uint32_t wrong = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) s[lane] = expect_lane(x, group, lane);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        const vec4 next = s[(lane + 1) % lanes].sum[0], none = { { untouched, untouched, untouched, untouched } };
        const vec4 want[SELF_TEST_PARTS] = {
            s[lane].sum[0], s[lane].sum[1],  s[lane].sum[2],
            s[lane].sum[3], s[lane].apart,   next,
            s[2].sum[1],    s[lane].fetched, lane % 3 == 0 ? plus(s[lane].apart, next) : none
        };
        const vec4 *got = y + (group * lanes + (lane ^ 1)) * SELF_TEST_PARTS;
        for (uint32_t i = 0; i < SELF_TEST_PARTS * 4; i++) wrong += !(got[i / 4].v[i % 4] == want[i / 4].v[i % 4]);
    }
    return wrong;
}

/* ---- the run on the device ---- */

typedef struct run {
    const vkt_pipeline *p;
    vkt_buffer *x, *y;
    VkBufferView fetched, texels; /* views of x; `texels` is for the texel variant */
    VkDescriptorPool pool;
    VkDescriptorSet set;
    vkt_commands commands;
} run;

static vkt_result make_view(vkt_ctx *ctx, const vkt_buffer *b, VkFormat format, VkBufferView *out)
{
    const VkBufferViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = b->handle, .format = format, .range = b->bytes
    };
    const VkResult r = ctx->vk.CreateBufferView(ctx->device, &info, ctx->allocation, out);
    if (r != VK_SUCCESS) *out = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreateBufferView");
}

static vkt_result make_pool(vkt_ctx *ctx, run *r)
{
    const VkDescriptorPoolSize sizes[] = { { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 },
                                           { VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 1 },
                                           { VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 1 } };
    const VkDescriptorPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                              .maxSets = 1,
                                              .poolSizeCount = VKT_COUNT(sizes),
                                              .pPoolSizes = sizes };
    const VkResult made = ctx->vk.CreateDescriptorPool(ctx->device, &pool, ctx->allocation, &r->pool);
    if (made != VK_SUCCESS) r->pool = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, made, "vkCreateDescriptorPool");
}

static vkt_result make_set(vkt_ctx *ctx, run *r)
{
    const VkDescriptorSetAllocateInfo one = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = r->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &r->p->set_layout };
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.AllocateDescriptorSets(ctx->device, &one, &r->set), "vkAllocateDescriptorSets"));
    const VkDescriptorBufferInfo x = { r->x->handle, 0, r->x->bytes }, y = { r->y->handle, 0, r->y->bytes };
    VkWriteDescriptorSet writes[] = {
        { .dstBinding = SELF_TEST_FETCHED,
          .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
          .pTexelBufferView = &r->fetched },
        { .dstBinding = SELF_TEST_X,
          .descriptorType = r->p->texels ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
          .pTexelBufferView = &r->texels,
          .pBufferInfo = &x },
        { .dstBinding = SELF_TEST_Y, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &y },
    };
    for (size_t i = 0; i < VKT_COUNT(writes); i++) {
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = r->set;
        writes[i].descriptorCount = 1;
    }
    ctx->vk.UpdateDescriptorSets(ctx->device, VKT_COUNT(writes), writes, 0, NULL);
    return VKT_OK;
}

/* Makes buffers in memory that the host maps, so that nothing is copied. */
static vkt_result make_buffers(vkt_ctx *ctx, run *r)
{
    const uint64_t n = (uint64_t)GROUPS * ctx->limits.subgroup_size * SELF_TEST_PARTS;
    VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_UPLOAD, VKT_MEM_OTHER, N * sizeof(vec4), "self-test x", &r->x));
    VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_READBACK, VKT_MEM_OTHER, n * sizeof(vec4), "self-test y", &r->y));
    fill_x(r->x->mapped);
    float *y = r->y->mapped;
    for (uint64_t i = 0; i < n * 4; i++) y[i] = untouched;
    return VKT_OK;
}

static vkt_result dispatch(vkt_ctx *ctx, run *r)
{
    const uint32_t lanes = ctx->limits.subgroup_size;
    const vkt_self_test_push push = { .n = N, .iterations = ITERATIONS };
    uint64_t value;
    VKT_TRY(vkt_pipeline_get(ctx, VKT_K_SELF_TEST, ctx->limits.max_texel_elements != 0, 0, &lanes, 1, &r->p));
    VKT_TRY(make_buffers(ctx, r));
    VKT_TRY(make_view(ctx, r->x, VK_FORMAT_R32G32B32A32_SFLOAT, &r->fetched));
    if (r->p->texels) VKT_TRY(make_view(ctx, r->x, VK_FORMAT_R32G32B32A32_UINT, &r->texels));
    VKT_TRY(make_pool(ctx, r));
    VKT_TRY(make_set(ctx, r));
    VKT_TRY(vkt_commands_create(ctx, "self-test", &r->commands));
    VKT_TRY(vkt_commands_begin(ctx, &r->commands, false));
    const VkCommandBuffer cmd = r->commands.cmd;
    ctx->vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->p->handle);
    ctx->vk.CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->p->layout, 0, 1, &r->set, 0, NULL);
    ctx->vk.CmdPushConstants(cmd, r->p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    ctx->vk.CmdDispatch(cmd, GROUPS, 1, 1);
    VKT_TRY(vkt_commands_end(ctx, &r->commands));
    VKT_TRY(vkt_submit(ctx, cmd, "self-test", &value));
    return vkt_wait(ctx, value);
}

vkt_result vkt_self_test(vkt_ctx *ctx, uint32_t *wrong)
{
    run r = { 0 };
    *wrong = 0;
    const vkt_result result = dispatch(ctx, &r);
    for (uint32_t g = 0; g < GROUPS && result == VKT_OK; g++)
        *wrong += count_wrong(r.x->mapped, g, ctx->limits.subgroup_size, r.y->mapped);
    vkt_commands_destroy(ctx, &r.commands);
    if (r.pool) ctx->vk.DestroyDescriptorPool(ctx->device, r.pool, ctx->allocation);
    if (r.fetched) ctx->vk.DestroyBufferView(ctx->device, r.fetched, ctx->allocation);
    if (r.texels) ctx->vk.DestroyBufferView(ctx->device, r.texels, ctx->allocation);
    vkt_buffer_destroy(ctx, &r.x);
    vkt_buffer_destroy(ctx, &r.y);
    return result;
}
