/* reference/reference.h - every op again, on the CPU, in double precision, as plain loops over logical indices. Shares
 * no code with ops/: only the attributes' structs (ir/attrs.h). For tests, audits and vkt-bench.
 *
 * The functions trust their caller: shapes are those that the op's infer accepts and states. They allocate nothing and
 * cannot fail. Threads: any. */
#ifndef VKT_REFERENCE_H
#define VKT_REFERENCE_H

#include "ir/attrs.h"
#include "ir/ir.h"

/* A logical, row-major tensor. */
typedef struct vkt_ref_tensor {
    vkt_shape shape;
    vkt_dtype dtype;
    vkt_layout layout; /* of the device value that it stands for: matters to dropout's numbering alone */
    double *f;         /* VKT_F32, and VKT_U8 as numbers */
    uint32_t *u;       /* VKT_U32 */
} vkt_ref_tensor;

typedef struct vkt_ref_call {
    const void *attr;
    uint32_t n_in, n_out;
    const vkt_ref_tensor *in; /* absent inputs have f == u == NULL */
    const double *held;       /* forward, for difference quotients: input 0 before an element of it was moved. Who takes
                               * a part of it for a constant in the gradient makes that part of this. NULL: input 0 */
    const double *stored; /* backward: output 0 as it is stored, where that is in 16 bits: who makes the gradient from
                           * it does so from this. NULL: from what the formula has it */
    vkt_ref_tensor *out;  /* forward: shapes given, elements to be filled in; backward reads shapes alone */
    const double *const *dout; /* backward: per output, NULL for none */
    double *const *din;        /* backward: per input, NULL if not wanted; zeroed by the caller, accumulated into */
    uint32_t rows;             /* real rows of the batch (never 0) */
    uint32_t first;            /* where the batch starts in the row order */
    uint64_t seed;             /* step state, for dropout */
    uint32_t t;
    double lr;
} vkt_ref_call;

typedef struct vkt_ref_op {
    const char *name; /* as in ops.def */
    uint32_t n_out;   /* outputs that have a meaning; what a row keeps in further ones is its own affair */
    void (*forward)(const vkt_ref_call *c);
    void (*backward)(const vkt_ref_call *c); /* NULL: no gradient */
    /* Whether the gradient is by definition no derivative of the forward: an id whose row is to stay. NULL: never. */
    bool (*is_stopped)(const void *attr);
} vkt_ref_op;

/* NULL if there is none of that name. */
const vkt_ref_op *vkt_ref_find(const char *name);

/* One step of n parameters in place, as vkt_update's comment says, of gradients that are complete (micro_batches is not
 * looked at); t counts from 1. moments[i] may be NULL where the optimizer has none; groups, a pair for each 64
 * parameters as abi/update.abi.h has it, may be NULL. o must be resolved: no zero that stands for a default. */
void vkt_ref_update(const vkt_optimizer *o, double lr, uint64_t t, uint64_t n, double *p, const double *g,
                    double *const moments[3], const double *groups);
/* Euclidean norm of g, parameters that `groups` freezes left out. */
double vkt_ref_norm(uint64_t n, const double *g, const double *groups);

#endif
