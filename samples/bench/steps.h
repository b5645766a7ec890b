/* bench/steps.h - whole training steps. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench/ops.h"

/* Every network of nets.h that --sizes has: that it trains, and the same bits from the same start; then its time, back
 * to back. */
vkt_result bench_run_steps(bench *b);

#endif
