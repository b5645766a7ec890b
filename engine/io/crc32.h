/* io/crc32.h - the checksum CRC-32 of zlib and PNG (polynomial 0x04c11db7, reflected). */
#ifndef VKT_CRC32_H
#define VKT_CRC32_H

#include "base/base.h"

/* Returns the checksum of the bytes of `crc` and the n bytes at p together; `crc` is 0 at the start. p may be NULL if n
 * is 0. */
uint32_t vkt_crc32(uint32_t crc, const void *p, size_t n);

#endif
