/* data/gallery.h - folders of generated images, and data sets of them. */
#ifndef VKT_TEST_GALLERY_H
#define VKT_TEST_GALLERY_H

#include "data/temp.h"
#include "vktrain/data.h"

/* The longest side of a generated image. */
enum { GALLERY_SIDE = 64 };

/* Returns the size of image `seed`. An image is RGB noise, and its size depends on the seed. */
void gallery_size(uint32_t seed, uint32_t *w, uint32_t *h);
/* Writes image `seed` as the PNG file `name`. */
void gallery_put(const vkt_temp_dir *t, const char *name, uint32_t seed);
const char *gallery_text(const vkt_temp_dir *t, const char *name, const char *text);
/* Writes images 0 to n - 1 as p0.png .., and t.csv, which lists them with labels i % 3. Returns the path of t.csv. */
const char *gallery_table(const vkt_temp_dir *t, uint32_t n);
/* Opens the data set of the table `path`; fails the test if that is not possible. */
vkt_dataset *gallery_open(const char *path, const vkt_image_params *p);
/* Returns image `seed`, resized to w x h, as planes. */
void gallery_resized(uint32_t seed, uint32_t w, uint32_t h, uint8_t *planes);

/* gallery_small stretches images to a height of 9 and a width of 11 pixels. gallery_augmented crops 12 x 12 pixels of
 * an image and mirrors them at random. */
extern const vkt_image_params gallery_small, gallery_augmented;

#endif
