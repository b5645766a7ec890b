/* check/subject.h - one op on one case: as a graph, as input data, and as what the double reference makes of them. What
 * op tests and vkt-bench verify; needs no device. A library of its own, like reference/.
 *
 * Threads: different subjects, any thread. */
#ifndef VKT_SUBJECT_H
#define VKT_SUBJECT_H

#include "ir/ir.h"
#include "reference/reference.h"

/* One input, output or gradient: a value of the graph beside its reference. */
typedef struct vkt_side {
    vkt_tensor t;       /* {0}: not there */
    vkt_ref_tensor ref; /* owned elements; u for u32, else f */
    void *data;         /* inputs: the same numbers as the device gets them, row-major; owned */
} vkt_side;

typedef struct vkt_subject {
    vkt_host host;
    const vkt_op *op;
    const vkt_ref_op *ref;
    uint64_t seed;
    vkt_case c;                /* its text is the case in one line */
    vkt_run run;               /* what the device is told */
    uint64_t t;                /* the optimizer's clock before the run */
    uint64_t key;              /* the seed of dropout */
    vkt_graph *g;              /* in and dout are its inputs; out and din are kept */
    uint32_t n_out, n_forward; /* nodes 0 .. n_forward-1 make the outputs, later ones gradients */
    vkt_side in[VKT_MAX_IN], out[VKT_MAX_OUT];
    vkt_side dout[VKT_MAX_OUT]; /* seeds: gradients with respect to the outputs */
    vkt_side din[VKT_MAX_IN];
    const double *held;   /* see vkt_ref_call; NULL but while difference quotients are made */
    const double *stored; /* see vkt_ref_call; NULL but where a test has read what a device stored in 16 bits */
} vkt_subject;

/* Draws the case of `seed` by the row's sample, and its graph and numbers; the reference's results are not worked out
 * yet. Every random number comes from Philox (seed, VKT_STREAM_TEST): the same case on every machine. What is wrong is
 * a status and one logged line; the caller frees in any case. */
vkt_result vkt_subject_make(const vkt_host *h, vkt_subject *s, const vkt_op *op, uint64_t seed);
/* The same for a case that is given; numbers and step state are drawn. */
vkt_result vkt_subject_of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c, uint64_t seed);
/* Safe on a zeroed one. */
void vkt_subject_free(vkt_subject *s);

/* The same by hand: begin, inputs one after the other, an op that the caller applies to them, take. */
vkt_result vkt_subject_begin(const vkt_host *h, vkt_subject *s, uint64_t seed);
/* Appends an input, absent or not; its numbers are those of `data`, or drawn where that is NULL. */
vkt_result vkt_subject_input(vkt_subject *s, const vkt_case_input *c, const float *data);
/* `out` is the result of the op in question. Adds seeds for its outputs and all its gradients to the graph. */
vkt_result vkt_subject_take(vkt_subject *s, vkt_tensor out);
/* Puts n numbers, as many as it has elements, in place of what was drawn for an input or seed. */
void vkt_side_set(vkt_side *v, const float *data, size_t n);

/* Recomputes the references of `out` from `in`. */
void vkt_subject_forward(vkt_subject *s);
/* Recomputes the references of `din` from `in` and `dout`; does nothing for a row without gradient. */
void vkt_subject_backward(vkt_subject *s);

/* Elements of a side, and element i of it as a number. */
size_t vkt_side_count(const vkt_side *v);
double vkt_side_get(const vkt_side *v, size_t i);

/* The element of n that is furthest from right by |got - ref| <= abs_tol * scale + rel_tol * |ref|, scale the largest
 * |ref| or 1 where that is 0. */
typedef struct vkt_worst {
    size_t at;
    double excess; /* error / allowed: above 1, or NaN, is wrong */
    double allowed;
} vkt_worst;
vkt_worst vkt_worst_of(const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
