/* bench/results.h - what a run of vkt-bench found: one entry per experiment, whose name is the whole experiment. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "bench/stats.h"
#include "ops/ops.h"

typedef enum bench_kind { BENCH_OP = 0, BENCH_STEP, BENCH_MICRO } bench_kind;

/* What is known of the numbers that were computed. */
typedef enum bench_check {
    BENCH_UNCHECKED = 0, /* nothing was computed that could be wrong */
    BENCH_CHECKED,       /* equal to the double reference within the row's tolerance */
    BENCH_CHECKED_CUT,   /* a smaller case of the same op and variant is: this one would take the reference too long */
    BENCH_CHECKED_STEP,  /* a step: the loss falls, and a second start gives the same bits */
    BENCH_WRONG          /* not equal: no time is given */
} bench_check;

typedef struct bench_result {
    bench_kind kind;
    char op[48];       /* row of ops.def, name of the network, or what a micro-measurement is of */
    char phase[24];    /* "forward", "d0" (gradient of input 0), "d1+d2"; a step: "train" */
    char shape[160];   /* inputs and attributes */
    char variant[64];  /* what ops picked, "tile" or "packed+tile"; "" where there was no choice */
    bool preferred;    /* the variant is what the engine takes on its own */
    char kernels[128]; /* "GEMM_PACK GEMM_TILE" */
    double flops, bytes;
    bench_stat gpu, wall; /* ns; of a step: per step */
    bench_check check;
    double excess; /* error / allowed of the worst element */
    uint64_t working_bytes;
    uint32_t copies; /* that took turns, so that each found the caches cold */
    double host_ns;  /* of a step: what the host spent in the call that submits it, waiting left out */
    uint64_t packed_bytes, lower_bound_bytes; /* of a step: activations as packed, and the most alive at once */
    bench_change change;                      /* against --compare; ratio 0: nothing to compare with */
} bench_result;

/* The ceilings of this device, measured in this run; 0: not measured. */
typedef struct bench_roofline {
    double flops_per_s, bytes_per_s;
} bench_roofline;

typedef struct bench_results {
    bench_result *list;
    size_t n, cap;
    bench_roofline roof;
} bench_results;

/* "conv2d d0 (128,32,13,13)b ... [tile]". Returns buf. */
const char *bench_name(const bench_result *r, char buf[320]);
/* Appends a copy; false when out of memory. */
bool bench_add(bench_results *all, const bench_result *r);
void bench_results_free(bench_results *all);

/* Whether a node only gives its input's memory another shape: it costs nothing. */
bool bench_is_free(const vkt_node *n);

/* The time that rates are of: GPU time, or wall time where there is none; for steps wall time. */
const bench_stat *bench_time(const bench_result *r);
double bench_flops_per_s(const bench_result *r); /* 0: no operations, or no time */
double bench_bytes_per_s(const bench_result *r);
/* The least time that the roofline allows / the time it took, in percent: of max(flops / ceiling, bytes / ceiling). 0:
 * not known. */
double bench_roof_percent(const bench_result *r, const bench_roofline *roof);
/* Whether that least time is the memory's. */
bool bench_memory_bound(const bench_result *r, const bench_roofline *roof);
const char *bench_check_text(bench_check c); /* "checked", "checked-cut", ... as in the JSON */

#endif
