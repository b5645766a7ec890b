/* common/options.h - the command line that the sample programs for training share. */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include <argp.h>

#include "vktrain/train.h"

/* After train_options_parse, the strings point into argv, and a pointer is NULL if its option is not given. Later,
 * session_begin changes some paths. It replaces the output path "-", and it sets the paths of files in the folder of
 * --run. If this folder has a checkpoint, it sets `load` to NULL. On ranks above 0 of --mpi, it sets `run` and the
 * paths of results to NULL. */
typedef struct train_options {
    const char *data, *device;
    bool list_devices, stream, quiet;
    uint32_t epochs, batch, patience;
    float lr;
    vkt_optimizer optimizer;
    float weight_decay, clip_norm; /* above 0: also copied to `optimizer`; 0: not given */
    uint32_t micro_batches;        /* above 0: also copied to `optimizer`; 0: not given */
    bool has_schedule;             /* --schedule is given; false: the sample program uses a schedule of its own */
    vkt_schedule schedule;         /* the value of --schedule. For cosine and one-cycle, `total` is still 0:
                                    * schedule_of in session.c computes `total` in a copy */
    uint32_t warmup;               /* steps (epochs, if the schedule counts epochs) of the warm-up; 0: not given */
    bool recompute;
    vkt_precision precision;
    double ema_decay;
    vkt_monitor monitor;
    bool allow_nonfinite, seed_given;
    uint64_t seed, memory_limit_bytes;
    const char *devices;   /* names, or numbers as in --list-devices, with commas between them. Each device is a rank
                            * (with `mpi`: see ranks_device) */
    bool mpi;              /* each process is a rank */
    uint32_t shards;       /* number of shards of a batch; 0: the library's default */
    uint64_t bucket_bytes; /* see vkt_dist_params.bucket_bytes; 0: the library's default */
    vkt_wire messages;     /* the number format of gradients that ranks exchange */
    const char *run;       /* a folder for the files of the run, except files whose options give a path */
    const char *checkpoint, *resume, *load, *save;
    uint64_t checkpoint_every;
    const char *json, *history, *plot, *profile;
    const char *find_lr; /* a learning rate test draws its figure to this file; NULL: no test */
    const char *confusion, *class_weights;
    bool report;
    double label_smoothing;
    bool predict;             /* the program does not train: it predicts `files` with the weights `load` */
    const char *const *files; /* the arguments, for instance the files of --predict; "-": standard input */
    uint32_t n_files;
} train_options;

/* The training options that a sample program has. --seed does not count as one of them: every program has --seed. */
typedef enum train_scope {
    TRAIN_BY_TRAINER = 0, /* all training options, for session_train */
    TRAIN_BY_PROGRAM,     /* only --epochs, --lr and --optimizer of the training options */
    TRAIN_NOTHING         /* no training options */
} train_scope;

/* The part of the command line that belongs to one sample program. */
typedef struct train_cli {
    const char *doc; /* the text of --help between usage and options. Text after '\v' comes behind the options */
    train_scope scope;
    const char *data;        /* the help text of --data; NULL: the program has no such option */
    const char *arguments;   /* names of arguments in --help. NULL: the program has no arguments, except the files of
                              * --predict. The arguments go to train_options.files */
    bool classes;            /* the data have classes. So the program has the options --class-weights,
                              * --label-smoothing, --confusion and --report */
    const char *predict;     /* the help text of --predict; NULL: the program has no such option */
    const struct argp *more; /* more options; their parser gets `input`. NULL: none. Their keys begin at 512 */
    void *input;
} train_cli;

/* Reads the command line into *o. On entry *o has the defaults, which --help shows. If an option is wrong, prints a
 * message and exits with status 2. Exits with status 0 after --help and --version. */
void train_options_parse(train_options *o, const train_cli *cli, int argc, char **argv);

/* Return the number in `text`, which is the value of an option. If `text` is not a number from `least` to `most`, each
 * function prints a message and ends the program with status 2. */
uint64_t option_integer(struct argp_state *state, const char *option, const char *text, uint64_t least, uint64_t most);
double option_number(struct argp_state *state, const char *option, const char *text, double least, double most);

#endif
