/* common/digits.h - small pictures as text, several side by side. */
#ifndef SAMPLE_DIGITS_H
#define SAMPLE_DIGITS_H

#include <stdio.h>

#include "vktrain/train.h"

/* One picture: channel 0 of it, row-major, any range of values; and the line under it. */
typedef struct text_picture {
    const float *pixels; /* height x width */
    uint32_t height, width;
    char caption[180]; /* UTF-8; broken at blanks into lines */
} text_picture;

/* Prints the pictures next to each other, as many as the terminal is wide, scaled to 14 columns by 7 lines each, with
 * their captions below in up to three lines: 28 x 28 dots of Braille letters, or characters of ASCII in a locale
 * without UTF-8. */
void print_pictures(FILE *out, const text_picture *pictures, uint32_t n);
/* Predicts the first rows of a labelled set, at most 1000, and prints some that the network reads right and some that
 * it reads wrong, at most five each. */
vkt_result print_predictions(vkt_trainer *t, const vkt_dataset *d);

#endif
