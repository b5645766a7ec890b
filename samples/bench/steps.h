/* bench/steps.h - whole training steps. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench/ops.h"

/* Measures every network of nets.h that --sizes selects. First checks that it trains, and that the same start gives the
 * same bits. Then measures its time, back to back. */
vkt_result bench_run_steps(bench *b);

#endif
