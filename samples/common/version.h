/* common/version.h - -h and --version, which all programs have. */
#ifndef SAMPLE_VERSION_H
#define SAMPLE_VERSION_H

#include <argp.h>

/* Rows of a table of options: argp has no -h of its own. */
#define VERSION_OPTIONS                                       \
    { 0, 'h', 0, OPTION_HIDDEN, "", -1 },                     \
    {                                                         \
        "version", 'V', 0, 0, "print the version and end", -1 \
    }

/* Does what they ask for, and ends the program with status 0. Another key: ARGP_ERR_UNKNOWN. */
error_t version_option(int key, struct argp_state *state);

#endif
