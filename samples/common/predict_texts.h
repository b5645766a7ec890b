/* common/predict_texts.h - the files that --predict takes where a network reads texts. */
#ifndef SAMPLE_PREDICT_TEXTS_H
#define SAMPLE_PREDICT_TEXTS_H

#include "common/predict.h"
#include "vktrain/text.h"

typedef struct text_reader {
    vkt_vocab *vocab;             /* lent */
    vkt_sequence_params sequence; /* maxlen: ids of a row, of VKT_ROW_U32 */
    bool lines; /* every line of a file is a text, as those of standard input are; else a file is one */
} text_reader;

/* predict_kind.read, with a text_reader. Lines without a word are passed by. */
vkt_result text_reader_read(void *reader, predict_list *list, const char *path);

#endif
