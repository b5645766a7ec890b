/* Tests of shared memory. Programs of the library use buffers of the application. The library copies between its arrays
 * and images of the application. Commands of the application copy tensors of the library. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/half.h"
#include "embed/app.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define STORAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
#define TEXEL VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT
#define COPIED (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

static vkt_array *adopt(vkt_ctx *ctx, const app_buffer *b, uint64_t offset, VkBufferUsageFlags usage, uint32_t rows,
                        uint32_t columns)
{
    vkt_array *a;
    const vkt_array_adopt_params params = { .at = { b->handle, offset, b->bytes - offset },
                                            .usage = usage,
                                            .shape = vkt_shape2(rows, columns) };
    DO(vkt_array_adopt(ctx, &params, &a));
    return a;
}

/* ---- buffers ---- */

/* Input and target are buffers of the application, with and without the usage flag that texel loads need. The bytes in
 * front of the input must not change. */
static void buffers_are_inputs_targets_and_outputs(void **state)
{
    (void)state;
    static const VkBufferUsageFlags usages[] = { STORAGE, STORAGE | TEXEL };
    for (int u = 0; u < 2; u++) {
        app a;
        net n;
        float want[NET_PARAMS], got[NET_PARAMS];
        app_open(&a, NULL);
        vkt_ctx *ctx = app_adopt(&a);
        net_expected(ctx, 6, want);
        app_buffer x = app_buffer_make(&a, 4096, usages[u]), t = app_buffer_make(&a, 2048, usages[u]);
        net_data((float *)x.mapped + 256, (float *)t.mapped + 64);
        vkt_array *xs = adopt(ctx, &x, 1024, usages[u], NET_ROWS, NET_IN);
        vkt_array *ts = adopt(ctx, &t, 256, usages[u], NET_ROWS, NET_OUT);
        net_make(&n, ctx, xs, ts);
        for (uint32_t s = 0; s < 6; s++) {
            const vkt_run run = net_run(s);
            DO(vkt_program_run(n.p, &run, NULL));
        }
        net_params(&n, got);
        assert_memory_equal(got, want, sizeof want);
        const vkt_vk_buffer at = vkt_array_buffer(xs);
        assert_true(at.buffer == x.handle && at.offset_bytes == 1024 && at.bytes == NET_ROWS * NET_IN * 4);
        for (int i = 0; i < 1024; i++) assert_int_equal(((unsigned char *)x.mapped)[i], 0xff);
        net_free(&n);
        vkt_array_destroy(&xs);
        vkt_array_destroy(&ts);
        vkt_ctx_destroy(&ctx);
        app_buffer_free(&a, &x);
        app_buffer_free(&a, &t);
        app_close(&a);
    }
}

/* The program computes out = 2 * in + 1. `in` and `out` are in buffers of the application. The application writes `in`
 * before each run and reads `out` after the run. The run waits for a semaphore of the application. */
static void an_output_is_the_applications_to_read(void **state)
{
    (void)state;
    enum { N = 1000 };
    app a;
    vkt_graph *g;
    vkt_program *p;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_buffer from = app_buffer_make(&a, 8192, STORAGE), to = app_buffer_make(&a, 8192, STORAGE);
    vkt_array *in = adopt(ctx, &from, 4096, STORAGE, 10, N / 10), *out = adopt(ctx, &to, 512, STORAGE, 10, N / 10);
    DO(vkt_graph_create(&a.host, &g));
    const vkt_tensor x = vkt_external(g, "x", VKT_F32, vkt_shape2(10, N / 10));
    const vkt_tensor y = vkt_external(g, "y", VKT_F32, vkt_shape2(10, N / 10));
    vkt_write(g, vkt_scale(g, x, 2, 1), y);
    const vkt_binding arrays[] = { { x, in }, { y, out } };
    DO(vkt_program_create(ctx, g, NULL, &(vkt_program_params){ .arrays = arrays, .n_arrays = 2 }, &p));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) ((float *)from.mapped)[1024 + i] = (float)(i * (round + 1));
        app_submit(&a, VK_NULL_HANDLE, NULL, 0); /* represents a frame; the run waits for it */
        const VkSemaphoreSubmitInfo wait = app_semaphore(a.timeline, a.submitted);
        uint64_t index;
        DO(vkt_program_run_synced(p, NULL, &(vkt_sync){ .waits = &wait, .n_waits = 1 }, &index));
        DO(vkt_program_wait_run(p, index));
        for (int i = 0; i < N; i++) assert_true(((float *)to.mapped)[128 + i] == (float)(2 * i * (round + 1) + 1));
        for (int i = 0; i < 512; i++) assert_int_equal(((unsigned char *)to.mapped)[i], 0xff);
        for (int i = 128 + N; i < 2048; i++) assert_int_equal(((uint32_t *)to.mapped)[i], 0xffffffffu);
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&in);
    vkt_array_destroy(&out);
    vkt_ctx_destroy(&ctx);
    app_buffer_free(&a, &from);
    app_buffer_free(&a, &to);
    app_close(&a);
}

static void wrong_buffers_are_refused(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_buffer b = app_buffer_make(&a, 1024, STORAGE);
    const vkt_array_adopt_params right = { .at = { b.handle, 256, 768 }, .usage = STORAGE, .shape = vkt_shape1(189) };
    vkt_array *out = NULL;
    DO(vkt_array_adopt(ctx, &right, &out));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_array_write(out, 0, right.shape.dim, 4), VKT_E_STATE);
    vkt_test_error_contains("TRANSFER_DST");
    vkt_array_destroy(&out);
    for (int i = 0; i < 5; i++) {
        vkt_array_adopt_params p = right;
        if (i == 0) p.at.buffer = VK_NULL_HANDLE;
        if (i == 1) p.at.offset_bytes = 128;
        if (i == 2) p.at.bytes = 752; /* 189 floats need 768 bytes: 756, rounded up to a multiple of 16 */
        if (i == 3) p.usage = COPIED;
        if (i == 4) p.shape = (vkt_shape){ .rank = 99 };
        assert_int_equal(vkt_array_adopt(ctx, &p, &out), VKT_E_ARG);
        assert_null(out);
    }
    vkt_test_expect_errors(false);
    vkt_ctx_destroy(&ctx);
    app_buffer_free(&a, &b);
    app_close(&a);
}

/* Two arrays may be parts of one buffer. The parts must not overlap if the program writes one of the arrays. */
static void what_is_written_belongs_to_no_other_value(void **state)
{
    (void)state;
    app a;
    vkt_graph *g;
    vkt_program *p;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_buffer b = app_buffer_make(&a, 4096, STORAGE);
    vkt_array *in = adopt(ctx, &b, 0, STORAGE, 1, 65), *beside = adopt(ctx, &b, 512, STORAGE, 1, 65),
              *within = adopt(ctx, &b, 256, STORAGE, 1, 65);
    DO(vkt_graph_create(&a.host, &g));
    const vkt_tensor x = vkt_external(g, "x", VKT_F32, vkt_shape2(1, 65));
    const vkt_tensor y = vkt_external(g, "y", VKT_F32, vkt_shape2(1, 65));
    vkt_write(g, vkt_scale(g, x, 2, 1), y);
    vkt_binding arrays[] = { { x, in }, { y, within } };
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_create(ctx, g, NULL, &params, &p), VKT_E_STATE);
    vkt_test_error_contains("'y', which is written, and to 'x'");
    vkt_test_expect_errors(false);
    arrays[1].array = beside;
    DO(vkt_program_create(ctx, g, NULL, &params, &p));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&in);
    vkt_array_destroy(&beside);
    vkt_array_destroy(&within);
    vkt_ctx_destroy(&ctx);
    app_buffer_free(&a, &b);
    app_close(&a);
}

/* Iterations 1 and 3 name the library's own queue family, so they transfer no ownership. Iteration 2 transfers the
 * ownership from an external user and back. The library records its half of each transfer. The test has no external
 * user, so no code records the other half. */
static void ownership_is_transferred_and_returned(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_buffer b = app_buffer_make(&a, 1024, STORAGE | COPIED);
    vkt_array *array = adopt(ctx, &b, 0, STORAGE | COPIED, 4, 64);
    VkSemaphore done = app_timeline_make(&a);
    for (uint64_t i = 1; i <= 3; i++) {
        const VkSemaphoreSubmitInfo signal = app_semaphore(done, i);
        DO(vkt_array_acquire(array, i == 2 ? VK_QUEUE_FAMILY_EXTERNAL : a.family, NULL));
        DO(vkt_array_write(array, 0, &(uint32_t){ (uint32_t)i }, 4));
        DO(vkt_array_release(array, i == 2 ? VK_QUEUE_FAMILY_EXTERNAL : a.family,
                             &(vkt_sync){ .signals = &signal, .n_signals = 1 }));
        app_submit(&a, VK_NULL_HANDLE, &signal, 1);
        app_wait(&a);
        assert_int_equal(*(uint32_t *)b.mapped, i);
    }
    vkt_array_destroy(&array);
    vkt_ctx_destroy(&ctx);
    app_timeline_free(&a, done);
    app_buffer_free(&a, &b);
    app_close(&a);
}

/* Commands of the application copy a parameter and a kept value of the library, and get the right numbers. */
static void our_buffers_are_visible_to_its_commands(void **state)
{
    (void)state;
    app a;
    net n;
    float want[NET_ROWS * NET_OUT], w1[16 * NET_IN];
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    net_make(&n, ctx, NULL, NULL);
    DO(vkt_program_run(n.p, NULL, NULL));
    DO(vkt_program_read(n.p, n.y, want, sizeof want));
    DO(vkt_store_read(n.store, 0, VKT_PART_VALUE, w1));
    const vkt_vk_buffer params = vkt_store_buffer(n.store, 0, VKT_PART_VALUE);
    vkt_vk_buffer y, none;
    vkt_layout layout;
    DO(vkt_program_buffer(n.p, n.y, &y, &layout));
    assert_int_equal(layout, VKT_ROWS);
    assert_int_equal(y.bytes, sizeof want);
    assert_int_equal(params.bytes, sizeof w1);
    app_buffer copy = app_buffer_make(&a, 8192, COPIED);
    VkCommandBuffer cmd = app_begin(&a, false);
    a.CmdCopyBuffer(cmd, params.buffer, copy.handle, 1, &(VkBufferCopy){ params.offset_bytes, 0, params.bytes });
    a.CmdCopyBuffer(cmd, y.buffer, copy.handle, 1, &(VkBufferCopy){ y.offset_bytes, 4096, y.bytes });
    app_barrier(&a, cmd);
    app_end(&a, cmd);
    app_submit(&a, cmd, NULL, 0);
    app_wait(&a);
    assert_memory_equal(copy.mapped, w1, sizeof w1);
    assert_memory_equal((char *)copy.mapped + 4096, want, sizeof want);
    assert_true(vkt_store_buffer(n.store, 99, VKT_PART_VALUE).buffer == VK_NULL_HANDLE);
    assert_true(vkt_store_buffer(n.store, 0, VKT_PART_MOMENT3).buffer == VK_NULL_HANDLE);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_buffer(n.p, (vkt_tensor){ 4000 }, &none, NULL), VKT_E_ARG);
    vkt_test_expect_errors(false);
    net_free(&n);
    vkt_ctx_destroy(&ctx);
    app_buffer_free(&a, &copy);
    app_close(&a);
}

/* ---- images ---- */

enum { W = 19, H = 7 };

/* Returns the number that `bytes` have in channel c of pixel i, decoded from the image format. */
static double texel(VkFormat format, const void *bytes, int i, int c)
{
    const bool bgra = format == VK_FORMAT_B8G8R8A8_UNORM || format == VK_FORMAT_B8G8R8A8_SRGB;
    const bool srgb = c < 3 && (format == VK_FORMAT_R8G8B8A8_SRGB || format == VK_FORMAT_B8G8R8A8_SRGB);
    const int at = 4 * i + (bgra && c < 3 ? 2 - c : c);
    if (format == VK_FORMAT_R32G32B32A32_SFLOAT) return ((const float *)bytes)[at];
    if (format == VK_FORMAT_R16G16B16A16_SFLOAT) return (double)vkt_f32_from_half(((const uint16_t *)bytes)[at]);
    const double v = ((const uint8_t *)bytes)[at] / 255.0;
    return !srgb ? v : v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static void fill(VkFormat format, void *bytes)
{
    for (int i = 0; i < W * H * 4; i++) {
        const float v = (float)(i * 61 % 509) / 64 - 3;
        if (format == VK_FORMAT_R32G32B32A32_SFLOAT)
            ((float *)bytes)[i] = v;
        else if (format == VK_FORMAT_R16G16B16A16_SFLOAT)
            ((uint16_t *)bytes)[i] = vkt_half_from_f32(v);
        else
            ((uint8_t *)bytes)[i] = (uint8_t)(i * 61);
    }
}

static vkt_array *array_of(vkt_ctx *ctx, uint32_t channels, const float *data, bool flat)
{
    vkt_array *array;
    const vkt_shape s = flat ? vkt_shape2(W * H, channels) : vkt_shape3(H, W, channels);
    DO(vkt_array_create(ctx, &(vkt_array_params){ .shape = s, .data = data }, &array));
    return array;
}

typedef struct read_case {
    VkFormat format;
    VkImageUsageFlags usage;
    VkImageLayout layout;
    bool recorded;
} read_case;

static void read_one(app *a, vkt_ctx *ctx, const read_case *r, uint32_t channels)
{
    app_buffer bytes = app_buffer_make(a, W * H * 16, COPIED);
    app_image image = app_image_make(a, r->format, W, H, r->usage | VK_IMAGE_USAGE_TRANSFER_DST_BIT);
    fill(r->format, bytes.mapped);
    app_image_copy(a, &image, bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, r->layout);
    vkt_array *array = array_of(ctx, channels, NULL, channels % 2);
    vkt_texture *t;
    const vkt_texture_params params = { .image = image.handle,
                                        .format = r->format,
                                        .usage = image.usage,
                                        .width = W,
                                        .height = H,
                                        .layout = r->layout,
                                        .array = array };
    DO(vkt_texture_adopt(ctx, &params, &t));
    DO(vkt_ctx_wait_idle(ctx)); /* waits until the new array is filled with zeros */
    if (r->recorded) {
        VkCommandBuffer cmd = app_begin(a, false);
        DO(vkt_texture_record_read(t, cmd));
        app_barrier(a, cmd);
        app_end(a, cmd);
        app_submit(a, cmd, NULL, 0);
        app_wait(a);
    } else {
        DO(vkt_texture_read(t, NULL));
    }
    float got[W * H * 4];
    app_array_read(a, array, got);
    const double tolerance = r->format == VK_FORMAT_R8G8B8A8_SRGB || r->format == VK_FORMAT_B8G8R8A8_SRGB ? 2e-3 : 1e-7;
    for (int i = 0; i < W * H; i++)
        for (uint32_t c = 0; c < channels; c++)
            assert_float_equal(got[(uint32_t)i * channels + c], texel(r->format, bytes.mapped, i, (int)c), tolerance);
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    app_image_free(a, &image);
    app_buffer_free(a, &bytes);
}

static void images_are_read(void **state)
{
    (void)state;
    static const read_case cases[] = {
        { VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, false },
        { VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_USAGE_STORAGE_BIT, VK_IMAGE_LAYOUT_GENERAL, true },
        { VK_FORMAT_R16G16B16A16_SFLOAT, VK_IMAGE_USAGE_STORAGE_BIT, VK_IMAGE_LAYOUT_GENERAL, false },
        { VK_FORMAT_R16G16B16A16_SFLOAT, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_GENERAL, true },
        { VK_FORMAT_R32G32B32A32_SFLOAT, VK_IMAGE_USAGE_STORAGE_BIT, VK_IMAGE_LAYOUT_GENERAL, false },
        { VK_FORMAT_R32G32B32A32_SFLOAT, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, true },
        { VK_FORMAT_R8G8B8A8_SRGB, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, false },
        { VK_FORMAT_B8G8R8A8_UNORM, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, false },
        { VK_FORMAT_B8G8R8A8_SRGB, VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, false },
    };
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) read_one(&a, ctx, &cases[i], 1 + (uint32_t)i % 4);
    read_one(&a, ctx, &cases[0], 4);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

static void write_one(app *a, vkt_ctx *ctx, VkFormat format, uint32_t channels, bool recorded)
{
    float data[W * H * 4];
    for (int i = 0; i < W * H * 4; i++) data[i] = (float)(i * 41 % 101) / 64 - 0.25f; /* some below 0, some above 1 */
    const VkImageUsageFlags usage =
        VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    app_buffer bytes = app_buffer_make(a, W * H * 16, COPIED);
    app_image image = app_image_make(a, format, W, H, usage);
    app_image_copy(a, &image, bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
    vkt_array *array = array_of(ctx, channels, data, channels % 2);
    vkt_texture *t;
    const vkt_texture_params params = { .image = image.handle,
                                        .format = format,
                                        .usage = usage,
                                        .width = W,
                                        .height = H,
                                        .layout = VK_IMAGE_LAYOUT_GENERAL,
                                        .array = array };
    DO(vkt_texture_adopt(ctx, &params, &t));
    DO(vkt_ctx_wait_idle(ctx));
    if (recorded) {
        VkCommandBuffer cmd = app_begin(a, false);
        DO(vkt_texture_record_write(t, cmd));
        app_barrier(a, cmd);
        app_end(a, cmd);
        app_submit(a, cmd, NULL, 0);
        app_wait(a);
    } else {
        DO(vkt_texture_write(t, NULL));
    }
    app_image_copy(a, &image, bytes.handle, false, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_GENERAL);
    const bool clamps = format == VK_FORMAT_R8G8B8A8_UNORM;
    const double tolerance = clamps ? 0.5 / 255 + 1e-6 : format == VK_FORMAT_R16G16B16A16_SFLOAT ? 1e-3 : 0;
    for (int i = 0; i < W * H; i++)
        for (uint32_t c = 0; c < 4; c++) {
            double want = c < channels ? (double)data[(uint32_t)i * channels + c] : c == 3;
            if (clamps) want = want < 0 ? 0 : want > 1 ? 1 : want;
            assert_float_equal(texel(format, bytes.mapped, i, (int)c), want, tolerance);
        }
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    app_image_free(a, &image);
    app_buffer_free(a, &bytes);
}

static void images_are_written(void **state)
{
    (void)state;
    static const VkFormat formats[] = { VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R16G16B16A16_SFLOAT,
                                        VK_FORMAT_R32G32B32A32_SFLOAT };
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    for (uint32_t f = 0; f < 3; f++)
        for (uint32_t channels = 1; channels <= 4; channels++) write_one(&a, ctx, formats[f], channels, channels % 2);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

static void wrong_images_are_refused(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_image image = app_image_make(&a, VK_FORMAT_R8G8B8A8_UNORM, W, H, VK_IMAGE_USAGE_SAMPLED_BIT);
    vkt_array *array = array_of(ctx, 3, NULL, true);
    vkt_texture *t = NULL;
    const vkt_texture_params right = { .image = image.handle,
                                       .format = image.format,
                                       .usage = image.usage,
                                       .width = W,
                                       .height = H,
                                       .layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL,
                                       .array = array };
    DO(vkt_texture_adopt(ctx, &right, &t));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texture_write(t, NULL), VKT_E_STATE);
    assert_int_equal(vkt_texture_record_read(t, VK_NULL_HANDLE), VKT_E_ARG);
    vkt_texture_destroy(&t);
    for (int i = 0; i < 8; i++) {
        vkt_texture_params p = right;
        if (i == 0) p.image = VK_NULL_HANDLE;
        if (i == 1) p.format = VK_FORMAT_D32_SFLOAT;
        if (i == 2) p.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
        if (i == 3) p.layout = VK_IMAGE_LAYOUT_UNDEFINED;
        if (i == 4) p.width = H;
        if (i == 5) p.array = NULL;
        if (i == 6) p.format = VK_FORMAT_R8G8B8A8_SRGB, p.usage = VK_IMAGE_USAGE_STORAGE_BIT;
        if (i == 7) p.usage = VK_IMAGE_USAGE_STORAGE_BIT; /* a storage image needs GENERAL */
        assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
        assert_null(t);
    }
    vkt_test_expect_errors(false);
    vkt_array_destroy(&array);
    vkt_ctx_destroy(&ctx);
    app_image_free(&a, &image);
    app_close(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buffers_are_inputs_targets_and_outputs),
        TEST(an_output_is_the_applications_to_read),
        TEST(wrong_buffers_are_refused),
        TEST(what_is_written_belongs_to_no_other_value),
        TEST(ownership_is_transferred_and_returned),
        TEST(our_buffers_are_visible_to_its_commands),
        TEST(images_are_read),
        TEST(images_are_written),
        TEST(wrong_images_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
