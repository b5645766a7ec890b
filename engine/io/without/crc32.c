/* io/without/crc32.c - replaces crc32.c in a build without zlib: one byte at a time, by a table. */
#include "io/crc32.h"

#include <pthread.h>

static uint32_t table[256];

/* Divides each byte by the polynomial, whose bits are in reversed order here. */
static void fill_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[i] = c;
    }
}

uint32_t vkt_crc32(uint32_t crc, const void *p, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *bytes = p;
    pthread_once(&once, fill_table);
    crc = ~crc;
    for (size_t i = 0; i < n; i++) crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}
