/* vktrain/audit.h - checks whether a device computes correctly. The audit runs each op of a graph, forward and
 * backward, and compares it with the same op in double precision on the CPU. It also compares the CPU's gradients with
 * difference quotients. `vkt-audit` is this as a program. */
#ifndef VKTRAIN_AUDIT_H
#define VKTRAIN_AUDIT_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_AUDIT_INPUTS 12 /* most inputs of an op */

/* The result of one op on one case. It is valid only during the call that passes it. */
typedef struct vkt_audit_entry {
    const char *op;     /* "conv2d" */
    const char *name;   /* the node's first output in the graph; for a random case: "seed 3" */
    const char *text;   /* the audited shapes and attributes: a line for vkt-bench --shapes */
    uint32_t node;      /* number of the first node with this work */
    uint32_t times;     /* number of nodes that do the same work */
    bool reduced;       /* a smaller case replaces the node, with a smaller batch first: the reference would take too
                         * long */
    bool sampled;       /* a random case of the op replaces the node: it cannot be reduced, or the values its inputs
                         * may have are not known */
    vkt_result status;  /* not VKT_OK: the case could not be run, and of the members below only `fault` is set */
    double forward;     /* error of the worst output element / the op's tolerance; wrong if above 1 or NaN */
    uint32_t gradients; /* bit i: the gradient of input i was compared */
    double gradient[VKT_AUDIT_INPUTS]; /* as `forward` */
    uint32_t differences; /* number of elements of the reference's gradients, of this case or a smaller one, that were
                           * compared with difference quotients */
    uint32_t kinks;       /* number of elements that were left out because they are too near to a kink */
    double difference;    /* as `forward`; the tolerance is 1e-6 of the largest gradient */
    bool right;           /* the case could be run, and none of these errors is above 1 or NaN */
    const char *fault;    /* the first fault, in one line; "": none */
} vkt_audit_entry;

/* The options of an audit. Zero is the default. */
typedef struct vkt_audit_params {
    uint64_t seed;   /* seed of all random numbers; 0: 1 */
    double max_cost; /* floating-point operations of the reference per case; 0: 3e8, about a second */
    void (*on_entry)(void *user, const vkt_audit_entry *e); /* may be NULL */
    void *user;                                             /* passed to on_entry */
} vkt_audit_params;

/* The totals of one audit. */
typedef struct vkt_audit_totals {
    uint32_t nodes;   /* audited nodes, with repetitions of the same work; or random cases */
    uint32_t cases;   /* different cases among these */
    uint32_t parts;   /* nodes that are not audited alone: gradients (audited with their op) and the step */
    uint32_t reduced; /* cases with vkt_audit_entry.reduced */
    uint32_t sampled; /* cases with vkt_audit_entry.sampled */
    uint32_t failed;  /* cases that are wrong or could not be run */
} vkt_audit_totals;

/* Audits each node of the graph alone: with its shapes and attributes, and with the kernels that this device would run.
 * The inputs are random numbers of the kind that the op's own tests draw. The graph is only read; its own values and
 * stores are not read. It may have gradients or not, and vkt_program_create may come before or after. *totals is always
 * set. Returns VKT_OK if everything is right; VKT_E_WRONG if something is wrong, and each fault is logged. VKT_E_NOMEM,
 * VKT_E_DEVICE_LOST and the status of a graph that is not VKT_OK end the audit. params may be NULL. Threads: as any
 * call on the context. */
VKT_API vkt_result vkt_audit_graph(vkt_ctx *ctx, const vkt_graph *g, const vkt_audit_params *params,
                                   vkt_audit_totals *totals);

/* Audits one op of ops.h by its name, on the random cases of `count` seeds from params->seed on. The results are added
 * to *totals. Returns as vkt_audit_graph; VKT_E_NOT_FOUND if there is no such op. */
VKT_API vkt_result vkt_audit_op(vkt_ctx *ctx, const char *op, uint64_t count, const vkt_audit_params *params,
                                vkt_audit_totals *totals);
/* Returns the name of op number i that vkt_audit_op can check; NULL after the last one. Static strings; any thread. */
VKT_API const char *vkt_audit_op_name(uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
