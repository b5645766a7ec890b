/* common/version.h - the options -h and --version of all programs. */
#ifndef SAMPLE_VERSION_H
#define SAMPLE_VERSION_H

#include <argp.h>

/* Entries of a table of options. argp has no -h of its own. */
#define VERSION_OPTIONS                                       \
    { 0, 'h', 0, OPTION_HIDDEN, "", -1 },                     \
    {                                                         \
        "version", 'V', 0, 0, "print the version and end", -1 \
    }

/* Prints the help for -h, or the version for --version, and ends the program with status 0. Returns
 * ARGP_ERR_UNKNOWN for another key. */
error_t version_option(int key, struct argp_state *state);

#endif
