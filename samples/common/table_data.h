/* common/table_data.h - converts a CSV file to two data sets: training rows and validation rows. */
#ifndef SAMPLE_TABLE_DATA_H
#define SAMPLE_TABLE_DATA_H

#include <stdio.h>

#include "vktrain/columns.h"
#include "vktrain/train.h"

typedef struct table_data_params {
    const char *path;   /* a CSV file with a line of names, plain or gzip; NULL: Fisher's irises */
    const char *like;   /* weights or a checkpoint whose columns are used; NULL: the columns are guessed */
    double check_share; /* fraction of the rows with a target that become validation rows; `seed` selects them */
    uint64_t seed;
    vkt_columns_params guess;
} table_data_params;

typedef struct table_data {
    const char *source;
    vkt_columns *columns;
    vkt_dataset *train, *check;
    uint32_t rows, without_target; /* rows in the file; rows that are left out because their target is missing */
} table_data;

/* Opens the file. The separator is a comma, a semicolon, a '|' or a tab: the one that gives the most columns. On
 * failure, with a message on stderr, there is nothing to free. */
vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out);
void table_data_close(table_data *d);
const vkt_column *table_target(const vkt_columns *c);

/* Reads a CSV file, plain or gzip. If `text` is not NULL, reads `text` instead, and messages name it `path`. Chooses
 * the separator as table_data_open does. If all separators fail, the message is the one for commas. */
vkt_result table_read(const vkt_host *host, const char *path, const char *text, vkt_records **out);

/* Attaches the columns to the trainer, so that its weights files and checkpoints have them. */
vkt_result table_attach(vkt_trainer *t, const vkt_columns *c);
/* Reads the columns that table_attach attached to weights or a checkpoint. Their target must be `target`, if that is
 * not NULL. */
vkt_result table_columns_of(const vkt_host *host, const char *path, const char *target, vkt_columns **out);
/* Prints for each column in one line how it is used. Prints `most_values` as the value of --most-values. */
void table_print(const vkt_columns *c, uint32_t most_values);

#endif
