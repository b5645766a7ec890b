/* common/table_data.h - converts a CSV file to two data sets: training rows and validation rows. */
#ifndef SAMPLE_TABLE_DATA_H
#define SAMPLE_TABLE_DATA_H

#include "common/table_schema.h"

typedef struct table_data_params {
    const char *path;   /* a CSV file with a line of names, plain or gzip; NULL: Fisher's irises */
    const char *like;   /* weights or a checkpoint with a schema to use; NULL: the schema is guessed */
    double check_share; /* share of the validation rows, chosen at random by `seed` */
    uint64_t seed;
    schema_params guess;
} table_data_params;

typedef struct table_data {
    const char *source;
    table_schema schema;
    vkt_dataset *train, *check;
    uint32_t rows, without_target; /* rows of the file; rows left out because their target is missing */
} table_data;

/* Opens the file. The separator is ',', or one of ';', tab and '|' if that gives more columns. On failure, with a
 * message on stderr, there is nothing to free. */
vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out);
void table_data_close(table_data *d);

/* Loads the schema of weights or a checkpoint, which must predict `target` (NULL: any). Call schema_free in any case.
 */
vkt_result table_schema_load(const vkt_host *host, const char *path, const char *target, table_schema *s);

#endif
