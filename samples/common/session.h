/* common/session.h - the parts that all sample programs for training share: device, options, signals, output, files.
 *
 *   session s = { .o = { .epochs = 3, .batch = 128, .optimizer = { .kind = VKT_ADAM }, .lr = 0.01f, .seed = 1 } };
 *   session_begin(&s, &cli, argc, argv);
 *   if (session_open(&s)) { ... s.o, s.ctx; session_train(&s, &params, &trainer); the program's own code }
 *   return session_end(&s, result); */
#ifndef SAMPLE_SESSION_H
#define SAMPLE_SESSION_H

#include <argp.h>
#include <jansson.h>

#include "common/options.h"
#include "common/ranks.h"
#include "vktrain/run_dir.h"

/* The data of a run. */
typedef struct session_data {
    const char *source;                           /* a path, or the name of data without a path */
    bool made_up;                                 /* the data are generated */
    const vkt_dataset *train, *validation, *test; /* NULL: none; `test` may be the same data set as `validation` */
} session_data;

typedef struct session {
    train_options o; /* the program's defaults; from session_begin on, the options */
    int argc;
    char **argv;
    session_data data;               /* set by the sample program, before it trains */
    vkt_result error;                /* the result of the fit, for --json */
    vkt_result failed;               /* equals `error`, but is VKT_OK for VKT_E_DIVERGED and VKT_E_CHECKPOINT */
    double test_loss, test_accuracy; /* results of the best weights on data.test; NaN: not measured */
    uint64_t start_ns;
    vkt_host host;
    vkt_run_dir *folder; /* the folder of --run; NULL: none */
    bool in_folder;      /* the fit writes its files to `folder` */
    bool fitting;        /* session_fit was called; from then on, it reports errors to the other ranks */
    vkt_ctx *ctx;
    bool not_saved;            /* the weights of --save could not be written at the end */
    ranks ranks;               /* the ranks of data parallel training */
    const vkt_dataset *scored; /* the data set of --report and --confusion; NULL: none */
    const char *scored_set;    /* "test" or "validation" */
    json_t *more;              /* NULL, or more members of --json; session_end frees it */
    /* A function that session_finish calls before it writes files, if there is a best epoch and `failed` is VKT_OK. The
     * function may measure, print and set `more`. NULL: none. */
    vkt_result (*finish)(struct session *s, vkt_trainer *t);
    void *user;       /* a pointer that only the sample program uses */
    const char *unit; /* what the progress bar counts per second, for instance "tok"; NULL: batches */
    double per_batch; /* mean number of units in a batch; used only with `unit` */
} session;

/* Reads the command line, connects to the processes of --mpi, and opens the folder of --run. Tests whether the files of
 * --load and --resume can be read (not with --predict), and whether the output files can be written. Ends the program
 * with status 2 if an option is wrong, with 1 if something fails, and with 0 after --help, --version and
 * --list-devices. After session_begin, the first signal only asks the run to end: see stop.h. */
void session_begin(session *s, const train_cli *cli, int argc, char **argv);
/* Creates the contexts of this process. Prints their devices, unless --predict or --quiet is given. Returns false, with
 * a message, if this fails. */
bool session_open(session *s);
uint64_t session_now_ns(void);               /* returns the time of CLOCK_MONOTONIC, as in start_ns */
void session_print_memory(const session *s); /* prints the peak of device memory, unless --quiet */
/* Copies *data to s->data. Unless --quiet is given, prints a line: source, number of training and validation samples,
 * shape of a sample, number of classes. */
void session_set_data(session *s, const session_data *data);
/* Creates a trainer with the parameters *p. The options replace batch, optimizer, lr, seed, stream, recompute,
 * precision, ema_decay, profile, label_smoothing, class_weights, dist and more_devices. --schedule and --warmup change
 * the schedule. --find-lr removes validation and metrics. All other members keep the values of *p. Loads the weights of
 * --load. Before session_fit, the sample program may attach texts to *t (vkt_trainer_attach), for instance an alphabet.
 * *t must be NULL before the call. The caller destroys *t, also after an error. */
vkt_result session_trainer(session *s, const vkt_trainer_params *p, vkt_trainer **t);
/* With --mpi, first waits for the other ranks. Resumes the run if an option asks for it, prints the summary, trains,
 * prints the outcome and writes the files. `fit` (NULL: none) has the program's own monitor and min_delta. After a
 * signal or an error, the files describe the run so far. A signal is not an error. After a signal, prints the command
 * that continues the run, if there is a checkpoint. If a signal comes before the fit, writes nothing. If an error comes
 * before the first step, writes at most the options, log and events of --run. With --find-lr, only runs the learning
 * rate test. */
vkt_result session_fit(session *s, const vkt_fit_params *fit, vkt_trainer *t);
/* Calls session_trainer, then session_fit. */
vkt_result session_train(session *s, const vkt_trainer_params *p, const vkt_fit_params *fit, vkt_trainer **t);
/* Calls vkt_trainer_fit with `p` (vkt_run_dir_fit if s->in_folder), and shows the progress unless --quiet is given. A
 * signal ends the fit. The callbacks of `p` must be NULL, because this function sets its own. */
vkt_result session_follow(const session *s, const vkt_fit_params *p, vkt_trainer *t);
/* Prints the outcome of a fit that ended with `r`, and writes the files. If one file fails, still writes the other
 * files. Returns the first error. After an error before the first step, only returns `r`. `resumable`: the fit had a
 * path for checkpoints. */
vkt_result session_finish(session *s, const vkt_fit_params *fit, vkt_trainer *t, vkt_result r, bool resumable);
/* Returns whether a signal came, or whether the learning rate test of --find-lr has begun. If so, the program prints
 * no predictions. */
bool session_interrupted(void);
/* Destroys the contexts, closes the folder of --run and disconnects from the other processes. If `r` is an error and no
 * message was printed before, prints the meaning of `r`. If `r` is an error and session_fit was not called, reports it
 * to the other ranks. Returns the program's exit status: 0, 1, or 128 + signal. If a rank of --mpi has failed, ends all
 * processes instead (ranks_leave). */
int session_end(session *s, vkt_result r);

#endif
