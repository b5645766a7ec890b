/* data/dataset.h - functions on data sets for the files of data/. Other folders of engine/ use vktrain/data.h.
 */
#ifndef VKT_DATASET_H
#define VKT_DATASET_H

#include "base/base.h"
#include "vktrain/data.h"

/* Returns whether samples of type t are sequences of whole numbers, which are not normalised. */
static inline bool vkt_is_sequence(vkt_row_type t)
{
    return t == VKT_ROW_U16 || t == VKT_ROW_U32;
}

/* Creates a data set like vkt_dataset_from_arrays, from memory of vkt_alloc. The data set becomes the owner of
 * `features`, p->labels and p->targets (p->labels and p->targets may be NULL). p->terms is copied. On failure the
 * caller still owns all arrays. `h` must be a result of vkt_host_resolve. */
vkt_result vkt_dataset_adopt(const vkt_host *h, const vkt_dataset_params *p, void *features, vkt_dataset **out);

/* Creates a new data set with `features`: n samples in memory of vkt_alloc. The new data set becomes the owner of
 * `features`. Labels, targets and terms are copied from the samples rows[0] .. rows[n-1] of `ds`; rows NULL means the
 * samples 0 .. n-1. Shape, type, classes and normalisation are those of `ds`. On failure the caller still owns
 * `features`. */
vkt_result vkt_dataset_derive(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, void *features,
                              vkt_dataset **out);

/* Returns the resolved host of the data set. It is valid as long as the data set. */
const vkt_host *vkt_dataset_host(const vkt_dataset *ds);

/* Takes the lowest free worker number from `first` to `last`; waits if all are in use. All loaders of a data set share
 * these numbers, because calls of the source's `fetch` with the same number must not overlap. (Each rank of a process
 * has its own loader.) The caller gives the number back when it no longer calls vkt_dataset_fetch_as and
 * vkt_dataset_why. Thread-safe.
 * vkt_dataset_fetch takes number 0, and loaders take 1 and above. */
uint32_t vkt_dataset_take_worker(const vkt_dataset *ds, uint32_t first, uint32_t last);
void vkt_dataset_give_worker(const vkt_dataset *ds, uint32_t number);

/* Fetches a sample like vkt_dataset_fetch, for any pass, as `worker` (below VKT_DATA_MAX_WORKERS). Does not check
 * `row`. Logs nothing. */
vkt_result vkt_dataset_fetch_as(const vkt_dataset *ds, uint32_t row, vkt_pass pass, void *out, uint32_t worker);
/* Returns the source's message for the worker's last fetch, which returned r. If the source has no message, returns the
 * text of r (vkt_result_text). Never NULL; valid until the worker's next fetch. */
const char *vkt_dataset_why(const vkt_dataset *ds, uint32_t worker, vkt_result r);

#endif
