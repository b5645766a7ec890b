/* common/table_schema.h - what each column of a table is, and its rows as numbers for a network.
 *
 * A schema is guessed from the rows to learn from. It travels with the weights as a JSON text, which vkt_trainer_attach
 * keeps as TABLE_SCHEMA, and turns rows of any other table that has columns of these names into the same numbers:
 *   a number        (x - mean) / deviation; 0 where it is missing
 *   a text          a 1 for its value, 0 for each of the other values
 *   either          and, where the rows to learn from have gaps, a 1 for a gap
 *
 *     {"format": "vktrain-table", "version": 1, "target": "species", "columns": [
 *       {"name": "petal_width", "use": "number", "mean": 1.2, "deviation": 0.8, "missing": 0},
 *       {"name": "colour", "use": "values", "values": ["blue", "red"], "missing": 3},
 *       {"name": "remarks", "use": "left out", "why": "118 different texts"},
 *       {"name": "species", "use": "values", "values": ["setosa", "versicolor", "virginica"], "missing": 0}]}
 *
 * The values of a target are the names of the classes, in the order of their numbers; a target of use "number" is
 * predicted as (y - mean) / deviation. Functions return false after a message on stderr, or in `why` where they have
 * one. */
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

enum { MOST_LEFT_OUT = 64 };
typedef struct schema_params {
    const char *target; /* NULL: the last column */
    table_task task;    /* guessed: classes for texts, and for up to 20 whole numbers that come 5 times each or more */
    uint32_t most_values; /* a column with more different texts is left out */
    const char *left_out[MOST_LEFT_OUT];
    uint32_t n_left_out;
} schema_params;

/* Rows of a table: indices, n of them. */
typedef struct table_rows {
    uint32_t *index, n;
} table_rows;

/* Which column is the target: by its name, else the last one. */
bool schema_find_target(const vkt_records *r, const char *name, uint32_t *target);
/* Whether a field holds nothing: empty, "?", "NA", "N/A", "NaN" or "null", whatever the case. */
bool schema_is_missing(const char *field);
/* Guesses: the target from `all` rows (none of which may lack it), the other columns from those to learn from. */
bool schema_guess(const vkt_records *r, const schema_params *p, const table_rows *all, const table_rows *train,
                  table_schema *out);
void schema_free(table_schema *s);

uint32_t schema_inputs(const table_schema *s);      /* numbers of a row */
bool schema_has_classes(const table_schema *s);     /* else the target is a number */
void schema_print(const table_schema *s, FILE *to); /* a line for each column, and what became of it */

/* Writes the schema as JSON, which free() frees, and reads it back. */
char *schema_to_text(const table_schema *s);
bool schema_from_text(const char *text, table_schema *out);

enum { SCHEMA_WHY = 320 }; /* bytes of a message */

/* Finds the schema's columns in a table: map[i] for each of s->n, UINT32_MAX for what is left out, and for a target
 * that is not there. */
bool schema_match(const table_schema *s, const vkt_records *r, uint32_t *map, char why[SCHEMA_WHY]);
/* The schema_inputs numbers of a row. A text where a number belongs is an error. */
bool schema_encode(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *x,
                   char why[SCHEMA_WHY]);
/* The target of a row: its class, or its standardised number. */
bool schema_label(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, uint32_t *label,
                  char why[SCHEMA_WHY]);
bool schema_value(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *y,
                  char why[SCHEMA_WHY]);

#endif
