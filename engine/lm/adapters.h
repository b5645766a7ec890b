/* lm/adapters.h - the LoRA adapters in a store, for the code that reads and writes files of adapters. */
#ifndef VKT_LM_ADAPTERS_H
#define VKT_LM_ADAPTERS_H

#include "base/base.h"
#include "vktrain/peft.h"

/* The adapter of one layer: matrices A (rank,in) and B (out,rank). The layer's weight is (out,in). */
typedef struct vkt_adapter {
    const char *name;   /* name of A in the store: "<layer>.lora_A.weight" */
    size_t layer_bytes; /* bytes of <layer> in `name` */
    uint32_t a, b;      /* indices of the parameters A and B in the store */
    uint32_t rank, in, out;
} vkt_adapter;

/* Lists the adapters of a store, in the order of the store. The caller frees *list (vkt_free). VKT_E_NOT_FOUND: the
 * store has no A, or no B for an A. VKT_E_SHAPE: an A and its B do not fit. VKT_E_NOMEM. */
vkt_result vkt_adapters_of(const vkt_host *h, const vkt_store *s, vkt_adapter **list, uint32_t *n);
/* Checks that all adapters have the rank of `lora`, and that lora->alpha is not VKT_ZERO. (An alpha of 0 selects the
 * default.) Sets *out to `lora` with all defaults filled in. VKT_E_ARG. */
vkt_result vkt_adapters_check(const vkt_host *h, const vkt_adapter *list, uint32_t n, const vkt_lora_params *lora,
                              vkt_lora_params *out);
/* Reads A and B: `values` gets a->rank * a->in numbers, then a->out * a->rank numbers. VKT_E_DIVERGED: a number is not
 * finite. VKT_E_STATE: the store does not have `part`. */
vkt_result vkt_adapter_read(const vkt_host *h, vkt_store *s, vkt_store_part part, const vkt_adapter *a, float *values);
/* Writes the values of all adapters to a store. `values` has A and B of the first adapter, then A and B of the next
 * adapter, and so on. */
vkt_result vkt_adapters_write(vkt_store *s, const vkt_adapter *list, uint32_t n, const float *values);
/* Compares the options of a file with the options of the network (`built`, with all defaults filled in). VKT_E_STATE:
 * the ranks differ, or the alphas differ by more than 1e-6 of the file's alpha. */
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
    char **targets; /* lora.n_targets names */
    vkt_lora_params lora;
};
/* Makes empty options, which vkt_peft_config_destroy frees. VKT_E_NOMEM: *out = NULL. */
vkt_result vkt_peft_config_create(const vkt_host *h, vkt_peft_config **out);
/* Makes room for n targets. May be called once. VKT_E_NOMEM. */
vkt_result vkt_peft_config_reserve(vkt_peft_config *c, size_t n);
/* Adds a copy of a name to the targets. VKT_E_NOMEM. */
vkt_result vkt_peft_config_add(vkt_peft_config *c, const char *name);

#endif
