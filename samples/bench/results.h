/* bench/results.h - the results of vkt-bench: one entry per experiment. The name of an entry describes the whole
 * experiment. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "bench/stats.h"
#include "ops/ops.h"

typedef enum bench_kind { BENCH_OP = 0, BENCH_STEP, BENCH_MICRO } bench_kind;

/* The result of the check of the computed numbers. */
typedef enum bench_check {
    BENCH_UNCHECKED = 0,   /* a micro-measurement: it has no numbers to check */
    BENCH_CHECKED,         /* equal to the reference in double precision, within the op's tolerance */
    BENCH_CHECKED_REDUCED, /* a smaller case was checked, because the reference of the whole case would take too long */
    BENCH_CHECKED_STEP,    /* a step: the loss falls, and a second training from the same start has the same losses */
    BENCH_WRONG            /* the check failed, so the result has no time */
} bench_check;

typedef struct bench_result {
    bench_kind kind;
    char op[48];       /* name of an op, of a network, or of a micro-measurement */
    char phase[40];    /* "forward", "d0" (gradient of input 0), "d1+d2" (of inputs 1 and 2); a step: "train" */
    char shape[160];   /* an op: inputs and attributes; a step or a micro-measurement: a description */
    char variant[64];  /* the op's variants, for instance "packed+tile"; "": none. A step: its precision, "" for f32 */
    bool preferred;    /* true: the engine chose the variants. false: the experiment forced one variant */
    char kernels[128]; /* names of the kernels, for instance "GEMM_PACK GEMM_TILE" */
    double flops, bytes;
    bench_stat gpu, wall; /* nanoseconds of a run; of a step, if the experiment trains */
    bench_check check;
    double excess; /* largest error of an element, divided by the allowed error */
    uint64_t working_bytes;
    uint32_t copies; /* number of copies of the program, which run in rotation: see bench_job */
    double host_ns;  /* a step: the host's time in the call that submits the step, without waiting */
    /* Only for a step. packed_bytes: the size of the activations in the memory plan. lower_bound_bytes: the largest
     * number of bytes that are live at once. */
    uint64_t packed_bytes, lower_bound_bytes;
    bench_change change; /* the change since the file of --compare; ratio 0: there is no old time or no new time */
} bench_result;

/* The largest rates of this device, measured in this run; 0: not measured. */
typedef struct bench_roofline {
    double flops_per_s, bytes_per_s;
} bench_roofline;

typedef struct bench_results {
    bench_result *list;
    size_t n, cap;
    bench_roofline roof;
} bench_results;

/* Writes the name to buf, for instance "conv2d d0 (128,32,13,13)b ... [tile]". Returns buf. */
const char *bench_name(const bench_result *r, char buf[320]);
/* Appends a copy of *r. Returns false if there is no memory. */
bool bench_add(bench_results *all, const bench_result *r);
void bench_results_free(bench_results *all);

/* Returns whether a node only changes the shape of its input. Such a node has no dispatch. */
bool bench_is_free(const vkt_node *n);

/* Returns the time from which rates are computed: the wall time for steps and for results without a GPU time, else the
 * GPU time. */
const bench_stat *bench_time(const bench_result *r);
double bench_flops_per_s(const bench_result *r); /* 0: no operations, or no time */
double bench_bytes_per_s(const bench_result *r);
/* Returns the least time that the roofline allows, in percent of the measured time. The least time is max(r->flops /
 * roof->flops_per_s, r->bytes / roof->bytes_per_s). 0: not known. */
double bench_roof_percent(const bench_result *r, const bench_roofline *roof);
/* Returns whether memory, not computation, limits the speed: r->bytes / roof->bytes_per_s is larger than r->flops /
 * roof->flops_per_s. */
bool bench_memory_bound(const bench_result *r, const bench_roofline *roof);
const char *bench_check_text(bench_check c); /* "checked", "checked-cut", ... as in the JSON */

#endif
