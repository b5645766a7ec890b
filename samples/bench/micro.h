/* bench/micro.h - measures the limits of the device itself, and the cost of its commands. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "bench/ops.h"

/* Measures the two ceilings: multiply-adds from registers, and a copy of more memory than the caches hold. Sets
 * b->results.roof. If the filter accepts its name, a ceiling is also a result. */
vkt_result bench_run_roofline(bench *b);
/* Measures submission, dispatch, barrier, upload, readback, pipeline creation and first step, if the filter accepts
 * their names. */
vkt_result bench_run_micro(bench *b);

#endif
