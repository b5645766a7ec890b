/* vktrain/train.h - fit, evaluate, predict: the loop around a training program, and the files that it leaves.
 *
 *   vkt_trainer_create   builds the graphs, plans memory, records the commands, draws the initial weights
 *   vkt_trainer_fit      epochs with validation, early stopping, checkpoints; the best weights are restored at its end
 *   vkt_trainer_save     weights as safetensors, under PyTorch's names
 *
 * Losses of an epoch are means over its samples (batch losses weighted by their real rows), accuracies fractions of its
 * samples. The same seed, data, device and settings give the same bits, also when a run was killed and resumed.
 *
 * Threads: one at a time per trainer. Nothing is printed by the library: progress comes through callbacks; vkt_progress
 * is a ready-made one that writes to a stream of the caller's. */
#ifndef VKTRAIN_TRAIN_H
#define VKTRAIN_TRAIN_H

#include <stdio.h>

#include "vktrain/data.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"
#include "vktrain/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The loss, a mean over the real rows: of the model's output y, its input x, the batch's labels (B) and targets (B,K),
 * each null where the data set has none. */
typedef vkt_tensor (*vkt_loss_fn)(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                                  void *user);
/* `forward` maps a batch, (B,C,H,W), (B,F) of vectors or (B,L) of whole numbers, to an output. Without `loss`, an
 * output (B,classes) of a labelled set is logits, and the loss their softmax cross-entropy; of a set with targets alone
 * it is the mean squared error. Where the output is (B,K), K at least the classes of a labelled set, accuracy is
 * measured too. */
typedef struct vkt_model {
    const char *name;       /* title of the summary; NULL: "model" */
    vkt_forward_fn forward; /* run once for each graph */
    void *user;             /* handed to both: must live as long as the trainer */
    vkt_loss_fn loss;       /* NULL: by what the data set has; run once for each graph */
} vkt_model;

/* What early stopping and the best weights go by. AUTO: validation accuracy, else validation loss, without a validation
 * set the training loss. */
typedef enum vkt_monitor {
    VKT_MONITOR_AUTO = 0,   /* one of the others, as said above */
    VKT_MONITOR_VAL_ACC,    /* is to grow */
    VKT_MONITOR_VAL_LOSS,   /* is to fall */
    VKT_MONITOR_TRAIN_ACC,  /* is to grow */
    VKT_MONITOR_TRAIN_LOSS, /* is to fall */
    VKT_MONITOR_METRIC      /* the first of vkt_trainer_params.metrics */
} vkt_monitor;

/* ---- metrics of your own: a number over the validation set, after each epoch of a fit ---- */

/* One batch of the validation set and what the model makes of it. All of it lives for the call alone. */
typedef struct vkt_metric_batch {
    uint32_t rows;          /* real rows */
    uint64_t width;         /* elements of the output for one row */
    const float *outputs;   /* (rows, width) */
    const uint32_t *labels; /* (rows); NULL: the set has none */
    const float *targets;   /* (rows, target_width); NULL: the set has none */
    uint32_t target_width;  /* numbers to predict for one row; 0: none */
} vkt_metric_batch;

/* A sum over batches, in the order of the rows, on the thread of vkt_trainer_fit. Its value is in the epoch's record,
 * in history, checkpoint and progress, and may be the monitor. With metrics, the validation reads back the outputs of
 * each batch before it starts the next one. vktrain/metrics.h has what many want to know. */
typedef struct vkt_metric {
    const char *name;                                   /* 1 to 31 letters, digits and _: a column of the CSV. Copied */
    bool less_is_better;                                /* as monitor: is to fall */
    void (*reset)(void *user);                          /* before the first batch of an epoch; NULL: none */
    void (*add)(void *user, const vkt_metric_batch *b); /* with each batch */
    double (*result)(void *user);                       /* after the last one; NaN: not measured */
    void *user;                                         /* handed to all three; must live as long as the trainer */
} vkt_metric;
#define VKT_MAX_METRICS 4 /* of a trainer */

/* A metric of an epoch. */
typedef struct vkt_metric_value {
    const char *name; /* lives as long as the trainer */
    double value;     /* NaN: not measured */
} vkt_metric_value;

/* NaN: not measured. */
typedef struct vkt_epoch_record {
    uint32_t epoch;                                  /* from 1; rising */
    double train_loss, train_acc, val_loss, val_acc; /* accuracies are fractions */
    double lr;                                       /* of its first step */
    double seconds;                                  /* wall time, validation included */
    uint32_t n_metrics;                              /* those of vkt_trainer_params */
    vkt_metric_value metrics[VKT_MAX_METRICS];       /* n_metrics of them */
} vkt_epoch_record;

/* Where a fit is: handed to on_batch after every batch whose result has arrived (two batches late). */
typedef struct vkt_fit_progress {
    uint32_t epoch, epochs;  /* from 1 */
    uint32_t batch, batches; /* batches of this epoch whose results arrived */
    double loss, accuracy;   /* over the epoch so far */
    double seconds;          /* of this epoch so far */
    double ms_per_step;      /* median of this fit so far; 0 before there is one */
    bool validating;         /* `batch` counts batches of the validation set */
} vkt_fit_progress;

/* Called on the thread of vkt_trainer_fit; each may be NULL. */
typedef struct vkt_fit_callbacks {
    void *user; /* handed to all of them */
    /* After each batch of training or validation whose result has arrived. */
    void (*on_batch)(void *user, const vkt_fit_progress *p);
    /* Return true to stop after this epoch. `best`: this epoch is the best so far. */
    bool (*on_epoch)(void *user, const vkt_epoch_record *r, bool best);
    /* Asked after each step. True ends the fit between two steps: the checkpoint, if there is one, is written, the
     * weights stay those of the last step, and another vkt_trainer_fit goes on from there. */
    bool (*stop)(void *user);
} vkt_fit_callbacks;

/* Zero is the default but for model and train. */
typedef struct vkt_trainer_params {
    vkt_model model;               /* copied */
    const vkt_dataset *train;      /* must outlive the trainer */
    const vkt_dataset *validation; /* NULL: none; else likewise */
    uint32_t batch;                /* 0: 128. At most all rows of `train`: more would be padding. The last batch of an
                                    * epoch may be smaller; none is dropped */
    vkt_optimizer optimizer;       /* zero: SGD; see optim.h */
    float lr;                      /* 0: 0.01 for SGD, else vkt_optimizer_lr: 0.001 for Adam; VKT_ZERO: 0 */
    vkt_schedule schedule;         /* of lr; t counts batches, or epochs. A plateau follows the validation loss (the
                                    * accuracy, if it is to grow), without a validation set that of training */
    double ema_decay;              /* not 0: the weights are averaged, as vkt_publish says with this decay (0.999, for
                                    * instance); validation, evaluation, prediction, the best weights and those that
                                    * are saved are the averaged ones */
    uint64_t seed;                 /* initial weights, order of the rows, dropout */
    bool stream;                   /* keep the data on the host and stream it (also done when it does not fit, or
                                    * when its rows vary from epoch to epoch) */
    bool no_shuffle;               /* rows in the order of the data set, every epoch */
    uint32_t workers;              /* threads that fill batches when streaming; 0: 2, or where rows are made or
                                    * decoded, one per core, 2 to 16. Results do not depend on it */
    bool recompute;                /* less memory for more time: see vkt_program_params */
    bool profile;                  /* allow vkt_trainer_profile */
    vkt_precision precision;       /* of activations, in training and evaluation: see graph.h */
    /* For the usual loss of a labelled set, in training alone: losses of validation and vkt_trainer_evaluate are plain
     * cross-entropy, so that runs with different weights can be compared. See vkt_cross_entropy for the formula: a
     * batch's loss is divided by the sum of the weights of its labels, as in PyTorch. VKT_E_ARG with model.loss. */
    const float *class_weights; /* one for each class, 0 or more; NULL: 1 each. Copied */
    float label_smoothing;      /* in [0,1) */
    const vkt_metric *metrics;  /* of your own, VKT_MAX_METRICS at most; want a validation set. Copied */
    uint32_t n_metrics;         /* how many these are */
} vkt_trainer_params;

/* A model with its graphs, programs, weights and history. */
typedef struct vkt_trainer vkt_trainer;

/* Builds the model's graphs, brings the data to the device or makes ready to stream it, records the training step and
 * draws the initial weights. VKT_E_ARG (the message names the field), VKT_E_SHAPE (the model does not fit the data),
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, ...; *out = NULL then. Owner: the caller; destroy it before the
 * context. */
VKT_API vkt_result vkt_trainer_create(vkt_ctx *ctx, const vkt_trainer_params *params, vkt_trainer **out);
VKT_API void vkt_trainer_destroy(vkt_trainer **t); /* waits for its last step */

/* Zero is the default. */
typedef struct vkt_fit_params {
    uint32_t epochs;             /* in all, those of a resumed run included; 0: 1 */
    uint32_t patience;           /* stop when this many epochs in a row did not improve; 0: never */
    vkt_monitor monitor;         /* what improves. Of validation: VKT_E_ARG where the trainer has no validation set. A
                                  * run that goes on with another one is told so, and keeps its best epoch so far */
    double min_delta;            /* by more than this */
    const char *checkpoint;      /* full state, rewritten after every epoch; NULL: none */
    uint64_t checkpoint_every;   /* and after every so many batches, also in the middle of a step of several (see
                                  * vkt_optimizer.micro_batches); 0: only after epochs */
    bool allow_nonfinite;        /* go on where a loss is not finite: see VKT_E_DIVERGED below */
    vkt_fit_callbacks callbacks; /* none need be given */
} vkt_fit_params;

/* Trains. The weights of the best epoch, by `monitor`, are in the trainer when it returns (another fit goes on from
 * them, with the optimizer's state of the last step; vkt_trainer_resume of the checkpoint goes on from the last
 * weights).
 *
 * VKT_E_ARG for params that do not fit the trainer; nothing is changed then. VKT_E_STATE where VKT_MONITOR_METRIC was
 * NaN in every epoch: none is the best, and the trainer has the weights of the last step. After VKT_E_IO, VKT_E_FORMAT
 * or another error of a data source, and after VKT_E_NOMEM, the trainer has the weights of the last step, and another
 * fit goes on where this one failed. After VKT_E_DEVICE_LOST nothing more can be done with the context. In all these
 * cases the last checkpoint file stays whole.
 *
 * VKT_E_DIVERGED: a loss, of training or validation, or a weight is not a finite number. The message names epoch,
 * batch and learning rate. The trainer has the weights of the best epoch, if there was one (vkt_trainer_best_epoch);
 * to go on, resume a checkpoint with a lower learning rate. Another fit is VKT_E_STATE as long as weights or the
 * optimizer's state are not finite: vkt_trainer_resume replaces both, vkt_trainer_load the weights, and sets the
 * optimizer back to its start where the last fit diverged; then the epoch begins anew. With allow_nonfinite that is a
 * warning, and the result only if no epoch of the run was finite. In both cases such an epoch is never the best, and no
 * checkpoint is written of it. (A step that VKT_PRECISION_F16 skips because its gradients overflow has a finite loss,
 * and is none.)
 *
 * VKT_E_CHECKPOINT: a checkpoint could not be written (disk full, no such folder). That is told when it happens, the
 * file from before stays whole, training goes on, and so this comes at the end, with all else done; another fit first
 * writes a last checkpoint that is still missing, unless the run has diverged since. */
VKT_API vkt_result vkt_trainer_fit(vkt_trainer *t, const vkt_fit_params *params);

/* Loads a checkpoint of the same run; vkt_trainer_fit then continues where it was written, bit for bit
 * (vkt_trainer_position tells where). VKT_E_NOT_FOUND or VKT_E_IO for a file that cannot be read, VKT_E_FORMAT for a
 * damaged file or another kind, VKT_E_UNSUPPORTED for a checkpoint of another version of the library (vkt_trainer_load
 * reads its weights), VKT_E_STATE for another run's, with the names of what differs: "attention.7 heads: checkpoint 2,
 * this run 4". Nothing is changed then.
 *
 * The same must be: every op of the model and the loss with its attributes; parameters, their groups and which are
 * frozen; batch, no_shuffle, optimizer, schedule, precision, ema_decay, label_smoothing, class_weights, the names of
 * the metrics; both data sets (features by a hash: of all of them up to 64 MiB in memory, else of evenly spaced rows,
 * at most 256 where a source makes them), mean, std, class names; texts that both have under one name
 * (vkt_trainer_attach before this call). What may change and is said in a warning: learning rate, and the schedule's
 * total, warmup and min_lr. What may change freely: stream, workers, recompute, profile and all of vkt_fit_params. The
 * seed is the checkpoint's. A run that has stopped early stays so, whatever the patience: vkt_trainer_fit trains
 * nothing more, and warns of that. */
VKT_API vkt_result vkt_trainer_resume(vkt_trainer *t, const char *path);

/* Mean loss and accuracy (NaN: not measured) over a data set of the same sample shape. Either output may be NULL. For
 * another set than `validation` this and predict bring the data to the device and record a program of their own, every
 * time. */
VKT_API vkt_result vkt_trainer_evaluate(vkt_trainer *t, const vkt_dataset *data, double *loss, double *accuracy);
/* Of rows [first, first + count) of `data`: their classes (VKT_E_STATE for a model that does not classify), and the
 * model's outputs, count times those of a row, row-major. Either may be NULL. */
VKT_API vkt_result vkt_trainer_predict(vkt_trainer *t, const vkt_dataset *data, uint32_t first, uint32_t count,
                                       uint32_t *classes, float *outputs);

/* ---- predictions without training: no labels, no gradients, no moments ---- */

/* A model with its weights over the rows of one data set. */
typedef struct vkt_predictor vkt_predictor;

/* Zero is the default but for model and data. */
typedef struct vkt_predictor_params {
    vkt_model model;         /* its forward is built as for evaluation (dropout off); name and loss are not used */
    const vkt_dataset *data; /* the rows: those of vkt_dataset_from_arrays with .borrow, for instance. Labels and
                              * targets are not read. Must outlive the predictor */
    const char *weights;     /* a file of vkt_trainer_save, or of PyTorch's state_dict as safetensors. NULL: all weights
                              * are 0 until they are written to vkt_predictor_store */
    uint32_t batch;          /* rows of a run; 0: 128. Never more than the rows of `data` */
    bool stream;             /* as in vkt_trainer_params */
    uint32_t workers;        /* likewise */
    vkt_precision precision; /* likewise */
} vkt_predictor_params;

/* Builds the forward graph, its store and its program, and loads the weights. The device holds weights, data and one
 * batch of activations, nothing of an optimizer. VKT_E_ARG (the message names the field), VKT_E_SHAPE, and what
 * vkt_store_load returns for the file; *out = NULL then. Owner: the caller; destroy it before the context. One thread
 * at a time. */
VKT_API vkt_result vkt_predictor_create(vkt_ctx *ctx, const vkt_predictor_params *params, vkt_predictor **out);
VKT_API void vkt_predictor_destroy(vkt_predictor **p); /* waits for its last run */
/* Elements of the model's output for one row: K for logits (B,K). */
VKT_API uint64_t vkt_predictor_width(const vkt_predictor *p);
/* Runs rows [first, first + count): the index of the largest output (VKT_E_STATE where the output is not (B,K)), the
 * first one at a tie, and the outputs, (count, vkt_predictor_width), row-major. Either may be NULL. */
VKT_API vkt_result vkt_predictor_run(vkt_predictor *p, uint32_t first, uint32_t count, uint32_t *classes,
                                     float *outputs);
/* The predictor's: parameters, to look at or to set; NULL for a model without. */
VKT_API vkt_store *vkt_predictor_store(vkt_predictor *p);

/* Weights as safetensors: names and shapes as in PyTorch's state_dict. Saving returns VKT_E_DIVERGED and writes nothing
 * where weights are not finite. Loading wants every parameter, of its shape, as F32, F16, BF16 or F64; other tensors of
 * the file are listed at VKT_LOG_INFO and skipped. */
VKT_API vkt_result vkt_trainer_save(vkt_trainer *t, const char *path);
VKT_API vkt_result vkt_trainer_load(vkt_trainer *t, const char *path);
/* Loads only the parameters (and running statistics) whose names match, as vkt_freeze has it: "layer*" for a backbone
 * under another last layer. The others stay as they are. VKT_E_NOT_FOUND if no name matches. */
VKT_API vkt_result vkt_trainer_load_matching(vkt_trainer *t, const char *path, const char *pattern);

/* The same without a trainer: every parameter and state of a store, `part` of it, under its name; loading writes
 * VKT_PART_VALUE alone (moments and clock are the caller's), and nothing where anything is missing. host may be NULL.
 */
VKT_API vkt_result vkt_store_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const char *path);
VKT_API vkt_result vkt_store_load(const vkt_host *host, vkt_store *s, const char *path);

/* Keeps a copy of `text` (UTF-8) under `name` in every checkpoint and weights file from now on, so that whoever
 * predicts has what the training data went through: a vocabulary (vkt_vocab_to_text), class names, mean and deviation.
 * The same name again replaces it. A resumed trainer goes on with those of its checkpoint that it has not itself; a
 * checkpoint that has another text under the same name is of another run. VKT_E_ARG for an empty name, NULL or what is
 * not UTF-8, VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_attach(vkt_trainer *t, const char *name, const char *text);
/* What was attached to a checkpoint or weights file; vkt_text_release frees *text. VKT_E_NOT_FOUND where there is no
 * such file or text, VKT_E_IO, VKT_E_FORMAT for none of ours. */
VKT_API vkt_result vkt_read_attachment(const vkt_host *host, const char *path, const char *name, char **text);

/* Records so far, oldest first; valid until the next call that trains. Seconds of epochs before a resume are NaN. */
VKT_API const vkt_epoch_record *vkt_trainer_history(const vkt_trainer *t, uint32_t *count);
/* The same as CSV: a line of names, those of metrics last, then one an epoch; what was not measured is empty. Nothing
 * but numbers, as readers of CSV expect: what they are of is the application's to keep. VKT_E_IO. */
VKT_API vkt_result vkt_trainer_write_history(const vkt_trainer *t, const char *csv_path);
/* A picture of loss and accuracy; the path ends in .svg or .png. */
VKT_API vkt_result vkt_trainer_plot(const vkt_trainer *t, const char *path);

/* Draws the losses of a test in which the rate rose from step to step, over the rates on a logarithmic axis:
 * rates[0..n), above 0 and rising, n >= 2; losses[0..n) as measured, and smoothed[0..n) as a line (NaN: a gap).
 * `suggested`: a rate to mark; NaN: none. The path ends in .svg or .png; the file is replaced atomically. VKT_E_ARG,
 * VKT_E_IO, VKT_E_NOMEM. `host` may be NULL. */
VKT_API vkt_result vkt_rates_plot(const vkt_host *host, const double *rates, const double *losses,
                                  const double *smoothed, uint32_t n, double suggested, const char *path);

/* Layers, shapes, parameters, memory. Lives as long as the trainer. */
VKT_API const char *vkt_trainer_summary(const vkt_trainer *t);
VKT_API uint64_t vkt_trainer_parameters(const vkt_trainer *t); /* vkt_nn_parameters of the model */
VKT_API uint64_t vkt_trainer_seed(const vkt_trainer *t);       /* of its params, or of the checkpoint it resumed */
/* The facts by which a checkpoint is compared with this run, a line "name=value" each: batch, optimizer, schedule and
 * others, and hashes of the data. The text is the trainer's and does not change. The first call reads the data sets:
 * VKT_E_NOMEM, or the error of a source; *lines is NULL then. */
VKT_API vkt_result vkt_trainer_identity(vkt_trainer *t, const char **lines);
VKT_API double vkt_trainer_best_accuracy(const vkt_trainer *t); /* NaN before there is one */
VKT_API uint32_t vkt_trainer_best_epoch(const vkt_trainer *t);  /* by the fit's monitor; 0 before there is one */
/* The position at which the next fit goes on: the epoch, and how many of its batches are done, with their loss and
 * accuracy (NaN: none). `epochs`, `seconds` and `ms_per_step` are 0. */
VKT_API vkt_fit_progress vkt_trainer_position(const vkt_trainer *t);
VKT_API double vkt_trainer_ms_per_step(const vkt_trainer *t); /* median wall time of a training step; NaN */
/* Median CPU time that the thread of vkt_trainer_fit spends on a training step, in microseconds: what is not spent in
 * waiting for the device and in callbacks; NaN. */
VKT_API double vkt_trainer_host_us_per_step(const vkt_trainer *t);
/* How long, on average, a training step waited until worker threads had made its rows, in microseconds: where this is
 * more than a small part of vkt_trainer_ms_per_step, the device idles for want of data, and more workers help. 0 where
 * the data lie on the device; NaN before the first step. */
VKT_API double vkt_trainer_data_wait_us_per_step(const vkt_trainer *t);
/* Whether the training set is streamed, because it was asked for or had to be. */
VKT_API bool vkt_trainer_streams(const vkt_trainer *t);
/* CLOCK_MONOTONIC time at which the first training step was complete; 0: none was yet. */
VKT_API uint64_t vkt_trainer_first_step_ns(const vkt_trainer *t);
VKT_API vkt_store *vkt_trainer_store(vkt_trainer *t);     /* the trainer's: parameters, to look at or to set */
VKT_API vkt_program *vkt_trainer_program(vkt_trainer *t); /* the trainer's: the recorded training step */

/* Runs one training step under timestamps (it counts as no step: the state is put back) and writes a Chrome/Perfetto
 * trace of its kernels to `path`. */
VKT_API vkt_result vkt_trainer_profile(vkt_trainer *t, const char *path);

/* ---- ready-made progress ---- */

/* A bar on a terminal, and one line an epoch. The bar is one line that is rewritten in place, always shorter than the
 * terminal is wide: the width is asked for at every redraw (the terminal, else COLUMNS, else 80), and no signal handler
 * is installed. On a narrow terminal the bar shrinks from 24 to 8 columns, then these are left out, in this order:
 * batches a second, times, the bar, accuracy, loss, batches. There are no colours. Elsewhere than on a terminal, and
 * where TERM is "dumb" or not set, there is no bar, and no escape sequence. In a locale without UTF-8 (LC_ALL, else
 * LC_CTYPE, else LANG) all text is ASCII. */
typedef struct vkt_progress vkt_progress;
/* Writes to `stream`, which must outlive it. */
VKT_API vkt_result vkt_progress_create(const vkt_host *host, FILE *stream, vkt_progress **out);
/* After the fit; the stream stays open. An unfinished bar's line is ended. */
VKT_API void vkt_progress_destroy(vkt_progress **p);
VKT_API vkt_fit_callbacks vkt_progress_callbacks(vkt_progress *p); /* for vkt_fit_params; `stop` is NULL */

#ifdef __cplusplus
}
#endif
#endif
