/* common/predict_images.h - reads the files of --predict for a network of images. */
#ifndef SAMPLE_PREDICT_IMAGES_H
#define SAMPLE_PREDICT_IMAGES_H

#include "common/predict.h"

typedef struct image_reader {
    vkt_image_params images; /* how a file is converted; image_reader_init sets height, width and gray */
    uint32_t chw[3];         /* shape of a sample: the card's */
    bool idx;                /* IDX files of u8 are read, too */
    double ground; /* brightness of the border of the training images, 0 to 1. An image is inverted if its border is on
                      the other side of 1/2. NaN: no image is */
} image_reader;

extern const char image_predict_help[]; /* the help text of --predict, for PNG and JPEG files */

/* Copies the sizes and the ground of the card. */
void image_reader_init(image_reader *reader, const vkt_card *card);
/* Is predict_kind.read. `reader` is an image_reader. */
vkt_result image_reader_read(void *reader, predict_list *list, const char *path);

/* Returns the mean of the outermost pixels of the first samples, 0 to 1, for a card's "ground". NaN: samples are not
 * gray u8. */
double image_ground(const vkt_dataset *d);

#endif
