/* lm/lora_gguf.h - what the files about GGUF adapters share: which layer belongs to which tensor. */
#ifndef VKT_LM_LORA_GGUF_H
#define VKT_LM_LORA_GGUF_H

#include "io/gguf.h"
#include "lm/adapters.h"

/* Matrices of a block that may have an adapter; bytes of a tensor's name with its end, ".lora_a" included. */
enum { VKT_LORA_KINDS = 7, VKT_LORA_NAME_ROOM = VKT_GGUF_MAX_NAME + 1 + 8 };

/* The tensor of a model to which an adapter belongs. */
typedef struct vkt_lora_place {
    char tensor[VKT_GGUF_MAX_NAME + 1]; /* for instance "blk.3.attn_q.weight" */
    uint32_t block, kind;               /* 3; which of the VKT_LORA_KINDS matrices it is */
    bool in_heads; /* its rows are those of heads of queries or keys: the file may have them in another order */
} vkt_lora_place;

/* Finds the tensor of an adapter of a store. VKT_E_UNSUPPORTED: GGUF files have no tensor for this layer. VKT_E_SHAPE:
 * the adapter does not fit the model's heads. */
vkt_result vkt_lora_place_of(const vkt_host *h, const vkt_adapter *a, const vkt_gguf_model *m, vkt_lora_place *out);
/* Finds the tensor to which "blk.3.attn_q.weight.lora_a" belongs, and whether the name ends with ".lora_b". Returns
 * false for a name of another form. */
bool vkt_lora_place_of_half(const char *name, vkt_lora_place *out, bool *is_b);
/* Returns the end of a layer's name, behind "model.layers.3.": for instance "self_attn.q_proj". */
const char *vkt_lora_layer(uint32_t kind);
/* Returns the model's general.architecture, or NULL if it has none. */
const char *vkt_lora_architecture(const vkt_gguf_model *m);

#endif
