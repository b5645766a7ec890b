/* common/options.h - the command line that the training samples share. */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include "vktrain/train.h"

/* Texts point into argv; NULL: not given. */
typedef struct train_options {
    const char *data, *device;
    bool list_devices, stream, quiet;
    uint32_t epochs, batch, patience;
    float lr;
    vkt_optimizer optimizer;
    bool recompute;
    vkt_precision precision;
    uint64_t seed, memory_limit_bytes;
    const char *checkpoint, *resume, *save;
    uint64_t checkpoint_every;
    const char *json, *history, *plot, *profile;
} train_options;

const char *precision_name(vkt_precision p); /* as --precision has it */

/* Reads the command line over the defaults that *o comes with. `doc` is the first paragraph of --help. Prints a message
 * and exits with status 2 when an option is wrong, with 0 after --help. */
void train_options_parse(train_options *o, const char *doc, int argc, char **argv);

#endif
