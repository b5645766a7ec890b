/* bench/verify.h - compares one phase (forward, or gradients) of a case (bench/case.h) with a float64 reference. */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "audit/verify.h"
#include "bench/results.h"
#include "gpu/gpu.h"

/* A phase and its name in a result, for instance "forward", or "d1+d2" (the gradients of inputs 1 and 2,
 * counted from 0). */
typedef struct bench_phase {
    char name[40];
    vkt_phase what;
} bench_phase;

typedef struct bench_verify_params {
    const vkt_op *op;
    const vkt_case *c;
    const bench_phase *phase;
    uint64_t force; /* bit v: nodes must use variant v (base/variant.h) where they can; 0: the nodes choose */
} bench_verify_params;

/* Sets r->check and r->excess. If the reference would take too long, the function checks a smaller case: it halves the
 * largest dimensions until the case is small enough. Wrong results are logged. Returns an error if the case could not
 * run. */
vkt_result bench_verify(vkt_ctx *ctx, vkt_subject *s, const bench_verify_params *v, bench_result *r);

#endif
