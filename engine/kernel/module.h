/* kernel/module.h - SPIR-V modules as cmake/embed.c stores them in the library: compressed by zlib, or uncompressed. */
#ifndef VKT_MODULE_H
#define VKT_MODULE_H

#include "base/base.h"

typedef struct vkt_module {
    const void *data; /* `stored` bytes: a raw DEFLATE stream (RFC 1951) if stored < bytes, else the SPIR-V words */
    size_t stored;
    size_t bytes; /* bytes of the SPIR-V words; 0: there is no module */
} vkt_module;

/* Sets *words to a copy of the words of a module, module->bytes bytes. The caller frees *words (vkt_free). Any thread
 * may call this function. VKT_E_NOMEM. VKT_E_FORMAT: the stored bytes are damaged, or are compressed in a build without
 * VKT_COMPRESS_SPIRV. *words is NULL after a failure. */
vkt_result vkt_module_unpack(const vkt_host *h, const vkt_module *module, uint32_t **words);

#endif
