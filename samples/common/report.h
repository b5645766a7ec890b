/* common/report.h - the results of a run as one JSON object. */
#ifndef SAMPLE_REPORT_H
#define SAMPLE_REPORT_H

#include <jansson.h>

#include "common/session.h"

/* Writes the report of a run to the file of --json (docs/train.schema.json), as vkt_write_file does. The report has
 * the facts of the run (command line, versions, device, data, settings), the epochs, the results and the members of
 * s->more. A number that was not measured is null. Returns false, with a message, if this fails. */
bool write_report(const session *s, vkt_trainer *t);

/* Writes the results of a run to the file of --json, for programs or options that do not write a report. The file has
 * the members of `object`, and vktrain, arguments, device, driver, seed, data (null if the program has not set it),
 * stopped_by and peak_device_bytes. Frees `object`. Returns false, with a message, if this fails. */
bool write_results(const session *s, json_t *object);
json_t *real_or_null(double x); /* returns x as JSON; null for NaN and infinity, which JSON does not have */
/* Returns `text` as a JSON string. If `text` is not UTF-8, '?' replaces all its non-ASCII bytes, because JSON is
 * UTF-8. */
json_t *text_json(const char *text);

/* Returns a JSON text (docs/options.schema.json): the facts and settings of the run, and the settings that must stay
 * the same when the run is resumed (vkt_trainer_identity). The text has no results. The caller frees the text. After
 * an error, returns NULL. The error has a message on stderr. */
char *options_text(const session *s, vkt_trainer *t);

#endif
