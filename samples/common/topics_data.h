/* common/topics_data.h - finds the Reuters corpus, or another one of texts with topics; its vocabulary and sequences.
 */
#ifndef SAMPLE_TOPICS_DATA_H
#define SAMPLE_TOPICS_DATA_H

#include <stdio.h>

#include "vktrain/text.h"

typedef struct topics_data {
    vkt_texts *train_texts, *test_texts;
    vkt_vocab *vocab;          /* of the training texts: what a test text has besides is VKT_ID_UNKNOWN */
    vkt_dataset *train, *test; /* (N,length) ids, cut and filled up at the front */
    char source[512];          /* the folder, or "made-up news" */
    bool made_up;              /* the latter */
} topics_data;

/* `folder`, if given; else the first of $VKT_DATA/reuters46-keras, data/reuters46-keras and
 * ../shared/data/reuters46-keras with the files train.tsv and test.tsv (plain, or .gz), lines label<TAB>text;
 * classes.txt there, if it is, has the labels in the order of their numbers. Without any, texts are made up, which
 * is said on stderr. On failure (told on stderr) nothing is to be freed. */
vkt_result topics_data_open(const vkt_host *host, const char *folder, uint32_t length, topics_data *out);
void topics_data_close(topics_data *d);

#endif
