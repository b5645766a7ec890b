/* bench/json.h - results as files: JSON by docs/bench.schema.json, and CSV; and reading the JSON back. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "bench/options.h"
#include "bench/results.h"

/* Both replace the file atomically. `date` is ISO 8601. */
vkt_result bench_write_json(const vkt_host *h, const char *path, const bench_results *all, const bench_options *o,
                            const vkt_device_info *device, const char *date);
vkt_result bench_write_csv(const vkt_host *h, const char *path, const bench_results *all);

/* Fills in `change` of every result that has one of its name in the file. *matched counts them. VKT_E_FORMAT, logged,
 * for a file of another kind. */
vkt_result bench_compare_with(const vkt_host *h, const char *path, bench_results *all, size_t *matched);

#endif
