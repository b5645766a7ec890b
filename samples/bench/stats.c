/* bench/stats.c - see stats.h. */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

bench_stat bench_stat_of(double *samples, size_t n)
{
    if (n == 0) return (bench_stat){ 0 };
    qsort(samples, n, sizeof *samples, rising);
    return (bench_stat){ .median = quantile(samples, n, 0.5),
                         .q1 = quantile(samples, n, 0.25),
                         .q3 = quantile(samples, n, 0.75),
                         .min = samples[0],
                         .n = (uint32_t)n };
}

bench_change bench_compare(const bench_stat *before, const bench_stat *now)
{
    bench_change c = { .ratio = now->median / before->median };
    if (!isfinite(c.ratio) || fabs(c.ratio - 1) <= 0.05) return c;
    if (now->median < before->q1 && before->median > now->q3) c.real = -1;
    if (now->median > before->q3 && before->median < now->q1) c.real = 1;
    return c;
}
