/* reference/reference.h - a second implementation of the ops and their gradients: on the CPU, in double precision, as
 * plain loops over logical indices. Ops that only handle the step state, metrics or shards have no reference. An op
 * that computes a gradient (such as conv2d_dx) is checked against `backward` of the differentiated op. This folder
 * shares no code with ops/, only the structs of attributes (ir/attrs.h). Tests, audits and vkt-bench use it.
 *
 * The functions do not check shapes: the op's `infer` function must have accepted them. The functions allocate nothing
 * and cannot fail. Threads: any. */
#ifndef VKT_REFERENCE_H
#define VKT_REFERENCE_H

#include "ir/attrs.h"
#include "ir/ir.h"

/* A logical, row-major tensor. */
typedef struct vkt_ref_tensor {
    vkt_shape shape;
    vkt_dtype dtype;
    vkt_layout layout; /* layout of the device value; only the random numbers of dropout and quantize depend on it */
    double *f;         /* the elements as numbers; NULL for VKT_U32 */
    uint32_t *u;       /* elements of VKT_U32; else NULL */
} vkt_ref_tensor;

typedef struct vkt_ref_call {
    const void *attr;
    uint32_t n_in, n_out;
    const vkt_ref_tensor *in; /* absent inputs have f == u == NULL */
    const double *constant;   /* a copy of the unchanged input 0, while the caller changes elements of inputs to compute
                               * difference quotients; NULL at other times, or if input 0 is VKT_U32. If an op's
                               * gradient treats a part of the formula as constant, forward computes this part from
                               * `constant` (NULL: from input 0) */
    const double *stored; /* backward: NULL, or output 0 rounded to 16 bits, as the device stores it. If an op's kernel
                           * computes the gradient from the stored output, the reference must use `stored` too */
    bool f16;             /* mlp and mlp_mse: round the outputs of hidden layers, and the gradients with respect to
                           * outputs of layers, to f16, as the f16 kernels do. The caller rounds the inputs */
    vkt_ref_tensor *out;  /* forward: shapes are given, elements are to be filled in; backward: results of forward */
    const double *const *dout; /* backward: dout[i] is the gradient of output i; NULL: output i has no gradient */
    double *const *din;        /* backward: din[i] is the gradient of input i; NULL: the caller does not want it. The
                                * caller sets the gradients to 0, and the op adds to them */
    uint32_t rows;             /* number of real samples, the first ones of the batch (never 0) */
    uint32_t first;            /* gather ops: sample b of the batch is row order[first + b] of the table */
    uint64_t seed;             /* seed of the random numbers of dropout and quantize */
    uint32_t t;                /* number of the step */
    double lr;                 /* learning rate of the step */
} vkt_ref_call;

typedef struct vkt_ref_op {
    const char *name; /* the name of the op in ops.def */
    uint32_t n_out;   /* outputs 0 to n_out - 1 are compared with those of the kernel; absent outputs are skipped */
    void (*forward)(const vkt_ref_call *c);
    void (*backward)(const vkt_ref_call *c); /* NULL: no gradient */
    /* Returns true if, by definition of the op, its gradient is not the derivative of `forward`. An example is an
     * embedding with a row that is not trained. NULL has the same effect as a function that returns false. */
    bool (*is_stopped)(const void *attr);
} vkt_ref_op;

/* Finds an op's reference. NULL: the op has no reference. */
const vkt_ref_op *vkt_ref_find(const char *name);

/* Computes one step of n parameters in place, as described at vkt_update. g has complete gradients, so o->micro_batches
 * is ignored. t is 1 in the first step. moments[i] may be NULL if the optimizer does not have moment i. groups may be
 * NULL. Otherwise groups has a pair for each 64 parameters: the factor of the learning rate (negative for frozen
 * parameters), and the weight decay. All defaults of o must be filled in. */
void vkt_ref_update(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g,
                    double *const moments[3], const double *groups);
/* Computes the Euclidean norm of g without the parameters that `groups` (may be NULL) freezes. */
double vkt_ref_norm(uint64_t n, const double *g, const double *groups);

#endif
