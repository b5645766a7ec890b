/* kernel/tuning.h - which variants were measured to be best on this device: a file in the cache directory, written by
 * vkt-bench --tune and read when the first program of a context is made.
 *
 * The file belongs to one device, driver and subgroup size, and to the shaders that were measured; with others it is
 * stale. A file that is stale, truncated or damaged is ignored with one warning. It is text:
 *
 *   vktrain tuning 1
 *   device 000010005-...
 *   shaders 0123456789abcdef
 *   89abcdef01234567 tile,packed_a          a node's key (vkt_node_key) and the variants to take, keys rising
 *   check fedcba9876543210                  hash of all bytes before this line */
#ifndef VKT_TUNING_H
#define VKT_TUNING_H

#include "gpu/gpu.h"

/* Whose file it is. */
typedef struct vkt_tuning_id {
    char device[96];
    uint64_t shaders; /* hash of every SPIR-V module */
} vkt_tuning_id;

/* Puts the file's entries into ctx->limits.choices, the first time that it is called for a context. Not where the
 * context keeps no cache, nor with VKT_NO_TUNING=1. */
vkt_result vkt_tuning_use(vkt_ctx *ctx);
/* Merges entries (a new one replaces an old one of its key) into the file, which is replaced atomically, and uses them.
 * VKT_E_STATE where the context keeps no cache. */
vkt_result vkt_tuning_add(vkt_ctx *ctx, const vkt_tuned *entries, size_t n);
/* The file's path; *path NULL where the context keeps no cache. The caller frees (vkt_free). */
vkt_result vkt_tuning_path(vkt_ctx *ctx, char **path);

/* ---- the text ---- */
void vkt_tuning_encode(const vkt_tuning_id *id, const vkt_tuned *list, size_t n, vkt_text *out);
/* *list (by rising key, the caller's) from n_bytes of text that ends with a NUL. *fault is NULL, or what is wrong with
 * it in a few words: then there is no list. VKT_E_NOMEM. */
vkt_result vkt_tuning_decode(const vkt_host *h, const vkt_tuning_id *id, const char *text, size_t n_bytes,
                             vkt_tuned **list, size_t *n, const char **fault);

#endif
