/* bench/json.h - writes results as JSON (docs/bench.schema.json) and as CSV, and reads the JSON files. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "bench/options.h"
#include "bench/results.h"

/* Write the results. Both functions replace a regular file atomically. `date` is ISO 8601. */
vkt_result bench_write_json(const vkt_host *h, const char *path, const bench_results *all, const bench_options *o,
                            const vkt_device_info *device, const char *date);
vkt_result bench_write_csv(const vkt_host *h, const char *path, const bench_results *all);

/* Sets `change` of each result that has a time, if the file has a time under the same name that was measured by the
 * same clock (GPU or host). *matched gets the number of results whose `change` is set. VKT_E_FORMAT, logged: the file
 * is not an output of bench_write_json. Other errors are those of vkt_file_read. */
vkt_result bench_compare_with(const vkt_host *h, const char *path, bench_results *all, size_t *matched);

#endif
