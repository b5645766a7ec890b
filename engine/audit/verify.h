/* audit/verify.h - runs a subject (one op with one case: check/subject.h) on a device, and compares the results with
 * the subject's reference in double precision. */
#ifndef VKT_VERIFY_H
#define VKT_VERIFY_H

#include "check/subject.h"
#include "record/record.h"

/* The parts of a subject that are computed: outputs, gradients, or both. */
typedef struct vkt_phase {
    bool forward;
    uint32_t grads; /* bit i: the gradient of input i; bits of missing gradients are ignored */
} vkt_phase;

/* Marks the outputs and gradients of the phase as kept (vkt_keep), and removes the mark from all other outputs and
 * gradients. A program that is made later computes the kept values. */
void vkt_phase_apply(vkt_subject *s, vkt_phase p);
/* Writes those inputs and output gradients of the subject that the program reads. */
vkt_result vkt_phase_write(vkt_program *p, const vkt_subject *s);

typedef struct vkt_verdict {
    double forward;          /* error / tolerance of the worst output element: above 1, or NaN, is wrong */
    double grad[VKT_MAX_IN]; /* error / tolerance of the worst element of each gradient */
    uint32_t grads;          /* bit i: the gradient of input i was compared */
    bool wrong;
    char fault[240]; /* the first fault; "" if there is none */
} vkt_verdict;

/* Runs the phase with `force` as vkt_choices.force (base/variant.h), and compares its results with the reference. Each
 * call makes a new program and (for a graph with parameters) a new store. So the optimizer's clock
 * (vkt_store_set_clock) and the values that an op updates in place start as in the reference.
 * Wrong results are logged and set v->wrong. The status is an error only if the program could not be made or run. */
vkt_result vkt_verify(vkt_ctx *ctx, vkt_subject *s, vkt_phase p, uint64_t force, vkt_verdict *v);

#endif
