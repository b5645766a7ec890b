/* vktrain/audit.h - is this device right? Every op of a graph, forward and backward, beside the same op in double
 * precision on the CPU, whose gradients are held against difference quotients. `vkt-audit` is this as a program. */
#ifndef VKTRAIN_AUDIT_H
#define VKTRAIN_AUDIT_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_AUDIT_INPUTS 12 /* the most that an op has */

/* What was found of one op on one case: lives for the call that hands it out. */
typedef struct vkt_audit_entry {
    const char *op;     /* "conv2d" */
    const char *name;   /* of the node's first output in the graph; of a random case "seed 3" */
    const char *text;   /* shapes and attributes as they were audited: a line for vkt-bench --shapes */
    uint32_t node;      /* number of the first such node */
    uint32_t times;     /* how many nodes are the same work */
    bool cut;           /* a smaller case of the node, in its batch at first: it would take the reference too long */
    bool sampled;       /* a random case of the op in place of the node's: it cannot be cut, or nobody says what
                         * numbers its inputs may have */
    vkt_result status;  /* not VKT_OK: it could not be run, and nothing below but `fault` is known */
    double forward;     /* error of the worst element of the outputs / what the op allows; above 1, or NaN, is wrong */
    uint32_t gradients; /* bit i: the gradient of input i was compared */
    double gradient[VKT_AUDIT_INPUTS]; /* as `forward` */
    uint32_t differences; /* elements of the reference's gradients, of the case or of a smaller one, that difference
                           * quotients were held against */
    uint32_t kinks;       /* elements left out of that, for a kink lies too near to them */
    double difference;    /* as `forward`; what is allowed is 1e-6 of the largest gradient */
    bool right;           /* it could be run, and none of these errors is above 1 or NaN */
    const char *fault;    /* the first thing that is wrong, in one line; "" */
} vkt_audit_entry;

/* Zero is the default. */
typedef struct vkt_audit_params {
    uint64_t seed;   /* of all random numbers; 0: 1 */
    double max_cost; /* floating-point operations of the reference per case; 0: 3e8, about a second */
    void (*on_entry)(void *user, const vkt_audit_entry *e); /* may be NULL */
    void *user;                                             /* handed to it */
} vkt_audit_params;

/* Of one audit. */
typedef struct vkt_audit_totals {
    uint32_t nodes; /* that were audited, the same work counted as often as it is there; random cases */
    uint32_t cases; /* different ones of these */
    uint32_t parts; /* nodes that are not audited by themselves: gradients (with the op whose they are) and the step */
    uint32_t cut;   /* of the cases: vkt_audit_entry.cut */
    uint32_t sampled; /* of the cases: vkt_audit_entry.sampled */
    uint32_t failed;  /* cases that are wrong or could not be run */
} vkt_audit_totals;

/* Audits each node of the graph by itself: at its shapes, with its attributes, on random numbers of the kind that the
 * op's own tests draw, by the kernels that this device would run. The graph is only read: before or after
 * vkt_program_create, with its gradients or without. Values of the graph's own are not looked at, and no store.
 * *totals is set in any case. Returns VKT_OK where all is right; VKT_E_WRONG where something is not, with each fault
 * logged; VKT_E_NOMEM, VKT_E_DEVICE_LOST and the status of a graph that is not VKT_OK end the audit. params may be
 * NULL. Threads: as any call on the context. */
VKT_API vkt_result vkt_audit_graph(vkt_ctx *ctx, const vkt_graph *g, const vkt_audit_params *params,
                                   vkt_audit_totals *totals);

/* The same for an op of ops.h by its name, on the random cases of `count` seeds from params->seed on. VKT_E_NOT_FOUND
 * where there is none; totals are added to. */
VKT_API vkt_result vkt_audit_op(vkt_ctx *ctx, const char *op, uint64_t count, const vkt_audit_params *params,
                                vkt_audit_totals *totals);
/* Names of the ops that vkt_audit_op knows, by number; NULL behind the last. Static strings; any thread. */
VKT_API const char *vkt_audit_op_name(uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
