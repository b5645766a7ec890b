/* data/loader.h - makes batches of a data set by worker threads, in memory of the caller.
 *
 * The caller lends a ring of S slots, each with space for one batch. Batch i of an epoch is written to slot i % S as
 * soon as that slot is free. So the workers are up to S batches ahead. Workers claim a few samples at a time, in order.
 * So all workers help with the batch that is needed next. When all samples of this batch are claimed, the workers start
 * the following batch. The content of each batch, the order of batches and the errors do not depend on the number of
 * workers.
 *
 *     vkt_loader_start_epoch(l, order, n, pass);
 *     for (;;) {
 *         VKT_TRY(vkt_loader_next(l, &slot, &rows));
 *         if (rows == 0) break;                        // the end of the epoch
 *         ... use slots[slot] ...
 *         vkt_loader_release(l, slot);                 // may come later, for instance when a copy has ended
 *     }
 *
 * Threads: one caller at a time. Workers write a slot only while it is not the caller's: vkt_loader_next gives it to
 * the caller, and vkt_loader_release gives it back. Workers write in ascending order within a sample and never read, so
 * the slot may be write-combined device memory. */
#ifndef VKT_LOADER_H
#define VKT_LOADER_H

#include "base/base.h"
#include "vktrain/data.h"

typedef struct vkt_loader vkt_loader;

typedef struct vkt_loader_slot {
    void *features;   /* batch * row_pitch bytes, aligned for the element type */
    uint32_t *labels; /* `batch` labels. Unused if the data set has no labels. NULL: labels are not wanted */
    float *targets;   /* batch * vkt_dataset_target_width numbers. Unused if the data set has no targets. NULL: targets
                       * are not wanted */
} vkt_loader_slot;

typedef struct vkt_loader_params {
    const vkt_dataset *dataset;   /* must outlive the loader */
    uint32_t batch;               /* samples of a batch, 1 or more */
    const vkt_loader_slot *slots; /* n_slots slots. The array is copied. The memory to which the slots point must
                                   * outlive the loader */
    uint32_t n_slots;             /* 1 or more; 2 or more to work ahead */
    uint32_t workers; /* threads, below VKT_DATA_MAX_WORKERS. 0 means 2 threads if vkt_dataset_features is not NULL,
                       * else one thread per core, at least 2 and at most 16 */
    size_t row_pitch; /* bytes from the start of a sample to the start of the next sample in a slot. 0 means
                       * vkt_dataset_row_bytes. Bytes between the end of a sample and the next one become 0 */
} vkt_loader_params;

/* Starts the workers, which wait for an epoch. After VKT_E_ARG or VKT_E_NOMEM *out is NULL. If a thread does not start,
 * the result is VKT_E_NOMEM. `h` must be a result of vkt_host_resolve. Several loaders of one data set, and
 * vkt_dataset_fetch, may run at the same time: each fetch has its own worker number (vkt_dataset_take_worker). */
vkt_result vkt_loader_create(const vkt_host *h, const vkt_loader_params *p, vkt_loader **out);

/* Starts an epoch of the samples order[0] .. order[n_rows - 1]. order NULL: samples 0 .. n_rows - 1. Otherwise `order`
 * must not change until the next epoch starts or the loader is destroyed. Each fetch of the epoch gets `pass`. If an
 * epoch still runs, this call ends it first, and waits for its claimed samples. The caller keeps slots that it did not
 * release. VKT_E_ARG: n_rows is 0, or an index is too large. After this error the loader is idle. */
vkt_result vkt_loader_start_epoch(vkt_loader *l, const uint32_t *order, uint32_t n_rows, vkt_pass pass);

/* Ends the current epoch and waits for its claimed samples. No worker fetches until the next epoch starts. */
void vkt_loader_stop(vkt_loader *l);

/* Waits until the next batch, in order, is in its slot. The caller owns the slot until its release. *rows is `batch`,
 * or less for the last batch, whose other samples are zero. After the last batch, *rows is 0 and *slot is UINT32_MAX.
 * If fetches of a batch fail, the call returns the status of the first sample, in order, that failed. All later calls
 * return this status too, until vkt_loader_stop or vkt_loader_start_epoch is called. VKT_E_STATE: no epoch was started,
 * or the slot of the next batch was not released. */
vkt_result vkt_loader_next(vkt_loader *l, uint32_t *slot, uint32_t *rows);

/* Releases a slot of vkt_loader_next. VKT_E_STATE if the caller does not own it. */
vkt_result vkt_loader_release(vkt_loader *l, uint32_t slot);

/* Returns how long vkt_loader_next has waited for workers, in ns, in all epochs. */
uint64_t vkt_loader_waited_ns(const vkt_loader *l);

/* Destroys the loader, at any time. Waits for claimed samples. *l may be NULL. */
void vkt_loader_destroy(vkt_loader **l);

#endif
