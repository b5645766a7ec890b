/* train/history.h - the measurements of one training run, epoch by epoch. */
#ifndef VKT_HISTORY_H
#define VKT_HISTORY_H

#include "base/base.h"
#include "vktrain/train.h"

/* A list that grows. {.h = h} is an empty list. Callers may read records[0..n). Pointers into the list are valid until
 * the next vkt_history_add. Threads: one at a time. */
typedef struct vkt_history {
    const vkt_host *h; /* not owned */
    vkt_epoch_record *records;
    size_t n, cap;
} vkt_history;

vkt_result vkt_history_add(vkt_history *history, const vkt_epoch_record *record);
/* Frees the records; the list is then empty. */
void vkt_history_free(vkt_history *history);

/* Returns whether the losses of an epoch are finite: train_loss, and also val_loss if the run has a validation set
 * (`validated`). If a loss is not finite, the epoch is never the best, whatever its accuracy is. */
bool vkt_epoch_is_finite(const vkt_epoch_record *r, bool validated);
/* Returns the index of the best finite epoch. If several epochs are equally good, returns the first of them. The best
 * epoch has the highest val_acc. If no finite epoch has a val_acc, the best epoch has the lowest val_loss. Without
 * validation, the best epoch has the lowest train_loss. If any epoch has a val_acc or a val_loss, an epoch whose
 * val_loss is NaN does not count as finite. Returns n if no epoch is finite. */
size_t vkt_history_best(const vkt_epoch_record *records, size_t n);

/* Writes CSV. The first line is "epoch,train_loss,train_acc,val_loss,val_acc,lr,seconds" plus ",NAME" for each metric.
 * Each record is one line. Numbers are %.9g with a decimal point in every locale. NaN is an empty field. The
 * file is replaced atomically. VKT_E_IO, VKT_E_NOMEM. */
vkt_result vkt_history_write_csv(const vkt_host *h, const vkt_epoch_record *records, size_t n, const char *path);

#endif
