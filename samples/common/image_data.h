/* common/image_data.h - pictures with classes: from a folder, or drawn. */
#ifndef SAMPLE_IMAGE_DATA_H
#define SAMPLE_IMAGE_DATA_H

#include "vktrain/data.h"

typedef struct image_data_params {
    const char *folder;             /* NULL: see image_data_open */
    const char *name;               /* of the data set that is looked for then */
    vkt_image_params images;        /* a random_.. is for those to learn from */
    const double *mean, *deviation; /* of red, green and blue, for all rows */
} image_data_params;

typedef struct image_data {
    vkt_dataset *train, *check, *test; /* test: NULL if there is none */
    char source[1024];                 /* the folder, or "drawn forms" */
    bool made_up;                      /* the latter */
} image_data;

/* A folder has train.csv, and perhaps valid.csv and test.csv, of path,label; or folders train, valid and test of a
 * folder per class; or test alone, to learn from; or a folder per class. Where nothing is there to check with, a fifth
 * of the rows is put aside for it. Without `folder`: the first of $VKT_DATA/<name>, data/<name> and
 * ../shared/data/<name> that has a train.csv or test.csv; else forms in two colours are drawn, which is said on
 * stderr. On failure (logged) nothing is to be freed. */
extern const char image_data_help[]; /* of --data */
vkt_result image_data_open(const vkt_host *host, const image_data_params *p, image_data *out);
void image_data_close(image_data *d);

#endif
