/* common/image_data.h - opens a data set of images with classes: from a folder, or generated. */
#ifndef SAMPLE_IMAGE_DATA_H
#define SAMPLE_IMAGE_DATA_H

#include "vktrain/data.h"

typedef struct image_data_params {
    const char *folder;             /* NULL: see image_data_open */
    const char *name;               /* name of the data set; used to find a folder if `folder` is NULL */
    vkt_image_params images;        /* random_crop, random_flip and crop_padding are for training samples only */
    const double *mean, *deviation; /* of red, green and blue; used for all samples */
} image_data_params;

typedef struct image_data {
    vkt_dataset *train, *check, *test; /* check: the validation set; test: NULL if there is none */
    char source[1024];                 /* the folder, or "generated forms" */
    bool made_up;                      /* the images are generated */
} image_data;

extern const char image_data_help[]; /* the help text of --data */
/* Opens a folder. Each part of the data set (train, valid, test) is a table such as train.csv, with lines path,label;
 * or it is a folder such as train/, with one folder per class. If train is missing, test becomes the training set. If
 * both are missing, the folder itself must have one folder per class. If valid is missing, a fifth of the training
 * samples becomes the validation set.
 *
 * Without `folder`, opens the first of $VKT_DATA/<name>, data/<name> and ../shared/data/<name> that has a train.csv or
 * test.csv. If there is none, generates images of forms in warm and cold colours, and says so on stderr. On failure
 * there is nothing to free. */
vkt_result image_data_open(const vkt_host *host, const image_data_params *p, image_data *out);
void image_data_close(image_data *d);

#endif
