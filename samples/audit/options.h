/* audit/options.h - the command line of vkt-audit. */
#ifndef AUDIT_OPTIONS_H
#define AUDIT_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

/* The strings point into argv. A pointer is NULL if its option is not given. `json` comes from output_path
 * (common/outputs.h). */
typedef struct audit_options {
    const char *device, *json;
    const regex_t *filter; /* with `all`: pattern for the names of the ops; NULL: every op */
    char **networks;       /* names of networks */
    int n_networks;
    bool all;       /* audit every op, at random shapes */
    uint64_t seeds; /* with `all`: number of cases of each op */
    uint64_t seed;
    double effort; /* seconds that the CPU may compute the reference of a case, roughly; 0: the library's default */
    bool quiet;    /* do not print entries that are right */
    bool list;
    int argc;
    char **argv; /* the whole command line, for the JSON file */
} audit_options;

/* Reads the command line into *o. If an option is wrong, prints a message and exits with status 2. Exits with status 0
 * after --help and --version. */
void audit_options_parse(audit_options *o, int argc, char **argv);

#endif
