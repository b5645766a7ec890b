/* lm/lora_gguf.h - finds the GGUF tensor to which the adapter of a layer belongs. */
#ifndef VKT_LM_LORA_GGUF_H
#define VKT_LM_LORA_GGUF_H

#include "io/gguf.h"
#include "lm/adapters.h"

/* VKT_LORA_KINDS: how many matrices of a transformer block may have an adapter. VKT_LORA_NAME_ROOM: enough bytes for a
 * tensor's name, ".lora_a" and a NUL. */
enum { VKT_LORA_KINDS = 7, VKT_LORA_NAME_ROOM = VKT_GGUF_MAX_NAME + 1 + 8 };

/* The tensor of a model to which an adapter belongs. */
typedef struct vkt_lora_place {
    char tensor[VKT_GGUF_MAX_NAME + 1]; /* for instance "blk.3.attn_q.weight" */
    uint32_t block, kind;               /* block: index of the transformer block, 3 in this example. kind: index of the
                                         * matrix, below VKT_LORA_KINDS */
    bool in_heads; /* the tensor is a query or key matrix: vkt_lm_source_row gives the order of its rows in a file */
} vkt_lora_place;

/* Finds the tensor of model m to which adapter `a` belongs. Does not check that m has this tensor's transformer
 * block. VKT_E_UNSUPPORTED: GGUF files have no tensor for this layer. VKT_E_SHAPE: the adapter does not fit
 * the model's attention heads. */
vkt_result vkt_lora_place_of(const vkt_host *h, const vkt_adapter *a, const vkt_gguf_model *m, vkt_lora_place *out);
/* Parses the name of matrix A or B of an adapter, for instance "blk.3.attn_q.weight.lora_a". Sets *out to the tensor of
 * the model, here "blk.3.attn_q.weight". Sets *is_b to true if the name ends with ".lora_b". Returns false for a name
 * of another form. */
bool vkt_lora_place_of_half(const char *name, vkt_lora_place *out, bool *is_b);
/* Returns the end of a layer's name, behind "model.layers.3.". For kind 0, the end is "self_attn.q_proj". */
const char *vkt_lora_layer(uint32_t kind);
/* Returns the value that the metadata key general.architecture has for this model, for instance "llama". NULL:
 * m->architecture is not set. */
const char *vkt_lora_architecture(const vkt_gguf_model *m);

#endif
