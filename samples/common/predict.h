/* common/predict.h - --predict FILE...: predicts files with a trained network, without training or a data set.
 *
 * A sample program provides its network and a reader of files. predict_files reads the files, runs the network and
 * prints the predictions, one line per data sample. With --json it also writes the predictions as JSON
 * (docs/predict.schema.json). If a file cannot be read, predict_files prints an error and skips the file. */
#ifndef SAMPLE_PREDICT_H
#define SAMPLE_PREDICT_H

#include "common/session.h"
#include "vktrain/card.h"

/* The samples that were read so far. */
typedef struct predict_list predict_list;

typedef struct predict_kind {
    const char *program;    /* name of the sample program, for instance "vkt-mnist" */
    vkt_row_type type;      /* type of the samples; the card (vktrain/card.h) has their shape */
    vkt_forward_fn forward; /* the network */
    void *model;            /* the user pointer of `forward` */
    /* Adds the samples of `path` to the list. Reports an error by predict_fail, or passes predict_host to a function of
     * the library, which logs the error. After an error, all samples of the file are dropped. */
    vkt_result (*read)(void *reader, predict_list *list, const char *path);
    void *reader; /* the first argument of `read` */
    /* For networks without classes: an output y is printed as deviation * y + mean. If deviation is 0, y is printed as
     * it is. */
    double mean, deviation;
} predict_kind;

/* Reads the card (vktrain/card.h) of the weights s->o.load. `program` must have saved the weights. Prints a message if
 * it fails. */
vkt_result predict_card(const session *s, const char *program, vkt_card **out);
/* Reads s->o.files, predicts with the weights s->o.load, prints the predictions (unless --quiet) and writes the file of
 * --json. VKT_OK: no file was skipped. VKT_E_FORMAT: a file was skipped. VKT_E_SHAPE: the card does not fit kind->type
 * or the network. Other errors are those of the prediction and of the JSON file. */
vkt_result predict_files(session *s, const predict_kind *kind, const vkt_card *card);

/* ---- for readers ---- */

/* Adds a copy of a sample to the list. `note` (NULL: none) is printed behind the sample's prediction and must exist as
 * long as the list. The only error is VKT_E_NOMEM. */
vkt_result predict_add(predict_list *list, const void *row, const char *note);
vkt_result predict_fail(predict_list *list, vkt_result why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const vkt_host *predict_host(const predict_list *list); /* an error logged to this host becomes the file's error */
/* Reads the whole file, or standard input for "-". The caller frees *bytes, which has *n bytes and a NUL behind them.
 * VKT_E_IO: the file cannot be read, or has more than 512 MiB. */
vkt_result predict_bytes(predict_list *list, const char *path, char **bytes, size_t *n);

#endif
