/* vktrain/table.h - tables of numbers: from CSV, and standardised.
 *
 *     vkt_dataset *all, *train, *test;                        features (N,F) f32, targets (N,K) f32
 *     const char *target = "price";
 *     vkt_dataset_from_csv(host, "houses.csv", &(vkt_csv_params){ .targets = &target, .n_targets = 1 }, &all);
 *     vkt_dataset_split(all, 0.2, seed, &train, &test);
 *     vkt_scaler *scaler;                                     of the training part alone
 *     vkt_scaler_fit(train, &scaler);
 *     vkt_scaler_transform(scaler, train, &train_scaled);     and test; later vkt_scaler_rows
 *
 * Numbers of the caller's own: vkt_dataset_from_arrays, { .rows = N, .width = F, .type = VKT_ROW_F32, .targets = .. }.
 *
 * Threads: everything that takes a pointer to const may run on several threads at once. `host` may be NULL; it is
 * copied. Constructors return VKT_OK and set *out, which the caller owns; else a status and *out = NULL: VKT_E_ARG,
 * VKT_E_NOMEM, and what each names. */
#ifndef VKTRAIN_TABLE_H
#define VKTRAIN_TABLE_H

#include "vktrain/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A column is its name in the header, whatever the case of its letters, or its number from 0 on ("3"). */
typedef struct vkt_csv_params {
    const char *const *features;    /* n_features columns, in the order of the row */
    uint32_t n_features;            /* 0: all columns that are nothing else */
    const char *const *targets;     /* n_targets columns of numbers to predict */
    uint32_t n_targets;             /* K; 0: the rows have none */
    const char *label;              /* a column of class names; NULL: none */
    const char *const *class_names; /* in the order of their numbers; NULL: numbered as they first appear */
    uint32_t classes;               /* how many class_names there are */
    bool no_header;                 /* the first line is a row */
    char separator;                 /* 0: ','; no quote, no line end */
} vkt_csv_params;

/* Reads a file, plain or gzip. Numbers are decimal, with a point; a field that is empty or no finite f32 is an error
 * that names line and column. `params` may be NULL. VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_FORMAT: no row, a column that is
 * not there, no CSV (RFC 4180), no number, a label that is none of the class names. */
VKT_API vkt_result vkt_dataset_from_csv(const vkt_host *host, const char *path, const vkt_csv_params *params,
                                        vkt_dataset **out);

/* A CSV file with a line of names, as texts: for programs that decide themselves what a column is. */
typedef struct vkt_records vkt_records;

/* Reads a file, plain or gzip, or a text, which messages call `name`. separator as above. VKT_E_NOT_FOUND, VKT_E_IO,
 * VKT_E_FORMAT: no CSV (RFC 4180), no line of names. */
VKT_API vkt_result vkt_records_read(const vkt_host *host, const char *path, char separator, vkt_records **out);
VKT_API vkt_result vkt_records_from_text(const vkt_host *host, const char *name, const char *text, char separator,
                                         vkt_records **out);
VKT_API void vkt_records_destroy(vkt_records **r);
VKT_API uint32_t vkt_records_rows(const vkt_records *r); /* without the line of names; may be 0 */
VKT_API uint32_t vkt_records_columns(const vkt_records *r);
/* Texts of the file, unquoted; they live as long as the records. NULL for a row or column that is not there. */
VKT_API const char *vkt_records_name(const vkt_records *r, uint32_t column);
VKT_API const char *vkt_records_field(const vkt_records *r, uint32_t row, uint32_t column);

/* x -> (x - mean) / std for each of the F numbers of a row (scikit-learn's StandardScaler): mean and biased standard
 * deviation of the rows that it was fitted to; std 1 where all are equal. In double precision, rounded once. */
typedef struct vkt_scaler vkt_scaler;

/* Rows of f32. VKT_E_ARG also for a number that is not finite; a source's error. */
VKT_API vkt_result vkt_scaler_fit(const vkt_dataset *ds, vkt_scaler **out);
VKT_API void vkt_scaler_destroy(vkt_scaler **s);            /* what it has transformed stays */
VKT_API uint32_t vkt_scaler_columns(const vkt_scaler *s);   /* F */
VKT_API const double *vkt_scaler_mean(const vkt_scaler *s); /* (F); lives as long as the scaler */
VKT_API const double *vkt_scaler_std(const vkt_scaler *s);  /* (F), above 0 */
/* A data set of the same rows, standardised, with their labels and targets. VKT_E_SHAPE for another F. */
VKT_API vkt_result vkt_scaler_transform(const vkt_scaler *s, const vkt_dataset *ds, vkt_dataset **out);
/* The same for n rows of F numbers, in place. */
VKT_API void vkt_scaler_rows(const vkt_scaler *s, float *rows, size_t n);
/* As a text, and back to the bit; for vkt_trainer_attach. vkt_text_release frees *text.
 *     vktrain-scaler 1 columns=2
 *     0.5 1.25                                                mean and std of the first column
 *     -3 1
 * VKT_E_FORMAT for a text that is not like that; the message calls it `name` and tells the line. */
VKT_API vkt_result vkt_scaler_to_text(const vkt_scaler *s, char **text);
VKT_API vkt_result vkt_scaler_from_text(const vkt_host *host, const char *name, const char *text, vkt_scaler **out);

#ifdef __cplusplus
}
#endif
#endif
