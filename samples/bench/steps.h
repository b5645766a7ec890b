/* bench/steps.h - whole training steps. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench/ops.h"

/* Measures every network of nets.h that --sizes and --filter select. First checks that the network trains, and that the
 * same start gives the same bits. Then measures the time of its steps, back to back. */
vkt_result bench_run_steps(bench *b);

#endif
