/* bench/micro.h - measures the limits of the device itself, and the cost of its commands. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "bench/ops.h"

/* Measures the two ceilings of the roofline: the rate of multiply-adds in registers, and the rate of a copy of more
 * memory than the caches hold. Sets b->results.roof. A ceiling is also a result, if the filter accepts its name. */
vkt_result bench_run_roofline(bench *b);
/* Measures submission, dispatch, barrier, upload, readback, pipeline creation and first step. Leaves out those whose
 * names the filter does not accept. */
vkt_result bench_run_micro(bench *b);

#endif
