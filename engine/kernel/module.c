/* kernel/module.c - see module.h. VKT_INFLATE is defined if the CMake option VKT_COMPRESS_SPIRV is on. Otherwise all
 * modules are stored uncompressed, and this file does not use zlib. */
#include "kernel/module.h"

#if VKT_INFLATE
#define ZLIB_CONST /* makes z_stream.next_in a pointer to constant bytes */
#include <zlib.h>

static void *allocate(void *host, uInt n, uInt size)
{
    return vkt_alloc_array(host, n, size);
}

static void release(void *host, void *p)
{
    vkt_free(host, p);
}

static vkt_result unpack(const vkt_host *h, const vkt_module *module, void *words)
{
    enum { RAW = -15 }; /* zlib.h: a stream without header and checksum */
    vkt_host own = *h;
    z_stream z = { .next_in = module->data, .avail_in = (uInt)module->stored, .next_out = words };
    z.avail_out = (uInt)module->bytes;
    z.zalloc = allocate;
    z.zfree = release;
    z.opaque = &own;
    int r = inflateInit2(&z, RAW);
    if (r == Z_OK) {
        r = inflate(&z, Z_FINISH);
        inflateEnd(&z);
    }
    if (r == Z_MEM_ERROR) return vkt_fail_nomem(h, "zlib", 0);
    return r == Z_STREAM_END && z.total_out == module->bytes
               ? VKT_OK
               : vkt_fail(h, VKT_E_FORMAT, "a SPIR-V module of the library is damaged");
}
#else
static vkt_result unpack(const vkt_host *h, const vkt_module *module, void *words)
{
    (void)module, (void)words;
    return vkt_fail(h, VKT_E_FORMAT, "a SPIR-V module is compressed, but this library was built without zlib");
}
#endif

vkt_result vkt_module_unpack(const vkt_host *h, const vkt_module *module, uint32_t **words)
{
    *words = vkt_alloc(h, module->bytes);
    if (!*words) return vkt_fail_nomem(h, "a SPIR-V module", module->bytes);
    vkt_result r = VKT_OK;
    if (module->stored < module->bytes)
        r = unpack(h, module, *words);
    else
        memcpy(*words, module->data, module->bytes);
    if (r == VKT_OK) return VKT_OK;
    vkt_free(h, *words);
    *words = NULL;
    return r;
}
