/* bench/steps.h - whole training steps. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench/ops.h"

/* Measures every network of nets.h that --sizes and --filter select. First checks that the loss falls, and that two
 * trainings from the same start have the same losses. Then measures the time per step, with steps back to back. */
vkt_result bench_run_steps(bench *b);

#endif
