/* common/predict_tables.h - a reader for predict.h: converts the rows of CSV files to numbers, as in training. */
#ifndef SAMPLE_PREDICT_TABLES_H
#define SAMPLE_PREDICT_TABLES_H

#include "common/predict.h"
#include "vktrain/columns.h"

/* Is a function for predict_kind.read. Adds all rows of a CSV file, plain or gzip. The path "-" means standard input,
 * which must be plain. The first line must have the names of the columns. The file must have the columns that the
 * network uses. The target and other columns are ignored. `columns` is a vkt_columns. */
vkt_result table_reader_read(void *columns, predict_list *list, const char *path);

#endif
