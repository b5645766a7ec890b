/* bench/tune.h - finds the best variants for the nodes of a network, and writes these variants to the tuning file. */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/nets.h"
#include "bench/ops.h"

/* Measures the time of a training step of the network b->o->tune with each variant that some node of the network can
 * use. If b->o->tune is "all", does this for each network whose steps vkt-bench --sizes net measures. Adds the fastest
 * variants to this device's tuning file (kernel/tuning.h), which later programs read. VKT_E_NOT_FOUND: no network has
 * this name. VKT_E_UNSUPPORTED: the device has no timestamps. */
vkt_result bench_tune(bench *b);

/* Measures the GPU time of each node of a step, in ns, and adds it to node_ns[node]. */
typedef vkt_result (*bench_time_fn)(bench *b, const bench_step *s, double *node_ns);
/* Does the same as bench_tune for one network. `time` measures the nodes. A test passes a function that returns fixed
 * times. */
vkt_result bench_tune_net(bench *b, const bench_net *net, bench_time_fn time);

#endif
