/* ops/golden_ops.h - finds the public function of vktrain/ops.h that a case of tests/golden/ops.safetensors names. */
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
    bool several;      /* the function may make several nodes, so the harness has no reference for it */
} golden_op;

/* Returns the golden_op that the attribute "op" of a case names. Fails the test if there is none. */
const golden_op *golden_op_of(const json_t *attr);

#endif
