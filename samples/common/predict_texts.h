/* common/predict_texts.h - reads the files of --predict for a network of texts. */
#ifndef SAMPLE_PREDICT_TEXTS_H
#define SAMPLE_PREDICT_TEXTS_H

#include "common/predict.h"
#include "vktrain/text.h"

typedef struct text_reader {
    vkt_vocab *vocab;             /* not owned */
    vkt_sequence_params sequence; /* `maxlen` is the number of ids of a sample. Samples have the type VKT_ROW_U32 */
    bool lines;                   /* true, or the path is "-": each line is a text. false: the whole file is a text */
} text_reader;

/* Is a function for predict_kind.read. `reader` is a text_reader. Texts without a word are skipped. */
vkt_result text_reader_read(void *reader, predict_list *list, const char *path);

#endif
