/* common/image_data.h - pictures with classes: from a folder, or drawn. */
#ifndef SAMPLE_IMAGE_DATA_H
#define SAMPLE_IMAGE_DATA_H

#include <stdio.h>

#include "vktrain/data.h"

typedef struct image_data_params {
    const char *folder; /* NULL: see image_data_open */
    uint32_t side;      /* pictures become side x side */
    bool no_flip;       /* those to learn from are not mirrored at random */
    bool skip_broken;   /* broken files are left out; else they are an error */
} image_data_params;

/* Rows are (3, side, side), normalised by the mean and deviation of Caltech-101. */
typedef struct image_data {
    vkt_dataset *train, *check, *test; /* test: NULL if there is none */
    char source[1024];                 /* the folder, or "drawn forms" */
} image_data;

/* A folder has train.csv, and perhaps valid.csv and test.csv, of path,label; or folders train, valid and test of a
 * folder per class; or a folder per class. Where nothing is there to check with, a fifth of the rows is put aside for
 * it. Without `folder`: the first of $VKT_DATA/caltech101, data/caltech101 and ../shared/data/caltech101 that has a
 * train.csv; else forms in two colours are drawn. `notes` (NULL: nobody's) hears of that. On failure (logged) nothing
 * is to be freed. */
vkt_result image_data_open(const vkt_host *host, const image_data_params *p, FILE *notes, image_data *out);
void image_data_close(image_data *d);

#endif
