/* data/dataset.h - what the files of this floor share about data sets; everybody else uses vktrain/data.h. */
#ifndef VKT_DATASET_H
#define VKT_DATASET_H

#include "base/base.h"
#include "vktrain/data.h"

/* Rows of whole numbers, which nothing scales or shifts. */
static inline bool vkt_is_sequence(vkt_row_type t)
{
    return t == VKT_ROW_U16 || t == VKT_ROW_U32;
}

/* vkt_dataset_from_arrays for memory from vkt_alloc: `features`, p->labels and p->targets (both may be NULL) become the
 * data set's. On failure all stay the caller's. `h` is resolved. */
vkt_result vkt_dataset_adopt(const vkt_host *h, const vkt_dataset_params *p, void *features, vkt_dataset **out);

/* A data set with `features` (n rows, from vkt_alloc, the data set's from now on) that has all else of the rows
 * rows[0] .. rows[n-1] of `ds`, NULL: 0 .. n-1. On failure `features` stays the caller's. */
vkt_result vkt_dataset_derive(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, void *features,
                              vkt_dataset **out);

/* The resolved host that the data set was made with; lives as long as the data set. */
const vkt_host *vkt_dataset_host(const vkt_dataset *ds);

/* vkt_dataset_fetch without the check of `row`, of any pass, as `worker` (below VKT_DATA_MAX_WORKERS). Logs nothing. */
vkt_result vkt_dataset_fetch_as(const vkt_dataset *ds, uint32_t row, vkt_pass pass, void *out, uint32_t worker);
/* What the source tells of the worker's last fetch, which returned r: never NULL; valid until the worker's next. */
const char *vkt_dataset_why(const vkt_dataset *ds, uint32_t worker, vkt_result r);

#endif
