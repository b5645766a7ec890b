/* bench/tune.h - finds the best variants for each node of a network, and keeps them for later programs. */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/ops.h"

/* Measures the step of the network b->o->tune ("all": each network of --sizes net) with each usable variant of its
 * nodes, and adds the best variants to this device's tuning file (kernel/tuning.h). VKT_E_NOT_FOUND: there is no such
 * network. VKT_E_UNSUPPORTED: the device has no timestamps. */
vkt_result bench_tune(bench *b);

#endif
