/* bench/ops.h - measures the ops: the forward pass and each gradient of each case, with the variants that the options
 * select. Before the time of a result is measured, its numbers are verified. If this would take too long, the numbers
 * of a smaller case are verified instead (verify.h). */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include "bench/options.h"
#include "bench/results.h"
#include "gpu/gpu.h"

/* One run of vkt-bench. */
typedef struct bench {
    vkt_ctx *ctx;
    const bench_options *o;
    bench_results results;
    uint32_t done, failed; /* done: number of results so far; failed: number of wrong results, plus the number of cases
                            * and networks that could not run */
} bench;

/* Returns whether --filter accepts the name. */
bool bench_wanted(const bench *b, const char *name);
/* Adds the result to b->results. Prints the result on stderr if stderr is not a terminal. */
vkt_result bench_report(bench *b, const bench_result *r);
/* Prints the name of the next experiment on stderr if stderr is a terminal that can rewrite a line. */
void bench_progress(const bench *b, const char *name);

/* Runs those cases of --sizes or --shapes whose results --filter may accept. If a case cannot run, the case counts as
 * failed, and the next case follows. A lost device, a lack of memory or a line that is not valid ends the run. */
vkt_result bench_run_ops(bench *b);

#endif
