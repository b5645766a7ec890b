/* bench/tune.h - which variant is best for each node of a network, kept for programs to come. */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/ops.h"

/* Times the step of b->o->tune (a name of nets.h, or "all") by each variant that its nodes could take, and adds the
 * best to this device's tuning file (kernel/tuning.h). VKT_E_NOT_FOUND for another name. */
vkt_result bench_tune(bench *b);

#endif
