/* audit/verify.h - a subject on a device, beside its double reference. */
#ifndef VKT_VERIFY_H
#define VKT_VERIFY_H

#include "check/subject.h"
#include "record/record.h"

/* What of a subject is computed: its outputs, gradients, or both. */
typedef struct vkt_phase {
    bool forward;
    uint32_t grads; /* bit i: of input i; those that the subject has not are passed over */
} vkt_phase;

/* Keeps what the phase computes, and nothing else. Programs that are made afterwards compute that. */
void vkt_phase_apply(vkt_subject *s, vkt_phase p);
/* Inputs and seeds. */
vkt_result vkt_phase_write(vkt_program *p, const vkt_subject *s);

typedef struct vkt_verdict {
    double forward;          /* error / allowed of the worst element: above 1, or NaN, is wrong */
    double grad[VKT_MAX_IN]; /* the same of gradients */
    uint32_t grads;          /* bit i: that of input i was compared */
    bool wrong;
    char fault[240]; /* the first thing that is wrong; "" */
} vkt_verdict;

/* Runs the phase on a program and a store of its own, so that clocks and values in place start where the reference
 * does, with the variants in `force`. Whatever is wrong is logged; the status tells of what could not be run. */
vkt_result vkt_verify(vkt_ctx *ctx, vkt_subject *s, vkt_phase p, uint64_t force, vkt_verdict *v);

#endif
