/* bench/micro.h - measures the limits of the device itself, and the cost of its commands. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "bench/ops.h"

/* Measures the ceilings: multiply-adds from registers, and a copy of memory that no cache can hold. Sets
 * b->results.roof. The two are also results, if the filter accepts their names. */
vkt_result bench_run_roofline(bench *b);
/* Measures dispatch, barrier, submission, upload, readback, pipeline creation and first step. */
vkt_result bench_run_micro(bench *b);

#endif
