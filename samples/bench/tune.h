/* bench/tune.h - finds the best variants for each node of a network, and keeps them for later programs. */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/ops.h"

/* Times the step of b->o->tune (a name of nets.h, or "all") with each usable variant of its nodes, and adds the best
 * ones to this device's tuning file (kernel/tuning.h). VKT_E_NOT_FOUND: there is no such network. */
vkt_result bench_tune(bench *b);

#endif
