/* data/loader.h - batches of a data set, made by worker threads in memory that they are given.
 *
 * The caller owns a ring of S slots, each with room for one batch. Batch i of an epoch is put into slot i % S as soon
 * as that slot is free, so up to S batches are made ahead. Rows are claimed a few at a time from the oldest unfinished
 * batch: all workers help with the batch that is needed next. Bytes, their order and errors do not depend on the number
 * of workers.
 *
 *     vkt_loader_start_epoch(l, order, n, pass);
 *     for (;;) {
 *         VKT_TRY(vkt_loader_next(l, &slot, &rows));
 *         if (rows == 0) break;                        // the end of the epoch
 *         ... use slots[slot] ...
 *         vkt_loader_release(l, slot);                 // may come later, for instance when a copy has ended
 *     }
 *
 * Threads: one caller at a time. Workers touch a slot only between its release and its return by vkt_loader_next; they
 * write it in ascending order within a row and never read it, so it may be write-combined device memory. */
#ifndef VKT_LOADER_H
#define VKT_LOADER_H

#include "base/base.h"
#include "vktrain/data.h"

typedef struct vkt_loader vkt_loader;

typedef struct vkt_loader_slot {
    void *features;   /* batch * row_pitch bytes, aligned for the row's element */
    uint32_t *labels; /* batch of them; NULL: not wanted (and ignored where the data set has none) */
    float *targets;   /* batch * vkt_dataset_target_width, likewise */
} vkt_loader_slot;

typedef struct vkt_loader_params {
    const vkt_dataset *dataset;   /* outlives the loader */
    uint32_t batch;               /* rows of a batch, 1 or more */
    const vkt_loader_slot *slots; /* n_slots of them; the array is copied, the memory outlives the loader */
    uint32_t n_slots;             /* 1 or more; 2 or more to work ahead */
    uint32_t workers;             /* threads, below VKT_DATA_MAX_WORKERS; 0: 2, or where rows are not in memory but
                                   * made, one per core, 2 to 16 */
    size_t row_pitch; /* bytes from row to row in a slot; 0: vkt_dataset_row_bytes. Bytes between are zero */
} vkt_loader_params;

/* Starts the workers, which wait for an epoch. VKT_E_ARG, VKT_E_NOMEM (also for a thread that does not start), and *out
 * = NULL. `h` is resolved. A source with per-worker scratch may serve one loader at a time; a loader's workers have the
 * numbers 1, 2, .., so vkt_dataset_fetch (0) may run beside it. */
vkt_result vkt_loader_create(const vkt_host *h, const vkt_loader_params *p, vkt_loader **out);

/* Begins with row order[0] of `n_rows` (1 or more; all below the data set's rows, else VKT_E_ARG and the loader is
 * idle), all of one pass. order NULL: 0, 1, ..; else it must stay unchanged until the next epoch starts or the loader
 * is destroyed. An epoch that still runs is given up, its rows in flight are waited for; slots that were not released
 * stay the caller's.
 */
vkt_result vkt_loader_start_epoch(vkt_loader *l, const uint32_t *order, uint32_t n_rows, vkt_pass pass);

/* Gives up what is left of an epoch, once its rows in flight are done: no worker fetches until the next one starts. */
void vkt_loader_stop(vkt_loader *l);

/* Waits until the next batch, in order, is in its slot; the slot is the caller's until its release. *rows is `batch`,
 * or less for the last one, whose other rows are zero; 0 (and *slot = UINT32_MAX) after the last one. The first row, in
 * order, whose fetch fails makes its batch return that status, and every later call too until the next epoch starts.
 * VKT_E_STATE: no epoch was started, or the slot of the next batch was not released. */
vkt_result vkt_loader_next(vkt_loader *l, uint32_t *slot, uint32_t *rows);

/* Gives a slot of vkt_loader_next back; VKT_E_STATE when it is not the caller's. */
vkt_result vkt_loader_release(vkt_loader *l, uint32_t slot);

/* How long vkt_loader_next has waited for workers, in all epochs. */
uint64_t vkt_loader_waited_ns(const vkt_loader *l);

/* At any time; waits for the rows in flight. */
void vkt_loader_destroy(vkt_loader **l);

#endif
