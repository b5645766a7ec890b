/* common/predict_images.h - the files that --predict takes where a network looks at pictures. */
#ifndef SAMPLE_PREDICT_IMAGES_H
#define SAMPLE_PREDICT_IMAGES_H

#include "common/predict.h"

typedef struct image_reader {
    vkt_image_params images; /* what a file becomes; its height, width and gray are set by image_reader_init */
    uint32_t chw[3];         /* of a row: the card's */
    bool idx;                /* IDX files of u8 are taken too */
    double ground;           /* how bright the border of the network's pictures is, 0 to 1: a picture whose border is
                              * on the other side of one half is inverted. NaN: none is */
} image_reader;

extern const char image_predict_help[]; /* of --predict, for PNG and JPEG files */

/* Sizes and ground of the card. */
void image_reader_init(image_reader *reader, const data_card *card);
/* predict_kind.read, with an image_reader. */
vkt_result image_reader_read(void *reader, predict_list *list, const char *path);

/* The mean of the outermost pixels of the first rows, 0 to 1, for a card's "ground"; NaN where rows are not gray u8. */
double image_ground(const vkt_dataset *d);

#endif
