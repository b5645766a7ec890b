/* lm/peft.h - what peft.c and peft_config.c share: the names that PEFT gives to its files and tensors, and the file
 * adapter_config.json. */
#ifndef VKT_LM_PEFT_H
#define VKT_LM_PEFT_H

#include "lm/adapters.h"

#define VKT_PEFT_CONFIG "adapter_config.json"
#define VKT_PEFT_TENSORS "adapter_model.safetensors"
#define VKT_PEFT_PREFIX "base_model.model."

/* Returns "<folder>/<name>", which the caller frees (vkt_free); NULL: no memory. */
char *vkt_peft_path(const vkt_host *h, const char *folder, const char *name);
/* Parses the n bytes of an adapter_config.json, as vkt_peft_config_open does. Messages name the file `path`. */
vkt_result vkt_peft_config_parse(const vkt_host *h, const char *path, const char *text, size_t n,
                                 vkt_peft_config **out);
/* Makes the text of an adapter_config.json, which the caller frees (free). Messages name the file `path`. VKT_E_ARG: a
 * target is NULL or empty, a name is not UTF-8, or jansson has no memory. */
vkt_result vkt_peft_config_text(const vkt_host *h, const char *path, const vkt_peft_params *p, const vkt_adapter *list,
                                uint32_t n, char **text);

#endif
