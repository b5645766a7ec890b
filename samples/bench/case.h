/* bench/case.h - cases as lines of text, for --shapes files, the table of sizes and the names of results:
 *
 *   conv2d (128,32,13,13)b (64,32,5,5) - pad=2,2      # a comment
 *
 * An op of ops.def; its inputs in order: a shape, with 'b' behind it where the batch lies last, '-' for an optional one
 * that is absent, '+' before it for numbers in [0.001, 1) in place of [-1, 1), u32<N or u8<N before it for integers
 * below N; then members of its attributes (ir/attrs.h) that are not as usual. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "check/case.h"

const vkt_op *bench_find_op(const char *name); /* NULL: there is none */
/* VKT_E_FORMAT, logged. A line of blanks or comment alone gives VKT_OK and *op = NULL. */
vkt_result bench_case_parse(const vkt_host *h, const char *line, const vkt_op **op, vkt_case *c);

#endif
