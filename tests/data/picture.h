/* data/picture.h - image files for tests of readers. */
#ifndef VKT_TEST_PICTURE_H
#define VKT_TEST_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory: free(p). */
typedef struct picture {
    uint8_t *p;
    size_t n;
} picture;

/* Reads tests/golden/images/<name>, which must exist. */
picture picture_golden(const char *name);

typedef struct picture_png {
    uint32_t width, height;
    int colour, depth; /* PNG's colour type, 0, 2, 3, 4 or 6; bits of a sample */
    bool interlaced;
    const uint8_t *palette; /* colour 3: 256 RGB triples; the first 2^depth count */
    bool transparent;       /* with a tRNS chunk */
    const uint8_t *exif;    /* NULL, or an eXIf chunk of exif_bytes */
    size_t exif_bytes;
} picture_png;
/* Encodes `rows`: height rows, packed as in PNG. Each is a whole number of bytes. */
picture picture_encode_png(const picture_png *p, const uint8_t *rows);

#endif
