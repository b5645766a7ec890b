/* bench/measure.h - times programs: by GPU timestamps, and by the clock on the wall. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/stats.h"
#include "record/record.h"

/* Copies of one program, of which each finds the caches full of the others' data. */
typedef struct bench_job {
    vkt_program *programs[16];
    uint32_t n;
    vkt_run run;
    const bool *timed; /* by node number: whose dispatches count for GPU time; NULL: all */
    uint64_t min_ns;   /* to spend on each of both clocks, after the warm-up */
} bench_job;

/* gpu: from the first to the last moment in which one of the timed dispatches ran, gaps that others fill left out; n 0
 * where the queue has no timestamps. wall: submission to the end, one run at a time. */
vkt_result bench_measure(const bench_job *job, bench_stat *gpu, bench_stat *wall);
/* Runs back to back, as training does: ns per run, and in *host_ns those in the call that submits one, waiting left
 * out. */
vkt_result bench_measure_loop(const bench_job *job, bench_stat *wall, double *host_ns);

/* How many copies of `bytes` are more than the caches hold twice, within what memory is left. */
uint32_t bench_copies(const vkt_ctx *ctx, uint64_t bytes);

#endif
