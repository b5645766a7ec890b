/* common/table_schema.h - how each column of a table is used, and how its rows become numbers for a network.
 *
 * A schema is guessed from the training rows. It is stored with the weights as a JSON text: vkt_trainer_attach keeps
 * it as TABLE_SCHEMA. It converts rows of any other table with columns of these names to the same numbers:
 *   a number        (x - mean) / deviation; 0 if it is missing
 *   a text          1 for its value, 0 for each of the other values
 *   either          one more number, 1 for a missing field, if the training rows have missing fields
 *
 *     {"format": "vktrain-table", "version": 1, "target": "species", "columns": [
 *       {"name": "petal_width", "use": "number", "mean": 1.2, "deviation": 0.8, "missing": 0},
 *       {"name": "colour", "use": "values", "values": ["blue", "red"], "missing": 3},
 *       {"name": "remarks", "use": "left out", "why": "118 different texts"},
 *       {"name": "species", "use": "values", "values": ["setosa", "versicolor", "virginica"], "missing": 0}]}
 *
 * The values of a target are the names of the classes, in the order of their numbers. A target of use "number" is
 * predicted as (y - mean) / deviation. Functions return false after they print a message on stderr, or after they write
 * it to `why`, if they have that parameter. */
#ifndef SAMPLE_TABLE_SCHEMA_H
#define SAMPLE_TABLE_SCHEMA_H

#include <stdio.h>

#include "vktrain/table.h"

#define TABLE_SCHEMA "table"

typedef enum column_use { COLUMN_LEFT_OUT = 0, COLUMN_NUMBER, COLUMN_VALUES } column_use;

typedef struct table_column {
    char *name;
    column_use use;
    double mean, deviation; /* COLUMN_NUMBER: the deviation is above 0 */
    char **values;          /* COLUMN_VALUES: n_values different ones, sorted */
    uint32_t n_values, missing;
    char why[96]; /* COLUMN_LEFT_OUT */
} table_column;

typedef struct table_schema {
    table_column *columns;
    uint32_t n, target;
} table_schema;

typedef enum table_task { TASK_GUESSED = 0, TASK_CLASSES, TASK_REGRESSION } table_task;

enum { MAX_LEFT_OUT = 64 };
typedef struct schema_params {
    const char *target; /* NULL: the last column */
    table_task task;    /* guessed: classes for texts, and for up to 20 whole numbers that come 5 times each or more */
    uint32_t most_values; /* a column with more different texts is left out */
    const char *left_out[MAX_LEFT_OUT];
    uint32_t n_left_out;
} schema_params;

/* Rows of a table: n indices. */
typedef struct table_rows {
    uint32_t *index, n;
} table_rows;

/* Finds the target column by its name. Without a name, it is the last column. */
bool schema_find_target(const vkt_records *r, const char *name, uint32_t *target);
/* Returns whether a field is missing: empty, "?", "NA", "N/A", "NaN" or "null", in upper or lower case. */
bool schema_is_missing(const char *field);
/* Guesses the schema: the target from `all` rows, which all must have a target, and the other columns from `train`. */
bool schema_guess(const vkt_records *r, const schema_params *p, const table_rows *all, const table_rows *train,
                  table_schema *out);
void schema_free(table_schema *s);

uint32_t schema_inputs(const table_schema *s);      /* numbers of a sample */
bool schema_has_classes(const table_schema *s);     /* false: the target is a number */
void schema_print(const table_schema *s, FILE *to); /* prints one line for each column: how it is used */

/* Write the schema as JSON, which free() frees, and read it back. */
char *schema_to_text(const table_schema *s);
bool schema_from_text(const char *text, table_schema *out);

enum { SCHEMA_WHY = 320 }; /* bytes of a message */

/* Finds the schema's columns in a table. map[i] is the column of each of s->n. It is UINT32_MAX for a column that is
 * left out, and for a missing target. */
bool schema_match(const table_schema *s, const vkt_records *r, uint32_t *map, char why[SCHEMA_WHY]);
/* Computes the schema_inputs numbers of a row. It is an error if a column of numbers has a text. */
bool schema_encode(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *x,
                   char why[SCHEMA_WHY]);
/* Computes the target of a row: its class, or its standardised number. */
bool schema_label(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, uint32_t *label,
                  char why[SCHEMA_WHY]);
bool schema_value(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *y,
                  char why[SCHEMA_WHY]);

#endif
