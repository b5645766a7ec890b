/* common/predict_tables.h - a reader for predict.h: converts the rows of CSV files to numbers by a table's schema. */
#ifndef SAMPLE_PREDICT_TABLES_H
#define SAMPLE_PREDICT_TABLES_H

#include "common/predict.h"
#include "common/table_schema.h"

typedef struct table_reader {
    const table_schema *schema;
} table_reader;

/* Reads all rows of a CSV file with a line of names, plain or gzip; "-": plain standard input. The file must have the
 * columns of the training data. It may have others, and the target: they are ignored. The separator is the one of , ; |
 * and tab that gives the most columns. `user` is a table_reader. */
vkt_result table_reader_read(void *user, predict_list *list, const char *path);

#endif
