/* common/mnist_data.h - finds MNIST, or a data set in the same format. */
#ifndef SAMPLE_MNIST_DATA_H
#define SAMPLE_MNIST_DATA_H

#include <stdio.h>

#include "vktrain/data.h"

typedef struct mnist_data {
    vkt_dataset *train, *test;
    char source[512]; /* the folder, or "generated digits" */
    bool made_up;     /* the digits are generated */
} mnist_data;

/* Opens `folder`, if given. Otherwise opens the first of $VKT_DATA/mnist, data/mnist and ../shared/data/mnist that has
 * the files. Logs and skips a folder that has training images but lacks other files. If no folder has the files,
 * downloads them to data/mnist. If the download fails, generates digits. Both sets are normalised by the mean and
 * standard deviation of the training set, rounded to four decimals: 0.1307 and 0.3081 for MNIST, which are the usual
 * values. Before a download, prints one line to `notes` (NULL: nowhere). Generated digits are reported on stderr. On
 * failure (logged) there is nothing to free. */
vkt_result mnist_data_open(const vkt_host *host, const char *folder, FILE *notes, mnist_data *out);
void mnist_data_close(mnist_data *d);

#endif
