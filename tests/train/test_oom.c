/* Tests the behaviour of a trainer when device memory runs out or the device is lost. In test_no_memory.c, host
 * allocations and submissions fail. */
#include "train/rig.h"

#include "gpu/gpu.h"

/* ---- device memory ---- */

static void a_cap_below_the_plan_is_refused_with_the_plan(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.batch = RIG_ROWS;
    bool reported_plan = false;
    vkt_trainer *t = NULL;
    vkt_result status = VKT_E_MEMORY_CAP;
    for (uint64_t cap = 1u << 18; status != VKT_OK; cap += cap / 4) {
        assert_true(cap < 1u << 28);
        vkt_ctx *small = NULL;
        vkt_test_expect_errors(true);
        status = vkt_ctx_create(&(vkt_ctx_params){ .max_device_bytes = cap }, &r->h, &small);
        if (status == VKT_OK) status = vkt_trainer_create(small, &p, &t);
        vkt_test_expect_errors(false);
        assert_true(status == VKT_OK || status == VKT_E_MEMORY_CAP);
        if (status != VKT_OK) reported_plan |= strstr(vkt_test_last_error(), "activations and scratch") != NULL;
        if (status == VKT_OK) {
            rig_fit(t, NULL);
            vkt_memory_stats m;
            vkt_ctx_memory(small, &m);
            assert_true(m.reserved_peak_bytes <= cap);
        } else {
            assert_null(t);
        }
        vkt_trainer_destroy(&t);
        vkt_ctx_destroy(&small);
    }
    assert_true(reported_plan);
}

/* ---- the device is lost ---- */

static uint32_t submissions_left; /* submissions that still succeed; the next one loses the device */

static VkResult VKAPI_CALL lose_device(VkQueue queue, uint32_t n, const VkSubmitInfo2 *infos, VkFence fence);
static PFN_vkQueueSubmit2 real_submit;
static PFN_vkDeviceWaitIdle real_wait;
static VkDevice device;
static VkResult VKAPI_CALL lose_device(VkQueue queue, uint32_t n, const VkSubmitInfo2 *infos, VkFence fence)
{
    if (submissions_left == 0) {
        /* After a loss, the engine counts submitted work as done. So this function waits until the work is done. */
        real_wait(device);
        return VK_ERROR_DEVICE_LOST;
    }
    submissions_left--;
    return real_submit(queue, n, infos, fence);
}

static void a_lost_device_ends_the_run_and_keeps_the_checkpoint(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "a"), *copy = vkt_temp_dir_file(&r->dir, "copy");
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = 1, .checkpoint = copy });
    vkt_ctx *broken;
    assert_int_equal(vkt_ctx_create(NULL, &r->h, &broken), VKT_OK);
    vkt_trainer *u;
    assert_int_equal(vkt_trainer_create(broken, &p, &u), VKT_OK);
    assert_int_equal(vkt_trainer_resume(u, path), VKT_OK);
    real_submit = broken->vk.QueueSubmit2;
    real_wait = broken->vk.DeviceWaitIdle;
    device = broken->device;
    broken->vk.QueueSubmit2 = lose_device;
    submissions_left = 4;
    vkt_test_expect_errors(true);
    const vkt_fit_params fit = { .epochs = 3, .checkpoint = path };
    assert_int_equal(vkt_trainer_fit(u, &fit), VKT_E_DEVICE_LOST);
    assert_int_equal(submissions_left, 0);
    assert_int_equal(vkt_trainer_fit(u, &fit), VKT_E_DEVICE_LOST); /* the loss is permanent */
    assert_int_equal(vkt_trainer_save(u, copy), VKT_E_DEVICE_LOST);
    rig_same_file(path, copy);
    vkt_trainer_destroy(&u);
    vkt_ctx_destroy(&broken);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK); /* another context still works */
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_cap_below_the_plan_is_refused_with_the_plan),
        rig_test(a_lost_device_ends_the_run_and_keeps_the_checkpoint),
    };
    return cmocka_run_group_tests_name("out of device memory, out of device", tests, NULL, NULL);
}
