/* Images of the application: rectangles of them. */
#include <string.h>

#include "base/base.h"
#include "embed/app.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define COPIED (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define IMAGE_COPIED (VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT)
#define SAMPLED VK_IMAGE_USAGE_SAMPLED_BIT
#define STORAGE VK_IMAGE_USAGE_STORAGE_BIT
#define GENERAL VK_IMAGE_LAYOUT_GENERAL
enum { W = 23, H = 11, PIXELS = W * H };

/* An application with an image of RGBA32F, whose numbers are 0, 1, 2, ... */
typedef struct rig {
    app a;
    vkt_ctx *ctx;
    app_image image;
    app_buffer bytes; /* the pixels of the image */
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

/* Reads a rectangle, and then writes negative numbers to it. All other pixels stay. */
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rectangles_are_copied),
        TEST(rectangles_of_no_image_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
