/* bench/case.h - a case (an op with its inputs and attributes) as a line of text. The lines of a --shapes file and of
 * sizes.def have this form, and so have the names of results:
 *
 *   conv2d (128,32,13,13)b (64,32,5,5) - pad=2,2      # a comment
 *
 * A line has the name of an op (ops.def), the op's inputs in order, and those members of the op's attributes
 * (ir/attrs.h) that differ from their defaults. An input is a shape. '-' means that an optional input is absent. A 'b'
 * behind the shape means the layout batch last. '+' before a shape means numbers in [0.001, 1) instead of [-1, 1).
 * u32<N or u8<N before a shape means integers below N. f16 before a shape means 16-bit floating-point numbers. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "check/case.h"

const vkt_op *bench_find_op(const char *name); /* NULL: no op has this name */
/* Reads a line. VKT_E_FORMAT, logged: the line is not valid. VKT_OK and *op = NULL: the line has only blanks or a
 * comment. */
vkt_result bench_case_parse(const vkt_host *h, const char *line, const vkt_op **op, vkt_case *c);

#endif
