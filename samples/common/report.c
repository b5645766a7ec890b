/* common/report.c - see report.h. */
#include "common/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *epochs(const vkt_trainer *t)
{
    uint32_t n;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *epoch = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r[i].epoch, "train_loss",
                                  real_or_null(r[i].train_loss), "train_acc", real_or_null(r[i].train_acc), "val_loss",
                                  real_or_null(r[i].val_loss), "val_acc", real_or_null(r[i].val_acc), "lr",
                                  real_or_null(r[i].lr), "seconds", real_or_null(r[i].seconds));
        for (uint32_t k = 0; k < r[i].n_metrics; k++)
            json_object_set_new(epoch, r[i].metrics[k].name, real_or_null(r[i].metrics[k].value));
        json_array_append_new(list, epoch);
    }
    return list;
}

static json_t *report(vkt_trainer *t, const char *precision, uint64_t start_ns)
{
    const uint64_t first_ns = vkt_trainer_first_step_ns(t);
    vkt_loss_scale scale;
    if (vkt_store_get_loss_scale(vkt_trainer_store(t), &scale) != VKT_OK) return NULL;
    uint32_t n;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "precision", precision, "parameters",
                     (json_int_t)vkt_trainer_parameters(t), "epochs", epochs(t), "final_loss",
                     real_or_null(n ? r[n - 1].train_loss : NAN), "best_val_acc",
                     real_or_null(vkt_trainer_best_accuracy(t)), "ms_per_step",
                     real_or_null(vkt_trainer_ms_per_step(t)), "host_us_per_step",
                     real_or_null(vkt_trainer_host_us_per_step(t)), "data_wait_us_per_step",
                     real_or_null(vkt_trainer_data_wait_us_per_step(t)), "first_step_ms",
                     real_or_null(first_ns ? (double)(first_ns - start_ns) * 1e-6 : NAN), "skipped_steps",
                     (json_int_t)scale.skipped);
}

/* A copy with what every report has. */
static json_t *with_device(const vkt_ctx *ctx, json_t *object)
{
    const vkt_device_info *device = vkt_ctx_device(ctx);
    vkt_memory_stats memory;
    vkt_ctx_memory(ctx, &memory);
    json_t *all = json_pack("{s:s, s:s}", "device", device->name, "driver", device->driver);
    json_object_update(all, object);
    json_object_set_new(all, "peak_device_bytes", json_integer((json_int_t)memory.reserved_peak_bytes));
    return all;
}

bool write_results(const char *path, const vkt_ctx *ctx, json_t *object)
{
    const size_t room = strlen(path) + sizeof ".tmp";
    char *temp = malloc(room);
    json_t *all = object ? with_device(ctx, object) : NULL;
    bool ok = all && temp;
    if (ok) {
        snprintf(temp, room, "%s.tmp", path);
        ok = json_dump_file(all, temp, JSON_INDENT(2)) == 0 && rename(temp, path) == 0;
    }
    if (!ok) fprintf(stderr, "%s cannot be written: %s\n", path, strerror(errno));
    free(temp);
    json_decref(all);
    json_decref(object);
    return ok;
}

bool write_report(const char *path, const vkt_ctx *ctx, vkt_trainer *t, const char *precision, uint64_t start_ns,
                  json_t *more)
{
    json_t *object = report(t, precision, start_ns);
    if (object && more) json_object_update(object, more);
    return write_results(path, ctx, object);
}
