/* bench/stats.h - the median and the spread of measured times. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

typedef struct bench_stat {
    double median, q1, q3, min; /* q1, q3: the quartiles */
    uint32_t n;                 /* number of samples; 0: not measured */
} bench_stat;

/* Sorts the samples and computes their statistics. Quantiles between two samples are interpolated (type 7 of Hyndman &
 * Fan 1996, NumPy's default). */
bench_stat bench_stat_of(double *samples, size_t n);

/* How a result changed. `ratio` is the median now / the median before. `real` is not 0 if the change is more than
 * noise: the medians differ by more than 5 %, and each median is outside the range q1 to q3 of the other
 * measurement. */
typedef struct bench_change {
    double ratio;
    int real; /* -1 faster, 1 slower, 0 within the noise */
} bench_change;
bench_change bench_compare(const bench_stat *before, const bench_stat *now);

#endif
