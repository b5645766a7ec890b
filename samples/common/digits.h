/* common/digits.h - prints small images as text, several side by side. */
#ifndef SAMPLE_DIGITS_H
#define SAMPLE_DIGITS_H

#include <stdio.h>

#include "vktrain/train.h"

/* An image and its caption. The pixels are the image's channel 0, row-major. They may have any values. */
typedef struct text_image {
    const float *pixels; /* height x width */
    uint32_t height, width;
    char caption[180]; /* UTF-8; lines are broken at blanks, and within words that are too long */
} text_image;

/* Prints rows of images. A row has as many images as fit into the width of the terminal (at least one), or all images
 * if `out` is not a terminal. Each image has 7 lines of 14 Braille letters (28 x 28 dots), or of 14 ASCII characters in
 * a locale without UTF-8. Below the images of a row are the captions of its first 16 images, in up to three lines. */
void print_images(FILE *out, const text_image *images, uint32_t n);
/* Predicts the first samples of a labelled data set, at most 1000. Prints up to five right predictions and up to five
 * wrong predictions on stdout. */
vkt_result print_predictions(vkt_trainer *t, const vkt_dataset *d);

#endif
