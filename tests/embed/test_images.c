/* Tests of copies between an image of the application and an array. The tests copy rectangles, transfer the ownership
 * of an image between queue families, and copy an image in slices: vkt_texture_read_budget and vkt_texture_write_budget
 * divide a copy into parts, the slices, and submit those that fit into a time budget. */
#define _DEFAULT_SOURCE
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "embed/app.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define COPIED (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define IMAGE_COPIED (VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT)
#define SAMPLED VK_IMAGE_USAGE_SAMPLED_BIT
#define STORAGE VK_IMAGE_USAGE_STORAGE_BIT
#define GENERAL VK_IMAGE_LAYOUT_GENERAL
enum { W = 23, H = 11, PIXELS = W * H };

/* An application with an RGBA32F image. The image has the numbers 0, 1, 2, ... */
typedef struct rig {
    app a;
    vkt_ctx *ctx;
    app_image image;
    app_buffer bytes; /* a copy of the image's pixels */
} rig;

static void rig_make(rig *r)
{
    app_open(&r->a, NULL);
    r->ctx = app_adopt(&r->a);
    r->bytes = app_buffer_make(&r->a, PIXELS * 16, COPIED);
    r->image = app_image_make(&r->a, VK_FORMAT_R32G32B32A32_SFLOAT, W, H, SAMPLED | STORAGE | IMAGE_COPIED);
    for (int i = 0; i < PIXELS * 4; i++) ((float *)r->bytes.mapped)[i] = (float)i;
    app_image_copy(&r->a, &r->image, r->bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL);
}

static void rig_free(rig *r)
{
    vkt_ctx_destroy(&r->ctx);
    app_image_free(&r->a, &r->image);
    app_buffer_free(&r->a, &r->bytes);
    app_close(&r->a);
}

static vkt_array *new_array(vkt_ctx *ctx, uint32_t rows, uint32_t columns, uint32_t channels, const float *data)
{
    vkt_array *array;
    const vkt_array_params params = { .shape = vkt_shape3(rows, columns, channels), .data = data };
    DO(vkt_array_create(ctx, &params, &array));
    DO(vkt_ctx_wait_idle(ctx));
    return array;
}

static vkt_texture_params params_of(const rig *r, vkt_array *array)
{
    return (vkt_texture_params){ .image = r->image.handle,
                                 .format = r->image.format,
                                 .usage = r->image.usage,
                                 .width = W,
                                 .height = H,
                                 .layout = GENERAL,
                                 .array = array };
}

/* ---- rectangles ---- */

typedef struct rectangle {
    uint32_t x, y, width, height, channels;
} rectangle;

static bool is_inside(const rectangle *b, uint32_t x, uint32_t y)
{
    return x >= b->x && x < b->x + b->width && y >= b->y && y < b->y + b->height;
}

/* Copies a rectangle of the image to an array and checks the numbers. If `usage` has STORAGE, also copies negative
 * numbers to the rectangle, and checks that all other pixels stay unchanged. */
static void copy_rectangle(rig *r, const rectangle *b, VkImageUsageFlags usage)
{
    static float data[PIXELS * 4], got[PIXELS * 4];
    vkt_texture *t;
    for (int i = 0; i < PIXELS * 4; i++) data[i] = -1 - (float)i;
    vkt_array *in = new_array(r->ctx, b->height, b->width, b->channels, NULL),
              *out = new_array(r->ctx, b->height, b->width, b->channels, data);
    vkt_texture_params p = params_of(r, in);
    p.usage &= usage | IMAGE_COPIED;
    p.x = b->x;
    p.y = b->y;
    p.width = b->width;
    p.height = b->height;
    DO(vkt_texture_adopt(r->ctx, &p, &t));
    DO(vkt_texture_read(t, NULL));
    vkt_texture_destroy(&t);
    app_array_read(&r->a, in, got);
    for (uint32_t i = 0; i < b->width * b->height; i++)
        for (uint32_t c = 0; c < b->channels; c++) {
            const uint32_t pixel = (b->y + i / b->width) * W + b->x + i % b->width;
            assert_true(got[i * b->channels + c] == (float)(4 * pixel + c));
        }
    if (usage & STORAGE) {
        p.array = out;
        DO(vkt_texture_adopt(r->ctx, &p, &t));
        DO(vkt_texture_write(t, NULL));
        vkt_texture_destroy(&t);
        app_image_copy(&r->a, &r->image, r->bytes.handle, false, GENERAL, GENERAL);
        for (uint32_t i = 0; i < PIXELS * 4; i++) {
            const uint32_t x = i / 4 % W, y = i / 4 / W, c = i % 4;
            const float lacking = c == 3, number = data[((y - b->y) * b->width + x - b->x) % PIXELS * b->channels + c];
            const float want = !is_inside(b, x, y) ? (float)i : c < b->channels ? number : lacking;
            assert_true(((float *)r->bytes.mapped)[i] == want);
        }
    }
    vkt_array_destroy(&in);
    vkt_array_destroy(&out);
}

static void rectangles_are_copied(void **state)
{
    (void)state;
    static const rectangle cases[] = {
        { 0, 0, W, H, 4 },         { 3, 2, 9, 4, 4 }, { 3, 2, 9, 4, 3 },
        { W - 1, H - 1, 1, 1, 1 }, { 0, 5, W, 1, 2 }, { 7, 0, 1, H, 4 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++)
        for (int storage = 0; storage < 2; storage++) {
            rig r;
            rig_make(&r);
            copy_rectangle(&r, &cases[i], storage ? STORAGE : SAMPLED);
            rig_free(&r);
        }
}

static void rectangles_of_no_image_are_refused(void **state)
{
    (void)state;
    rig r;
    vkt_texture *t = NULL;
    rig_make(&r);
    vkt_array *array = new_array(r.ctx, H, W, 4, NULL);
    vkt_texture_params p = params_of(&r, array);
    p.x = UINT32_MAX - 3;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texture_adopt(r.ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("no image has the pixels (4294967292,0) to (4294967315,11)");
    vkt_test_expect_errors(false);
    assert_null(t);
    vkt_array_destroy(&array);
    rig_free(&r);
}

/* A forked child may not use the parent's context. */
static void a_forked_child_adopts_no_image(void **state)
{
    (void)state;
    rig r;
    vkt_texture *t = NULL;
    rig_make(&r);
    vkt_array *array = new_array(r.ctx, H, W, 4, NULL);
    const vkt_texture_params p = params_of(&r, array);
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* ends the child if it hangs */
        vkt_test_expect_errors(true);
        _exit(vkt_texture_adopt(r.ctx, &p, &t) == VKT_E_STATE && !t ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    vkt_array_destroy(&array);
    rig_free(&r);
}

/* ---- ownership ---- */

/* A layer between the library and the driver. It records the last image barrier and the last buffer barrier, and
 * reports one queue family more than the driver. */
static struct {
    PFN_vkGetInstanceProcAddr get_instance;
    PFN_vkGetDeviceProcAddr get_device;
    PFN_vkCmdPipelineBarrier2 barrier;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
    VkImageMemoryBarrier2 last;
    VkBufferMemoryBarrier2 last_buffer;
    uint32_t count;  /* image barriers so far */
    bool only_noted; /* barriers of images and buffers do not reach the driver */
} spy;

static VKAPI_ATTR void VKAPI_CALL spy_barrier(VkCommandBuffer cmd, const VkDependencyInfo *info)
{
    if (info->imageMemoryBarrierCount) spy.last = info->pImageMemoryBarriers[0];
    if (info->bufferMemoryBarrierCount) spy.last_buffer = info->pBufferMemoryBarriers[0];
    spy.count += info->imageMemoryBarrierCount;
    const bool noted = info->imageMemoryBarrierCount || info->bufferMemoryBarrierCount;
    if (!noted || !spy.only_noted) spy.barrier(cmd, info);
}

static VKAPI_ATTR void VKAPI_CALL spy_families(VkPhysicalDevice phys, uint32_t *n, VkQueueFamilyProperties *out)
{
    spy.families(phys, n, out);
    if (!out) ++*n;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL spy_device(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction f = spy.get_device(device, name);
    if (strcmp(name, "vkCmdPipelineBarrier2") != 0) return f;
    spy.barrier = (PFN_vkCmdPipelineBarrier2)f;
    return (PFN_vkVoidFunction)spy_barrier;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL spy_instance(VkInstance instance, const char *name)
{
    const PFN_vkVoidFunction f = spy.get_instance(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        spy.get_device = (PFN_vkGetDeviceProcAddr)f;
        return (PFN_vkVoidFunction)spy_device;
    }
    if (strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties") == 0) {
        spy.families = (PFN_vkGetPhysicalDeviceQueueFamilyProperties)f;
        return (PFN_vkVoidFunction)spy_families;
    }
    return f;
}

static void check_barrier(const rig *r, uint32_t from, uint32_t to, VkImageLayout before, VkImageLayout after)
{
    const VkImageMemoryBarrier2 *b = &spy.last;
    assert_true(b->image == r->image.handle);
    assert_int_equal(b->srcQueueFamilyIndex, from);
    assert_int_equal(b->dstQueueFamilyIndex, to);
    assert_int_equal(b->oldLayout, before);
    assert_int_equal(b->newLayout, after);
    const VkImageSubresourceRange *s = &b->subresourceRange;
    assert_int_equal(s->aspectMask, VK_IMAGE_ASPECT_COLOR_BIT);
    assert_true(s->baseMipLevel == 0 && s->levelCount == 1 && s->baseArrayLayer == 0 && s->layerCount == 1);
}

/* Checks that the library's barrier has the range that the application knows. The array's size is no multiple of 256
 * bytes. */
static void check_buffer_barrier(vkt_array *array, uint32_t other)
{
    const vkt_vk_buffer range = vkt_array_buffer(array);
    const VkBufferMemoryBarrier2 *b = &spy.last_buffer;
    for (int i = 0; i < 2; i++) {
        DO((i ? vkt_array_release : vkt_array_acquire)(array, other, NULL));
        assert_int_equal(i ? b->dstQueueFamilyIndex : b->srcQueueFamilyIndex, other);
        assert_true(b->buffer == range.buffer && b->offset == range.offset_bytes && b->size == range.bytes);
    }
}

/* Checks the barriers that acquire an image from the queue family `other` and release the image to `other`, and those
 * of an array. The device does not have this family, so the layer does not pass these barriers on to the driver. */
static void both_halves_of_a_transfer_match(void **state)
{
    (void)state;
    rig r;
    vkt_texture *t;
    rig_make(&r);
    vkt_ctx_destroy(&r.ctx);
    uint32_t other = 0;
    r.a.GetPhysicalDeviceQueueFamilyProperties(r.a.phys, &other, NULL);
    spy.get_instance = r.a.get_proc;
    spy.count = 0;
    vkt_adopt_params offer = app_offer(&r.a);
    offer.get_proc_addr = spy_instance;
    DO(vkt_ctx_adopt(&offer, &(vkt_ctx_params){ .no_pipeline_cache = true }, &r.a.host, &r.ctx));
    vkt_array *array = new_array(r.ctx, H, W, 4, NULL);
    vkt_texture_params p = params_of(&r, array);
    const VkImageLayout drawn = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
    DO(vkt_texture_adopt(r.ctx, &p, &t));
    spy.only_noted = true;
    DO(vkt_texture_acquire(t, other, drawn, NULL));
    check_barrier(&r, other, r.a.family, drawn, GENERAL);
    assert_int_equal(spy.last.srcAccessMask, 0);
    assert_int_equal(spy.last.dstStageMask, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT);
    assert_true(spy.last.dstAccessMask & VK_ACCESS_2_SHADER_READ_BIT);
    DO(vkt_texture_acquire(t, other, drawn, NULL)); /* a second acquire records no barrier */
    assert_int_equal(spy.count, 1);
    DO(vkt_texture_release(t, other, drawn, NULL));
    check_barrier(&r, r.a.family, other, GENERAL, drawn);
    assert_int_equal(spy.last.srcStageMask, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT);
    assert_int_equal(spy.last.srcAccessMask, VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT);
    assert_int_equal(spy.last.dstAccessMask, 0);
    DO(vkt_texture_release(t, other, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, NULL));
    check_barrier(&r, r.a.family, other, GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    assert_int_equal(spy.count, 3);
    check_buffer_barrier(array, other);
    spy.only_noted = false;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texture_acquire(t, other + 1, drawn, NULL), VKT_E_ARG);
    vkt_test_error_contains("want a queue family below");
    assert_int_equal(vkt_texture_release(t, other, VK_IMAGE_LAYOUT_UNDEFINED, NULL), VKT_E_ARG);
    vkt_test_error_contains("cannot get the layout 0");
    vkt_test_expect_errors(false);
    assert_int_equal(spy.count, 3);
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    rig_free(&r);
}

/* Releases an image and acquires it again, in two iterations. Iteration 0 names the library's own queue family, so the
 * barriers only change the layout. Iteration 1 names VK_QUEUE_FAMILY_EXTERNAL. Unlike in the test before, all barriers
 * reach the driver and the validation layer. The copy after each acquire must give the right numbers. */
static void images_are_acquired_and_released(void **state)
{
    (void)state;
    static float data[PIXELS * 4], got[PIXELS * 4];
    rig r;
    vkt_texture *t;
    rig_make(&r);
    for (int i = 0; i < PIXELS * 4; i++) data[i] = -1 - (float)i;
    vkt_array *array = new_array(r.ctx, H, W, 4, NULL);
    vkt_texture_params p = params_of(&r, array);
    DO(vkt_texture_adopt(r.ctx, &p, &t));
    const VkImageLayout theirs = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    for (int round = 0; round < 2; round++) {
        const uint32_t family = round ? VK_QUEUE_FAMILY_EXTERNAL : r.a.family;
        DO(vkt_texture_release(t, family, theirs, NULL));
        if (!round) app_image_copy(&r.a, &r.image, r.bytes.handle, false, theirs, theirs);
        VkSemaphore ready = app_timeline_make(&r.a);
        app_submit(&r.a, VK_NULL_HANDLE, NULL, 0);
        const VkSemaphoreSubmitInfo wait = app_semaphore(r.a.timeline, r.a.submitted), signal = app_semaphore(ready, 1);
        DO(vkt_texture_acquire(t, family, theirs, &(vkt_sync){ &wait, 1, &signal, 1 }));
        DO(vkt_texture_read(t, NULL));
        app_submit(&r.a, VK_NULL_HANDLE, &signal, 1);
        app_wait(&r.a);
        app_array_read(&r.a, array, got);
        for (int i = 0; i < PIXELS * 4; i++) assert_true(got[i] == (float)i * (round ? -1 : 1) - (float)round);
        if (!round) DO(vkt_array_write(array, 0, data, sizeof data));
        if (!round) DO(vkt_texture_write(t, NULL));
        app_timeline_free(&r.a, ready);
    }
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    rig_free(&r);
}

/* ---- budgets ---- */

enum { WIDE = 250, HIGH = 201, ALL = WIDE * HIGH, SLICES = 13 }; /* one slice for each 4096 pixels, rounded up */

/* An application with an R32F image, and an array with an element for each pixel. The image has positive numbers, the
 * array has negative numbers. */
typedef struct large {
    app a;
    vkt_ctx *ctx;
    app_image image;
    app_buffer bytes;
    vkt_array *array;
    vkt_texture *t;
} large;

static float in_image(int i)
{
    return (float)i + 1;
}

static float in_array(int i)
{
    return -(float)i - 1;
}

static void large_make(large *l)
{
    static float data[ALL];
    app_open(&l->a, NULL);
    l->ctx = app_adopt(&l->a);
    l->bytes = app_buffer_make(&l->a, ALL * 4, COPIED);
    l->image = app_image_make(&l->a, VK_FORMAT_R32_SFLOAT, WIDE, HIGH, SAMPLED | STORAGE | IMAGE_COPIED);
    for (int i = 0; i < ALL; i++) ((float *)l->bytes.mapped)[i] = in_image(i);
    for (int i = 0; i < ALL; i++) data[i] = in_array(i);
    app_image_copy(&l->a, &l->image, l->bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL);
    l->array = new_array(l->ctx, HIGH, WIDE, 1, data);
    const vkt_texture_params p = { .image = l->image.handle,
                                   .format = l->image.format,
                                   .usage = l->image.usage,
                                   .width = WIDE,
                                   .height = HIGH,
                                   .layout = GENERAL,
                                   .array = l->array };
    DO(vkt_texture_adopt(l->ctx, &p, &l->t));
}

static void large_free(large *l)
{
    vkt_texture_destroy(&l->t);
    vkt_array_destroy(&l->array);
    vkt_ctx_destroy(&l->ctx);
    app_image_free(&l->a, &l->image);
    app_buffer_free(&l->a, &l->bytes);
    app_close(&l->a);
}

static vkt_result copy(large *l, bool write, uint64_t *budget_ns, vkt_step_progress *p)
{
    return (write ? vkt_texture_write_budget : vkt_texture_read_budget)(l->t, NULL, budget_ns, p);
}

/* Returns the numbers of the copy's destination, which is the image if `write`, else the array. */
static const float *destination(large *l, bool write)
{
    static float got[ALL];
    if (write)
        app_image_copy(&l->a, &l->image, l->bytes.handle, false, GENERAL, GENERAL);
    else
        app_array_read(&l->a, l->array, got);
    return write ? l->bytes.mapped : got;
}

/* With the smallest budget, each call on an idle device submits one slice. After each call, exactly the slices of
 * the calls so far are copied. The last two calls begin a second copy of the same numbers. */
static void a_small_budget_copies_slice_by_slice(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        large l;
        large_make(&l);
        const int each = (ALL + SLICES - 1) / SLICES;
        for (uint32_t call = 0; call < SLICES + 2; call++) {
            uint64_t budget_ns = 1;
            vkt_step_progress p;
            DO(copy(&l, write, &budget_ns, &p));
            DO(vkt_ctx_wait_idle(l.ctx));
            assert_int_equal(budget_ns, 0);
            assert_int_equal(p.slices, SLICES);
            assert_int_equal(p.slice, (call + 1) % SLICES);
            assert_int_equal(p.completed, call + 1 == SLICES);
            assert_int_equal(p.run_index, call / SLICES);
            assert_true(p.submitted_ns > 0 && (call == 0) == (p.measured_ns == 0));
            const float *got = destination(&l, write);
            for (int i = 0; i < ALL; i++) {
                const bool copied = i < ((int)call + 1) * each;
                assert_true(got[i] == (copied != (bool)write ? in_image(i) : in_array(i)));
            }
        }
        large_free(&l);
    }
}

/* Without a limit, the first call submits only one slice, because no slice has been measured yet. A call with a budget
 * of 0 submits nothing. The next call without a limit submits all other slices. */
static void a_large_budget_ends_the_copy(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        large l;
        vkt_step_progress p;
        uint64_t budget_ns = UINT64_MAX;
        large_make(&l);
        DO(copy(&l, write, &budget_ns, &p));
        assert_int_equal(p.slice, 1);
        DO(vkt_ctx_wait_idle(l.ctx));
        budget_ns = 0;
        DO(copy(&l, write, &budget_ns, &p));
        assert_true(p.slice == 1 && !p.completed && p.submitted_ns == 0);
        budget_ns = UINT64_MAX;
        DO(copy(&l, write, &budget_ns, &p));
        assert_true(p.completed && budget_ns > 0 && p.submitted_ns > 0);
        const float *got = destination(&l, write);
        for (int i = 0; i < ALL; i++) assert_true(got[i] == (write ? in_array(i) : in_image(i)));
        large_free(&l);
    }
}

/* While the first slice waits for a semaphore, a call submits no more slices. Such a call still submits the caller's
 * semaphores. */
static void no_slice_is_submitted_before_the_first_time_is_known(void **state)
{
    (void)state;
    large l;
    vkt_step_progress p;
    large_make(&l);
    VkSemaphore gate = app_timeline_make(&l.a), done = app_timeline_make(&l.a);
    const VkSemaphoreSubmitInfo wait = app_semaphore(gate, 1), signal = app_semaphore(done, 1);
    uint64_t budget_ns = 1000000, reached;
    DO(vkt_texture_read_budget(l.t, &(vkt_sync){ .waits = &wait, .n_waits = 1 }, &budget_ns, &p));
    assert_int_equal(p.slice, 1);
    budget_ns = 2000000;
    DO(vkt_texture_read_budget(l.t, &(vkt_sync){ .signals = &signal, .n_signals = 1 }, &budget_ns, &p));
    assert_true(p.slice == 1 && p.submitted_ns == 0 && budget_ns == 2000000);
    const VkSemaphoreSignalInfo open = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                         .semaphore = gate,
                                         .value = 1 };
    DO(l.a.SignalSemaphore(l.a.device, &open));
    app_submit(&l.a, VK_NULL_HANDLE, &signal, 1);
    app_wait(&l.a);
    DO(l.a.GetSemaphoreCounterValue(l.a.device, done, &reached));
    assert_int_equal(reached, 1);
    DO(vkt_ctx_wait_idle(l.ctx));
    app_timeline_free(&l.a, gate);
    app_timeline_free(&l.a, done);
    large_free(&l);
}

/* A copy of a small image has one slice. vkt_texture_write_budget refuses an image that is no storage image. */
static void small_images_have_one_slice(void **state)
{
    (void)state;
    rig r;
    vkt_texture *t;
    vkt_step_progress progress;
    uint64_t budget_ns = 5;
    rig_make(&r);
    vkt_array *array = new_array(r.ctx, H, W, 4, NULL);
    vkt_texture_params p = params_of(&r, array);
    p.usage &= ~(VkFlags)STORAGE;
    DO(vkt_texture_adopt(r.ctx, &p, &t));
    DO(vkt_texture_read_budget(t, NULL, &budget_ns, &progress));
    assert_true(progress.completed && progress.slices == 1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texture_write_budget(t, NULL, &budget_ns, &progress), VKT_E_STATE);
    assert_true(!progress.completed && progress.slices == 0);
    const vkt_sync wrong = { .n_signals = VKT_SYNC_MAX + 1 };
    budget_ns = UINT64_MAX;
    assert_int_equal(vkt_texture_read_budget(t, &wrong, &budget_ns, &progress), VKT_E_ARG);
    assert_true(budget_ns == UINT64_MAX && progress.run_index == 0 && progress.slices == 0);
    assert_int_equal(vkt_texture_read_budget(t, NULL, NULL, &progress), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    rig_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rectangles_are_copied),
        TEST(rectangles_of_no_image_are_refused),
        TEST(a_forked_child_adopts_no_image),
        TEST(both_halves_of_a_transfer_match),
        TEST(images_are_acquired_and_released),
        TEST(a_small_budget_copies_slice_by_slice),
        TEST(a_large_budget_ends_the_copy),
        TEST(no_slice_is_submitted_before_the_first_time_is_known),
        TEST(small_images_have_one_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
