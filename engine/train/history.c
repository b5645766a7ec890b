/* train/history.c - see history.h: the list of epochs, the best epoch, and CSV. */
#include "train/history.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/file.h"
#include "base/numbers.h"

vkt_result vkt_history_add(vkt_history *history, const vkt_epoch_record *record)
{
    VKT_TRY(vkt_grow(history->h, &history->records, history->n, &history->cap, sizeof *record));
    history->records[history->n++] = *record;
    return VKT_OK;
}

void vkt_history_free(vkt_history *history)
{
    vkt_free(history->h, history->records);
    *history = (vkt_history){ .h = history->h };
}

bool vkt_epoch_is_finite(const vkt_epoch_record *r, bool validated)
{
    return isfinite(r->train_loss) && (!validated || isfinite(r->val_loss));
}

/* Returns the index of the finite epoch for which sign * x is largest. If there are several, returns the first one. x
 * is the float64 at byte offset `field` of a record. Returns n if x is NaN in all finite epochs. */
static size_t extreme(const vkt_epoch_record *records, size_t n, size_t field, double sign)
{
    size_t best = n;
    double best_value = 0;
    bool validated = false;
    for (size_t i = 0; i < n; i++) validated |= !isnan(records[i].val_acc) || !isnan(records[i].val_loss);
    for (size_t i = 0; i < n; i++) {
        double value;
        memcpy(&value, (const char *)&records[i] + field, sizeof value);
        value *= sign;
        if (isnan(value) || !vkt_epoch_is_finite(&records[i], validated) || (best < n && value <= best_value)) continue;
        best = i;
        best_value = value;
    }
    return best;
}

size_t vkt_history_best(const vkt_epoch_record *records, size_t n)
{
    size_t best = extreme(records, n, offsetof(vkt_epoch_record, val_acc), 1);
    if (best == n) best = extreme(records, n, offsetof(vkt_epoch_record, val_loss), -1);
    if (best == n) best = extreme(records, n, offsetof(vkt_epoch_record, train_loss), -1);
    return best;
}

vkt_result vkt_history_write_csv(const vkt_host *h, const vkt_epoch_record *records, size_t n, const char *path)
{
    const vkt_numbers locale = vkt_numbers_begin();
    vkt_text t = { .h = h };
    vkt_text_add(&t, "epoch,train_loss,train_acc,val_loss,val_acc,lr,seconds");
    for (uint32_t k = 0; n && k < records[0].n_metrics; k++) vkt_text_add(&t, ",%s", records[0].metrics[k].name);
    vkt_text_add(&t, "\n");
    for (size_t i = 0; i < n; i++) {
        const vkt_epoch_record *r = &records[i];
        enum { OWN = 6 };
        double fields[OWN + VKT_MAX_METRICS] = {
            r->train_loss, r->train_acc, r->val_loss, r->val_acc, r->lr, r->seconds
        };
        for (uint32_t k = 0; k < r->n_metrics; k++) fields[OWN + k] = r->metrics[k].value;
        vkt_text_add(&t, "%u", r->epoch);
        for (size_t k = 0; k < OWN + r->n_metrics; k++) {
            if (isnan(fields[k]))
                vkt_text_add(&t, ",");
            else
                vkt_text_add(&t, ",%.9g", fields[k]);
        }
        vkt_text_add(&t, "\n");
    }
    vkt_numbers_end(locale);
    const vkt_result r = t.failed ? vkt_fail_nomem(h, "a CSV text", t.len) : vkt_file_write(h, path, t.s, t.len);
    vkt_text_free(&t);
    return r;
}
