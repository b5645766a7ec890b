/* bench/micro.h - what the device itself can do, and what it costs to ask. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "bench/ops.h"

/* The ceilings: multiply-adds from registers, and a copy of memory that no cache holds. Sets b->results.roof; the two
 * are results too where the filter lets them through. */
vkt_result bench_run_roofline(bench *b);
/* Dispatch, barrier, submission, upload, readback, pipeline creation, first step. */
vkt_result bench_run_micro(bench *b);

#endif
