/* common/predict_tables.h - a reader for predict.h: rows of CSV files, as a table's schema turns them into numbers. */
#ifndef SAMPLE_PREDICT_TABLES_H
#define SAMPLE_PREDICT_TABLES_H

#include "common/predict.h"
#include "common/table_schema.h"

typedef struct table_reader {
    const table_schema *schema;
} table_reader;

/* All rows of a CSV file with a line of names, plain or gzip; "-": plain standard input. The file needs the columns
 * that were learned from; others, and the target, may be there and are not looked at. The separator is the one of
 * , ; | and tab that gives the most columns. `user` is a table_reader. */
vkt_result table_reader_read(void *user, predict_list *list, const char *path);

#endif
