/* io/shards.h - the tensors of one or several safetensors files as one set.
 *
 * A large model is stored in several files ("shards") beside an index, "model.safetensors.index.json":
 *
 *   { "metadata": {"total_size": 988097824, ...},
 *     "weight_map": { "name of a tensor": "model-00001-of-00002.safetensors", ... } }
 *
 * Source: https://huggingface.co/docs/transformers, "Big models", section "Sharded checkpoint". The files that
 * "weight_map" names are in the folder of the index. "metadata" is not used. */
#ifndef VKT_SHARDS_H
#define VKT_SHARDS_H

#include "io/safetensors.h"

typedef struct vkt_shards vkt_shards;

/* A tensor and its file: the arguments of vkt_safetensors_read_f32 and vkt_safetensors_read_raw. */
typedef struct vkt_shard_entry {
    const vkt_safetensors *file;
    const vkt_st_entry *tensor;
} vkt_shard_entry;

/* Opens an index if the path ends in ".json", else a single safetensors file. The set of an index has the tensors that
 * the index lists. Each tensor must be in the file that the index names for it. Errors: those of vkt_safetensors_open.
 * VKT_E_FORMAT is also the error of a bad index, for instance if the name of a shard has a slash. VKT_E_NOT_FOUND is
 * also the error if the file of a shard is missing. After an error, *out is NULL. `h` is copied. The caller owns *out.
 * Any number of threads may read at once. */
vkt_result vkt_shards_open(const vkt_host *h, const char *path, vkt_shards **out);
void vkt_shards_close(vkt_shards **s);

size_t vkt_shards_count(const vkt_shards *s);
/* Returns entry i < vkt_shards_count(s). The entries are sorted by name. Valid until close. */
vkt_shard_entry vkt_shards_entry(const vkt_shards *s, size_t i);
/* Finds a tensor by name. If the set has no such tensor, `tensor` is NULL, and nothing is logged. */
vkt_shard_entry vkt_shards_find(const vkt_shards *s, const char *name);

#endif
