/* vktrain/columns.h - turns the columns of a CSV file into numbers for a network. A column of numbers is standardised.
 * A column of texts becomes several numbers, one for each different text: 1 if the field has this text, else 0. Fields
 * may be missing.
 *
 *   vkt_records_read(NULL, "houses.csv", ',', &records);
 *   vkt_columns_guess(NULL, records, &(vkt_columns_params){ .target = "price" }, &columns);
 *   vkt_dataset_from_columns(NULL, columns, records, NULL, 0, true, &data);
 *   vkt_columns_to_text(columns, &text);                    for vkt_trainer_attach
 *
 * A program that predicts reads this text, and turns any other file with the same columns into numbers by the same
 * rules:
 *
 *   a number        (x - mean) / std; 0 for a missing field
 *   a text          one number for each known text: 1 if the field has this text, else 0. All of them are 0 for a
 *                   missing field and for an unknown text
 *   both kinds      one more number, 1 for a missing field, else 0; only for a column in which vkt_columns_guess found
 *                   missing fields
 *
 * A field is missing if it is empty, "?", "NA", "N/A", "NaN" or "null". In these texts and in names, upper and lower
 * case are equal (ASCII letters only). Numbers are finite and decimal; the decimal separator is a point. Blanks before
 * a field or a name are ignored. Columns are found by their names, so no other column may have the name of a column
 * that is used. Such a table is refused with VKT_E_FORMAT.
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Constructors return VKT_OK and set *out, which the caller owns. After an error *out = NULL. The errors are VKT_E_ARG,
 * VKT_E_NOMEM and those that each function names. */
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
    VKT_COLUMN_VALUES        /* texts; for a target: classes */
} vkt_column_use;

/* One column. Pointers are valid as long as the vkt_columns. */
typedef struct vkt_column {
    const char *name;           /* without blanks before it */
    vkt_column_use use;         /* how the column is used */
    double mean, std;           /* mean and standard deviation of a column of numbers; std > 0 */
    const char *const *values;  /* the n_values different texts of a column, sorted (numerically if all are numbers).
                                 * For a target with classes, these texts are the names of the classes */
    uint32_t n_values, missing; /* missing: number of missing fields of an input in the rows that vkt_columns_guess has
                                 * read */
    char why[48];               /* why the column is left out; "as in training" after vkt_columns_from_text */
    uint32_t distinct;          /* the number of different texts, if the guess left the column out because there are too
                                 * many; else 0 */
} vkt_column;

/* The kind of a target. */
typedef enum vkt_target_kind {
    VKT_TARGET_GUESSED = 0, /* a column with texts has classes. A column of at most 20 different whole numbers, with at
                             * least 5 rows for each number on average, has classes, too. Any other column has
                             * numbers */
    VKT_TARGET_CLASSES,     /* classes */
    VKT_TARGET_NUMBER       /* a number, predicted as (y - mean) / std */
} vkt_target_kind;

/* The options of a guess. A member that is 0 or NULL selects its default. */
typedef struct vkt_columns_params {
    const char *target;          /* NULL: the last column */
    vkt_target_kind kind;        /* the kind of the target */
    const char *const *left_out; /* n_left_out names of columns that are not used as inputs */
    uint32_t n_left_out;         /* number of names in left_out */
    uint32_t most_values;        /* an input with more different texts than this is left out; 0 means 32 */
    const uint32_t *rows;        /* indices of the n_rows training rows, from which the inputs are guessed; NULL: all
                                  * rows. The target is guessed from all rows of the table in which it is not missing */
    uint32_t n_rows;             /* number of elements of `rows` */
} vkt_columns_params;

/* The columns of a table, and how they are used. */
typedef struct vkt_columns vkt_columns;

/* Guesses the use of each column. An input is left out if it has no values, has the same value in all rows, has too
 * many different texts (most_values), counts the rows (each value is the index of its row plus a constant), or has
 * numbers so large that their deviation is not finite. VKT_E_NOT_FOUND: `params` names a column that does not exist.
 * VKT_E_FORMAT: the target has fewer than two different values, its classes have fewer than two rows each on average,
 * its numbers are too large, a column that is used and another column have the same name, or no inputs remain.
 * VKT_E_ARG: VKT_TARGET_NUMBER for a target with texts, a row that does not exist, or a NULL instead of a name to leave
 * out. `params` may be NULL. */
VKT_API vkt_result vkt_columns_guess(const vkt_host *host, const vkt_records *r, const vkt_columns_params *params,
                                     vkt_columns **out);
VKT_API void vkt_columns_destroy(vkt_columns **c);                           /* data sets made with *c stay valid */
VKT_API uint32_t vkt_columns_count(const vkt_columns *c);                    /* number of columns */
VKT_API const vkt_column *vkt_columns_at(const vkt_columns *c, uint32_t at); /* NULL: there is no column `at` */
VKT_API uint32_t vkt_columns_target(const vkt_columns *c);                   /* index of the target */
VKT_API uint32_t vkt_columns_inputs(const vkt_columns *c);                   /* F, how many numbers a sample has */

/* Write the columns as a JSON text, and read the text back. vkt_text_release frees *text. vkt_columns_to_text returns
 * VKT_E_FORMAT if a name or text of a column is not UTF-8. vkt_columns_from_text returns VKT_E_FORMAT if the text has
 * another form, or if a column that is used and another column have the same name; the message calls the text `name`.
 * An example of a text:
 *   {"format": "vktrain-table", "version": 1, "target": "species", "columns": [
 *     {"name": "petal_width", "use": "number", "mean": 1.2, "deviation": 0.8, "missing": 0},
 *     {"name": "colour", "use": "values", "values": ["blue", "red"], "missing": 3},
 *     {"name": "remarks", "use": "left out", "why": "118 different texts"},
 *     {"name": "species", "use": "values", "values": ["setosa", "versicolor", "virginica"], "missing": 0}]} */
VKT_API vkt_result vkt_columns_to_text(const vkt_columns *c, char **text);
VKT_API vkt_result vkt_columns_from_text(const vkt_host *host, const char *name, const char *text, vkt_columns **out);

/* Makes a data set (n,F) f32 from n rows of a table. The indices of these rows are rows[0] .. rows[n-1]. If `rows` is
 * NULL, uses all rows of the table, and n is not used. If `with_target` is true, a target column with classes becomes
 * the labels of the data set, and a target column of numbers becomes the targets (n,1) of the data set. VKT_E_FORMAT:
 * there is no row, the table lacks a column or has two of its name, a column of numbers has a text, a target is
 * missing, or its class is unknown. VKT_E_ARG: an index is too large. */
VKT_API vkt_result vkt_dataset_from_columns(const vkt_host *host, const vkt_columns *c, const vkt_records *r,
                                            const uint32_t *rows, uint32_t n, bool with_target, vkt_dataset **out);

/* Finds a column of a table by its name; if several columns have this name, the first one. VKT_E_NOT_FOUND: there is no
 * such column; the message lists the names (if there are many, only the first ones), and *column = UINT32_MAX. */
VKT_API vkt_result vkt_records_column(const vkt_host *host, const vkt_records *r, const char *name, uint32_t *column);
/* Returns whether a field is missing. A field that does not exist is missing. */
VKT_API bool vkt_records_missing(const vkt_records *r, uint32_t row, uint32_t column);

#ifdef __cplusplus
}
#endif
#endif
