/* bench/plot.h - the roofline figure: rate over arithmetic intensity, both logarithmic. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "bench/results.h"

/* Draws the results of ops that have a rate in FLOP/s to `path`, .svg or .png. Replaces the file atomically. VKT_E_ARG:
 * `path` has another ending, no op has such a rate, or a rate of all->roof is not measured. */
vkt_result bench_plot(const vkt_host *h, const char *path, const bench_results *all, const char *device);

#endif
