/* check/subject.h - a subject is one op with one case: the graph, the input data, and the results of the float64
 * reference. Op tests, audits, vkt-bench and vkt-info use subjects. check/ needs no device.
 *
 * Threads: any; one thread at a time per subject. */
#ifndef VKT_SUBJECT_H
#define VKT_SUBJECT_H

#include "ir/ir.h"
#include "reference/reference.h"

/* One input, output or gradient: a value of the graph and its reference. */
typedef struct vkt_side {
    vkt_tensor t;       /* {0}: absent */
    vkt_ref_tensor ref; /* owns its elements: ref.u for u32, else ref.f */
    void *data;         /* of an input or a seed (`dout` below): the numbers that the device gets, row-major; owned */
} vkt_side;

typedef struct vkt_subject {
    vkt_host host;
    const vkt_op *op;
    const vkt_ref_op *ref;
    uint64_t seed;
    bool graph_only;           /* there are no numbers: `data` and the references are NULL */
    vkt_case c;                /* c.text is the case in one line */
    vkt_run run;               /* arguments of the device's run */
    uint64_t t;                /* the optimizer's clock before the run */
    uint64_t key;              /* the seed of dropout and quantize */
    vkt_graph *g;              /* `in` and `dout` are its inputs; vkt_keep keeps `out` and `din` */
    uint32_t n_out, n_forward; /* nodes 0 .. n_forward-1 make the outputs; later ones make gradients or read out[0] */
    vkt_side in[VKT_MAX_IN], out[VKT_MAX_OUT];
    vkt_side dout[VKT_MAX_OUT]; /* seeds: gradients with respect to the outputs */
    vkt_side din[VKT_MAX_IN];
    const double *constant; /* see vkt_ref_call; NULL except while difference quotients are computed */
    bool f16;               /* see vkt_ref_call */
    const double *stored; /* see vkt_ref_call; NULL unless a test has read the values that a device stored in 16 bits */
} vkt_subject;

/* Generates the case of `seed` with vkt_op.sample (ir/ir.h), and makes its graph and numbers. The reference's results
 * are not computed yet. Every random number comes from Philox (seed, VKT_STREAM_TEST), so the case is the same on every
 * machine. After an error, returns its status and logs one line. The caller frees the subject, also after a failure. */
vkt_result vkt_subject_make(const vkt_host *h, vkt_subject *s, const vkt_op *op, uint64_t seed);
/* Makes the subject of a given case, with random numbers and a random step state. */
vkt_result vkt_subject_of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c, uint64_t seed);
/* Makes only the graph of a given case. Allocates no memory for numbers. */
vkt_result vkt_subject_graph_of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c);
/* Frees a subject; a zeroed one is allowed. */
void vkt_subject_free(vkt_subject *s);

/* Begins a subject that the caller builds by hand. The caller adds the inputs in order, applies an op to them, and
 * then calls vkt_subject_set_output. */
vkt_result vkt_subject_begin(const vkt_host *h, vkt_subject *s, uint64_t seed);
/* Appends an input, which may be absent. If `data` is NULL, the input gets random numbers. */
vkt_result vkt_subject_input(vkt_subject *s, const vkt_case_input *c, const float *data);
/* Completes the subject. `out` is the result of the op under test. If the op has a gradient, adds seeds for the
 * op's outputs, and the gradients of its inputs, to the graph. */
vkt_result vkt_subject_set_output(vkt_subject *s, vkt_tensor out);
/* Replaces the numbers of an input, or of a seed (`dout`), by the n numbers of `data`. n must be the number of elements
 * of v. */
void vkt_side_set(vkt_side *v, const float *data, size_t n);

/* Recomputes the references of `out` from `in`. */
void vkt_subject_forward(vkt_subject *s);
/* Recomputes the references of `din` from `in`, `dout` and `out`. So vkt_subject_forward must be called first. Does
 * nothing for an op without gradient. */
void vkt_subject_backward(vkt_subject *s);

size_t vkt_side_count(const vkt_side *v);         /* returns the number of elements */
double vkt_side_get(const vkt_side *v, size_t i); /* returns element i of the reference */

/* The element with the largest quotient of error and tolerance. The error of an element is |got - ref|. Its tolerance
 * is abs_tol * scale + rel_tol * |ref|, where scale is the largest finite |ref| of all elements, or 1 if this is 0. */
typedef struct vkt_worst {
    size_t at;
    double excess; /* error / allowed; above 1, or NaN: the result is wrong */
    double allowed;
} vkt_worst;
vkt_worst vkt_worst_of(const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
