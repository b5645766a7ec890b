/* common/session.h - what every training sample does around its model: device, options, signals, what is printed,
 * files.
 *
 *   session s = { .o = { .epochs = 3, .batch = 128, .optimizer = { .kind = VKT_ADAM }, .lr = 0.01f, .seed = 1 } };
 *   session_begin(&s, &cli, argc, argv);
 *   if (session_open(&s)) { ... s.o, s.ctx; session_train(&s, &params, &trainer); what is special to the sample ... }
 *   return session_end(&s, result);
 */
#ifndef SAMPLE_SESSION_H
#define SAMPLE_SESSION_H

#include <argp.h>
#include <jansson.h>

#include "common/options.h"

/* The data that the numbers of --json are of. */
typedef struct session_data {
    const char *source; /* a path, or what was made up */
    bool made_up;
    const vkt_dataset *train, *validation, *test; /* NULL: none; test may be validation */
} session_data;

typedef struct session {
    train_options o; /* begins with the sample's defaults */
    int argc;
    char **argv;
    session_data data;               /* the sample's, before it trains */
    vkt_result error;                /* that ended the run, for --json */
    vkt_result failed;               /* the same, where it is none after which a fit returns in order */
    double test_loss, test_accuracy; /* of the best weights, on data.test; NaN: not measured */
    uint64_t start_ns;
    vkt_host host;
    vkt_ctx *ctx;
    const vkt_dataset *scored; /* what --report and --confusion are of; NULL: none */
    const char *scored_set;    /* "test" or "validation" */
    json_t *more;              /* NULL, or members of --json that are the sample's own; session_end frees it */
    /* NULL, or what session_fit calls behind the fit, before it writes files: may measure, print and set `more` */
    vkt_result (*finish)(struct session *s, vkt_trainer *t);
    void *user; /* the sample's */
} session;

/* Reads the command line and tries the files that are to be written; ends the program when an option is wrong (2), when
 * a file cannot be written (1), after --help and --list-devices (0). From now on signals end the run in order. */
void session_begin(session *s, const train_cli *cli, int argc, char **argv);
/* The context; says which device it is. False, logged: there is none. */
bool session_open(session *s);
uint64_t session_now_ns(void);               /* CLOCK_MONOTONIC, as start_ns */
void session_print_memory(const session *s); /* one line: most that was held from the device */
/* Keeps `data`, and prints a line: what it is called, rows to learn from and to check, shape of a sample. */
void session_set_data(session *s, const session_data *data);
/* A trainer of p with the options put in (batch, optimizer, lr, schedule, seed, stream, recompute, precision, profile;
 * the rest is the sample's), with the weights of --load. Then attach the texts that tell its data from others. Destroy
 * *t in any case. */
vkt_result session_trainer(session *s, const vkt_trainer_params *p, vkt_trainer **t);
/* Resumes it if asked for; its summary, the fit, its outcome, the files. `fit` (NULL: none) brings what the options do
 * not have: a monitor. VKT_OK too when a signal ended it: then the files are of the run so far, and the command that
 * goes on is printed; before the first step nothing is written. With --find-lr it only looks for a rate. After an
 * error, too, there are files, of what was trained until then. */
vkt_result session_fit(session *s, const vkt_fit_params *fit, vkt_trainer *t);
/* Both. */
vkt_result session_train(session *s, const vkt_trainer_params *p, const vkt_fit_params *fit, vkt_trainer **t);
/* Nothing but a fit, as `p` has it, with progress, until a signal ends it. */
vkt_result session_follow(const session *s, const vkt_fit_params *p, vkt_trainer *t);
/* Prints the outcome of a fit that ended with `r`, and writes the files. Each file is tried whatever became of the
 * others. `resumable`: the fit wrote checkpoints. */
vkt_result session_finish(session *s, const vkt_fit_params *fit, vkt_trainer *t, vkt_result r, bool resumable);
/* A signal came, or --find-lr is done: the sample prints no predictions. */
bool session_interrupted(void);
/* Destroys the context; the program's exit status for a result: 0, 1, or 128 + signal. */
int session_end(session *s, vkt_result r);

#endif
