/* io/crc32.c - see crc32.h: by zlib, which uses the processor's instructions. */
#include "io/crc32.h"

#include <zlib.h>

uint32_t vkt_crc32(uint32_t crc, const void *p, size_t n)
{
    return n ? (uint32_t)crc32_z(crc, p, n) : crc; /* zlib would restart at NULL */
}
