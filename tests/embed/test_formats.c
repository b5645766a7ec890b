/* Copies images to arrays, and arrays to images, in every format that the library and the device support. Compares the
 * copies with a reference in double precision that shares no code with the library. The images contain every value of a
 * channel of at most 16 bits. Colour channels of 32 bits contain NaN, infinities and subnormal numbers. A copy to an
 * image also clamps and rounds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "embed/app.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define COPIED (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define SAMPLED VK_IMAGE_USAGE_SAMPLED_BIT
#define STORAGE VK_IMAGE_USAGE_STORAGE_BIT
enum { SIDE = 256, PIXELS = SIDE * SIDE, MOST_BYTES = 16 };

/* ---- the reference ---- */

typedef enum kind { UNORM, SRGB, FLOAT } kind;

/* The bits of one channel. A FLOAT of 32 bits has 8 bits of exponent, a shorter FLOAT has 5. Only a FLOAT of 16 or 32
 * bits has a sign bit. */
typedef struct channel {
    kind kind;
    uint32_t first, bits; /* first bit in the pixel; 0 bits: the format does not have this channel */
} channel;

typedef struct format {
    VkFormat format;
    uint32_t bytes;
    bool writable, everywhere; /* writable: some devices have storage images of this format;
                                * everywhere: all devices have them */
    channel rgba[4];
    const char *name;
} format;

#define F(name) VK_FORMAT_##name
#define N(name) #name
static const format formats[] = {
    { F(R8G8B8A8_UNORM), 4, 1, 1, { { UNORM, 0, 8 }, { UNORM, 8, 8 }, { UNORM, 16, 8 }, { UNORM, 24, 8 } }, "rgba8" },
    { F(R8G8B8A8_SRGB), 4, 0, 0, { { SRGB, 0, 8 }, { SRGB, 8, 8 }, { SRGB, 16, 8 }, { UNORM, 24, 8 } }, "rgba8 srgb" },
    { F(B8G8R8A8_UNORM), 4, 1, 0, { { UNORM, 16, 8 }, { UNORM, 8, 8 }, { UNORM, 0, 8 }, { UNORM, 24, 8 } }, "bgra8" },
    { F(B8G8R8A8_SRGB), 4, 0, 0, { { SRGB, 16, 8 }, { SRGB, 8, 8 }, { SRGB, 0, 8 }, { UNORM, 24, 8 } }, "bgra8 srgb" },
    { F(A2B10G10R10_UNORM_PACK32),
      4,
      1,
      0,
      { { UNORM, 0, 10 }, { UNORM, 10, 10 }, { UNORM, 20, 10 }, { UNORM, 30, 2 } },
      "rgb10a2" },
    { F(A2R10G10B10_UNORM_PACK32),
      4,
      1,
      0,
      { { UNORM, 20, 10 }, { UNORM, 10, 10 }, { UNORM, 0, 10 }, { UNORM, 30, 2 } },
      "bgr10a2" },
    { F(B10G11R11_UFLOAT_PACK32), 4, 1, 0, { { FLOAT, 0, 11 }, { FLOAT, 11, 11 }, { FLOAT, 22, 10 } }, "r11g11b10f" },
    { F(R16_SFLOAT), 2, 1, 0, { { FLOAT, 0, 16 } }, "r16f" },
    { F(R16G16_SFLOAT), 4, 1, 0, { { FLOAT, 0, 16 }, { FLOAT, 16, 16 } }, "rg16f" },
    { F(R16G16B16A16_SFLOAT),
      8,
      1,
      1,
      { { FLOAT, 0, 16 }, { FLOAT, 16, 16 }, { FLOAT, 32, 16 }, { FLOAT, 48, 16 } },
      "rgba16f" },
    { F(R32_SFLOAT), 4, 1, 1, { { FLOAT, 0, 32 } }, "r32f" },
    { F(R32G32_SFLOAT), 8, 1, 0, { { FLOAT, 0, 32 }, { FLOAT, 32, 32 } }, "rg32f" },
    { F(R32G32B32A32_SFLOAT),
      16,
      1,
      1,
      { { FLOAT, 0, 32 }, { FLOAT, 32, 32 }, { FLOAT, 64, 32 }, { FLOAT, 96, 32 } },
      "rgba32f" },
    { F(D16_UNORM), 2, 0, 0, { { UNORM, 0, 16 } }, "d16" },
    { F(X8_D24_UNORM_PACK32), 4, 0, 0, { { UNORM, 0, 24 } }, "d24" },
    { F(D32_SFLOAT), 4, 0, 0, { { FLOAT, 0, 32 } }, "d32" },
    { F(D24_UNORM_S8_UINT), 4, 0, 0, { { UNORM, 0, 24 } }, "d24 s8" },
    { F(D32_SFLOAT_S8_UINT), 4, 0, 0, { { FLOAT, 0, 32 } }, "d32 s8" },
};

static bool is_depth(const format *f)
{
    return f->format >= F(D16_UNORM) && f->format <= F(D32_SFLOAT_S8_UINT);
}

static uint32_t bits_of(const channel *c, const uint8_t *pixel)
{
    uint32_t v = 0;
    for (uint32_t i = 0; i < c->bits; i++) {
        const uint32_t bit = c->first + i;
        v |= (pixel[bit / 8] >> bit % 8 & 1u) << i;
    }
    return v;
}

/* The sizes of the fields of a float, in bits. */
typedef struct fields {
    uint32_t exponent, mantissa;
    bool sign;
} fields;

static fields fields_of(uint32_t bits)
{
    const bool sign = bits == 16 || bits == 32;
    const uint32_t exponent = bits == 32 ? 8 : 5;
    return (fields){ exponent, bits - exponent - sign, sign };
}

/* Returns the exponent of the smallest normal number. */
static int lowest_exponent(fields l)
{
    return 2 - (1 << (l.exponent - 1));
}

static double float_of(uint32_t v, uint32_t bits)
{
    const fields l = fields_of(bits);
    const uint32_t m = v & ((1u << l.mantissa) - 1), e = v >> l.mantissa & ((1u << l.exponent) - 1);
    const double sign = l.sign && v >> (bits - 1) ? -1 : 1, fraction = (double)m / (double)(1u << l.mantissa);
    if (e == (1u << l.exponent) - 1) return m ? NAN : sign * INFINITY;
    return sign * (e ? ldexp(1 + fraction, (int)e - 1 + lowest_exponent(l)) : ldexp(fraction, lowest_exponent(l)));
}

/* Decodes channel c of a pixel. If the format lacks the channel, returns 1 for alpha, and 0 for other channels. */
static double number_of(const format *f, const uint8_t *pixel, int c)
{
    const channel *at = &f->rgba[c];
    if (!at->bits) return c == 3;
    const uint32_t v = bits_of(at, pixel);
    if (at->kind == FLOAT) return float_of(v, at->bits);
    const double share = v / (ldexp(1, (int)at->bits) - 1);
    if (at->kind == UNORM) return share;
    return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
}

/* Returns whether x may become `got` in a float format of `bits` bits: see vkt_texture_adopt. */
static bool float_fits(double x, double got, uint32_t bits)
{
    const fields l = fields_of(bits);
    const double most = ldexp(2 - ldexp(1, -(int)l.mantissa), 1 - lowest_exponent(l));
    if (isnan(x)) return isnan(got);
    if (x < 0 && !l.sign) return got == 0;
    if (isinf(x)) return got == x;
    if (fabs(x) > most) return fabs(got) >= most && signbit(got) == signbit(x);
    int exponent;
    (void)frexp(x, &exponent);
    if (exponent - 1 < lowest_exponent(l)) exponent = lowest_exponent(l) + 1;
    const double step = ldexp(1, exponent - 1 - (int)l.mantissa), low = floor(x / step) * step;
    return got == low || (low != x && got == low + step) || (bits == 32 && got == 0 && fabs(x) < 0x1p-126);
}

static bool fits(double x, double got, const channel *c)
{
    if (c->kind == FLOAT) return float_fits(x, got, c->bits);
    if (isnan(x)) return got >= 0 && got <= 1;
    const double steps = ldexp(1, (int)c->bits) - 1, t = (x < 0 ? 0 : x > 1 ? 1 : x) * steps;
    /* x is clamped to [0, 1]. `got` must be the nearest number of the format below x, or the nearest above x. */
    return fabs(got * steps - t) < 1 - 1e-3 || fabs(got * steps - t) <= 0.5;
}

/* ---- reading ---- */

static bool has(app *a, const format *f, VkFormatFeatureFlags want)
{
    VkFormatProperties2 p = { .sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2 };
    a->GetPhysicalDeviceFormatProperties2(a->phys, f->format, &p);
    return (p.formatProperties.optimalTilingFeatures & want) == want;
}

/* Fills the pixels. They contain every value of a channel of at most 16 bits. In a channel of 32 bits, the special
 * values come first. */
static void fill(const format *f, uint8_t *bytes)
{
    static const uint32_t special[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1,
                                        0x807fffff, 0x00800000, 0x7f7fffff, 0x3f800000, 0xbf800001, 0x33000001 };
    memset(bytes, 0, (size_t)PIXELS * f->bytes);
    for (uint32_t i = 0; i < PIXELS; i++)
        for (int c = 0; c < 4; c++) {
            const channel *at = &f->rgba[c];
            uint32_t v = (i + 31u * (uint32_t)c) * (at->bits > 16 ? 2654435761u : 1u);
            if (at->bits == 32 && i < VKT_COUNT(special)) v = special[(i + (uint32_t)c) % VKT_COUNT(special)];
            if (at->bits == 32 && is_depth(f)) v %= 0x3f800001; /* depth is from 0 to 1 */
            for (uint32_t b = 0; b < at->bits; b++)
                bytes[i * f->bytes + (at->first + b) / 8] |= (uint8_t)((v >> b & 1u) << (at->first + b) % 8);
        }
}

static vkt_array *new_array(vkt_ctx *ctx, uint32_t rows, uint32_t columns, uint32_t channels, const float *data)
{
    vkt_array *array;
    const vkt_array_params params = { .shape = vkt_shape3(rows, columns, channels), .data = data };
    DO(vkt_array_create(ctx, &params, &array));
    DO(vkt_ctx_wait_idle(ctx));
    return array;
}

static void check_read(const format *f, const uint8_t *bytes, const float *got, uint32_t channels)
{
    for (uint32_t i = 0; i < PIXELS; i++)
        for (uint32_t c = 0; c < channels; c++) {
            const double want = number_of(f, bytes + (size_t)i * f->bytes, (int)c), v = (double)got[i * channels + c];
            const kind k = f->rgba[c].bits ? f->rgba[c].kind : UNORM;
            const double tolerance = k == SRGB ? 2e-3 : k == UNORM ? 1e-7 : 0;
            if (isnan(want) ? isnan(v) : v == want || fabs(v - want) <= tolerance) continue;
            if (k == FLOAT && v == 0 && fabs(want) < 0x1p-126) continue; /* a device may read a subnormal f32 as 0 */
            fail_msg("%s, pixel %u, channel %u: want %.9g, got %.9g", f->name, i, c, want, v);
        }
}

static void read_format(app *a, vkt_ctx *ctx, const format *f, VkImageUsageFlags usage, VkImageLayout layout)
{
    static float got[PIXELS * 4];
    const uint32_t channels = is_depth(f) ? 1 : 4;
    app_buffer bytes = app_buffer_make(a, PIXELS * MOST_BYTES, COPIED);
    const VkImageUsageFlags more = is_depth(f) ? VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT : 0;
    app_image image = app_image_make(a, f->format, SIDE, SIDE, usage | more | VK_IMAGE_USAGE_TRANSFER_DST_BIT);
    fill(f, bytes.mapped);
    app_image_copy(a, &image, bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, layout);
    vkt_array *array = new_array(ctx, SIDE, SIDE, channels, NULL);
    vkt_texture *t;
    const vkt_texture_params params = { .image = image.handle,
                                        .format = f->format,
                                        .usage = image.usage,
                                        .width = SIDE,
                                        .height = SIDE,
                                        .layout = layout,
                                        .array = array };
    DO(vkt_texture_adopt(ctx, &params, &t));
    DO(vkt_texture_read(t, NULL));
    app_array_read(a, array, got);
    check_read(f, bytes.mapped, got, channels);
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    app_image_free(a, &image);
    app_buffer_free(a, &bytes);
}

/* Returns whether the library can use storage images of the format on this device. */
static bool has_storage(app *a, const format *f)
{
    VkFormatProperties3 p3 = { .sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3 };
    VkFormatProperties2 p = { .sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2, .pNext = &p3 };
    const VkFormatFeatureFlags2 want = VK_FORMAT_FEATURE_2_STORAGE_IMAGE_BIT |
                                       VK_FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT |
                                       VK_FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT;
    a->GetPhysicalDeviceFormatProperties2(a->phys, f->format, &p);
    return f->everywhere || (f->writable && (p3.optimalTilingFeatures & want) == want);
}

static void every_format_is_read(void **state)
{
    (void)state;
    app a;
    uint32_t n = 0;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    for (size_t i = 0; i < VKT_COUNT(formats); i++) {
        const format *f = &formats[i];
        if (!has(&a, f, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT)) {
            print_message("no images of %s here\n", f->name);
            continue;
        }
        read_format(&a, ctx, f, SAMPLED,
                    is_depth(f) ? VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL
                                : VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
        if (has_storage(&a, f)) read_format(&a, ctx, f, STORAGE, VK_IMAGE_LAYOUT_GENERAL);
        n++;
    }
    /* Every device can sample images of the 12 colour formats that Vulkan demands, of D16, and of one more depth
     * format. */
    assert_true(n >= 14);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

/* ---- writing ---- */

/* Returns the i-th number to write. Special numbers come first. The numbers behind them have both signs, and most have
 * exponents from -30 to 19. */
static float value(uint32_t i)
{
    static const float special[] = { 0.0f,         -0.0f,        1.0f,       -1.0f,     0.5f,     NAN,        INFINITY,
                                     -INFINITY,    65504.0f,     65519.0f,   65520.0f,  65536.0f, 3e38f,      -3e38f,
                                     65024.0f,     64512.0f,     65280.0f,   0x1p-24f,  0x1p-25f, 0x1.8p-25f, 0x1p-14f,
                                     0x1.ffcp-15f, 0x1p-20f,     0x1p-19f,   0x1p-140f, 0.25f,    1.0f / 3,   0.00195f,
                                     0.999f,       254.5f / 255, 0.5f / 255, 2.0f };
    if (i < VKT_COUNT(special)) return special[i];
    const uint32_t h = i * 2654435761u;
    const double x = ldexp(1 + (h >> 8 & 0xffff) / 65536.0, (int)(h >> 24) % 50 - 30);
    return (float)(i % 3 ? x : i % 2 ? -x : fmod(x, 1));
}

static void check_written(const format *f, const uint8_t *bytes, const float *data, uint32_t channels)
{
    for (uint32_t i = 0; i < PIXELS; i++)
        for (uint32_t c = 0; c < 4; c++) {
            if (!f->rgba[c].bits) continue;
            const double x = c < channels ? (double)data[i * channels + c] : c == 3;
            const double got = number_of(f, bytes + (size_t)i * f->bytes, (int)c);
            if (!fits(x, got, &f->rgba[c]))
                fail_msg("%s, pixel %u, channel %u: %.9g became %.9g", f->name, i, c, x, got);
        }
}

static void write_format(app *a, vkt_ctx *ctx, const format *f, uint32_t channels)
{
    static float data[PIXELS * 4];
    const VkImageUsageFlags usage = STORAGE | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    for (uint32_t i = 0; i < PIXELS * channels; i++) data[i] = value(i);
    app_buffer bytes = app_buffer_make(a, PIXELS * MOST_BYTES, COPIED);
    app_image image = app_image_make(a, f->format, SIDE, SIDE, usage);
    app_image_copy(a, &image, bytes.handle, true, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
    vkt_array *array = new_array(ctx, SIDE, SIDE, channels, data);
    vkt_texture *t;
    const vkt_texture_params params = { .image = image.handle,
                                        .format = f->format,
                                        .usage = usage,
                                        .width = SIDE,
                                        .height = SIDE,
                                        .layout = VK_IMAGE_LAYOUT_GENERAL,
                                        .array = array };
    DO(vkt_texture_adopt(ctx, &params, &t));
    DO(vkt_texture_write(t, NULL));
    app_image_copy(a, &image, bytes.handle, false, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_GENERAL);
    check_written(f, bytes.mapped, data, channels);
    vkt_texture_destroy(&t);
    vkt_array_destroy(&array);
    app_image_free(a, &image);
    app_buffer_free(a, &bytes);
}

static void every_format_is_written(void **state)
{
    (void)state;
    app a;
    uint32_t n = 0;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    for (size_t i = 0; i < VKT_COUNT(formats); i++) {
        if (!has_storage(&a, &formats[i])) {
            if (formats[i].writable) print_message("no storage images of %s here\n", formats[i].name);
            continue;
        }
        write_format(&a, ctx, &formats[i], 4);
        write_format(&a, ctx, &formats[i], 1);
        n++;
    }
    assert_true(n >= 4);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

/* ---- messages ---- */

static void messages_name_the_formats(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    app_image image = app_image_make(&a, F(R8G8B8A8_UNORM), 4, 4, SAMPLED),
              depth = app_image_make(&a, F(D16_UNORM), 4, 4, SAMPLED);
    vkt_array *array = new_array(ctx, 4, 4, 2, NULL);
    vkt_texture *t = NULL;
    vkt_texture_params p = { .image = image.handle, .format = F(R8_UINT), .usage = SAMPLED, .width = 4, .height = 4 };
    p.layout = VK_IMAGE_LAYOUT_GENERAL;
    p.array = array;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("B10G11R11_UFLOAT_PACK32");
    p.format = F(R8G8B8A8_SRGB);
    p.usage = STORAGE;
    assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("R8G8B8A8_SRGB");
    p.format = F(R8G8B8A8_UNORM);
    p.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("R8G8B8A8_UNORM wants the usage SAMPLED or STORAGE");
    p.image = depth.handle;
    p.format = F(D16_UNORM);
    p.usage = SAMPLED;
    assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("want an array with C = 1, got 2");
    p.layout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
    assert_int_equal(vkt_texture_adopt(ctx, &p, &t), VKT_E_ARG);
    vkt_test_error_contains("DEPTH_STENCIL_READ_ONLY_OPTIMAL");
    vkt_test_expect_errors(false);
    assert_null(t);
    vkt_array_destroy(&array);
    vkt_ctx_destroy(&ctx);
    app_image_free(&a, &image);
    app_image_free(&a, &depth);
    app_close(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_format_is_read),
        TEST(every_format_is_written),
        TEST(messages_name_the_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
