/* Tests the pipelines of kernels.def and tools.def. Proves that host and device generate the same random numbers. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "kernel/kernel.h"
#include "tools/tools.h"

#include "abi/abi.h"
#include "abi/philox_test.abi.h"

static vkt_buffer *make(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_buffer *b = NULL;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_DATA, bytes, "data", &b), VKT_OK);
    return b;
}

/* The device generates the same random bits as the host, with each of three work group sizes. */
static void device_and_host_draw_the_same_numbers(void **state)
{
    (void)state;
    enum { N = 10007 };
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *out = make(ctx, N * 16);
    uint32_t *got = malloc(N * 16);
    assert_non_null(got);
    const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3 };
    const VkDescriptorPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 3, .poolSizeCount = 1, .pPoolSizes = &size
    };
    VkDescriptorPool pool;
    assert_int_equal(ctx->vk.CreateDescriptorPool(ctx->device, &pool_info, NULL, &pool), VK_SUCCESS);
    const uint32_t lanes[] = { 1, 32, 128 };
    for (size_t i = 0; i < VKT_COUNT(lanes); i++) {
        const vkt_pipeline *p, *again;
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, true, 0, &lanes[i], 1, &p), VKT_OK);
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, &lanes[i], 1, &again), VKT_OK);
        assert_ptr_equal(p, again); /* the entry has no texel variant */
        assert_int_equal(p->texels, 0);
        const VkDescriptorSetAllocateInfo set_info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                       .descriptorPool = pool,
                                                       .descriptorSetCount = 1,
                                                       .pSetLayouts = &p->set_layout };
        VkDescriptorSet set;
        assert_int_equal(ctx->vk.AllocateDescriptorSets(ctx->device, &set_info, &set), VK_SUCCESS);
        const VkDescriptorBufferInfo whole = { out->handle, 0, VK_WHOLE_SIZE };
        const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .dstSet = set,
                                             .dstBinding = PHILOX_OUT,
                                             .descriptorCount = 1,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                             .pBufferInfo = &whole };
        ctx->vk.UpdateDescriptorSets(ctx->device, 1, &write, 0, NULL);
        const uint64_t key = 0x0123456789abcdefull + i;
        const vkt_philox_test_push push = { N, 11, 22, VKT_STREAM_TEST, (uint32_t)key, (uint32_t)(key >> 32) };
        vkt_commands c;
        assert_int_equal(vkt_commands_create(ctx, "philox", &c), VKT_OK);
        assert_int_equal(vkt_commands_begin(ctx, &c, false), VKT_OK);
        ctx->vk.CmdBindPipeline(c.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
        ctx->vk.CmdBindDescriptorSets(c.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0, NULL);
        ctx->vk.CmdPushConstants(c.cmd, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
        ctx->vk.CmdDispatch(c.cmd, 5, 1, 1);
        assert_int_equal(vkt_commands_end(ctx, &c), VKT_OK);
        assert_int_equal(vkt_submit(ctx, c.cmd, "philox", NULL), VKT_OK);
        assert_int_equal(vkt_readback(ctx, out, 0, got, N * 16), VKT_OK);
        for (uint32_t j = 0; j < N; j++) {
            const vkt_philox want = vkt_philox4x32((vkt_philox){ { j, 11, 22, VKT_STREAM_TEST } }, key);
            assert_memory_equal(&got[4 * j], want.w, 16);
        }
        vkt_commands_destroy(ctx, &c);
    }
    ctx->vk.DestroyDescriptorPool(ctx->device, pool, NULL);
    free(got);
    vkt_buffer_destroy(ctx, &out);
    vkt_ctx_destroy(&ctx);
}

static void pipelines_are_made_once(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_pipeline *first[100], *p;
    const uint32_t n = VKT_MIN(100u, ctx->limits.max_workgroup_lanes);
    for (uint32_t i = 0; i < n; i++) { /* the table of pipelines grows; the pointers in `first` must stay valid */
        const uint32_t spec[] = { i + 1 };
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &first[i]), VKT_OK);
    }
    const uint64_t allocs = ctx->counters.host_allocs;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t spec[] = { i + 1 };
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_OK);
        assert_ptr_equal(p, first[i]);
        assert_true(i == 0 || p->handle != first[i - 1]->handle);
        assert_true(p->layout == first[0]->layout);
    }
    assert_int_equal(ctx->counters.host_allocs, allocs);
    vkt_ctx_destroy(&ctx);
}

static void pipelines_refuse_nonsense(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_pipeline *p = NULL;
    const uint32_t spec[VKT_MAX_SPECS + 1] = { 8 }, zero = 0, many = ctx->limits.max_workgroup_lanes + 1;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_NONE, false, 0, spec, 1, &p), VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_END, false, 0, spec, 1, &p), VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, (vkt_kernel_id)(VKT_K_COUNT + VKT_TOOL_COUNT), false, 0, spec, 1, &p),
                     VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 0, &p), VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, VKT_MAX_SPECS + 1, &p), VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, &zero, 1, &p), VKT_E_ARG);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, &many, 1, &p), VKT_E_ARG);
    vkt_test_error_contains("PHILOX_TEST");
    assert_null(p);
    for (int id = 1; id < VKT_K_COUNT; id++) {
        const uint32_t flags = vkt_kernel_get((vkt_kernel_id)id)->flags;
        const uint32_t size = vkt_subgroup_of_flags(&ctx->limits, flags);
        if (!(flags & (VKT_KF_SUBGROUP | VKT_KF_SUBGROUPS))) continue;
        const uint32_t wrong[] = { flags & VKT_KF_SUBGROUP ? size * 2 : size * 3 / 2 };
        assert_int_equal(vkt_pipeline_get(ctx, (vkt_kernel_id)id, false, 0, wrong, 1, &p), VKT_E_ARG);
    }
    vkt_ctx_destroy(&ctx);
}

/* The flags of a kernel select its subgroup size. ATTENTION has VKT_KF_SHORT: limits.subgroup_short lanes.
 * EMBEDDING_RANK has VKT_KF_SHUFFLES: limits.subgroup_shuffles lanes. GEMM_TILE has neither flag: limits.subgroup_size
 * lanes. A work group of 4 lanes is wrong for all three kernels, and the error message has the right subgroup size. */
static void a_kernel_has_subgroups_of_its_own_size(void **state)
{
    (void)state;
    static const struct {
        vkt_kernel_id id;
        uint32_t lanes;
    } kernels[] = { { VKT_K_GEMM_TILE, 64 }, { VKT_K_ATTENTION, 8 }, { VKT_K_EMBEDDING_RANK, 32 } };
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_pipeline *p = NULL;
    ctx->limits.subgroup_size = 64;
    ctx->limits.subgroup_short = 8;
    ctx->limits.subgroup_shuffles = 32;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(kernels); i++) {
        const uint32_t wrong[] = { 4 };
        char want[64];
        snprintf(want, sizeof want, "want one full subgroup of %u lanes, got 4", kernels[i].lanes);
        assert_int_equal(vkt_pipeline_get(ctx, kernels[i].id, false, 0, wrong, 1, &p), VKT_E_ARG);
        vkt_test_error_contains(want);
    }
    vkt_ctx_destroy(&ctx);
}

/* The library alone has no test kernels: a program has to add them. */
static void kernels_of_tests_are_added_by_a_program(void **state)
{
    (void)state;
    static vkt_kernel_entry many[VKT_K_END - VKT_K_COUNT + 1];
    const uint32_t spec[] = { 8 };
    const vkt_pipeline *p = NULL;
    vkt_kernel_add(NULL, 0);
    vkt_ctx *ctx = rig_open(NULL, NULL);
    assert_string_equal(vkt_kernel_get(VKT_K_PHILOX_TEST)->name, "NONE");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_E_ARG);
    vkt_test_error_contains("there is no kernel");
    vkt_test_expect_errors(false);
    for (size_t i = 0; i < VKT_COUNT(many); i++) many[i].name = "MANY";
    vkt_kernel_add(many, VKT_COUNT(many)); /* one entry more than there are free ids */
    assert_string_equal(vkt_kernel_get((vkt_kernel_id)(VKT_K_END - 1))->name, "MANY");
    assert_string_equal(vkt_kernel_get(VKT_K_END)->name, "NONE");
    vkt_tools_begin();
    vkt_tools_begin();
    assert_string_equal(vkt_kernel_get(VKT_K_PHILOX_TEST)->name, "PHILOX_TEST");
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_OK);
    vkt_ctx_destroy(&ctx);
}

static void many_pipelines_are_made_at_once(void **state)
{
    (void)state;
    enum { N = 60, DIFFERENT = 40 };
    vkt_ctx *ctx = rig_open(NULL, NULL);
    uint32_t lanes[N];
    vkt_pipeline_want wants[N];
    const vkt_pipeline *all[N], *one;
    for (uint32_t i = 0; i < N; i++) {
        lanes[i] = i % DIFFERENT + 1;
        wants[i] = (vkt_pipeline_want){ VKT_K_PHILOX_TEST, false, 0, &lanes[i], 1 };
    }
    lanes[7] = lanes[9] = 0;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_pipelines_get(ctx, wants, N, all), VKT_E_ARG);
    vkt_test_error_contains("got 0");
    vkt_test_expect_errors(false);
    lanes[7] = 8;
    lanes[9] = 10;
    assert_int_equal(vkt_pipelines_get(ctx, wants, N, all), VKT_OK);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(all[i]->handle != VK_NULL_HANDLE);
        assert_ptr_equal(all[i], all[i % DIFFERENT]);
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, &lanes[i], 1, &one), VKT_OK);
        assert_ptr_equal(one, all[i]);
    }
    vkt_ctx_destroy(&ctx);
}

/* In the first loop the n-th host allocation fails. In the second loop the n-th fallible Vulkan call fails. Each loop
 * ends when nothing failed. */
static void pipelines_survive_every_failure(void **state)
{
    (void)state;
    const uint32_t spec[] = { 8 };
    const vkt_pipeline *p;
    vkt_test_expect_errors(true);
    for (unsigned n = 1, failed = 1; failed; n++) {
        fake_reset();
        vkt_ctx *ctx = rig_open(NULL, fake_loader());
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p);
        failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_test_fail_allocation(0);
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_OK);
        vkt_ctx_destroy(&ctx);
    }
    for (int32_t n = 1;; n++) {
        fake_reset();
        vkt_ctx *ctx = rig_open(NULL, fake_loader());
        fake.fail_call = n;
        const vkt_result r = vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p);
        const bool failed = fake.failed != NULL;
        fake.fail_call = 0;
        assert_int_equal(r, failed ? VKT_E_DEVICE_MEMORY : VKT_OK);
        assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_OK);
        vkt_ctx_destroy(&ctx);
        if (failed) continue;
        assert_int_equal(n, 5); /* 4 calls can fail: descriptor set layout, pipeline layout, module, pipeline */
        break;
    }
    fake_reset();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(device_and_host_draw_the_same_numbers),
        TEST(pipelines_are_made_once),
        TEST(kernels_of_tests_are_added_by_a_program),
        TEST(many_pipelines_are_made_at_once),
        TEST(pipelines_refuse_nonsense),
        TEST(a_kernel_has_subgroups_of_its_own_size),
        TEST(pipelines_survive_every_failure),
    };
    vkt_tools_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
