/* bench/table.h - prints results on a terminal. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "bench/results.h"

/* Prints the whole table: micro-measurements, steps, then ops in the order of ops.def. A star marks the engine's
 * default variant. */
void bench_print(FILE *out, const bench_results *all);
/* Writes a time with three digits: "17.2 ms", "842 us", "35.1 us", "950 ns". Returns buf. */
const char *bench_time_text(double ns, char buf[16]);
/* Writes a rate with its prefix: "61.7 G", "1.25 T". Returns buf. */
const char *bench_rate_text(double per_s, char buf[16]);

#endif
