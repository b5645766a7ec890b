/* lm/lm.c - the weights of a language model: from a GGUF file to a device. */
#include "lm/lm.h"

void vkt_lm_destroy(vkt_lm **pm)
{
    vkt_lm *m = pm ? *pm : NULL;
    if (!m) return;
    vkt_free(&m->host, m);
    *pm = NULL;
}

const vkt_gguf_model *vkt_lm_model(const vkt_lm *m)
{
    return m ? &m->model : NULL;
}

uint64_t vkt_lm_bytes(const vkt_lm *m)
{
    return m ? m->bytes : 0;
}
