/* common/predict_texts.h - reads the files of --predict for a network of texts. */
#ifndef SAMPLE_PREDICT_TEXTS_H
#define SAMPLE_PREDICT_TEXTS_H

#include "common/predict.h"
#include "vktrain/text.h"

typedef struct text_reader {
    vkt_vocab *vocab;             /* not owned */
    vkt_sequence_params sequence; /* maxlen: number of ids of a sample, whose type is VKT_ROW_U32 */
    bool lines;                   /* every line of a file is a text, as in standard input; false: a file is one text */
} text_reader;

/* Is predict_kind.read. `reader` is a text_reader. Lines without a word are skipped. */
vkt_result text_reader_read(void *reader, predict_list *list, const char *path);

#endif
