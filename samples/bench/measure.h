/* bench/measure.h - measures the time of programs, by GPU timestamps and by the host's clock. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/stats.h"
#include "record/record.h"

/* One program, or several copies of it. Copies run in rotation. If there are enough copies (bench_copies), a copy does
 * not find its own data in the caches, but the data of other copies. */
typedef struct bench_job {
    vkt_program *programs[16];
    uint32_t n;
    vkt_run run;
    const bool *timed; /* [node number]: the node's dispatches count for GPU time; NULL: all dispatches count */
    uint64_t min_ns;   /* approximate time to measure by each of the two clocks, after the warm-up */
} bench_job;

/* Measures a program. Times are in ns. gpu: the time in which at least one of the timed dispatches ran. gpu->n is 0 if
 * the program has no timestamps. wall: the time from the submission of a run to its end; runs do not overlap. */
vkt_result bench_measure(const bench_job *job, bench_stat *gpu, bench_stat *wall);
/* Measures runs back to back, as in training. wall: ns per run. *host_ns: the host's time per run in vkt_program_run,
 * without the waits inside this call. */
vkt_result bench_measure_loop(const bench_job *job, bench_stat *wall, double *host_ns);

/* Returns the number of copies to make of a program with `bytes` bytes of data. This is the smallest number of copies
 * whose data together exceed twice the size of the caches. But the result is at most 16, and two or more copies
 * together need at most a third of the memory that is left below the memory cap. */
uint32_t bench_copies(const vkt_ctx *ctx, uint64_t bytes);

#endif
