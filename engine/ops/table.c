/* ops/table.c - the list that tests, fuzzing, the bench runner and the docs walk. */
#include "ops/ops.h"

const vkt_op *const vkt_ops[] = {
#define VKT_OP(name) &vkt_op_##name,
#include "ops/ops.def"
#undef VKT_OP
    NULL,
};
