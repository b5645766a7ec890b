/* bench/micro.h - measures the limits of the device itself, and the cost of its commands. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "bench/ops.h"

/* Measures the two ceilings of the roofline: the rate of multiply-adds in registers, and the rate at which a kernel
 * copies more data than the caches hold (if there is enough memory). Sets b->results.roof. If the filter accepts the
 * name of a ceiling, the ceiling is also reported as a result. */
vkt_result bench_run_roofline(bench *b);
/* Measures submission, dispatch, barrier, upload, readback, pipeline creation and first step. Leaves out the
 * experiments whose names the filter does not accept. */
vkt_result bench_run_micro(bench *b);

#endif
