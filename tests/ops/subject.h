/* ops/subject.h - one op under test: a random case drawn from a seed, as a graph, as input data, and as what the
 * reference makes of them. Needs no device. */
#ifndef VKT_TEST_SUBJECT_H
#define VKT_TEST_SUBJECT_H

#include "ir/ir.h"
#include "reference/reference.h"

/* One input, output or gradient: a value of the graph beside its reference. */
typedef struct side {
    vkt_tensor t;       /* {0}: not there */
    vkt_ref_tensor ref; /* owned elements; u for u32, else f */
    void *data;         /* inputs: the same numbers as the device gets them, row-major; owned */
} side;

typedef struct subject {
    const vkt_op *op;
    const vkt_ref_op *ref;
    uint64_t seed;
    vkt_case c;   /* its text is the case in one line */
    vkt_run run;  /* what the device is told */
    uint64_t t;   /* the optimizer's clock before the run */
    uint64_t key; /* the seed of dropout */
    vkt_graph *g; /* in and dout are its inputs; out and din are kept */
    uint32_t n_out;
    side in[VKT_MAX_IN], out[VKT_MAX_OUT];
    side dout[VKT_MAX_OUT]; /* seeds: gradients with respect to the outputs */
    side din[VKT_MAX_IN];
} subject;

/* Draws the case of `seed`. Fails the running test if the row or the graph is at fault. Every random number comes from
 * Philox (seed, VKT_STREAM_TEST): the same case on every machine. The caller frees. */
void subject_make(subject *s, const vkt_op *op, uint64_t seed);
void subject_free(subject *s);

/* The same by hand: begin, inputs one after the other, an op that the caller applies to them, take, forward and
 * backward. `seed` serves the draws. */
void subject_begin(subject *s, uint64_t seed);
/* Appends an input, absent or not; its numbers are those of `data`, or drawn where that is NULL. */
void subject_input(subject *s, const vkt_case_input *c, const float *data);
/* `out` is the result of the op under test. Adds seeds for its outputs and all its gradients to the graph. */
void subject_take(subject *s, vkt_tensor out);
/* Puts n numbers in place of what was drawn for an input or seed. */
void subject_set(side *v, const float *data, size_t n);

/* Recomputes out from in. */
void subject_forward(subject *s);
/* Recomputes din from in and dout; does nothing for a row without gradient. */
void subject_backward(subject *s);

/* Elements of a side, and element i of it as a number. */
size_t side_count(const side *v);
double side_get(const side *v, size_t i);

#endif
