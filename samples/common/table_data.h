/* common/table_data.h - a CSV file as two data sets: rows to learn from and rows to check with. */
#ifndef SAMPLE_TABLE_DATA_H
#define SAMPLE_TABLE_DATA_H

#include "common/table_schema.h"

typedef struct table_data_params {
    const char *path;   /* a CSV file with a line of names, plain or gzip; NULL: Fisher's irises */
    const char *like;   /* weights or a checkpoint, whose schema it has; NULL: guessed */
    double check_share; /* of the rows, at random by `seed` */
    uint64_t seed;
    schema_params guess;
} table_data_params;

typedef struct table_data {
    const char *source;
    table_schema schema;
    vkt_dataset *train, *check;
    uint32_t rows, without_target; /* of the file; left out because their target is missing */
} table_data;

/* The separator is ',', or ';', a tab or '|' where that gives more columns. On failure, told on stderr, nothing is to
 * be freed. */
vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out);
void table_data_close(table_data *d);

/* The schema of weights or a checkpoint, which must predict `target` (NULL: any): schema_free, after VKT_OK or not. */
vkt_result table_schema_load(const vkt_host *host, const char *path, const char *target, table_schema *s);

#endif
