/* bench/ops.h - ops one by one: each case forward and for each gradient, by each variant; verified, then timed. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include "bench/options.h"
#include "bench/results.h"
#include "gpu/gpu.h"

/* What a run is told and what it gathers. */
typedef struct bench {
    vkt_ctx *ctx;
    const bench_options *o;
    bench_results results;
    uint32_t done, failed; /* experiments so far; those that were wrong or could not be run */
} bench;

/* Whether --filter lets that name through. */
bool bench_wanted(const bench *b, const char *name);
/* Adds the result and tells of it on stderr. */
vkt_result bench_report(bench *b, const bench_result *r);
/* What is about to be measured, on stderr where that is a terminal. */
void bench_progress(const bench *b, const char *name);

/* All cases of the sizes or shapes that the options name. A case that cannot be run counts as failed and is passed
 * over. */
vkt_result bench_run_ops(bench *b);

#endif
