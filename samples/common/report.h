/* common/report.h - the results of a run as one JSON object. */
#ifndef SAMPLE_REPORT_H
#define SAMPLE_REPORT_H

#include <jansson.h>

#include "common/session.h"

/* Writes --json, whole or not at all, as docs/train.schema.json has it: what the run was (command line, versions,
 * device, data, settings), its epochs and results, then the members of s->more. What was not measured is null. False,
 * with a message, when it cannot be written. */
bool write_report(const session *s, vkt_trainer *t);

/* The same of results that are a sample's own: `object`, which it takes over, and with it vktrain, arguments, device,
 * driver, seed, data (if the sample has set it), stopped_by and peak_device_bytes. */
bool write_results(const session *s, json_t *object);
json_t *real_or_null(double x); /* JSON has no NaN and no infinity */

/* The settings of the run, without results, and the facts that a checkpoint compares: docs/options.schema.json. free()
 * it; NULL after a message. */
char *options_text(const session *s, vkt_trainer *t);

#endif
