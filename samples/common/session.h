/* common/session.h - what every training sample does around its model: device, options, Ctrl-C, what is printed, files.
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

typedef struct session {
    train_options o; /* begins with the sample's defaults */
    uint64_t start_ns;
    vkt_host host;
    vkt_ctx *ctx;
    json_t *more; /* NULL, or members of --json that are the sample's own; session_end frees it */
} session;

/* Reads the command line; ends the program when an option is wrong (2), after --help and --list-devices (0). */
void session_begin(session *s, const train_cli *cli, int argc, char **argv);
/* The context; says which device it is. False, logged: there is none. */
bool session_open(session *s);
uint64_t session_now_ns(void);               /* CLOCK_MONOTONIC, as start_ns */
void session_print_memory(const session *s); /* one line: most that was held from the device */
/* One line about a data set: what it is called, rows to learn from and to check (may be NULL), shape of a sample. */
void session_print_data(const session *s, const char *source, const vkt_dataset *train, const vkt_dataset *check);
/* A trainer of p with the options put in (batch, optimizer, lr, schedule, seed, stream, recompute, precision, profile;
 * the rest is the sample's), with the weights of --load. Then attach the texts that tell its data from others. Destroy
 * *t in any case. */
vkt_result session_trainer(session *s, const vkt_trainer_params *p, vkt_trainer **t);
/* Resumes it if asked for; its summary, the fit, its outcome, the files. `fit` (NULL: none) brings what the options do
 * not have: a monitor. VKT_OK too when Ctrl-C ended it. */
vkt_result session_fit(session *s, const vkt_fit_params *fit, vkt_trainer *t);
/* Both. */
vkt_result session_train(session *s, const vkt_trainer_params *p, const vkt_fit_params *fit, vkt_trainer **t);
/* Nothing but a fit, as `p` has it, with progress and under Ctrl-C. */
vkt_result session_follow(const session *s, const vkt_fit_params *p, vkt_trainer *t);
/* Ctrl-C came: the sample prints no results. */
bool session_interrupted(void);
/* Destroys the context; the program's exit status for a result: 0, 1, or 130 after Ctrl-C. */
int session_end(session *s, vkt_result r);

#endif
