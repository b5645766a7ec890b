/* vktrain/audit.h - checks whether a device computes correctly. The audit runs the ops of a graph, forward and
 * backward, and compares the results with a reference: the same op in double precision on the CPU. The audit also
 * compares the gradients of the reference with difference quotients. The program `vkt-audit` does all of this. */
#ifndef VKTRAIN_AUDIT_H
#define VKTRAIN_AUDIT_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_AUDIT_INPUTS 12 /* largest number of inputs of an op */

/* Ops of the application (vkt_custom) have no reference. The audit runs a node of such an op with the node's own
 * shapes, on inputs in the ranges that vkt_custom_input gives (low, high, bound). The audit compares some elements of
 * each gradient with difference quotients of the device's own outputs. The tolerance is 3e-3 of the gradient's largest
 * element, plus the error that the rounding of f32 may cause. The audit also checks that the shaders write all elements
 * of their outputs, and nothing after the end of an output. Each such node has an entry of its own. In this entry,
 * `op` is "custom", `text` has the op's name and the shapes of its inputs, `times` is 1, and `forward` is 0. `gradient`
 * and `difference` are errors of the gradients, divided by the tolerance above. */

/* The result of one op on one case. It is valid only during the call of on_entry. */
typedef struct vkt_audit_entry {
    const char *op;     /* name of the op, for instance "conv2d" */
    const char *name;   /* name of the node's first output in the graph; "": the node has no output. In entries of
                         * vkt_audit_op: the seed, for instance "seed 3" */
    const char *text;   /* the audited shapes and attributes. The op and this text are a line for vkt-bench --shapes,
                         * unless the op is "custom" */
    uint32_t node;      /* index in the graph of the first node with this work (op, attributes and shapes). In entries
                         * of vkt_audit_op: 0 */
    uint32_t times;     /* number of nodes with this work. If several random cases replace these nodes, the entry of the
                         * first case has this number, and the other entries have 0. In entries of vkt_audit_op: 1 */
    bool reduced;       /* a smaller case replaces the node, because the reference would take too long. The batch is
                         * halved first, then the largest dimensions */
    bool sampled;       /* random cases of the op replace the node, and this entry is one of them. Reason: the node
                         * cannot be made small enough, or the values that its inputs may have are not known. In entries
                         * of vkt_audit_op: false, although their cases are random, too */
    vkt_result status;  /* not VKT_OK: the case could not be run, and of the members below only `right` and `fault` are
                         * valid */
    double forward;     /* largest error of an output element, divided by the op's tolerance; wrong if above 1 or NaN */
    uint32_t gradients; /* bit i: the gradient of input i was compared */
    double gradient[VKT_AUDIT_INPUTS]; /* like `forward`, but for the gradient of input i */
    uint32_t differences; /* number of elements of the reference's gradients that were compared with difference
                           * quotients. They are elements of this case, of a smaller case or of a random one. Custom
                           * ops: elements of the device's gradients */
    uint32_t kinks;       /* number of elements that were not compared with a difference quotient, because the input is
                           * too near to a kink of the op. For custom ops also because the input is so large that
                           * rounding removes the small step of the difference quotient */
    double difference;    /* largest error of the elements that `differences` counts, divided by the tolerance; wrong if
                           * above 1 or NaN. The tolerance is 1e-6 times the largest magnitude of the gradient, or 1e-6
                           * if the gradient is all zeros. Custom ops have another tolerance: see above */
    bool right;           /* the case could be run, and no element of its results is wrong */
    const char *fault;    /* the first fault, in one line; "": none */
} vkt_audit_entry;

/* The options of an audit. A member that is 0 or NULL selects its default. */
typedef struct vkt_audit_params {
    uint64_t seed;   /* seed of all random numbers; 0 means 1 */
    double max_cost; /* largest number of floating-point operations of the reference in one case; 0 means 3e8, which
                      * take about a second */
    void (*on_entry)(void *user, const vkt_audit_entry *e); /* gets each entry; may be NULL */
    void *user;                                             /* passed to on_entry */
} vkt_audit_params;

/* The totals of one audit. */
typedef struct vkt_audit_totals {
    uint32_t nodes;   /* number of audited nodes. If several nodes have the same work, each of them counts. For
                       * vkt_audit_op: number of random cases */
    uint32_t cases;   /* number of audited cases. All nodes with the same work have one common case, or several random
                       * cases */
    uint32_t parts;   /* number of nodes that are not audited, because their op has no random cases. These ops are the
                       * gradients of other ops (the audit of the other op includes its gradient), step_advance, report
                       * and shard_* */
    uint32_t reduced; /* number of cases with vkt_audit_entry.reduced */
    uint32_t sampled; /* number of cases with vkt_audit_entry.sampled */
    uint32_t failed;  /* number of cases that are wrong or could not be run */
} vkt_audit_totals;

/* Audits each node of the graph alone: with its shapes and attributes, and with the kernels that this device would run
 * in VKT_PRECISION_F32. For exceptions see `reduced` and `sampled` of vkt_audit_entry, and vkt_audit_totals.parts. The
 * inputs are random numbers of the kind that the op's own tests use. The graph does not change, and the numbers in its
 * values and stores are not read. The graph may be with or without gradients. This function may be called before or
 * after vkt_program_create. Returns VKT_OK if all cases are right; VKT_E_WRONG if a case is wrong or could not be run.
 * Each fault is logged. VKT_E_NOMEM and VKT_E_DEVICE_LOST end the audit; *totals then has the numbers so far. If the
 * graph has an error, returns this error. params may be NULL. Threads: calls on one context must not overlap. */
VKT_API vkt_result vkt_audit_graph(vkt_ctx *ctx, const vkt_graph *g, const vkt_audit_params *params,
                                   vkt_audit_totals *totals);

/* Audits one op by its name, on one random case for each of the `count` seeds from params->seed on. Adds the numbers of
 * these cases to *totals, which the caller sets to zero before the first call. Returns VKT_OK if these cases are right.
 * VKT_E_NOT_FOUND: there is no such op, or the op has no random cases. Other errors are those of vkt_audit_graph. */
VKT_API vkt_result vkt_audit_op(vkt_ctx *ctx, const char *op, uint64_t count, const vkt_audit_params *params,
                                vkt_audit_totals *totals);
/* Lists the ops that vkt_audit_op can check. Returns the name of op i of this list, counted from 0; NULL after the last
 * op. Static strings; any thread. */
VKT_API const char *vkt_audit_op_name(uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
