/* lm/adapters.h - the LoRA adapters among the parameters of a store, for the files that are made of them. */
#ifndef VKT_LM_ADAPTERS_H
#define VKT_LM_ADAPTERS_H

#include "base/base.h"
#include "vktrain/peft.h"

/* The adapter of one layer. `in` and `out` are the sizes of the layer's weight (out, in). */
typedef struct vkt_adapter {
    const char *name;   /* of A in the store: "<layer>.lora_A.weight" */
    size_t layer_bytes; /* bytes of <layer> in `name` */
    uint32_t a, b;      /* numbers of A and B in the store */
    uint32_t rank, in, out;
} vkt_adapter;

/* Lists the adapters of a store, in its order. The caller frees *list (vkt_free). VKT_E_NOT_FOUND: there are none, or A
 * or B is missing. VKT_E_SHAPE: A and B do not fit. VKT_E_NOMEM. */
vkt_result vkt_adapters_of(const vkt_host *h, const vkt_store *s, vkt_adapter **list, uint32_t *n);
/* Checks that all adapters have the rank of `lora`, and that its alpha is a number other than 0. Sets *out to `lora`
 * with its defaults filled in. VKT_E_ARG. */
vkt_result vkt_adapters_check(const vkt_host *h, const vkt_adapter *list, uint32_t n, const vkt_lora_params *lora,
                              vkt_lora_params *out);
/* Reads A and B: rank * in numbers, then out * rank numbers. VKT_E_DIVERGED: a number is not finite. VKT_E_STATE. */
vkt_result vkt_adapter_read(const vkt_host *h, vkt_store *s, vkt_store_part part, const vkt_adapter *a, float *values);
/* Writes the values of all adapters to a store: A and B of the first one, then those of the next one. */
vkt_result vkt_adapters_write(vkt_store *s, const vkt_adapter *list, uint32_t n, const float *values);
/* Compares the options of a file with those of the network: `built`, with its defaults filled in. VKT_E_STATE: another
 * rank, or another alpha / rank. */
vkt_result vkt_adapters_match(const vkt_host *h, const char *path, const vkt_lora_params *built,
                              const vkt_lora_params *file);
/* Returns the number of values of an adapter. */
static inline uint64_t vkt_adapter_elements(const vkt_adapter *a)
{
    return (uint64_t)a->rank * ((uint64_t)a->in + a->out);
}

/* The options of a file of adapters. */
struct vkt_peft_config {
    vkt_host host;
    char *base;
    char **targets; /* lora.n_targets */
    vkt_lora_params lora;
};
/* Makes an empty one, which vkt_peft_config_destroy frees. VKT_E_NOMEM: *out = NULL. */
vkt_result vkt_peft_config_create(const vkt_host *h, vkt_peft_config **out);
/* Makes room for n targets, once; adds a copy of a name to the targets. VKT_E_NOMEM. */
vkt_result vkt_peft_config_reserve(vkt_peft_config *c, size_t n);
vkt_result vkt_peft_config_add(vkt_peft_config *c, const char *name);

#endif
