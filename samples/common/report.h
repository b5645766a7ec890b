/* common/report.h - the results of a run as one JSON object. */
#ifndef SAMPLE_REPORT_H
#define SAMPLE_REPORT_H

#include <jansson.h>

#include "common/session.h"

/* Writes the file of --json as docs/train.schema.json describes it, completely or not at all. It has the facts of the
 * run (command line, versions, device, data, settings), its epochs and results, then the members of s->more. A number
 * that was not measured is null. Returns false, with a message, if it fails. */
bool write_report(const session *s, vkt_trainer *t);

/* Writes the results of a sample without a trainer to the file of --json: the members of `object`, which it frees, and
 * vktrain, arguments, device, driver, seed, data (null if the sample has not set it), stopped_by and peak_device_bytes.
 * Returns false, with a message, if it fails. */
bool write_results(const session *s, json_t *object);
json_t *real_or_null(double x); /* null for NaN and infinity, which JSON does not have */

/* Returns the settings of the run, without results, and the facts that a checkpoint compares: docs/options.schema.json.
 * The caller frees the text. NULL after a message. */
char *options_text(const session *s, vkt_trainer *t);

#endif
