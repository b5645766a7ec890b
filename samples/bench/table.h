/* bench/table.h - prints results on a terminal. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "bench/results.h"

/* Prints the whole table: micro-measurements, steps, then ops in the order of ops.def. A star marks the variant
 * that the engine chose itself. */
void bench_print(FILE *out, const bench_results *all);
/* Writes a time with three digits, for instance "17.2 ms" or "842 us". Returns buf. */
const char *bench_time_text(double ns, char buf[16]);
/* Writes a rate with three digits and an SI prefix, for instance "61.7 G". Returns buf. */
const char *bench_rate_text(double per_s, char buf[16]);

#endif
