/* ops/table.c - the list of all ops, for instance for audits, tests, fuzzing, the bench runner and the docs. */
#include "ops/ops.h"

const vkt_op *const vkt_ops[] = {
#define VKT_OP(name) &vkt_op_##name,
#include "ops/ops.def"
#undef VKT_OP
    NULL,
};
