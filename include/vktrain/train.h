/* vktrain/train.h - fit, evaluate, predict: the loop around a training program, and the files that this loop writes.
 *
 *   vkt_trainer_create   builds the graphs, plans memory, records the commands, generates the initial weights
 *   vkt_trainer_fit      trains epochs, with validation, early stopping and checkpoints, and restores the best weights
 *   vkt_trainer_save     writes the weights as safetensors, under PyTorch's names
 *
 * The loss of an epoch is the mean over its samples: the loss of a batch is weighted by its number of samples, or by
 * the terms of its samples (vkt_dataset_params.terms). An accuracy is the fraction of the samples whose predicted class
 * is correct. The same seed, data, device and settings give the same bits, also if a run was killed and resumed.
 *
 * Threads: one thread at a time per trainer. The library does not print the progress: callbacks report it. vkt_progress
 * has ready-made callbacks that write to a stream of the caller. */
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

/* Adds the loss of a batch to the graph, and returns the loss: a scalar. The loss is the mean over the real rows (see
 * vkt_run). If the data set has terms (vkt_dataset_params.terms), the loss is the mean over the terms of these rows.
 * `y` is the output of the model, and `x` is the input of the model. `labels` (B) is null if the data set has no
 * labels, and `targets` (B,K) is null if the data set has no targets. */
typedef vkt_tensor (*vkt_loss_fn)(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                                  void *user);
/* A model. `forward` maps a batch to an output. The batch is (B,C,H,W) for images, (B,F) for vectors, or (B,L) for
 * sequences of whole numbers. Without `loss`, the training set decides about the loss. If the set has labels, the loss
 * is softmax cross-entropy, and the output must be logits (B,K), with K at least the number of classes. If the set has
 * only targets, the loss is the mean squared error. With labels and an output of logits, the accuracy is measured, too,
 * whatever the loss is. */
typedef struct vkt_model {
    const char *name;       /* title of the summary; NULL: "model" */
    vkt_forward_fn forward; /* called once for each graph */
    void *user;             /* passed to both functions; must stay valid as long as the trainer */
    vkt_loss_fn loss;       /* called once for each graph; NULL: the training set decides, see above */
} vkt_model;

/* The number that decides about early stopping and the best weights. AUTO is the validation accuracy. If no accuracy is
 * measured, AUTO is the validation loss. Without a validation set, AUTO is the training loss. ORDER: checkpoints
 * contain the values of this enum, so a new monitor must be added at the end. */
typedef enum vkt_monitor {
    VKT_MONITOR_AUTO = 0,   /* VAL_ACC, VAL_LOSS or TRAIN_LOSS: see above */
    VKT_MONITOR_VAL_ACC,    /* larger is better */
    VKT_MONITOR_VAL_LOSS,   /* smaller is better */
    VKT_MONITOR_TRAIN_ACC,  /* larger is better */
    VKT_MONITOR_TRAIN_LOSS, /* smaller is better */
    VKT_MONITOR_METRIC      /* the first of vkt_trainer_params.metrics */
} vkt_monitor;

/* ---- metrics of your own: a number over the validation set, after each epoch of a fit ---- */

/* One batch of the validation set, with the model's outputs. The pointers are valid only during the call of
 * vkt_metric.add. */
typedef struct vkt_metric_batch {
    uint32_t rows;          /* number of samples of the batch */
    uint64_t width;         /* number of elements of the output for one row */
    const float *outputs;   /* (rows, width) */
    const uint32_t *labels; /* (rows); NULL: the set has no labels */
    const float *targets;   /* (rows, target_width); NULL: the set has no targets */
    uint32_t target_width;  /* how many numbers to predict for one row; 0: none */
} vkt_metric_batch;

/* A metric. Its functions are called on the thread of vkt_trainer_fit. `add` gets the batches in the order of the rows.
 * With several ranks, only rank 0 calls these functions, with all rows, and the other ranks get the result. The result
 * is in the epoch's record, the history, the checkpoint and the lines of vkt_progress. The result of the first metric
 * can be the monitor (VKT_MONITOR_METRIC). With metrics, the validation reads back the outputs of each batch before the
 * next batch starts. vktrain/metrics.h has common scores. */
typedef struct vkt_metric {
    const char *name;                                   /* 1 to 31 letters, digits and _. A column of the CSV gets this
                                                         * name, so no other column may have this name. Copied */
    bool less_is_better;                                /* for VKT_MONITOR_METRIC: a smaller result is better */
    void (*reset)(void *user);                          /* called before the first batch of a validation; may be NULL */
    void (*add)(void *user, const vkt_metric_batch *b); /* called with each batch */
    double (*result)(void *user);                       /* called after the last batch; returns NaN if not measured */
    void *user;                                         /* passed to all functions; must stay valid as long as the
                                                         * trainer */
} vkt_metric;
#define VKT_MAX_METRICS 4 /* maximum number of metrics of a trainer */

/* The value of a metric in an epoch. */
typedef struct vkt_metric_value {
    const char *name; /* valid as long as the trainer */
    double value;     /* NaN: not measured */
} vkt_metric_value;

/* The results of one epoch. NaN: not measured. */
typedef struct vkt_epoch_record {
    uint32_t epoch;                                  /* number of the epoch, from 1 */
    double train_loss, train_acc, val_loss, val_acc; /* accuracies are fractions */
    double lr;                                       /* learning rate of the epoch's first step */
    double seconds;                                  /* wall time of the epoch, with validation. If several fits
                                                      * trained the epoch, only the last of them counts */
    uint32_t n_metrics;                              /* number of metrics in vkt_trainer_params */
    vkt_metric_value metrics[VKT_MAX_METRICS];       /* the first n_metrics are set */
} vkt_epoch_record;

/* The progress of a fit. on_batch gets this struct when the result of a batch has arrived. At that time, up to two
 * later batches have already been submitted. While `validating`, batch, batches, loss, accuracy and seconds are those
 * of the validation. If several ranks share the validation, these numbers are those of this rank's part. */
typedef struct vkt_fit_progress {
    uint32_t epoch, epochs;  /* epoch: number of this epoch, from 1. epochs: number of the last epoch */
    uint32_t batch, batches; /* batch: number of batches of this epoch whose results have arrived. batches: number of
                              * all batches of this epoch */
    double loss, accuracy;   /* weighted means over the batches whose results arrived; accuracy NaN: not measured */
    double seconds;          /* time of this epoch so far, in this fit */
    double ms_per_step;      /* result of vkt_trainer_ms_per_step. This fit updates ms_per_step after the last step of
                              * each epoch. 0: not updated yet */
    bool validating;         /* this is the progress of a validation */
} vkt_fit_progress;

/* The callbacks of a fit. They run on the thread of vkt_trainer_fit; each may be NULL. */
typedef struct vkt_fit_callbacks {
    void *user; /* passed to all callbacks */
    /* Called when the result of a batch of training or validation has arrived. */
    void (*on_batch)(void *user, const vkt_fit_progress *p);
    /* Called after each epoch. Returning true stops the fit. `best`: this epoch is the best so far. */
    bool (*on_epoch)(void *user, const vkt_epoch_record *r, bool best);
    /* Called when a training batch was submitted. Returning true ends the fit after this batch. With several ranks the
     * fit ends some batches later, on all ranks after the same batch. The checkpoint is written, if the fit has one.
     * The weights stay those of the last step. Another vkt_trainer_fit continues after that step, or
     * begins the epoch again if a loss or a weight of it was not finite. */
    bool (*stop)(void *user);
} vkt_fit_callbacks;

/* The options of a trainer. A member that is 0 or NULL selects its default. model.forward and train have no default. */
typedef struct vkt_trainer_params {
    vkt_model model;               /* copied */
    const vkt_dataset *train;      /* must outlive the trainer */
    const vkt_dataset *validation; /* must outlive the trainer; NULL: none */
    uint32_t batch;                /* number of samples of a batch; 0 means 128. If `train` has fewer samples, a batch
                                    * has all of them (rounded down to a multiple of dist.shards). The last batch of an
                                    * epoch may be smaller; no batch is dropped. With optimizer.micro_batches above 1
                                    * and without shards, the batches of the next epoch complete a step that an epoch
                                    * has begun. If too few batches are left at the end of the fit, they change
                                    * no parameter until a later fit completes the step. The fit then logs a warning,
                                    * unless `stop` has ended it */
    vkt_optimizer optimizer;       /* zero: SGD; see optim.h */
    float lr;                      /* learning rate; 0 means 0.01 for SGD, else the result of vkt_optimizer_lr (0.001
                                    * for Adam); VKT_ZERO means 0 */
    vkt_schedule schedule;         /* schedule of lr. It counts epochs if by_epoch is set or the kind is
                                    * VKT_SCHEDULE_PLATEAU. Else it counts steps, which are updates of the parameters: k
                                    * micro-batches are one step. VKT_SCHEDULE_PLATEAU follows the validation accuracy
                                    * if `maximise` is set, else the validation loss. Without a validation set, it
                                    * follows the training accuracy or the training loss */
    double ema_decay;              /* decay of the averages of the weights, for instance 0.999 (see vkt_publish); 0: no
                                    * averages. Validation, evaluation and prediction use the averaged weights. The best
                                    * weights and the saved weights are averaged weights, too */
    uint64_t seed;                 /* for the random numbers of the training, for instance initial weights, order of the
                                    * samples, random crops of images, dropout */
    bool stream;                   /* keep the data on the host and stream them. Data that do not fit on the device, or
                                    * rows that vary from epoch to epoch, are streamed in any case */
    bool no_shuffle;               /* use the order of the data set in every epoch */
    uint32_t workers;              /* number of threads that read the samples. 0 means 2 if the features are in memory,
                                    * else one per core, between 2 and 16. Results do not depend on this number */
    bool recompute;          /* compute cheap activations again if this saves memory (vkt_program_params). For whole
                              * blocks of the network, model.forward may call vkt_recompute_begin */
    bool profile;            /* allow vkt_trainer_profile */
    vkt_precision precision; /* of activations and products, in training and evaluation: see graph.h */
    /* Options of the default loss for labels. They apply to training only: the losses of validation and
     * vkt_trainer_evaluate are plain cross-entropy, so that runs with different class weights can be compared.
     * vkt_cross_entropy has the formula: a batch's loss is divided by the sum of the weights of its labels, as in
     * PyTorch. If a step has several shards or micro-batches, the loss of each of them is divided by the sum of its
     * own weights, and counts by its number of rows, as with PyTorch's DistributedDataParallel. This differs from the
     * loss of the whole step. A batch, shard or micro-batch whose weights are all 0 makes the loss NaN. VKT_E_ARG with
     * model.loss, or without labels. */
    const float *class_weights;   /* one weight for each class: none below 0, not all 0. NULL: all are 1. Copied */
    float label_smoothing;        /* in [0,1) */
    const vkt_metric *metrics;    /* your own metrics, at most VKT_MAX_METRICS; they need a validation set. Copied */
    uint32_t n_metrics;           /* number of metrics */
    vkt_dist_params dist;         /* data parallel training; zero: the defaults. See dist.h */
    vkt_ctx *const *more_devices; /* further contexts of this process, each listed once. They must outlive the trainer.
                                   * Their devices must have the name and the driver of the first context's device.
                                   * Several contexts may have the same device. Each context becomes a rank, and
                                   * vkt_trainer_fit starts a thread for it. The model's functions run on the caller's
                                   * thread. dist.transport must be NULL */
    uint32_t n_more_devices;      /* number of more_devices; this number plus 1 must be a power of two */
} vkt_trainer_params;

/* A model with its graphs, programs, weights and history. */
typedef struct vkt_trainer vkt_trainer;

/* Builds the model's graphs, prepares the data for the device, records the training step and generates the initial
 * weights. VKT_E_ARG (the message names the field), VKT_E_SHAPE (the model does not fit the data), VKT_E_MEMORY_CAP,
 * VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, and the errors of the ops and of vkt_program_create. After an error *out = NULL.
 * Owner: the caller; destroy the trainer before the context. */
VKT_API vkt_result vkt_trainer_create(vkt_ctx *ctx, const vkt_trainer_params *params, vkt_trainer **out);
VKT_API void vkt_trainer_destroy(vkt_trainer **t); /* waits for its last step */

/* The options of a fit. A member that is 0 or NULL selects its default. */
typedef struct vkt_fit_params {
    uint32_t epochs;             /* number of the last epoch, counted from the start of the run; 0 counts as 1 */
    uint32_t patience;           /* stop after this many epochs in a row without an improvement; 0: never */
    vkt_monitor monitor;         /* the number to improve. VKT_E_ARG if the trainer does not measure it. If a run
                                  * continues with another monitor, a warning is logged, and the best epoch so far
                                  * stays the best */
    double min_delta;            /* an improvement must be larger than this */
    const char *checkpoint;      /* path of a file for the full state, written after every epoch; NULL: none */
    uint64_t checkpoint_every;   /* also write the checkpoint after every `checkpoint_every` batches of the run, even in
                                  * the middle of a step (vkt_optimizer.micro_batches); 0: only after epochs */
    bool allow_nonfinite;        /* continue if a loss or a weight is not finite: see VKT_E_DIVERGED below */
    vkt_fit_callbacks callbacks; /* all are optional */
} vkt_fit_params;

/* Trains. If the result is VKT_OK, the trainer has the weights of the best epoch, by `monitor`, unless `stop` ended the
 * fit. Another fit continues from these weights, with the optimizer's state of the last step. To continue from the last
 * weights, call vkt_trainer_resume with the checkpoint first.
 *
 * VKT_E_ARG for params that do not fit the trainer; this error changes nothing. VKT_E_STATE if the metric of
 * VKT_MONITOR_METRIC was NaN in every epoch. In this case there is no best epoch, and the trainer has the weights of
 * the last step. VKT_E_STATE also if the ranks differ in params, data, state, arrays of the model (vkt_external_array),
 * attached texts (vkt_trainer_attach), or in the name or driver of their devices. After VKT_E_IO, VKT_E_FORMAT or
 * another error of a data source, and after VKT_E_NOMEM, the trainer has the weights of the last step, and another fit
 * continues where this fit failed. With several ranks such a failure ends the run: resume its checkpoint. After
 * VKT_E_DEVICE_LOST the context can only be destroyed. In all these cases the last checkpoint file stays whole.
 *
 * VKT_E_DIVERGED: a loss of training or validation, or a weight, is not finite. A message names epoch, batch and
 * learning rate. The trainer has the weights of the best epoch, if there was one (vkt_trainer_best_epoch). To continue,
 * make a trainer with a lower learning rate, and resume a checkpoint. Without allow_nonfinite, another fit returns
 * VKT_E_STATE as long as the weights or the optimizer's state are not finite. vkt_trainer_resume replaces both.
 * vkt_trainer_load replaces the weights and, if the last fit diverged, resets the optimizer to its start. If the run
 * diverged in the middle of an epoch, the fit after vkt_trainer_load begins this epoch again. With allow_nonfinite the
 * fit logs a warning and continues; it returns VKT_E_DIVERGED only if no epoch of the run was finite. With and without
 * allow_nonfinite, an epoch that is not finite is never the best. After a loss or a weight that is not finite, no
 * checkpoint is written in the rest of the epoch, nor at its end. (In VKT_PRECISION_F16, a step whose gradients
 * overflow is skipped. If its loss is finite, this is no divergence.)
 *
 * VKT_E_CHECKPOINT: a checkpoint could not be written (disk full, no such folder). The failure is logged at once, the
 * previous file stays whole, training continues, and the fit returns this result at its end. If the last checkpoint of
 * a fit is missing, another fit first writes it, if the trainer still has the state of this checkpoint. The trainer no
 * longer has this state if the fit gave it the weights of an earlier epoch or averaged weights (ema_decay), or after
 * vkt_trainer_load, vkt_trainer_resume or a divergence. */
VKT_API vkt_result vkt_trainer_fit(vkt_trainer *t, const vkt_fit_params *params);

/* Loads a checkpoint of the same run. The next vkt_trainer_fit continues at the position of the checkpoint
 * (vkt_trainer_position), and gives the same bits as a run that never stopped. VKT_E_NOT_FOUND or VKT_E_IO for a file
 * that cannot be read; VKT_E_FORMAT for a damaged file or another kind of file; VKT_E_UNSUPPORTED for another version
 * of the checkpoint format (vkt_trainer_load can still load the weights); VKT_E_STATE for a checkpoint of another run:
 * the message has the differences, for instance "attention.7 heads: checkpoint 2, this run 4". None of these errors
 * changes anything.
 *
 * The following must be the same in the checkpoint and in this run. (The text after the list has the exceptions.)
 *   - every op of the model and of the loss, with its attributes
 *   - the parameters, the group of each parameter (vkt_set_group), and which parameters are frozen
 *   - batch, no_shuffle, optimizer, schedule, precision, ema_decay, label_smoothing, class_weights, dist.shards,
 *     dist.wire, and the names of the metrics
 *   - the training set and the validation set, with terms, mean, std and class names. Features are compared by a hash
 *     of evenly spaced rows: at most 64 MiB of rows, or two rows if a row has more than 32 MiB. If a source makes the
 *     rows, at most 256 rows
 *   - an attached text that both trainer and checkpoint have under the same name (call vkt_trainer_attach before this
 *     function)
 * These may change, with a warning: learning rate; total, warmup and min_lr of the schedule; the precision from f32 to
 * f32-split, or back. These may change freely: stream, workers, recompute, profile and all of vkt_fit_params (only for
 * another monitor, vkt_trainer_fit logs a warning). The seed of the checkpoint is used. A run that has stopped early
 * stays stopped, whatever the patience: vkt_trainer_fit trains nothing and logs a warning. */
VKT_API vkt_result vkt_trainer_resume(vkt_trainer *t, const char *path);

/* Computes mean loss and accuracy (NaN: not measured) over `data`. VKT_E_SHAPE: the samples of `data` have another
 * shape than those of the training set. VKT_E_ARG: `data` lacks labels, targets or terms that the training set has, or
 * `data` has more classes than the training set. `loss` and `accuracy` may be NULL. Each call of this function or of
 * vkt_trainer_predict copies `data` to the device, or streams `data` (see vkt_trainer_params.stream). Each call also
 * records a program. If `data` is the validation set, a call usually does neither, because the trainer has a copy and a
 * program already. But a call does both with several ranks and without metrics: then each rank has only a part of the
 * validation set. */
VKT_API vkt_result vkt_trainer_evaluate(vkt_trainer *t, const vkt_dataset *data, double *loss, double *accuracy);
/* Runs the model on rows [first, first + count) of `data`. `classes` gets the predicted class of each row (VKT_E_STATE
 * for a model that does not classify). `outputs` gets the model's outputs, row-major. `classes` or `outputs` may be
 * NULL. VKT_E_ARG: count is 0, or `data` has no such rows. */
VKT_API vkt_result vkt_trainer_predict(vkt_trainer *t, const vkt_dataset *data, uint32_t first, uint32_t count,
                                       uint32_t *classes, float *outputs);

/* ---- predictions without training: no labels, no gradients, no moments ---- */

/* A model with its weights, for the rows of one data set. */
typedef struct vkt_predictor vkt_predictor;

/* The options of a predictor. A member that is 0 or NULL selects its default. model.forward and data have no default.
 */
typedef struct vkt_predictor_params {
    vkt_model model;         /* `forward` is built for evaluation (without dropout); name and loss are not used */
    const vkt_dataset *data; /* the rows, for instance from vkt_dataset_from_arrays with .borrow. Labels and targets are
                              * not used. The data set must outlive the predictor */
    const char *weights;     /* a file of vkt_trainer_save, or PyTorch's state_dict as safetensors. NULL: all weights
                              * are 0 until they are written through vkt_predictor_store */
    uint32_t batch;          /* rows of a run; 0 means 128. If `data` has fewer rows, a run has all rows */
    bool stream;             /* as in vkt_trainer_params */
    uint32_t workers;        /* as in vkt_trainer_params */
    vkt_precision precision; /* as in vkt_trainer_params */
} vkt_predictor_params;

/* Builds the forward graph, its store and its program, and loads the weights. The device holds the weights, the data
 * (if they are not streamed) and the activations of one batch, but neither gradients nor moments. VKT_E_ARG (the
 * message names the field), VKT_E_SHAPE, and the errors of vkt_program_create and vkt_store_load. After an error *out =
 * NULL. Owner: the caller; destroy the predictor before the context. Threads: one thread at a time per predictor. */
VKT_API vkt_result vkt_predictor_create(vkt_ctx *ctx, const vkt_predictor_params *params, vkt_predictor **out);
VKT_API void vkt_predictor_destroy(vkt_predictor **p); /* waits for its last run */
/* Returns the number of elements of the model's output for one row: K for logits (B,K). */
VKT_API uint64_t vkt_predictor_width(const vkt_predictor *p);
/* Runs the model on rows [first, first + count). `classes` gets the index of the largest output of each row; at a
 * tie, the smallest index (VKT_E_STATE if the output is not (B,K)). `outputs` gets (count, vkt_predictor_width)
 * numbers, row-major. `classes` or `outputs` may be NULL. VKT_E_ARG: count is 0, or the data set has no such rows. */
VKT_API vkt_result vkt_predictor_run(vkt_predictor *p, uint32_t first, uint32_t count, uint32_t *classes,
                                     float *outputs);
/* Returns the predictor's store, to read or write its parameters; NULL for a model without parameters. The predictor
 * owns the store. */
VKT_API vkt_store *vkt_predictor_store(vkt_predictor *p);

/* Save and load weights as safetensors, with the names and shapes of PyTorch's state_dict. Saving returns
 * VKT_E_DIVERGED and writes nothing if a weight is not finite (frozen weights are not checked). If a fit of several
 * ranks or shards (vkt_trainer_params.dist) has failed in the middle of a step, saving returns VKT_E_STATE until a
 * checkpoint is resumed. For loading, the file must have every parameter, with its shape, as F32, F16, BF16 or F64.
 * Other tensors of the file are skipped and listed at VKT_LOG_INFO. VKT_E_NOT_FOUND, VKT_E_SHAPE, VKT_E_DTYPE,
 * VKT_E_UNSUPPORTED, VKT_E_IO, VKT_E_FORMAT, VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_save(vkt_trainer *t, const char *path);
VKT_API vkt_result vkt_trainer_load(vkt_trainer *t, const char *path);
/* Loads only the parameters (and running statistics) whose names match `pattern`, as in vkt_freeze. For instance,
 * "layer*" loads layer1 to layer4 of a ResNet, but not its last layer "fc", which may have another shape than in the
 * file. The other parameters do not change. VKT_E_NOT_FOUND if no parameter matches, or if the file lacks a parameter
 * that matches. */
VKT_API vkt_result vkt_trainer_load_matching(vkt_trainer *t, const char *path, const char *pattern);

/* Save and load weights without a trainer. Saving writes `part` of every parameter and every state of a store, each
 * under its own name. Loading writes the values (vkt_store_write with VKT_PART_VALUE), but neither moments nor clock
 * (vkt_store_set_clock). If the file lacks a parameter, loading writes nothing. Messages go to `host` (may be NULL).
 * Only messages about the store and the device go to the host of the store's context. VKT_E_NOT_FOUND: there is no such
 * file, or it lacks a parameter. VKT_E_SHAPE, VKT_E_DTYPE, VKT_E_UNSUPPORTED, VKT_E_FORMAT, VKT_E_IO, VKT_E_NOMEM;
 * saving also VKT_E_STATE: the store does not have the part. */
VKT_API vkt_result vkt_store_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const char *path);
VKT_API vkt_result vkt_store_load(const vkt_host *host, vkt_store *s, const char *path);

/* Save and load the whole training state of a store, for programs that train without a trainer: values, moments, sums
 * of micro-batches, values of vkt_publish, the clock (vkt_store_set_clock), loss scale and vkt_accumulation. A run that
 * goes on from the file gives the same bits as a run that never stopped. The file is a safetensors file with a
 * checksum. It is replaced as a whole: after a crash `path` has the old file or the new one. Both functions wait for
 * submitted work. No run of vkt_step_budget may be in progress, because the gradients of an unfinished step are not
 * saved. `host` may be NULL. If a parameter is not finite, saving returns VKT_E_DIVERGED, and the old file stays.
 * Loading sets all of the state or nothing, unless the device fails. The file must have the store's parameters with
 * their shapes, and the parts that the store has; other parts and parameters of the file are ignored, so a store for
 * predictions can load it. VKT_E_STATE: the moments are of another optimizer, or the state was saved in the middle of a
 * step of several micro-batches although a step of `s` has only one micro-batch. VKT_E_FORMAT: the file is damaged, or
 * no file of vkt_store_save_state. VKT_E_NOT_FOUND: there is no file, or it lacks a parameter, or a part that the store
 * has. VKT_E_SHAPE, VKT_E_UNSUPPORTED (another version), VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_store_save_state(const vkt_host *host, vkt_store *s, const char *path);
VKT_API vkt_result vkt_store_load_state(const vkt_host *host, vkt_store *s, const char *path);

/* The options of vkt_store_export. A member that is 0 or NULL selects its default. */
typedef struct vkt_export_params {
    vkt_store_part part;     /* usually VKT_PART_VALUE or VKT_PART_PUBLISHED */
    vkt_precision precision; /* VKT_PRECISION_F32, _F16 or _BF16: how elements are stored, rounded to nearest even */
    const char *prefix;      /* prefix of the macros, for instance "SKY"; NULL: "VKT" */
} vkt_export_params;
/* Writes params->part of all parameters and states for programs that run without this library: `blob` is a flat file of
 * the elements, row-major, little-endian, one parameter after the other. `header` is a file that C and GLSL can
 * include. For a parameter "fc1.weight" of shape (64,32) with the prefix SKY, the header has these macros:
 *
 *     #define SKY_ELEMENTS         8192   number of elements in the blob, gaps included
 *     #define SKY_FC1_WEIGHT       4096   index of the parameter's first element in the blob
 *     #define SKY_FC1_WEIGHT_DIM0  64     shape of the parameter
 *     #define SKY_FC1_WEIGHT_DIM1  32
 *
 * Parameters begin at multiples of 64 bytes; gaps are zero. Each file is replaced as a whole, the header last.
 * VKT_E_ARG: two names give the same macro, the precision is none of the three, or the prefix is no identifier, has two
 * underscores in a row or more than 40 bytes. VKT_E_STATE: the store does not have the part. VKT_E_IO, VKT_E_NOMEM.
 * `host` may be NULL. */
VKT_API vkt_result vkt_store_export(const vkt_host *host, vkt_store *s, const vkt_export_params *params,
                                    const char *blob, const char *header);

/* Keeps a copy of `text` under `name` in every checkpoint and weights file that is written from now on. So a program
 * that predicts can get the preprocessing of the training data: a vocabulary (vkt_vocab_to_text), class names, mean and
 * standard deviation. Another call with the same name replaces the text. vkt_trainer_resume adds those texts of the
 * checkpoint whose names the trainer does not have. A checkpoint with a different text under the same name is a
 * checkpoint of another run (VKT_E_STATE). All processes of a run must attach the same texts; else vkt_trainer_fit
 * returns VKT_E_STATE on all ranks. VKT_E_ARG: NULL, an empty name, or a name or text that is not UTF-8.
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_attach(vkt_trainer *t, const char *name, const char *text);
/* Reads a text that was attached to a checkpoint or weights file. vkt_text_release frees *text. VKT_E_NOT_FOUND if
 * there is no such file or text, VKT_E_IO, VKT_E_FORMAT if the file is of another kind, VKT_E_ARG, VKT_E_NOMEM. */
VKT_API vkt_result vkt_read_attachment(const vkt_host *host, const char *path, const char *name, char **text);

/* Returns the records of the epochs so far, oldest first. They are valid until the next call of vkt_trainer_fit or
 * vkt_trainer_resume. Seconds of epochs before a resume are NaN. */
VKT_API const vkt_epoch_record *vkt_trainer_history(const vkt_trainer *t, uint32_t *count);
/* Writes the history as CSV: a line with the names of the columns, then one line per epoch. The columns of metrics come
 * last. If a number was not measured, its field is empty. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_write_history(const vkt_trainer *t, const char *csv_path);
/* Returns the record of the best epoch by the fit's monitor, valid as long as the records of vkt_trainer_history. NULL:
 * there is none yet. */
VKT_API const vkt_epoch_record *vkt_trainer_best(const vkt_trainer *t);
/* Plots loss and accuracy over the epochs. The path must end in .svg or .png. VKT_E_ARG also if there is no epoch yet.
 * VKT_E_UNSUPPORTED: a build without cairo. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_plot(const vkt_trainer *t, const char *path);
/* Returns the settings of the trainer as a JSON object in *json: batch, lr, schedule, precision, ema_decay, optimizer
 * (all members but `groups`, with defaults filled in). docs/train.schema.json describes the members. vkt_text_release
 * frees *json. VKT_E_UNSUPPORTED: a build without jansson. VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_settings(const vkt_trainer *t, char **json);
/* Returns the results so far as a JSON object in *json: parameters, epochs (a list of the records), final_loss,
 * best_epoch, best_val_acc, ms_per_step, host_us_per_step, data_wait_us_per_step. A number that was not measured is
 * null. vkt_text_release frees *json. VKT_E_UNSUPPORTED: a build without jansson. VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_results(const vkt_trainer *t, char **json);

/* ---- a test that suggests a learning rate ---- */

#define VKT_LR_TEST_STEPS 100 /* maximum number of steps of a test */

/* The result of a learning rate test. */
typedef struct vkt_lr_test {
    uint32_t n;                         /* steps with a finite loss; below VKT_LR_TEST_STEPS if the test ended early */
    double rates[VKT_LR_TEST_STEPS];    /* learning rates of the n steps, rising */
    double losses[VKT_LR_TEST_STEPS];   /* training losses of the n steps */
    double smoothed[VKT_LR_TEST_STEPS]; /* for each step: mean loss of this step and up to five steps on each side */
    double suggested;                   /* the rate at which the smoothed loss falls fastest; NaN: there is none */
    bool stopped;                       /* callbacks->stop ended the test */
} vkt_lr_test;

/* Runs a learning rate range test (Smith, "Cyclical Learning Rates for Training Neural Networks", 2017). It trains up
 * to VKT_LR_TEST_STEPS steps. The rate rises by the same factor from step to step, from a thousandth of the trainer's
 * lr to a thousand times this lr. The test ends early if a loss is not finite. It also ends early if the mean loss of
 * the last six steps is above 0 and more than four times the lowest mean so far. (Before the sixth step, the mean is
 * over all steps so far, and does not end the test.) `suggested` is the rate of the step at which the smoothed loss
 * falls fastest over the logarithm of the rate. Only steps before the step with the lowest smoothed loss are
 * considered.
 *
 * After the test, weights, moments, history and position are the same as before it. The test needs host memory for
 * copies of the weights and moments. `callbacks` may be NULL. The test does not call on_epoch. VKT_E_DIVERGED if fewer
 * than four steps have a finite loss, unless callbacks->stop ended the test. VKT_E_UNSUPPORTED if there are several
 * ranks. VKT_E_NOMEM, and the errors of vkt_trainer_fit. */
VKT_API vkt_result vkt_trainer_find_lr(vkt_trainer *t, const vkt_fit_callbacks *callbacks, vkt_lr_test *out);

/* Plots the result of a learning rate test, with the rates on a logarithmic axis. There are n >= 2 rates, above 0 and
 * rising. The losses are points; the smoothed losses are a line, in which a NaN is a gap. `suggested` is a rate to
 * mark, between the first and the last one; NaN: none. The path must end in .svg or .png. The file is replaced
 * atomically. VKT_E_UNSUPPORTED: a build without cairo. VKT_E_ARG, VKT_E_IO, VKT_E_NOMEM. `host` may be NULL. */
VKT_API vkt_result vkt_rates_plot(const vkt_host *host, const double *rates, const double *losses,
                                  const double *smoothed, uint32_t n, double suggested, const char *path);

/* Returns layers, shapes, parameters and memory as a text, which is valid as long as the trainer. */
VKT_API const char *vkt_trainer_summary(const vkt_trainer *t);
VKT_API uint64_t vkt_trainer_parameters(const vkt_trainer *t); /* number of parameters: see vkt_nn_parameters */
VKT_API uint64_t vkt_trainer_seed(const vkt_trainer *t);       /* from the params, or from the checkpoint that was
                                                                * resumed */
/* Returns in *lines the settings and data that a checkpoint must have in common with this run. Each line is
 * "name=value": batch, optimizer, schedule and other settings, and hashes of the data. The trainer owns the text, which
 * does not change. The first call reads the data sets, so it may fail: VKT_E_NOMEM, or the error of a source. After an
 * error *lines is NULL. */
VKT_API vkt_result vkt_trainer_identity(vkt_trainer *t, const char **lines);
VKT_API double vkt_trainer_best_accuracy(const vkt_trainer *t); /* highest validation accuracy; NaN: none yet */
VKT_API uint32_t vkt_trainer_best_epoch(const vkt_trainer *t);  /* by the fit's monitor; 0: no best epoch yet */
/* Returns the position at which the next fit continues: the epoch, and the number of its batches that are done, with
 * the loss and accuracy of these batches (NaN: none). `epochs`, `seconds` and `ms_per_step` are 0. */
VKT_API vkt_fit_progress vkt_trainer_position(const vkt_trainer *t);
VKT_API double vkt_trainer_ms_per_step(const vkt_trainer *t); /* median wall time of the last 4096 training steps, in
                                                               * milliseconds. The first step of each epoch is not
                                                               * measured. NaN: no step has been measured yet. If steps
                                                               * have micro-batches, but are not split into shards, this
                                                               * is the time of a micro-batch */
/* Returns the median CPU time of the steps that vkt_trainer_ms_per_step measures, on the thread of vkt_trainer_fit, in
 * microseconds. The time that the thread waits for the device is not included, nor the time of on_batch and on_epoch.
 * NaN: no step has been measured yet. */
VKT_API double vkt_trainer_host_us_per_step(const vkt_trainer *t);
/* Returns the mean time that a training step waited until worker threads had made its rows, in microseconds. If steps
 * have micro-batches, but are not split into shards, this is the mean for a micro-batch. If this time is more than a
 * small part of vkt_trainer_ms_per_step, more workers may help. The result is 0 if the data are on the device, and NaN
 * if there is no step yet. */
VKT_API double vkt_trainer_data_wait_us_per_step(const vkt_trainer *t);
/* Returns whether the training set is streamed (see vkt_trainer_params.stream). */
VKT_API bool vkt_trainer_streams(const vkt_trainer *t);
/* Sets *out to the bytes and times of the exchange of gradients so far; all 0 if steps are not split into shards. */
VKT_API void vkt_trainer_dist_stats(const vkt_trainer *t, vkt_dist_stats *out);
/* Returns when the result of the first training step arrived: the time of the clock CLOCK_MONOTONIC (on Windows: of
 * QueryPerformanceCounter) in nanoseconds; 0: it has not arrived yet. */
VKT_API uint64_t vkt_trainer_first_step_ns(const vkt_trainer *t);
VKT_API vkt_store *vkt_trainer_store(vkt_trainer *t);     /* the store, to read or write the parameters; the trainer
                                                           * owns the store */
VKT_API vkt_program *vkt_trainer_program(vkt_trainer *t); /* the program that the trainer runs for each training step
                                                           * (with micro-batches: for each micro-batch; with
                                                           * dist.shards: for each shard, or for each part of a
                                                           * shard). The trainer owns the program */

/* Runs the program of vkt_trainer_program twice with timestamps. Writes a Chrome/Perfetto trace of the kernels of the
 * second run to `path`. The state is restored, so these runs do not count. VKT_E_STATE if the trainer was made without
 * `profile`. */
VKT_API vkt_result vkt_trainer_profile(vkt_trainer *t, const char *path);

/* ---- ready-made progress ---- */

/* Output of the progress: one line per epoch (more if the terminal is narrow), and on a terminal a progress line with a
 * bar, which is rewritten in place. The progress line is shorter than the width of the terminal. Each redraw reads
 * the width: from the terminal, else from COLUMNS, else the width is 80. No signal handler is installed. On a narrow
 * terminal the bar shrinks from 24 to 8 columns. If this is not enough, parts of the progress line are left out, in
 * this order: batches a second, times, the bar, accuracy, loss, batches. There are no colours. If the stream is no
 * terminal, or TERM is "dumb" or not set, there is no bar and no escape sequence. In this case, an epoch or a
 * validation that takes longer than a minute writes a progress line of its own once a minute. In a locale without UTF-8
 * (LC_ALL, else LC_CTYPE, else LANG) all text is ASCII. On Windows, the mode, the width and the code page of the
 * console are used instead of these variables. */
typedef struct vkt_progress vkt_progress;
/* Creates a progress that writes to `stream`, which must outlive the progress. `host` may be NULL. VKT_E_ARG,
 * VKT_E_NOMEM. After an error *out = NULL. */
VKT_API vkt_result vkt_progress_create(const vkt_host *host, FILE *stream, vkt_progress **out);
/* Ends an unfinished progress line, and frees the object. Call this after the fit. The stream stays open. */
VKT_API void vkt_progress_destroy(vkt_progress **p);
/* Lets the progress line show units a second instead of batches a second, for instance "812 tok/s". `unit` is ASCII,
 * copied, and cut after 15 bytes; `per_batch` is the mean number of units of a batch, above 0. Does nothing if a
 * pointer is NULL. */
VKT_API void vkt_progress_set_unit(vkt_progress *p, const char *unit, double per_batch);
VKT_API vkt_fit_callbacks vkt_progress_callbacks(vkt_progress *p); /* for vkt_fit_params; `stop` is NULL */

#ifdef __cplusplus
}
#endif
#endif
