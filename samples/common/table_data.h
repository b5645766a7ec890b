/* common/table_data.h - converts a CSV file to two data sets, for training and for validation. */
#ifndef SAMPLE_TABLE_DATA_H
#define SAMPLE_TABLE_DATA_H

#include <stdio.h>

#include "vktrain/columns.h"
#include "vktrain/train.h"

typedef struct table_data_params {
    const char *path;   /* a CSV file with a line of names, plain or gzip; NULL: Fisher's irises */
    const char *like;   /* weights or a checkpoint whose columns are used; NULL: the columns are guessed */
    double check_share; /* validation rows / rows that have a target; `seed` selects the validation rows */
    uint64_t seed;
    const char *resumed; /* a checkpoint. If it has the seed of its split (table_attach), this seed is used instead of
                          * `seed`. NULL: none */
    vkt_columns_params guess;
} table_data_params;

typedef struct table_data {
    const char *source;
    vkt_columns *columns;
    vkt_dataset *train, *check;
    uint64_t seed;                 /* the seed that selected the rows of `check` */
    uint32_t rows, without_target; /* rows: number of rows of the file; without_target: number of those rows that are
                                    * left out, because they have no target */
} table_data;

/* Opens the file. The separator is a comma, a semicolon, a '|' or a tab: the one that gives the most columns. On
 * failure, with a message on stderr, there is nothing to free. */
vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out);
void table_data_close(table_data *d);
const vkt_column *table_target(const vkt_columns *c);

/* Reads a CSV file, plain or gzip. If `text` is not NULL, reads `text` instead, and messages name it `path`. Chooses
 * the separator as table_data_open does. If all separators fail, the message is the one for commas. */
vkt_result table_read(const vkt_host *host, const char *path, const char *text, vkt_records **out);

/* Attaches the columns and the seed of the split to the trainer, so that its weights files and checkpoints have them. A
 * resumed run reads the table before the trainer reads the checkpoint. So table_data_open itself reads the seed of the
 * split from the checkpoint. */
vkt_result table_attach(vkt_trainer *t, const table_data *d);
/* Reads the columns that table_attach attached to weights or a checkpoint. `target` (NULL: any) must be the name of
 * their target column; upper and lower case are equal. VKT_E_ARG: the target column has another name. */
vkt_result table_columns_of(const vkt_host *host, const char *path, const char *target, vkt_columns **out);
/* Prints a line for each column: how it is used. If vkt_columns_guess left a column out because the column has more
 * than `most_values` different texts, the line also names the option --most-values. */
void table_print(const vkt_columns *c, uint32_t most_values);

#endif
