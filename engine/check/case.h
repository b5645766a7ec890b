/* check/case.h - cases of ops: as text, cut down, priced, and taken from a node of somebody's graph. */
#ifndef VKT_CHECK_CASE_H
#define VKT_CHECK_CASE_H

#include "ops/ops.h"

/* Inputs and attributes as a line of a --shapes file has them (samples/bench/case.h), the op's name left out. Cut at
 * 159 bytes. */
void vkt_case_text(const vkt_host *h, const vkt_op *op, const vkt_case *c, char out[160]);

/* Halves the largest dimension above 16 wherever it stands, in bounds of integers too, and works out the attributes
 * that follow. False when there is none. */
bool vkt_case_halve(const vkt_op *op, vkt_case *c);
/* Halves dimension 0 of input 0, if it is above 4, wherever it is dimension 0 of an input; beside a batch that lies
 * last, floats in rows have none. */
bool vkt_case_halve_batch(vkt_case *c);

/* How long the double reference takes for it, in operations, forward and backward: three times the forward's, and 16
 * for each element that is drawn, copied and compared. The op's own status where the case is not legal, logged. */
vkt_result vkt_case_cost(const vkt_host *h, const vkt_op *op, const vkt_case *c, double *cost);

/* Whether the case may be drawn and computed: its inputs and attributes pass the op's infer, as a builder's do, and
 * integers that index something (labels, ids, rows) are below what they index, as in all random cases of the op. Else
 * infer's status, or VKT_E_ARG with the bound that would do; logged. */
vkt_result vkt_case_check(const vkt_host *h, const vkt_op *op, const vkt_case *c);

/* A case with the node's inputs and attributes. Numbers are from the ranges that the row draws its random cases from,
 * and of these the one most like the node; below a bound that such cases take from a dimension (labels from the number
 * of classes), integers are below the node's. False, and an empty case, where no random case of the row has such
 * inputs, so that nobody says what numbers are legal. */
bool vkt_case_of_node(const vkt_node *n, vkt_case *c);

#endif
