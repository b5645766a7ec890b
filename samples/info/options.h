/* info/options.h - the command line of vkt-info. */
#ifndef INFO_OPTIONS_H
#define INFO_OPTIONS_H

#include <stdbool.h>

/* `json` is the result of output_path (common/outputs.h). The other strings are in argv. NULL means that the option is
 * not given. */
typedef struct info_options {
    const char *device, *json;
    bool list_devices;
    char **work; /* each is the name of a network, or a case, written like a line of a shapes file (bench/case.h) */
    int n_work;  /* 0: all networks */
} info_options;

/* Reads the command line into *o. If an option is wrong, prints a message and exits with status 2. Exits with status 0
 * after --help and --version. */
void info_options_parse(info_options *o, int argc, char **argv);

#endif
