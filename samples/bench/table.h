/* bench/table.h - results for a terminal. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "bench/results.h"

/* The whole table: micro-measurements, steps, then ops in the order of ops.def. A star marks the variant that the
 * engine takes on its own. */
void bench_print(FILE *out, const bench_results *all);
/* "17.2 ms", "842 us", "35.1 us", "950 ns": three digits. Returns buf. */
const char *bench_time_text(double ns, char buf[16]);
/* "61.7 G", "1.25 T": a rate with its prefix. Returns buf. */
const char *bench_rate_text(double per_s, char buf[16]);

#endif
