/* data/resize.c - resizes by a widened triangle filter (image.h).
 *
 * This is the filter along one axis, from n to m pixels:
 *
 *     s = n / m                                       the scale
 *     w = max(s, 1)                                   half the width of the filter
 *     c = (i + 1/2) * s                               the centre of output i
 *     floor(c - w + 1/2) .. floor(c + w + 1/2) - 1    the input pixels j of output i; only those inside the image
 *     1 - |j + 1/2 - c| / w                           the weight of pixel j
 *
 * The weights are divided by their sum. The filter interpolates if the image grows, and averages if the image shrinks.
 *
 * Pillow (libImaging/Resample.c, 8-bit images) computes the weights in float64 and rounds them to 22 fractional
 * bits. It applies them as integers, to rows first and then to columns, and rounds to 8 bits both times. Many
 * published networks were trained on images that Pillow resized. So this file produces the same bits as Pillow. */
#include <math.h>

#include "data/image.h"

/* A sum has 32 bits: 22 for the weights, and 8 for the pixel. Pillow keeps 2 bits for other filters, whose sums can be
 * above 255 or below 0. */
#define WEIGHT_BITS 22

/* The filter of one axis. */
typedef struct axis {
    uint32_t n, m;    /* number of pixels of the input, and of the output */
    uint32_t most;    /* the largest number of weights that an output pixel may have */
    uint32_t *first;  /* (m): the first input pixel of each output pixel */
    uint32_t *count;  /* (m): the number of input pixels of each output pixel */
    int32_t *weights; /* (m, most) */
} axis;

static double filter_width(const axis *a)
{
    const double scale = (double)a->n / a->m;
    return VKT_MAX(scale, 1.0);
}

/* Sets a->most. Returns how many bytes of scratch memory an axis needs, a multiple of 8; 0: too many bytes. */
static size_t axis_bytes(axis *a)
{
    const double most = ceil(filter_width(a)) * 2 + 1;
    a->most = (uint32_t)VKT_MIN(most, UINT32_MAX);
    uint64_t bytes;
    if (!vkt_mul_u64((uint64_t)a->most + 2, (uint64_t)a->m * sizeof(int32_t), &bytes) || bytes > PTRDIFF_MAX / 4)
        return 0;
    return (size_t)vkt_round_up(bytes, 8);
}

static void axis_make(axis *a, void *memory, double *unit)
{
    const double scale = (double)a->n / a->m, width = filter_width(a);
    a->first = memory;
    a->count = a->first + a->m;
    a->weights = (int32_t *)(void *)(a->count + a->m);
    for (uint32_t i = 0; i < a->m; i++) {
        const double centre = (i + 0.5) * scale;
        const double low = centre - width + 0.5, high = centre + width + 0.5;
        const uint32_t from = low > 0 ? (uint32_t)low : 0, to = high < a->n ? (uint32_t)high : a->n;
        double sum = 0;
        for (uint32_t j = from; j < to; j++) {
            const double w = 1 - fabs((j - centre + 0.5) * (1 / width));
            unit[j - from] = VKT_MAX(w, 0.0);
            sum += unit[j - from];
        }
        a->first[i] = from;
        a->count[i] = to - from;
        for (uint32_t k = 0; k < to - from; k++)
            a->weights[(size_t)i * a->most + k] = (int32_t)(0.5 + unit[k] / sum * (1 << WEIGHT_BITS));
    }
}

static uint8_t byte_of(int32_t sum)
{
    const int32_t v = sum >> WEIGHT_BITS;
    return (uint8_t)VKT_MAX(0, VKT_MIN(v, 255));
}

/* Resizes one row along x. `channels` is a constant in each call, so the compiler unrolls the inner loop. */
static inline void resize_row(const axis *a, const uint8_t *in, uint32_t channels, uint8_t *out)
{
    for (uint32_t x = 0; x < a->m; x++) {
        const int32_t *w = a->weights + (size_t)x * a->most;
        const uint8_t *p = in + (size_t)a->first[x] * channels;
        int32_t sum[3] = { 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1) };
        for (uint32_t k = 0; k < a->count[x]; k++, p += channels)
            for (uint32_t c = 0; c < channels; c++) sum[c] += w[k] * p[c];
        for (uint32_t c = 0; c < channels; c++) *out++ = byte_of(sum[c]);
    }
}

/* Resizes along y and writes planes. `wide` has a->n rows of `width` pixels; `sums` has space for one row. */
static void resize_columns(const axis *a, const uint8_t *wide, uint32_t width, uint32_t channels, int32_t *sums,
                           uint8_t *planes)
{
    const size_t row = (size_t)width * channels;
    for (uint32_t y = 0; y < a->m; y++) {
        for (size_t i = 0; i < row; i++) sums[i] = 1 << (WEIGHT_BITS - 1);
        for (uint32_t k = 0; k < a->count[y]; k++) {
            const int32_t w = a->weights[(size_t)y * a->most + k];
            const uint8_t *in = wide + (a->first[y] + k) * row;
            for (size_t i = 0; i < row; i++) sums[i] += w * in[i];
        }
        for (uint32_t c = 0; c < channels; c++) {
            uint8_t *out = planes + ((size_t)c * a->m + y) * width;
            for (uint32_t x = 0; x < width; x++) out[x] = byte_of(sums[(size_t)x * channels + c]);
        }
    }
}

vkt_result vkt_image_resize(const vkt_host *h, const vkt_image *in, uint32_t width, uint32_t height,
                            vkt_image_scratch *s, uint8_t *planes)
{
    axis x = { .n = in->width, .m = width }, y = { .n = in->height, .m = height };
    const uint32_t C = in->channels;
    const size_t x_bytes = axis_bytes(&x), y_bytes = axis_bytes(&y);
    const size_t unit_bytes = ((size_t)VKT_MAX(x.most, y.most) + 1) * sizeof(double);
    const size_t sums_bytes = (size_t)vkt_round_up((uint64_t)width * C * sizeof(int32_t), 8);
    const bool rows = width != in->width; /* false: the weights are 1 and 0, and rows do not change */
    uint64_t wide_bytes = (uint64_t)width * in->height, all = 0;
    if (!x_bytes || !y_bytes || !vkt_mul_u64(wide_bytes, rows ? C : 0, &wide_bytes) || wide_bytes > PTRDIFF_MAX / 4 ||
        (all = unit_bytes + sums_bytes + x_bytes + y_bytes + wide_bytes) > PTRDIFF_MAX)
        return vkt_fail_nomem(h, "resizing an image", SIZE_MAX);
    VKT_TRY(vkt_byte_buffer_reserve(h, &s->filter, (size_t)all));
    uint8_t *at = s->filter.p; /* aligned for any type; each part but the last has a multiple of 8 bytes */
    double *unit = (double *)(void *)at;
    int32_t *sums = (int32_t *)(void *)(at += unit_bytes);
    axis_make(&x, at += sums_bytes, unit);
    axis_make(&y, at += x_bytes, unit);
    uint8_t *wide = at + y_bytes;
    const size_t row = (size_t)in->width * C, wide_row = (size_t)width * C;
    for (uint32_t i = 0; rows && i < in->height; i++) {
        if (C == 3)
            resize_row(&x, in->pixels.p + i * row, 3, wide + i * wide_row);
        else
            resize_row(&x, in->pixels.p + i * row, 1, wide + i * wide_row);
    }
    resize_columns(&y, rows ? wide : in->pixels.p, width, C, sums, planes);
    return VKT_OK;
}
