/* vktrain/train.h - fit, evaluate, predict: the loop around a training program, and the files that it writes.
 *
 *   vkt_trainer_create   builds the graphs, plans memory, records the commands, draws the initial weights
 *   vkt_trainer_fit      epochs with validation, early stopping, checkpoints; the best weights are restored at its end
 *   vkt_trainer_save     weights as safetensors, under PyTorch's names
 *
 * The loss of an epoch is the mean over its samples (batch losses weighted by their real rows). An accuracy is a
 * fraction of the samples. The same seed, data, device and settings give the same bits, also when a run was killed and
 * resumed.
 *
 * Threads: one at a time per trainer. The library prints nothing: callbacks report the progress; vkt_progress is a
 * ready-made one that writes to a stream of the caller. */
#ifndef VKTRAIN_TRAIN_H
#define VKTRAIN_TRAIN_H

#include <stdio.h>

#include "vktrain/data.h"
#include "vktrain/dist.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"
#include "vktrain/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the loss, a mean over the real rows, from the model's output y, its input x, the batch's labels (B) and
 * targets (B,K). Labels or targets are null if the data set has none. */
typedef vkt_tensor (*vkt_loss_fn)(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                                  void *user);
/* A model. `forward` maps a batch, (B,C,H,W), (B,F) for vectors or (B,L) for whole numbers, to an output. Without
 * `loss`: for a labelled set the output (B,classes) is logits, and the loss is softmax cross-entropy; for a set with
 * targets alone the loss is the mean squared error. If the output is (B,K) and K is at least the number of classes of a
 * labelled set, accuracy is measured too. */
typedef struct vkt_model {
    const char *name;       /* title of the summary; NULL: "model" */
    vkt_forward_fn forward; /* run once for each graph */
    void *user;             /* passed to both; must stay valid as long as the trainer */
    vkt_loss_fn loss;       /* run once for each graph; NULL: chosen by the data set, see above */
} vkt_model;

/* The number that decides about early stopping and the best weights. AUTO: validation accuracy, else validation loss;
 * without a validation set the training loss. ORDER: checkpoints contain these numbers, so a new one goes to the end.
 */
typedef enum vkt_monitor {
    VKT_MONITOR_AUTO = 0,   /* one of the others, as described above */
    VKT_MONITOR_VAL_ACC,    /* larger is better */
    VKT_MONITOR_VAL_LOSS,   /* smaller is better */
    VKT_MONITOR_TRAIN_ACC,  /* larger is better */
    VKT_MONITOR_TRAIN_LOSS, /* smaller is better */
    VKT_MONITOR_METRIC      /* the first of vkt_trainer_params.metrics */
} vkt_monitor;

/* ---- metrics of your own: a number over the validation set, after each epoch of a fit ---- */

/* One batch of the validation set and the model's outputs. It is valid only during the call. */
typedef struct vkt_metric_batch {
    uint32_t rows;          /* real rows */
    uint64_t width;         /* elements of the output for one row */
    const float *outputs;   /* (rows, width) */
    const uint32_t *labels; /* (rows); NULL: the set has none */
    const float *targets;   /* (rows, target_width); NULL: the set has none */
    uint32_t target_width;  /* numbers to predict for one row; 0: none */
} vkt_metric_batch;

/* A metric: a sum over batches, in the order of the rows, on the thread of vkt_trainer_fit. With several ranks, only
 * rank 0 calls it, with all rows, and the others get its value. Its value is in the epoch's
 * record, in history, checkpoint and progress, and can be the monitor. With metrics, the validation reads back the
 * outputs of each batch before it starts the next one. vktrain/metrics.h has common scores. */
typedef struct vkt_metric {
    const char *name;                                   /* 1 to 31 letters, digits and _: a column of the CSV. Copied */
    bool less_is_better;                                /* smaller is better, if it is the monitor */
    void (*reset)(void *user);                          /* before the first batch of an epoch; NULL: none */
    void (*add)(void *user, const vkt_metric_batch *b); /* with each batch */
    double (*result)(void *user);                       /* after the last one; NaN: not measured */
    void *user;                                         /* passed to all three; must stay valid as long as the
                                                         * trainer */
} vkt_metric;
#define VKT_MAX_METRICS 4 /* most metrics of a trainer */

/* The value of a metric in an epoch. */
typedef struct vkt_metric_value {
    const char *name; /* valid as long as the trainer */
    double value;     /* NaN: not measured */
} vkt_metric_value;

/* The results of one epoch. NaN: not measured. */
typedef struct vkt_epoch_record {
    uint32_t epoch;                                  /* from 1; rising */
    double train_loss, train_acc, val_loss, val_acc; /* accuracies are fractions */
    double lr;                                       /* rate of the epoch's first step */
    double seconds;                                  /* wall time, including validation */
    uint32_t n_metrics;                              /* number of metrics in vkt_trainer_params */
    vkt_metric_value metrics[VKT_MAX_METRICS];       /* n_metrics of them */
} vkt_epoch_record;

/* The progress of a fit. on_batch gets it after every batch whose result has arrived (two batches late). */
typedef struct vkt_fit_progress {
    uint32_t epoch, epochs;  /* from 1 */
    uint32_t batch, batches; /* batches of this epoch whose results arrived */
    double loss, accuracy;   /* over the epoch so far */
    double seconds;          /* time of this epoch so far */
    double ms_per_step;      /* median of this fit so far; 0 before there is one */
    bool validating;         /* `batch` counts batches of the validation set */
} vkt_fit_progress;

/* The callbacks of a fit. They run on the thread of vkt_trainer_fit; each may be NULL. */
typedef struct vkt_fit_callbacks {
    void *user; /* passed to all of them */
    /* Called after each batch of training or validation whose result has arrived. */
    void (*on_batch)(void *user, const vkt_fit_progress *p);
    /* Called after each epoch. True stops the fit after this epoch. `best`: this epoch is the best so far. */
    bool (*on_epoch)(void *user, const vkt_epoch_record *r, bool best);
    /* Called after each step. True ends the fit between two steps: the checkpoint, if there is one, is written, the
     * weights stay those of the last step, and another vkt_trainer_fit continues from there. */
    bool (*stop)(void *user);
} vkt_fit_callbacks;

/* The options of a trainer. Zero is the default, except for model and train. */
typedef struct vkt_trainer_params {
    vkt_model model;               /* copied */
    const vkt_dataset *train;      /* must outlive the trainer */
    const vkt_dataset *validation; /* must outlive the trainer; NULL: none */
    uint32_t batch;                /* 0: 128. At most the rows of `train`: more would be padding. The last batch of an
                                    * epoch may be smaller; no batch is dropped */
    vkt_optimizer optimizer;       /* zero: SGD; see optim.h */
    float lr;                      /* 0: 0.01 for SGD, else vkt_optimizer_lr: 0.001 for Adam; VKT_ZERO: 0 */
    vkt_schedule schedule;         /* schedule of lr; t counts batches, or epochs. A plateau follows the validation
                                    * loss, or the accuracy with `maximise`; without a validation set those of
                                    * training */
    double ema_decay;              /* not 0: the weights are averaged with this decay (0.999, for instance), as
                                    * vkt_publish describes. Validation, evaluation, prediction, the best weights and
                                    * the saved weights then use the averaged ones */
    uint64_t seed;                 /* for initial weights, order of the rows, dropout */
    bool stream;                   /* keep the data on the host and stream it. Data that do not fit on the device, or
                                    * rows that vary from epoch to epoch, are streamed in any case */
    bool no_shuffle;               /* rows in the order of the data set, every epoch */
    uint32_t workers;              /* threads that fill batches when streaming; 0: 2, or if rows are made or decoded,
                                    * one per core, 2 to 16. Results do not depend on it */
    bool recompute;                /* less memory for more time: see vkt_program_params */
    bool profile;                  /* allow vkt_trainer_profile */
    vkt_precision precision;       /* storage of activations, in training and evaluation: see graph.h */
    /* Options of the usual loss of a labelled set, in training only. Losses of validation and vkt_trainer_evaluate are
     * plain cross-entropy, so that runs with different weights can be compared. vkt_cross_entropy has the formula: a
     * batch's loss is divided by the sum of the weights of its labels, as in PyTorch. VKT_E_ARG with model.loss. */
    const float *class_weights;   /* one for each class, 0 or more; NULL: 1 each. Copied */
    float label_smoothing;        /* in [0,1) */
    const vkt_metric *metrics;    /* your own metrics, at most VKT_MAX_METRICS; they need a validation set. Copied */
    uint32_t n_metrics;           /* number of metrics */
    vkt_dist_params dist;         /* data parallel training; zero: none. See dist.h */
    vkt_ctx *const *more_devices; /* further contexts of this process, of devices like the first one (the same device is
                                   * allowed, the same context is not): each one becomes a rank, and vkt_trainer_fit
                                   * starts a thread for it. The model's functions run on the caller's thread. The
                                   * contexts must outlive the trainer. Their number plus 1 is a power of two; not
                                   * together with dist.transport */
    uint32_t n_more_devices;      /* number of more_devices */
} vkt_trainer_params;

/* A model with its graphs, programs, weights and history. */
typedef struct vkt_trainer vkt_trainer;

/* Builds the model's graphs, copies the data to the device or prepares to stream it, records the training step and
 * draws the initial weights. VKT_E_ARG (the message names the field), VKT_E_SHAPE (the model does not fit the data),
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, ...; *out = NULL then. Owner: the caller; destroy it before the
 * context. */
VKT_API vkt_result vkt_trainer_create(vkt_ctx *ctx, const vkt_trainer_params *params, vkt_trainer **out);
VKT_API void vkt_trainer_destroy(vkt_trainer **t); /* waits for its last step */

/* The options of a fit. Zero is the default. */
typedef struct vkt_fit_params {
    uint32_t epochs;             /* total number, including those of a resumed run; 0: 1 */
    uint32_t patience;           /* stop when this many epochs in a row did not improve; 0: never */
    vkt_monitor monitor;         /* the number to improve. One of validation is VKT_E_ARG if the trainer has no
                                  * validation set. A resumed run with another monitor logs this and keeps its best
                                  * epoch so far */
    double min_delta;            /* an improvement must be larger than this */
    const char *checkpoint;      /* full state, rewritten after every epoch; NULL: none */
    uint64_t checkpoint_every;   /* also write it after this many batches, even within a step of several (see
                                  * vkt_optimizer.micro_batches); 0: only after epochs */
    bool allow_nonfinite;        /* continue if a loss is not finite: see VKT_E_DIVERGED below */
    vkt_fit_callbacks callbacks; /* all are optional */
} vkt_fit_params;

/* Trains. When it returns, the trainer has the weights of the best epoch, by `monitor`. Another fit continues from
 * them, with the optimizer's state of the last step; vkt_trainer_resume of the checkpoint continues from the last
 * weights.
 *
 * VKT_E_ARG for params that do not fit the trainer; nothing is changed then. VKT_E_STATE if VKT_MONITOR_METRIC was NaN
 * in every epoch: then there is no best epoch, and the trainer has the weights of the last step. After VKT_E_IO,
 * VKT_E_FORMAT or another error of a data source, and after VKT_E_NOMEM, the trainer has the weights of the last step,
 * and another fit continues where this one failed. After VKT_E_DEVICE_LOST the context can only be destroyed. In all
 * these cases the last checkpoint file stays whole.
 *
 * VKT_E_DIVERGED: a loss of training or validation, or a weight, is not finite. The message names epoch, batch and
 * learning rate. The trainer has the weights of the best epoch, if there was one (vkt_trainer_best_epoch). To continue,
 * resume a checkpoint with a lower learning rate. Another fit is VKT_E_STATE as long as weights or the optimizer's
 * state are not finite. vkt_trainer_resume replaces both. vkt_trainer_load replaces the weights and, if the last fit
 * diverged, resets the optimizer to its start; then the epoch begins anew. With allow_nonfinite the fit logs a warning
 * and continues; the result is VKT_E_DIVERGED only if no epoch of the run was finite. In both cases such an epoch is
 * never the best, and no checkpoint of it is written. (A step that VKT_PRECISION_F16 skips because its gradients
 * overflow has a finite loss and does not count.)
 *
 * VKT_E_CHECKPOINT: a checkpoint could not be written (disk full, no such folder). The failure is logged at once, the
 * previous file stays whole, training continues, and the fit returns this result at its end. Another fit first writes
 * the missing last checkpoint, unless the run has diverged since. */
VKT_API vkt_result vkt_trainer_fit(vkt_trainer *t, const vkt_fit_params *params);

/* Loads a checkpoint of the same run. vkt_trainer_fit then continues where it was written, bit for bit
 * (vkt_trainer_position returns the position). VKT_E_NOT_FOUND or VKT_E_IO for a file that cannot be read; VKT_E_FORMAT
 * for a damaged file or another kind; VKT_E_UNSUPPORTED for a checkpoint of another version of the library
 * (vkt_trainer_load reads its weights); VKT_E_STATE for a checkpoint of another run, with the differences: "attention.7
 * heads: checkpoint 2, this run 4". Nothing is changed then.
 *
 * These must be the same: every op of the model and the loss with its attributes; parameters, their groups and which
 * are frozen; batch, no_shuffle, optimizer, schedule, precision, ema_decay, label_smoothing, class_weights, the names
 * of the metrics; both data sets (features by a hash: of all of them up to 64 MiB in memory, else of evenly spaced
 * rows, at most 256 if a source makes them), mean, std, class names; texts that both have under one name
 * (vkt_trainer_attach before this call). These may change, with a warning: learning rate, and the schedule's total,
 * warmup and min_lr. These may change freely: stream, workers, recompute, profile and all of vkt_fit_params. The seed
 * is the checkpoint's. A run that has stopped early stays stopped, whatever the patience: vkt_trainer_fit then trains
 * nothing and logs a warning. */
VKT_API vkt_result vkt_trainer_resume(vkt_trainer *t, const char *path);

/* Computes mean loss and accuracy (NaN: not measured) over a data set of the same sample shape. Either output may be
 * NULL. For another set than `validation`, this call and vkt_trainer_predict copy the data to the device and record a
 * program each time. */
VKT_API vkt_result vkt_trainer_evaluate(vkt_trainer *t, const vkt_dataset *data, double *loss, double *accuracy);
/* Predicts rows [first, first + count) of `data`: their classes (VKT_E_STATE for a model that does not classify), and
 * the model's outputs, row-major, one row after the other. Either may be NULL. */
VKT_API vkt_result vkt_trainer_predict(vkt_trainer *t, const vkt_dataset *data, uint32_t first, uint32_t count,
                                       uint32_t *classes, float *outputs);

/* ---- predictions without training: no labels, no gradients, no moments ---- */

/* A model with its weights, for the rows of one data set. */
typedef struct vkt_predictor vkt_predictor;

/* The options of a predictor. Zero is the default, except for model and data. */
typedef struct vkt_predictor_params {
    vkt_model model;         /* its forward is built for evaluation (dropout off); name and loss are not used */
    const vkt_dataset *data; /* the rows, for instance from vkt_dataset_from_arrays with .borrow. Labels and targets are
                              * not read. It must outlive the predictor */
    const char *weights;     /* a file of vkt_trainer_save, or of PyTorch's state_dict as safetensors. NULL: all weights
                              * are 0 until they are written through vkt_predictor_store */
    uint32_t batch;          /* rows of a run; 0: 128. At most the rows of `data` */
    bool stream;             /* as in vkt_trainer_params */
    uint32_t workers;        /* as in vkt_trainer_params */
    vkt_precision precision; /* as in vkt_trainer_params */
} vkt_predictor_params;

/* Builds the forward graph, its store and its program, and loads the weights. The device holds weights, data and one
 * batch of activations, and no state of an optimizer. VKT_E_ARG (the message names the field), VKT_E_SHAPE, and the
 * results of vkt_store_load; *out = NULL then. Owner: the caller; destroy it before the context. One thread at a time.
 */
VKT_API vkt_result vkt_predictor_create(vkt_ctx *ctx, const vkt_predictor_params *params, vkt_predictor **out);
VKT_API void vkt_predictor_destroy(vkt_predictor **p); /* waits for its last run */
/* Returns the number of elements of the model's output for one row: K for logits (B,K). */
VKT_API uint64_t vkt_predictor_width(const vkt_predictor *p);
/* Runs rows [first, first + count). `classes`: the index of the largest output, the first one at a tie (VKT_E_STATE if
 * the output is not (B,K)). `outputs`: (count, vkt_predictor_width), row-major. Either may be NULL. */
VKT_API vkt_result vkt_predictor_run(vkt_predictor *p, uint32_t first, uint32_t count, uint32_t *classes,
                                     float *outputs);
/* Returns the predictor's store, to read or write its parameters; NULL for a model without parameters. The predictor
 * owns it. */
VKT_API vkt_store *vkt_predictor_store(vkt_predictor *p);

/* Save and load weights as safetensors: names and shapes as in PyTorch's state_dict. Saving returns VKT_E_DIVERGED and
 * writes nothing if a weight is not finite. Loading needs every parameter, with its shape, as F32, F16, BF16 or F64;
 * other tensors of the file are skipped and listed at VKT_LOG_INFO. */
VKT_API vkt_result vkt_trainer_save(vkt_trainer *t, const char *path);
VKT_API vkt_result vkt_trainer_load(vkt_trainer *t, const char *path);
/* Loads only the parameters (and running statistics) whose names match, as in vkt_freeze: "layer*" for a backbone under
 * another last layer. The others do not change. VKT_E_NOT_FOUND if no name matches. */
VKT_API vkt_result vkt_trainer_load_matching(vkt_trainer *t, const char *path, const char *pattern);

/* Save and load weights without a trainer: `part` of every parameter and state of a store, under its name. Loading
 * writes VKT_PART_VALUE only (the caller handles moments and clock), and nothing if anything is missing. host may be
 * NULL. */
VKT_API vkt_result vkt_store_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const char *path);
VKT_API vkt_result vkt_store_load(const vkt_host *host, vkt_store *s, const char *path);

/* Keeps a copy of `text` (UTF-8) under `name` in every checkpoint and weights file that is written from now on. So a
 * program that predicts can get the preprocessing of the training data: a vocabulary (vkt_vocab_to_text), class names,
 * mean and deviation. The same name again replaces the text. A resumed trainer takes over those texts of its checkpoint
 * that it does not have. A checkpoint with another text under the same name counts as another run's. VKT_E_ARG for an
 * empty name, NULL or a text that is not UTF-8, VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_attach(vkt_trainer *t, const char *name, const char *text);
/* Reads a text that was attached to a checkpoint or weights file; vkt_text_release frees *text. VKT_E_NOT_FOUND if
 * there is no such file or text, VKT_E_IO, VKT_E_FORMAT if the file is neither. */
VKT_API vkt_result vkt_read_attachment(const vkt_host *host, const char *path, const char *name, char **text);

/* Returns the records so far, oldest first; valid until the next call that trains. Seconds of epochs before a resume
 * are NaN. */
VKT_API const vkt_epoch_record *vkt_trainer_history(const vkt_trainer *t, uint32_t *count);
/* Writes the history as CSV: a line of names, those of metrics last, then one line per epoch. A number that was not
 * measured is empty. The file holds numbers only, as readers of CSV expect; the application must note which run they
 * belong to. VKT_E_IO. */
VKT_API vkt_result vkt_trainer_write_history(const vkt_trainer *t, const char *csv_path);
/* Returns the record of the best epoch by the fit's monitor, valid as vkt_trainer_history; NULL: there is none yet. */
VKT_API const vkt_epoch_record *vkt_trainer_best(const vkt_trainer *t);
/* Plots loss and accuracy; the path ends in .svg or .png. */
VKT_API vkt_result vkt_trainer_plot(const vkt_trainer *t, const char *path);
/* Writes the settings of the trainer as a JSON object: batch, lr, schedule, precision, ema_decay, optimizer (all of its
 * numbers, with defaults filled in). docs/train.schema.json describes the members. vkt_text_release frees *json.
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_settings(const vkt_trainer *t, char **json);
/* Writes the results so far as a JSON object: parameters, epochs (a list of the records), final_loss, best_epoch,
 * best_val_acc, ms_per_step, host_us_per_step, data_wait_us_per_step. A number that was not measured is null.
 * vkt_text_release frees *json. VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_results(const vkt_trainer *t, char **json);

/* ---- a learning rate test: which rate? ---- */

#define VKT_LR_TEST_STEPS 100 /* most steps of a test */

/* The result of a learning rate test. */
typedef struct vkt_lr_test {
    uint32_t n;                         /* steps with a finite loss. Fewer than VKT_LR_TEST_STEPS: the loss blew up */
    double rates[VKT_LR_TEST_STEPS];    /* n of them, rising */
    double losses[VKT_LR_TEST_STEPS];   /* training losses, one for each step */
    double smoothed[VKT_LR_TEST_STEPS]; /* the mean of a step's loss and those of up to five steps on each side */
    double suggested;                   /* the rate at which the smoothed loss falls fastest; NaN: it never falls */
    bool stopped;                       /* callbacks->stop ended the test */
} vkt_lr_test;

/* Runs a learning rate range test (Smith, "Cyclical Learning Rates for Training Neural Networks", 2017). It trains up
 * to VKT_LR_TEST_STEPS steps. The rate rises by the same factor from step to step, from a thousandth of params.lr to a
 * thousand times params.lr. The test ends early if a loss is not finite. It also ends early if the mean loss of the
 * last steps is more than four times the lowest such mean so far. `suggested` is the rate of the step at which the
 * smoothed loss falls fastest over the logarithm of the rate. Only steps before the lowest smoothed loss count.
 *
 * After the test, weights, moments, history and position are the same as before it. The test needs host memory for
 * copies of the weights and moments. `callbacks` may be NULL. The test does not call on_epoch. VKT_E_DIVERGED if fewer
 * than four steps have a finite loss, unless callbacks->stop ended the test. VKT_E_UNSUPPORTED if there are several
 * ranks. VKT_E_NOMEM, and the errors of vkt_trainer_fit. */
VKT_API vkt_result vkt_trainer_find_lr(vkt_trainer *t, const vkt_fit_callbacks *callbacks, vkt_lr_test *out);

/* Plots the result of a learning rate test, in which the rate rose from step to step, with the rates on a logarithmic
 * axis. rates[0..n), above 0 and rising, n >= 2; losses[0..n) as measured; smoothed[0..n), drawn as a line (NaN: a
 * gap). `suggested`: a rate to mark; NaN: none. The path ends in .svg or .png; the file is replaced atomically.
 * VKT_E_ARG, VKT_E_IO, VKT_E_NOMEM. `host` may be NULL. */
VKT_API vkt_result vkt_rates_plot(const vkt_host *host, const double *rates, const double *losses,
                                  const double *smoothed, uint32_t n, double suggested, const char *path);

/* Returns layers, shapes, parameters and memory as text. It is valid as long as the trainer. */
VKT_API const char *vkt_trainer_summary(const vkt_trainer *t);
VKT_API uint64_t vkt_trainer_parameters(const vkt_trainer *t); /* vkt_nn_parameters of the model */
VKT_API uint64_t vkt_trainer_seed(const vkt_trainer *t);       /* from the params, or from the checkpoint that was
                                                                * resumed */
/* Returns the facts that a checkpoint must share with this run, a line "name=value" each: batch, optimizer, schedule
 * and others, and hashes of the data. The trainer owns the text; it does not change. The first call reads the data
 * sets: VKT_E_NOMEM, or the error of a source; *lines is NULL then. */
VKT_API vkt_result vkt_trainer_identity(vkt_trainer *t, const char **lines);
VKT_API double vkt_trainer_best_accuracy(const vkt_trainer *t); /* NaN if there is none yet */
VKT_API uint32_t vkt_trainer_best_epoch(const vkt_trainer *t);  /* by the fit's monitor; 0 if there is none yet */
/* Returns the position at which the next fit continues: the epoch, and the number of its batches that are done, with
 * their loss and accuracy (NaN: none). `epochs`, `seconds` and `ms_per_step` are 0. */
VKT_API vkt_fit_progress vkt_trainer_position(const vkt_trainer *t);
VKT_API double vkt_trainer_ms_per_step(const vkt_trainer *t); /* median wall time of a training step; NaN: none yet */
/* Returns the median CPU time that the thread of vkt_trainer_fit spends on a training step, in microseconds, without
 * waits for the device and without callbacks; NaN: there is none yet. */
VKT_API double vkt_trainer_host_us_per_step(const vkt_trainer *t);
/* Returns the mean time that a training step waited for worker threads to make its rows, in microseconds. If this is
 * more than a small part of vkt_trainer_ms_per_step, the device idles for lack of data, and more workers help. 0 if the
 * data are on the device; NaN before the first step. */
VKT_API double vkt_trainer_data_wait_us_per_step(const vkt_trainer *t);
/* Returns whether the training set is streamed, by request or by need. */
VKT_API bool vkt_trainer_streams(const vkt_trainer *t);
/* Returns what the exchange of gradients with other ranks has cost so far: zero without other ranks. */
VKT_API void vkt_trainer_dist_stats(const vkt_trainer *t, vkt_dist_stats *out);
/* Returns the CLOCK_MONOTONIC time at which the first training step was complete; 0: not yet. */
VKT_API uint64_t vkt_trainer_first_step_ns(const vkt_trainer *t);
VKT_API vkt_store *vkt_trainer_store(vkt_trainer *t);     /* the trainer's store, to read or write its parameters; the
                                                           * trainer owns it */
VKT_API vkt_program *vkt_trainer_program(vkt_trainer *t); /* the recorded training step; the trainer owns it */

/* Runs one training step with timestamps and writes a Chrome/Perfetto trace of its kernels to `path`. It does not count
 * as a step: the state is restored. */
VKT_API vkt_result vkt_trainer_profile(vkt_trainer *t, const char *path);

/* ---- ready-made progress ---- */

/* A progress bar on a terminal, and one line per epoch. The bar is one line that is rewritten in place. It is always
 * shorter than the terminal's width, which is queried at every redraw (the terminal, else COLUMNS, else 80); no signal
 * handler is installed. On a narrow terminal the bar shrinks from 24 to 8 columns, then these are left out, in this
 * order: batches a second, times, the bar, accuracy, loss, batches. There are no colours. If the stream is no terminal,
 * or TERM is "dumb" or not set, there is no bar and no escape sequence. In a locale without UTF-8 (LC_ALL, else
 * LC_CTYPE, else LANG) all text is ASCII. */
typedef struct vkt_progress vkt_progress;
/* Writes to `stream`, which must outlive it. */
VKT_API vkt_result vkt_progress_create(const vkt_host *host, FILE *stream, vkt_progress **out);
/* Ends the line of an unfinished bar and frees the object. Call it after the fit. The stream stays open. */
VKT_API void vkt_progress_destroy(vkt_progress **p);
VKT_API vkt_fit_callbacks vkt_progress_callbacks(vkt_progress *p); /* for vkt_fit_params; `stop` is NULL */

#ifdef __cplusplus
}
#endif
#endif
