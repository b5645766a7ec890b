/* check/case.h - cases of ops: writes cases as text, makes cases smaller, estimates their cost, checks them, and makes
 * cases from nodes of a graph. */
#ifndef VKT_CHECK_CASE_H
#define VKT_CHECK_CASE_H

#include "ops/ops.h"

/* Writes inputs and attributes as in a line of a --shapes file (samples/bench/case.h), without the op's name. The text
 * is truncated after 159 bytes. */
void vkt_case_text(const vkt_host *h, const vkt_op *op, const vkt_case *c, char out[160]);

/* Finds the size of the largest dimension of the inputs. Halves each dimension and each vkt_case_input.bound that
 * equals this size. Half of a multiple of 4 is rounded up to a multiple of 4; any other half is rounded down. Limits
 * c->rows to dimension 0 of input 0. Recomputes the attributes that follow from the shapes. Returns false if no
 * dimension is above 16. */
bool vkt_case_halve(const vkt_op *op, vkt_case *c);
/* Halves the batch (rounded as by vkt_case_halve), if it is above 4. The batch is dimension 0 of input 0. Another input
 * has this batch if its dimension 0 has the same size. But if input 0 has the layout batch last, an f32 input with the
 * layout rows is a weight: it has no batch and does not change. Limits c->rows to the new batch. Returns false if the
 * batch is 4 or less. */
bool vkt_case_halve_batch(vkt_case *c);

/* Estimates how many operations the reference needs. The reference computes the case on the CPU in float64. For an op
 * with a gradient: three times the operations of the forward pass, plus 32 for each element of the inputs and outputs.
 * For any other op: the operations of the forward pass, plus 16 for each element. If the case is not legal, logs that
 * and returns the status of vkt_op.infer. */
vkt_result vkt_case_cost(const vkt_host *h, const vkt_op *op, const vkt_case *c, double *cost);

/* Checks whether the case may be computed with random numbers. vkt_op.infer must accept the case's inputs and
 * attributes. Integers that index a dimension (labels, ids, rows) have a bound. The bound may be above the size of the
 * dimension, but not by more than in the op's random cases (0 to 2). If the check fails, logs the reason and returns
 * the status of vkt_op.infer, or VKT_E_ARG for a bound. */
vkt_result vkt_case_check(const vkt_host *h, const vkt_op *op, const vkt_case *c);

/* Makes a case with the node's inputs and attributes. The ranges of the new case's numbers are those of one random case
 * of the op: the case whose attributes are most like the node's. Integers also have an upper bound. Labels, for
 * instance, are below the number of classes. The bound of the new case is:
 * - the bound of the random cases, if all of them have the same bound;
 * - the size of a dimension of the node's inputs, if in all random cases the bound is the size of this dimension, or up
 *   to 2 more;
 * - the value of an attribute of the node, if in all random cases the bound is the value of this attribute, or up to 2
 *   more;
 * - else the smallest bound of the random cases.
 * If no random case has the same inputs with the same types, the legal numbers are unknown. Then the function returns
 * false and sets *c to an empty case. */
bool vkt_case_of_node(const vkt_node *n, vkt_case *c);

#endif
