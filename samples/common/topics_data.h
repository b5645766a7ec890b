/* common/topics_data.h - reads a corpus of texts with topics, for instance Reuters: texts, vocabulary, sequences. */
#ifndef SAMPLE_TOPICS_DATA_H
#define SAMPLE_TOPICS_DATA_H

#include <stdio.h>

#include "vktrain/text.h"

typedef struct topics_data {
    vkt_texts *train_texts, *test_texts;
    vkt_vocab *vocab;          /* words of the training texts; in a test text, any other word is VKT_ID_UNKNOWN */
    vkt_dataset *train, *test; /* (N,length) ids, cut or padded at the front */
    char source[512];          /* the folder, or "generated news" */
    bool made_up;              /* the texts are generated */
} topics_data;

/* Opens `folder`, which must have the files train.tsv and test.tsv (plain, or .gz), with lines label<TAB>text. If the
 * folder has a file classes.txt, this file lists the labels in the order of the class numbers. If `folder` is NULL,
 * opens the first of $VKT_DATA/reuters46-keras, data/reuters46-keras and ../shared/data/reuters46-keras that has the
 * two files. If no folder has them, generates texts and prints a remark on stderr. `length`: number of ids of a sample.
 * On failure (with a message on stderr) there is nothing to free. */
vkt_result topics_data_open(const vkt_host *host, const char *folder, uint32_t length, topics_data *out);
void topics_data_close(topics_data *d);

#endif
