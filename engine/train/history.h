/* train/history.h - what one training run measured, epoch by epoch. */
#ifndef VKT_HISTORY_H
#define VKT_HISTORY_H

#include "base/base.h"
#include "vktrain/train.h"

/* A list that grows. {.h = h} is an empty one; records[0..n) may be read freely, and pointers into it live until the
 * next add. Threads: one at a time. */
typedef struct vkt_history {
    const vkt_host *h; /* lent */
    vkt_epoch_record *records;
    size_t n, cap;
} vkt_history;

vkt_result vkt_history_add(vkt_history *history, const vkt_epoch_record *record);
/* Empties it. */
void vkt_history_free(vkt_history *history);

/* Whether every loss that was measured is a finite number: what is not counts for nothing, whatever its accuracy. */
bool vkt_epoch_is_finite(const vkt_epoch_record *r);
/* Index of the best of the finite epochs: highest val_acc, else lowest val_loss, where no validation was measured
 * lowest train_loss; the first of equals. n when nothing of that was measured. */
size_t vkt_history_best(const vkt_epoch_record *records, size_t n);

/* Writes "epoch,train_loss,train_acc,val_loss,val_acc,lr,seconds" and names of metrics, and one line per record,
 * numbers as %.9g with a decimal point in every locale, NaN as an empty field. Atomic; VKT_E_IO, VKT_E_NOMEM. */
vkt_result vkt_history_write_csv(const vkt_host *h, const vkt_epoch_record *records, size_t n, const char *path);

#endif
