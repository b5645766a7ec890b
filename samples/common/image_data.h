/* common/image_data.h - opens a data set of images with classes: from a folder, or generated. */
#ifndef SAMPLE_IMAGE_DATA_H
#define SAMPLE_IMAGE_DATA_H

#include "vktrain/data.h"

typedef struct image_data_params {
    const char *folder;             /* NULL: see image_data_open */
    const char *name;               /* name of the data set; used to find a folder if `folder` is NULL */
    vkt_image_params images;        /* its random_.. members are for training samples only */
    const double *mean, *deviation; /* of red, green and blue; used for all samples */
} image_data_params;

typedef struct image_data {
    vkt_dataset *train, *check, *test; /* test: NULL if there is none */
    char source[1024];                 /* the folder, or "generated forms" */
    bool made_up;                      /* the images are generated */
} image_data;

/* Opens a folder. It has train.csv, and perhaps valid.csv and test.csv, with lines path,label. Or it has the folders
 * train, valid and test, each with a folder per class. Or it has test alone, which then is the training set. Or it is a
 * folder per class. If there is no validation set, a fifth of the training samples becomes one.
 *
 * Without `folder`, opens the first of $VKT_DATA/<name>, data/<name> and ../shared/data/<name> that has a train.csv or
 * test.csv. If there is none, generates images of forms in two colours and says so on stderr. On failure (logged) there
 * is nothing to free. */
extern const char image_data_help[]; /* the help text of --data */
vkt_result image_data_open(const vkt_host *host, const image_data_params *p, image_data *out);
void image_data_close(image_data *d);

#endif
