/* bench/json.h - writes results to files, JSON by docs/bench.schema.json and CSV, and reads the JSON. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "bench/options.h"
#include "bench/results.h"

/* Write the results. Both functions replace the file atomically. `date` is ISO 8601. */
vkt_result bench_write_json(const vkt_host *h, const char *path, const bench_results *all, const bench_options *o,
                            const vkt_device_info *device, const char *date);
vkt_result bench_write_csv(const vkt_host *h, const char *path, const bench_results *all);

/* Sets `change` of each result that has a result of the same name in the file. *matched is the number of such results.
 * VKT_E_FORMAT, logged: the file is of another kind. */
vkt_result bench_compare_with(const vkt_host *h, const char *path, bench_results *all, size_t *matched);

#endif
