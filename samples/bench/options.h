/* bench/options.h - the command line of vkt-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "vktrain/ops.h"
#include "vktrain/optim.h"

typedef enum bench_sizes { BENCH_SIZES_NET = 0, BENCH_SIZES_SMALL, BENCH_SIZES_LARGE } bench_sizes;

/* The strings point into argv. But `json` and `csv` are results of output_path (common/outputs.h), which returns a
 * static string for "-". A pointer is NULL if its option is not given. */
typedef struct bench_options {
    const char *device, *shapes, *json, *csv, *compare, *plot, *tune;
    const regex_t *filter; /* pattern for the names of experiments; NULL: every experiment */
    bench_sizes sizes;
    uint64_t min_ns;         /* each of the two clocks (GPU, host) measures an op or a step for about this time */
    uint64_t variant;        /* 1 << v: measure only variant v. 0: measure the preferred variants; if `preferred`
                              * is false, also measure the other variants of each op */
    vkt_precision precision; /* precision of steps */
    bool preferred;          /* only the variants that ops prefer */
    bool list;
    int argc;
    char **argv; /* the whole command line, for the JSON file */
} bench_options;

/* Reads the command line into *o. If an option is wrong, prints a message and exits with status 2. Exits with status 0
 * after --help and --version. */
void bench_options_parse(bench_options *o, int argc, char **argv);
const char *bench_sizes_name(bench_sizes s);
const char *bench_precision_name(vkt_precision p);

#endif
