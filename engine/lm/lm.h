/* lm/lm.h - the struct of a language model on a device. */
#ifndef VKT_LM_H
#define VKT_LM_H

#include "base/base.h"
#include "vktrain/lm.h"

struct vkt_lm {
    vkt_ctx *ctx;
    vkt_host host;
    vkt_gguf_model model; /* `name` is this struct's; rope_divisors is NULL */
    uint64_t bytes;       /* of all arrays */
};

#endif
