/* bench/verify.h - a phase of a case on the device beside its double reference. */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "bench/results.h"
#include "check/subject.h"
#include "gpu/gpu.h"

/* What of a subject is computed: its outputs, or some of its gradients. */
typedef struct bench_phase {
    char name[24];
    bool forward;
    uint32_t grads; /* bit i: of input i */
} bench_phase;

/* Keeps what the phase computes, and nothing else. Programs that are made afterwards compute that. */
void bench_phase_apply(vkt_subject *s, const bench_phase *p);
/* Inputs and seeds. */
vkt_result bench_write_inputs(vkt_program *p, const vkt_subject *s);

typedef struct bench_verify_params {
    const vkt_op *op;
    const vkt_case *c;
    const bench_phase *phase;
    uint64_t force; /* variants */
} bench_verify_params;

/* Sets r->check and r->excess. A case whose reference would take too long is halved until it does not. What is wrong is
 * logged; the status tells of what could not be run. */
vkt_result bench_verify(vkt_ctx *ctx, vkt_subject *s, const bench_verify_params *v, bench_result *r);

#endif
