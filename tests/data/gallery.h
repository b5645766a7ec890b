/* data/gallery.h - folders of made pictures, and data sets of them. */
#ifndef VKT_TEST_GALLERY_H
#define VKT_TEST_GALLERY_H

#include "data/temp.h"
#include "vktrain/data.h"

/* No side of a made picture is longer. */
enum { GALLERY_SIDE = 64 };

/* Picture `seed` is RGB noise of a size of its own. */
void gallery_size(uint32_t seed, uint32_t *w, uint32_t *h);
/* Writes it as PNG. */
void gallery_put(const vkt_temp_dir *t, const char *name, uint32_t seed);
const char *gallery_text(const vkt_temp_dir *t, const char *name, const char *text);
/* Pictures 0 to n - 1 as p0.png .., and t.csv, which names them with labels i % 3. Returns its path. */
const char *gallery_table(const vkt_temp_dir *t, uint32_t n);
/* Fails the test unless it can be made. */
vkt_dataset *gallery_open(const char *path, const vkt_image_params *p);
/* Picture `seed` resized to w x h: planes. */
void gallery_resized(uint32_t seed, uint32_t w, uint32_t h, uint8_t *planes);

/* Two descriptions of rows: stretched, 9 x 11; cut out at random and mirrored, 12 x 12. */
extern const vkt_image_params gallery_small, gallery_augmented;

#endif
