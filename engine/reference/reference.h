/* reference/reference.h - a second implementation of the ops and their gradients: on the CPU, in double precision, as
 * plain loops over logical indices. Ops that only handle the step state, metrics or shards have no reference. The
 * folder shares no code with ops/, only the structs of attributes (ir/attrs.h). It is for tests, audits and vkt-bench.
 *
 * The functions trust their caller: shapes are those that the op's infer accepts and describes. They allocate nothing
 * and cannot fail. Threads: any. */
#ifndef VKT_REFERENCE_H
#define VKT_REFERENCE_H

#include "ir/attrs.h"
#include "ir/ir.h"

/* A logical, row-major tensor. */
typedef struct vkt_ref_tensor {
    vkt_shape shape;
    vkt_dtype dtype;
    vkt_layout layout; /* layout of the device value; only the random numbers of dropout depend on it */
    double *f;         /* elements of VKT_F32, or of VKT_U8 as numbers; else NULL */
    uint32_t *u;       /* elements of VKT_U32; else NULL */
} vkt_ref_tensor;

typedef struct vkt_ref_call {
    const void *attr;
    uint32_t n_in, n_out;
    const vkt_ref_tensor *in; /* absent inputs have f == u == NULL */
    const double *constant; /* forward, for difference quotients: input 0 before one of its elements was changed. An op
                             * whose gradient treats a part of its formula as constant computes this part from
                             * `constant`. NULL: use input 0 */
    const double *stored; /* backward: output 0 as it is stored in 16 bits. If an op's kernel computes the gradient from
                           * the stored output, the reference must use `stored` as well. NULL: use the formula */
    bool f16;             /* a network in one node rounds hidden layers, and gradients with respect to layers, to f16,
                           * as its f16 kernel does. The caller rounds the inputs */
    vkt_ref_tensor *out;  /* forward: shapes are given, elements are to be filled in; backward: results of forward */
    const double *const *dout; /* backward: gradient of each output; NULL: none */
    double *const *din;        /* backward: gradient of each input, zeroed by the caller; the op adds to it. NULL: not
                                * wanted */
    uint32_t rows;             /* real rows of the batch (never 0) */
    uint32_t first;            /* index of the batch's first row in the row order */
    uint64_t seed;             /* seed of dropout's random numbers */
    uint32_t t;                /* number of the step */
    double lr;                 /* learning rate of the step */
} vkt_ref_call;

typedef struct vkt_ref_op {
    const char *name; /* as in ops.def */
    uint32_t n_out;   /* number of outputs that are compared (fewer if some are absent); others have other data */
    void (*forward)(const vkt_ref_call *c);
    void (*backward)(const vkt_ref_call *c); /* NULL: no gradient */
    /* Returns whether the gradient differs from the derivative of `forward` by definition. An example is an embedding
     * with a row that is not trained. NULL: it never differs. */
    bool (*is_stopped)(const void *attr);
} vkt_ref_op;

/* Finds an op's reference. NULL if there is none of that name. */
const vkt_ref_op *vkt_ref_find(const char *name);

/* Computes one step of n parameters in place, as described at vkt_update, for complete gradients (micro_batches is
 * ignored). t counts from 1. moments[i] may be NULL if the optimizer does not have moment i. groups has a pair for each
 * 64 parameters, as in abi/update.abi.h, and may be NULL. All defaults of o must be filled in. */
void vkt_ref_update(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g,
                    double *const moments[3], const double *groups);
/* Computes the Euclidean norm of g without the parameters that `groups` (may be NULL) freezes. */
double vkt_ref_norm(uint64_t n, const double *g, const double *groups);

#endif
