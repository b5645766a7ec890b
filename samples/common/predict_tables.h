/* common/predict_tables.h - a reader for predict.h: converts the rows of CSV files to numbers, as in training. */
#ifndef SAMPLE_PREDICT_TABLES_H
#define SAMPLE_PREDICT_TABLES_H

#include "common/predict.h"
#include "vktrain/columns.h"

/* Is predict_kind.read: adds all rows of a CSV file with a line of names, plain or gzip; "-": plain standard input. The
 * file must have the columns that the network uses. The target and other columns are ignored. `columns` is a
 * vkt_columns. */
vkt_result table_reader_read(void *columns, predict_list *list, const char *path);

#endif
