/* common/predict_images.h - --predict for a network of images. */
#ifndef SAMPLE_PREDICT_IMAGES_H
#define SAMPLE_PREDICT_IMAGES_H

#include "common/predict.h"

extern const char image_predict_help[]; /* the help text of --predict, for PNG and JPEG files */

/* Predicts the files s->o.files: PNG and JPEG images, and IDX arrays of u8. For `max_pixels` (0: the default), see
 * vkt_image_params. The card may have "resize" (see
 * vkt_image_params), and "ground": the brightness of the border of the training images, 0 to 1. "ground" is for
 * networks of one channel. A PNG or JPEG image is inverted if its border is bright (above 1/2) and "ground" is dark, or
 * if its border is dark and "ground" is bright. */
vkt_result predict_images(session *s, const char *program, vkt_forward_fn forward, void *model, const vkt_card *card,
                          uint64_t max_pixels);

/* Returns the mean of the outermost pixels of the first samples (256 at most), 0 to 1, for a card's "ground". NaN: the
 * samples are not gray u8, a sample cannot be fetched, or there is no memory. */
double image_ground(const vkt_dataset *d);

#endif
