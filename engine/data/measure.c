/* data/measure.c - computes mean and standard deviation per channel (vktrain/data.h).
 *
 * Uses Welford's update by groups (Chan, Golub & LeVeque 1979). A group is the elements of one channel of one sample,
 * or a piece of them. `merge` adds the elements of one group to the elements that were read before: it combines the
 * counts, means and sums of squared deviations of both. So there is no cancellation, even for many samples. */
#include "data/dataset.h"

#include <math.h>

typedef struct moments {
    double n, mean, m2; /* m2: sum of (x - mean)^2 */
} moments;

static void merge(moments *a, const moments *b)
{
    const double n = a->n + b->n, d = b->mean - a->mean;
    a->m2 += b->m2 + d * d * a->n * b->n / n;
    a->mean += d * b->n / n;
    a->n = n;
}

/* Computes the moments of n numbers of one channel. A sum of up to 2^29 equal f32 is exact in f64, so a channel that
 * never varies has an m2 of exactly 0. */
static moments floats_moments(const float *p, size_t n)
{
    double sum = 0, m2 = 0;
    for (size_t i = 0; i < n; i++) sum += (double)p[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)p[i] - mean;
        m2 += d * d;
    }
    return (moments){ .n = (double)n, .mean = mean, .m2 = m2 };
}

enum { PIECE = 1 << 16 }; /* number of u8 that bytes_moments sums at once; the sum of their squares is below 2^32 */

/* Computes the moments of u8. The sums are integers, because compilers vectorize sums of integers. */
static moments bytes_moments(const uint8_t *p, size_t n)
{
    moments all = { 0 };
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t end = VKT_MIN(n, at + PIECE);
        const uint64_t count = end - at;
        uint32_t sum = 0, squares = 0;
        for (size_t i = at; i < end; i++) {
            sum += p[i];
            squares += (uint32_t)p[i] * p[i];
        }
        const double m2 = (double)(count * squares - (uint64_t)sum * sum) / (double)count;
        merge(&all, &(moments){ .n = (double)count, .mean = (double)sum / (double)count, .m2 = m2 });
    }
    return all;
}

static vkt_result measure(const vkt_dataset *ds, moments *all, uint8_t *row)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    const size_t plane = (size_t)chw[1] * chw[2], plane_bytes = vkt_dataset_row_bytes(ds) / chw[0];
    const bool u8 = vkt_dataset_type(ds) == VKT_ROW_U8;
    for (uint32_t i = 0; i < vkt_dataset_rows(ds); i++) {
        VKT_TRY(vkt_dataset_fetch(ds, i, row));
        for (uint32_t c = 0; c < chw[0]; c++) {
            const uint8_t *p = row + c * plane_bytes;
            const moments m = u8 ? bytes_moments(p, plane) : floats_moments((const float *)(const void *)p, plane);
            merge(&all[c], &m);
        }
    }
    return VKT_OK;
}

vkt_result vkt_dataset_measure(const vkt_dataset *ds, double *mean, double *std)
{
    VKT_WANT(NULL, ds);
    VKT_WANT(vkt_dataset_host(ds), mean);
    VKT_WANT(vkt_dataset_host(ds), std);
    const vkt_host *h = vkt_dataset_host(ds);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    if (vkt_is_sequence(vkt_dataset_type(ds))) return vkt_fail(h, VKT_E_ARG, "measure: whole numbers stay as they are");
    const size_t bytes = chw[0] * sizeof(moments) + vkt_dataset_row_bytes(ds);
    moments *all = vkt_alloc(h, bytes);
    if (!all) return vkt_fail_nomem(h, "measuring a data set", bytes);
    const vkt_result r = measure(ds, all, (uint8_t *)(all + chw[0]));
    const double unit = vkt_dataset_type(ds) == VKT_ROW_U8 ? 255 : 1;
    for (uint32_t c = 0; r == VKT_OK && c < chw[0]; c++) {
        mean[c] = all[c].mean / unit;
        std[c] = all[c].m2 > 0 ? sqrt(all[c].m2 / all[c].n) / unit : 1;
    }
    vkt_free(h, all);
    return r;
}
