/* common/report.h - the results of a training run as one JSON object. */
#ifndef SAMPLE_REPORT_H
#define SAMPLE_REPORT_H

#include <jansson.h>

#include "vktrain/train.h"

/* Writes `path`, whole or not at all: device, driver, precision, parameters, epochs (a list of epoch, train_loss,
 * train_acc, val_loss, val_acc, lr, seconds), final_loss (of training, in the last epoch), best_val_acc, ms_per_step
 * (median), first_step_ms (from `start_ns`, CLOCK_MONOTONIC, to the first finished step), skipped_steps (for overflow,
 * in f16) and peak_device_bytes (most memory held from the driver). What was not measured is null. Then the members of
 * `more` (NULL: none). False, with a message on stderr, when it cannot be written. */
bool write_report(const char *path, const vkt_ctx *ctx, vkt_trainer *t, const char *precision, uint64_t start_ns,
                  json_t *more);

/* The same of results that are a sample's own: `object`, which it takes over, and in it device, driver and
 * peak_device_bytes. */
bool write_results(const char *path, const vkt_ctx *ctx, json_t *object);
json_t *real_or_null(double x); /* JSON has no NaN and no infinity */

#endif
