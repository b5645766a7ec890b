/* common/version.c - see version.h. */
#include "common/version.h"

#include <stdio.h>
#include <stdlib.h>

#include "vktrain/core.h"

error_t version_option(int key, struct argp_state *state)
{
    if (key == 'h') argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* argp_state_help ends the program */
    if (key != 'V') return ARGP_ERR_UNKNOWN;
    printf("vktrain %d.%d.%d (%s)\n", VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH, vkt_build_text());
    exit(0);
}
