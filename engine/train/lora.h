/* train/lora.h - finds the layers with a LoRA adapter among the parameters of a store. */
#ifndef VKT_TRAIN_LORA_H
#define VKT_TRAIN_LORA_H

#include "record/record.h"

#define VKT_LORA_A ".lora_A.weight"
#define VKT_LORA_B ".lora_B.weight"

/* If the name of parameter i is "<layer>.lora_A.weight", returns the length of <layer> in bytes; else 0. */
size_t vkt_lora_layer_bytes(const vkt_store *s, uint32_t i);
/* Finds the parameter whose name is the first n bytes of `layer`, followed by `end`. Sets *out to the index of this
 * parameter. Returns false if there is no such parameter. */
bool vkt_lora_find(const vkt_store *s, const char *layer, size_t n, const char *end, uint32_t *out);

#endif
