/* data/image_files.h - image files for tests of readers. */
#ifndef VKT_TEST_IMAGE_FILES_H
#define VKT_TEST_IMAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory. The caller frees p with free(). */
typedef struct image_file {
    uint8_t *p;
    size_t n;
} image_file;

/* Reads tests/golden/images/<name>, which must exist. */
image_file golden_image_file(const char *name);

typedef struct png_params {
    uint32_t width, height;
    int colour, depth; /* PNG's colour type (0, 2, 3, 4 or 6) and bit depth */
    bool interlaced;
    const uint8_t *palette; /* colour 3: 256 RGB triples; the first 2^depth are used */
    bool transparent;       /* whether the file has a tRNS chunk */
    const uint8_t *exif;    /* NULL, or the data of an eXIf chunk: exif_bytes bytes */
    size_t exif_bytes;
} png_params;
/* Encodes p->height rows of pixels. They are packed as in PNG: a byte has several pixels if a pixel has fewer than 8
 * bits. Each row has a whole number of bytes. */
image_file encode_png(const png_params *p, const uint8_t *rows);

#endif
