/* common/predict.h - --predict FILE...: what a trained network makes of files, without training or a data set.
 *
 * A sample brings its network and a reader of files; this runs them and writes the answers, a line a row, and as JSON
 * (docs/predict.schema.json). A file that cannot be read is told and left out. */
#ifndef SAMPLE_PREDICT_H
#define SAMPLE_PREDICT_H

#include "common/card.h"
#include "common/session.h"

/* The rows that were read so far. */
typedef struct predict_list predict_list;

typedef struct predict_kind {
    const char *program;    /* "vkt-mnist" */
    vkt_row_type type;      /* of the rows; their shape is the card's */
    vkt_forward_fn forward; /* the network */
    void *model;            /* handed to it */
    /* Adds the rows of `path` to the list, or says by predict_fail or the library's messages (to predict_host) what is
     * wrong with it: rows of a file that fails are dropped. */
    vkt_result (*read)(void *reader, predict_list *list, const char *path);
    void *reader; /* handed to it */
    /* Networks without classes: an output y is told as deviation y + mean. 0: as it is. */
    double mean, deviation;
} predict_kind;

/* Reads s->o.files, predicts with the weights s->o.load and prints. VKT_OK if every file had an answer. */
vkt_result predict_files(session *s, const predict_kind *kind, const data_card *card);

/* ---- for readers ---- */

/* Copies a row. `note` (NULL: none) is said behind its answer and must live as long as the list. */
vkt_result predict_add(predict_list *list, const void *row, const char *note);
vkt_result predict_fail(predict_list *list, vkt_result why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const vkt_host *predict_host(const predict_list *list); /* its messages become the file's */
/* The whole file, or standard input for "-": free. There is a NUL behind its *n bytes. */
vkt_result predict_bytes(predict_list *list, const char *path, char **bytes, size_t *n);

#endif
