/* vktrain/table.h - tables of numbers: reading CSV files, and standardising.
 *
 *     vkt_dataset *all, *train, *test;                        features (N,F) f32, targets (N,K) f32
 *     const char *target = "price";
 *     vkt_dataset_from_csv(host, "houses.csv", &(vkt_csv_params){ .targets = &target, .n_targets = 1 }, &all);
 *     vkt_dataset_split(all, 0.2, seed, &train, &test);
 *     vkt_scaler *scaler;                                     fitted to the training part alone
 *     vkt_scaler_fit(train, &scaler);
 *     vkt_scaler_transform(scaler, train, &train_scaled);     repeat this for `test`
 *
 * For numbers in memory, use vkt_dataset_from_arrays: { .rows = N, .width = F, .type = VKT_ROW_F32, .targets = .. }.
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Constructors return VKT_OK and set *out, which the caller owns. After an error *out = NULL. The errors are VKT_E_ARG,
 * VKT_E_NOMEM and those that each function names. */
#ifndef VKTRAIN_TABLE_H
#define VKTRAIN_TABLE_H

#include "vktrain/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a CSV file. A column is given by its name in the header, or by its number from 0, for instance "3".
 * The case of ASCII letters in a name does not matter. Empty lines are skipped, also in a file of one column. */
typedef struct vkt_csv_params {
    const char *const *features;    /* (n_features): columns that become the features of a row, in this order */
    uint32_t n_features;            /* 0: all columns that are neither target nor label */
    const char *const *targets;     /* (n_targets): columns of numbers to predict */
    uint32_t n_targets;             /* K; 0: no targets */
    const char *label;              /* a column of class names; NULL: none */
    const char *const *class_names; /* names in the order of the class numbers; NULL: classes are numbered in the order
                                     * in which they first appear */
    uint32_t classes;               /* number of class_names */
    bool no_header;                 /* the first line is data */
    char separator;                 /* 0 means ','. A quote or a line end is not allowed */
} vkt_csv_params;

/* Reads a file, plain or gzip. Numbers are decimal; the decimal point is ".", whatever the locale. `params` may be
 * NULL. VKT_E_NOT_FOUND, VKT_E_IO. VKT_E_FORMAT: the file is no CSV (RFC 4180); the file has no row; a column does not
 * exist; a feature or target is not a finite f32; a label is empty or not a class name. For a wrong field, the message
 * has the number of the line, and the name or number of the column. */
VKT_API vkt_result vkt_dataset_from_csv(const vkt_host *host, const char *path, const vkt_csv_params *params,
                                        vkt_dataset **out);

/* The fields of a CSV file with a header, as texts, for programs that interpret the columns themselves. */
typedef struct vkt_records vkt_records;

/* vkt_records_read reads a CSV file, plain or gzip. vkt_records_from_text reads a text; messages call this text `name`.
 * For `separator` see vkt_csv_params. VKT_E_FORMAT: the file or text is no CSV (RFC 4180), or has no header.
 * vkt_records_read also returns VKT_E_NOT_FOUND, VKT_E_IO. */
VKT_API vkt_result vkt_records_read(const vkt_host *host, const char *path, char separator, vkt_records **out);
VKT_API vkt_result vkt_records_from_text(const vkt_host *host, const char *name, const char *text, char separator,
                                         vkt_records **out);
VKT_API void vkt_records_destroy(vkt_records **r);
VKT_API uint32_t vkt_records_rows(const vkt_records *r); /* number of rows, without the header; may be 0 */
VKT_API uint32_t vkt_records_columns(const vkt_records *r);
/* vkt_records_name returns the name of a column. vkt_records_field returns a field. The texts are without the
 * quotes of CSV. They are valid as long as `r`. NULL: there is no such row or column. */
VKT_API const char *vkt_records_name(const vkt_records *r, uint32_t column);
VKT_API const char *vkt_records_field(const vkt_records *r, uint32_t row, uint32_t column);

/* Standardises the F numbers of a row: x -> (x - mean) / std (scikit-learn's StandardScaler). `mean` and `std` are the
 * mean and the biased standard deviation of a column, over the rows to which the scaler was fitted. If all numbers of a
 * column are equal, its std is 1. Results are computed in double precision, and rounded once, to f32. */
typedef struct vkt_scaler vkt_scaler;

/* Fits a scaler to the rows of a data set. VKT_E_ARG: rows that are not f32, or a number that is not finite. Also
 * the errors of the data set's source. */
VKT_API vkt_result vkt_scaler_fit(const vkt_dataset *ds, vkt_scaler **out);
VKT_API void vkt_scaler_destroy(vkt_scaler **s);            /* transformed data sets stay valid */
VKT_API uint32_t vkt_scaler_columns(const vkt_scaler *s);   /* F */
VKT_API const double *vkt_scaler_mean(const vkt_scaler *s); /* (F); valid as long as the scaler */
VKT_API const double *vkt_scaler_std(const vkt_scaler *s);  /* (F), above 0 */
/* Standardises the rows of `ds`, and makes a data set of the results, with the labels, targets and terms of `ds`.
 * VKT_E_SHAPE: a row does not have F numbers. VKT_E_ARG: rows that are not f32. Also the errors of the data set's
 * source. */
VKT_API vkt_result vkt_scaler_transform(const vkt_scaler *s, const vkt_dataset *ds, vkt_dataset **out);
/* Standardises n rows of F numbers in place. */
VKT_API void vkt_scaler_rows(const vkt_scaler *s, float *rows, size_t n);
/* Write a scaler as a text for vkt_trainer_attach, and read the text back. Reading the text gives a scaler with the
 * same bits. vkt_text_release frees *text.
 *     vktrain-scaler 1 columns=2
 *     0.5 1.25                                                mean and std of the first column
 *     -3 1                                                    mean and std of the second column
 * VKT_E_FORMAT: the text has another form; the message begins with `name` and has the number of the line. */
VKT_API vkt_result vkt_scaler_to_text(const vkt_scaler *s, char **text);
VKT_API vkt_result vkt_scaler_from_text(const vkt_host *host, const char *name, const char *text, vkt_scaler **out);

#ifdef __cplusplus
}
#endif
#endif
