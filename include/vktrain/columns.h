/* vktrain/columns.h - turns the columns of a CSV file into numbers for a network. Numbers are standardised. A text
 * becomes a 0 or 1 for each of its values. Gaps are allowed.
 *
 *   vkt_records_read(NULL, "houses.csv", ',', &records);
 *   vkt_columns_guess(NULL, records, &(vkt_columns_params){ .target = "price" }, &columns);
 *   vkt_dataset_from_columns(NULL, columns, records, NULL, 0, true, &data);
 *   vkt_columns_to_text(columns, &text);                    for vkt_trainer_attach
 *
 * A program that predicts reads the text back, and makes the same numbers of any other file with these columns:
 *
 *   a number        (x - mean) / std; 0 if it is missing
 *   a text          1 for its value, 0 for each of the other values
 *   either          one more number, 1 for a missing field, if the rows of the guess had missing fields
 *
 * A field is missing if it is empty, "?", "NA", "N/A", "NaN" or "null", in any case of letters. Numbers are finite and
 * decimal, with a point. Blanks before a field or a name are ignored, and so is the case of a name's letters.
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Constructors return VKT_OK and set *out, which the caller owns; else they return a status and *out = NULL: VKT_E_ARG,
 * VKT_E_NOMEM, and those that each function names. */
#ifndef VKTRAIN_COLUMNS_H
#define VKTRAIN_COLUMNS_H

#include "vktrain/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The use of a column. */
typedef enum vkt_column_use {
    VKT_COLUMN_LEFT_OUT = 0, /* not used */
    VKT_COLUMN_NUMBER,       /* numbers */
    VKT_COLUMN_VALUES        /* texts; of a target: classes */
} vkt_column_use;

/* One column. Pointers are valid as long as the columns. */
typedef struct vkt_column {
    const char *name;           /* without blanks before it */
    vkt_column_use use;         /* how it is used */
    double mean, std;           /* of numbers; std > 0 */
    const char *const *values;  /* of texts: n_values different ones, sorted; of a target: the names of the classes */
    uint32_t n_values, missing; /* missing: rows of the guess without a value */
    char why[48];               /* why it is left out */
    uint32_t distinct;          /* not 0: it is left out because it has so many different texts */
} vkt_column;

/* The kind of a target. */
typedef enum vkt_target_kind {
    VKT_TARGET_GUESSED = 0, /* texts, and up to 20 whole numbers that come 5 times each or more, are classes */
    VKT_TARGET_CLASSES,     /* classes */
    VKT_TARGET_NUMBER       /* a number, predicted as (y - mean) / std */
} vkt_target_kind;

/* The options of a guess. Zero is the default. */
typedef struct vkt_columns_params {
    const char *target;          /* NULL: the last column */
    vkt_target_kind kind;        /* the kind of the target */
    const char *const *left_out; /* n_left_out names of columns that are not used */
    uint32_t n_left_out;         /* number of left_out */
    uint32_t most_values;        /* a column with more different texts is left out; 0: 32 */
    const uint32_t *rows;        /* n_rows: the training rows, from which the inputs are guessed; NULL: all. The target
                                  * is guessed from all rows that have one */
    uint32_t n_rows;             /* number of rows */
} vkt_columns_params;

/* The columns of a table, and how they are used. */
typedef struct vkt_columns vkt_columns;

/* Guesses the use of each column. Columns that have one value, no value or the number of their row are left out.
 * VKT_E_NOT_FOUND: no such column; VKT_E_FORMAT: a target or a table that cannot be learned; VKT_E_ARG: the target is
 * no number. `params` may be NULL. */
VKT_API vkt_result vkt_columns_guess(const vkt_host *host, const vkt_records *r, const vkt_columns_params *params,
                                     vkt_columns **out);
VKT_API void vkt_columns_destroy(vkt_columns **c);                           /* data sets stay valid */
VKT_API uint32_t vkt_columns_count(const vkt_columns *c);                    /* how many columns */
VKT_API const vkt_column *vkt_columns_at(const vkt_columns *c, uint32_t at); /* NULL: there is none */
VKT_API uint32_t vkt_columns_target(const vkt_columns *c);                   /* index of the target */
VKT_API uint32_t vkt_columns_inputs(const vkt_columns *c);                   /* F, numbers of a sample */

/* Write the columns as a JSON text, and read it back. vkt_text_release frees *text. VKT_E_FORMAT: a name or value that
 * is not UTF-8; a text of another form, which messages call `name`.
 *   {"format": "vktrain-table", "version": 1, "target": "species", "columns": [
 *     {"name": "petal_width", "use": "number", "mean": 1.2, "deviation": 0.8, "missing": 0},
 *     {"name": "colour", "use": "values", "values": ["blue", "red"], "missing": 3},
 *     {"name": "remarks", "use": "left out", "why": "118 different texts"},
 *     {"name": "species", "use": "values", "values": ["setosa", "versicolor", "virginica"], "missing": 0}]} */
VKT_API vkt_result vkt_columns_to_text(const vkt_columns *c, char **text);
VKT_API vkt_result vkt_columns_from_text(const vkt_host *host, const char *name, const char *text, vkt_columns **out);

/* Makes a data set (N,F) f32 of rows[0..n) of a table; rows NULL: all rows. with_target: each row needs a target, which
 * becomes its label or its target (N,1). VKT_E_FORMAT: the table has no row or lacks a column; a column of numbers has
 * a text; a class is unknown to the columns. */
VKT_API vkt_result vkt_dataset_from_columns(const vkt_host *host, const vkt_columns *c, const vkt_records *r,
                                            const uint32_t *rows, uint32_t n, bool with_target, vkt_dataset **out);

/* Finds a column of a table by its name. VKT_E_NOT_FOUND: the message lists the names; *column = UINT32_MAX then. */
VKT_API vkt_result vkt_records_column(const vkt_host *host, const vkt_records *r, const char *name, uint32_t *column);
/* Returns whether a field is missing. A field that does not exist is missing. */
VKT_API bool vkt_records_missing(const vkt_records *r, uint32_t row, uint32_t column);

#ifdef __cplusplus
}
#endif
#endif
