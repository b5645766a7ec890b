/* ops/golden_ops.h - public functions of vktrain/ops.h, by the names that the cases of tests/golden/ops.safetensors
 * give them. */
#ifndef VKT_TEST_GOLDEN_OPS_H
#define VKT_TEST_GOLDEN_OPS_H

#include <jansson.h>

#include "vktrain/ops.h"

typedef struct golden_op {
    const char *name;
    vkt_tensor (*build)(vkt_graph *g, const vkt_tensor *in, const json_t *attr);
    uint32_t n_in;
    bool images;       /* the first input is BATCH_LAST */
    uint32_t integers; /* bit k: input k is u32 */
    bool several;      /* the function makes several nodes, so there is no op with a reference for the harness */
} golden_op;

/* Returns the entry that the attribute "op" of a case names. Fails the test if there is none. */
const golden_op *golden_op_of(const json_t *attr);

#endif
