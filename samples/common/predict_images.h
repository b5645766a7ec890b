/* common/predict_images.h - --predict for a network of images. */
#ifndef SAMPLE_PREDICT_IMAGES_H
#define SAMPLE_PREDICT_IMAGES_H

#include "common/predict.h"

extern const char image_predict_help[]; /* the help text of --predict, for PNG and JPEG files */

/* Predicts s->o.files, PNG and JPEG files and IDX arrays of u8. The card may have "resize" (see vkt_image_params), and
 * "ground": the brightness of the border of the training images, 0 to 1. An image is inverted if only one of the two,
 * "ground" and the brightness of its own border, is above 1/2. */
vkt_result predict_images(session *s, const char *program, vkt_forward_fn forward, void *model, const vkt_card *card);

/* Returns the mean of the outermost pixels of the first samples, 0 to 1, for a card's "ground". NaN: samples are not
 * gray u8. */
double image_ground(const vkt_dataset *d);

#endif
