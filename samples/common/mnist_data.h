/* common/mnist_data.h - finds MNIST, or a data set laid out like it. */
#ifndef SAMPLE_MNIST_DATA_H
#define SAMPLE_MNIST_DATA_H

#include <stdio.h>

#include "vktrain/data.h"

typedef struct mnist_data {
    vkt_dataset *train, *test;
    char source[512]; /* the folder, or "drawn digits" */
    bool made_up;     /* the latter */
} mnist_data;

/* `folder`, if given; else the first of $VKT_DATA/mnist, data/mnist and ../shared/data/mnist that holds the files
 * (one with images to train on, but without the rest, is logged and passed by); else they are downloaded to data/mnist;
 * else, offline, digits are drawn. Both parts are normalised by the mean and standard deviation of the training part,
 * rounded to four digits: 0.1307 and 0.3081 for MNIST, as everybody does. `notes` (NULL: nobody's) hears of downloads,
 * stderr always of drawn digits, in one line each. On failure (logged) nothing is to be freed. */
vkt_result mnist_data_open(const vkt_host *host, const char *folder, FILE *notes, mnist_data *out);
void mnist_data_close(mnist_data *d);

#endif
