/* data/gallery.h - folders of generated images, and data sets of them. */
#ifndef VKT_TEST_GALLERY_H
#define VKT_TEST_GALLERY_H

#include "data/temp.h"
#include "vktrain/data.h"

/* A generated image has at most this number of rows and of columns. */
enum { GALLERY_SIDE = 64 };

/* Returns the width and height of image `seed` in pixels. An image is RGB noise. Its width and height depend on the
 * seed. */
void gallery_size(uint32_t seed, uint32_t *w, uint32_t *h);
/* Writes image `seed` as the PNG file `name`. */
void gallery_put(const vkt_temp_dir *t, const char *name, uint32_t seed);
const char *gallery_text(const vkt_temp_dir *t, const char *name, const char *text);
/* Writes the images 0 to n - 1 to the files p0.png, p1.png and so on. Writes t.csv, a table of these images: image i
 * has the label i % 3. Returns the path of t.csv. */
const char *gallery_table(const vkt_temp_dir *t, uint32_t n);
/* Opens the data set of the table `path`; fails the test if that is not possible. */
vkt_dataset *gallery_open(const char *path, const vkt_image_params *p);
/* Writes image `seed`, resized to w x h, to planes (3,h,w). */
void gallery_resized(uint32_t seed, uint32_t w, uint32_t h, uint8_t *planes);

/* Parameters of data sets. With gallery_small, images are stretched to a height of 9 and a width of 11 pixels. With
 * gallery_augmented, the shorter side of an image becomes 15 pixels. In an epoch of training (epoch 1 or later), a
 * sample is a random crop of 12 x 12 pixels, mirrored at random. */
extern const vkt_image_params gallery_small, gallery_augmented;

#endif
