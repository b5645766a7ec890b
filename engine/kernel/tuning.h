/* kernel/tuning.h - the tuning file: the variants that were measured to be best on this device. It is in the cache
 * directory. vkt-bench --tune writes it. A context reads it when its first program is made, or planned by
 * vkt_program_needs.
 *
 * The file belongs to one device, driver and subgroup size, and to all shaders of the library. If one of these has
 * changed, the file is stale. A file that is stale, truncated or damaged is ignored with one warning. The file is text:
 *
 *   vktrain tuning 2                        a file of version 1 can be read; it has no tiles
 *   device 00010005-...
 *   shaders 0123456789abcdef
 *   89abcdef01234567 tile,packed_a          a node's key (vkt_picked.key) and the variants to use; sorted by key
 *   89abcdef01234568 shared 64x64,8x4       an entry with a tile in shared memory (vkt_tile)
 *   check fedcba9876543210                  hash of all bytes before this line */
#ifndef VKT_TUNING_H
#define VKT_TUNING_H

#include "gpu/gpu.h"

/* The device and shaders that a file belongs to. */
typedef struct vkt_tuning_id {
    char device[96];
    uint64_t shaders; /* hash of all SPIR-V modules of the library, as they are stored */
} vkt_tuning_id;

/* Loads the file's entries into ctx->limits.choices, unless an earlier call has done so. Does nothing if
 * VKT_NO_TUNING=1 is set, if the context keeps no cache, or if there is no cache directory. VKT_E_NOMEM. */
vkt_result vkt_tuning_use(vkt_ctx *ctx);
/* Merges entries into the file: a new entry replaces an old one with the same key. Replaces the file atomically, and
 * loads its entries into ctx->limits.choices. VKT_E_STATE if the context keeps no cache or there is no cache directory;
 * VKT_E_IO, VKT_E_NOMEM. */
vkt_result vkt_tuning_add(vkt_ctx *ctx, const vkt_tuned *entries, size_t n);
/* Returns the file's path in *path, which the caller frees (vkt_free). *path is NULL if the context keeps no cache or
 * there is no cache directory. VKT_E_NOMEM. */
vkt_result vkt_tuning_path(vkt_ctx *ctx, char **path);

/* ---- the text ---- */
void vkt_tuning_encode(const vkt_tuning_id *id, const vkt_tuned *list, size_t n, vkt_text *out);
/* Reads a text of n_bytes bytes and a NUL. *list is sorted by rising key; the caller owns the list (vkt_free). If the
 * text is wrong, the function returns VKT_OK, *list is NULL, and *fault says in a few words what is wrong. If the text
 * is right, *fault is NULL. VKT_E_NOMEM. */
vkt_result vkt_tuning_decode(const vkt_host *h, const vkt_tuning_id *id, const char *text, size_t n_bytes,
                             vkt_tuned **list, size_t *n, const char **fault);

#endif
