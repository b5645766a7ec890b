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
    const bool *timed; /* [number of a node]: whether the GPU time includes the dispatches of the node; NULL: it
                        * includes all dispatches */
    uint64_t min_ns;   /* each of the two clocks (GPU, host) measures for about this time, after the warm-up */
} bench_job;

/* Measures a program. Times are in ns. gpu: the time in which at least one of the timed dispatches ran. gpu->n is 0 if
 * the program has no timestamps. wall: the time from the submission of a run to its end; runs do not overlap. */
vkt_result bench_measure(const bench_job *job, bench_stat *gpu, bench_stat *wall);
/* Measures runs back to back, as in training. wall: ns per run. *host_ns: the host's time per run in vkt_program_run,
 * without the waits inside this call. */
vkt_result bench_measure_loop(const bench_job *job, bench_stat *wall, double *host_ns);

/* Returns how many copies of a program with `bytes` bytes of data a bench_job should have: the smallest number whose
 * data together exceed twice the size of the caches. Two limits may lower the result, but not below 1: there are at
 * most 16 copies, and together they need at most a third of the memory that is left below the memory cap. */
uint32_t bench_copies(const vkt_ctx *ctx, uint64_t bytes);

#endif
