/* train/trainer.h - the struct of a trainer, and the functions that the files of train/ share. */
#ifndef VKT_TRAINER_H
#define VKT_TRAINER_H

#include "ir/ir.h"
#include "io/safetensors.h"
#include "train/compare.h"
#include "train/feed.h"
#include "train/history.h"
#include "train/steps.h"
#include "vktrain/metrics.h"
#include "vktrain/train.h"

/* The values of a graph that training and evaluation read. */
typedef struct vkt_head {
    vkt_tensor y, loss; /* loss: null in a predictor, or if the data set lacks labels, targets or terms that the
                         * training set has */
    vkt_tensor correct; /* null if there is no accuracy */
    bool classifies;    /* y is (B,K): a number for each class. In a trainer, the training set also has labels */
    vkt_tensor weights; /* an external value: the weight of each class (K); null: none */
} vkt_head;

/* The evaluation program of one data set, and the memory that it needs. */
typedef struct vkt_evaluator {
    vkt_feed feed;
    vkt_graph *g;
    vkt_program *program;
    vkt_head head;
    vkt_tensor classes; /* predicted classes of the last batch; kept (vkt_keep), like head.y. Null if the model does not
                         * classify */
    /* The caller's own metrics. They are set only during a validation in a fit: see own_metrics.c. */
    const vkt_metric *metrics;    /* NULL: not set */
    uint32_t n_metrics, measured; /* measured: number of samples that the metrics have got so far */
    float *outputs;               /* space for the outputs of a batch; NULL: not needed so far */
    /* If the ranks share the evaluation, each rank evaluates own_batches batches, from batch first_batch on; the last
     * ranks may have fewer. */
    const vkt_transport *transport; /* NULL: this rank evaluates all batches */
    uint32_t own_batches, first_batch;
    struct vkt_batch_result *results; /* one for each batch of all ranks */
} vkt_evaluator;

/* The result of one batch of an evaluation. */
typedef struct vkt_batch_result {
    float loss, correct;
    uint32_t rows, terms;
} vkt_batch_result;

/* Sums over batches of an epoch or of an evaluation. Only batches whose results have arrived are in the sums. */
typedef struct vkt_sums {
    double loss, correct; /* loss: sum over the batches of (mean loss of the batch) * (its number of terms) */
    uint64_t rows, terms; /* terms: sum of the samples' terms (vkt_dataset_terms). Without terms: number of samples */
} vkt_sums;

/* The position of a run between two steps. Every checkpoint of a trainer contains it. */
typedef struct vkt_position {
    uint64_t t;     /* number of completed steps; skipped steps do not count */
    uint32_t epoch; /* current epoch, from 1 */
    uint32_t batch; /* number of completed batches of this epoch */
    vkt_sums sums;  /* sums over the completed batches */
    double best;    /* monitored value of the best epoch; NaN if there is no best epoch yet */
    uint32_t best_epoch;
    uint32_t since_best; /* number of epochs after the best epoch */
    bool stopped;        /* early stopping has ended the run */
    vkt_plateau_state plateau;
    vkt_monitor monitor; /* the monitor that measured `best`; AUTO before the first fit */
} vkt_position;

/* The attached texts (vkt_trainer_attach), which are written to files as metadata: see attach.c. */
typedef struct vkt_attachments {
    vkt_meta *items; /* this struct owns the items with their keys and values */
    size_t n, cap;
} vkt_attachments;
void vkt_attachments_free(const vkt_host *h, vkt_attachments *a);
/* Joins `own` (n items; may be NULL if n is 0) and the attached texts into the list *all, for a function that
 * writes a file. The caller frees the list with vkt_free. The texts still belong to their owners. */
vkt_result vkt_attachments_join(const vkt_host *h, const vkt_attachments *a, const vkt_meta *own, size_t n,
                                vkt_meta **all);
/* Attaches those texts of a checkpoint that the trainer does not have. So the trainer's next checkpoint has these
 * texts, too. */
vkt_result vkt_attachments_resume(vkt_trainer *t, const vkt_safetensors *st);
/* Adds to *d each name under which trainer and checkpoint have different texts. */
void vkt_attachments_compare(const vkt_attachments *a, const vkt_safetensors *st, vkt_differences *d);
/* Adds one line for each attached text: its name and its hash. The lines are in the order of the names. */
void vkt_attachments_hash(const vkt_attachments *a, vkt_text *x);

struct vkt_trainer {
    vkt_ctx *ctx;
    vkt_host host;
    vkt_trainer_params params; /* with some defaults filled in (`resolve` in trainer.c); the data sets are borrowed */
    char *name;                /* owned; params.model.name points to it */
    uint32_t batch_wanted;     /* the caller's batch, or 128; params.batch is smaller if there are fewer samples */
    vkt_feed feed;
    vkt_graph *g;
    vkt_head head;
    vkt_builder *builder;
    char *graph_lines, *run_lines, *rate_lines; /* see identity.h; the last two are NULL before vkt_identity_compute */
    vkt_store *store;
    vkt_program *program; /* a run computes a step or a micro-batch; with shards, a shard or a part of a shard */
    vkt_shards shards;    /* all other data of a step that is split into shards */
    vkt_steps steps;
    vkt_trainer **replicas;    /* params.n_more_devices trainers of the other ranks of this process; NULL: none */
    const vkt_trainer *first;  /* rank 0, if this trainer is a replica of rank 0; else NULL */
    vkt_thread_group *group;   /* the connections of this trainer and its replicas; NULL: there are no replicas */
    vkt_transport *transports; /* one for this trainer, then one for each replica; NULL: there are no replicas */
    bool store_given;          /* the caller has got the store, and may write to it at any time */
    vkt_evaluator *validation; /* NULL: none */
    char *summary;
    vkt_history history;
    vkt_position at;
    bool owes_checkpoint; /* the last checkpoint of a fit could not be written. The trainer still has the state for this
                           * checkpoint, so the next fit can write it */
    bool diverged;        /* a fit has diverged. Becomes false again when a checkpoint is resumed, or when a fit goes on
                           * (go_on in fit.c) */
    bool interrupted;     /* `stop` ended the last fit, on this rank or on another one */
    vkt_attachments attached;
    vkt_metric metrics[VKT_MAX_METRICS]; /* the first params.n_metrics are in use; the trainer owns their names */
    vkt_array *class_weights;            /* the array of head.weights; NULL: none */
    uint64_t weights_hash;               /* hash of the class weights */
    float *weights;                      /* space for all parameters, in the order of the store */
    float *best;    /* the weights of the best epoch, or its averaged weights if they exist (vkt_trainer_served);
                     * ordered as `weights`; valid if at.best_epoch > 0 */
    float *step_ms; /* wall times of the last steps, a ring */
    float *host_us; /* CPU times of the same steps on the thread of fit, a ring */
    float *sorted;  /* space to sort one of the two rings */
    uint32_t n_steps;
    uint64_t submitted;     /* training steps that all fits have submitted */
    uint64_t first_step_ns; /* vkt_now_ns() when the first step's result had arrived; 0: not yet */
};

enum { VKT_STEP_TIMES = 4096 };

/* Checks that `d` has labels, targets and terms if the training set has them, because the loss may need them. Checks
 * also that there is a loss: model.loss, or the default loss of labels or targets. VKT_E_ARG if a check fails; the
 * message begins with `what`. */
vkt_result vkt_head_check(const vkt_trainer *t, const vkt_dataset *d, const char *what);
/* Builds batch, model and loss in the builder's graph. If `training`, the default loss uses class weights and label
 * smoothing. */
vkt_result vkt_head_build(const vkt_trainer *t, vkt_builder *b, const vkt_feed *feed, vkt_feed_values v, bool training,
                          vkt_head *out);
/* vkt_class_loss_check checks class weights and label smoothing (VKT_E_ARG). vkt_class_weights_create creates the array
 * of head.weights. */
vkt_result vkt_class_loss_check(const vkt_trainer *t);
vkt_result vkt_class_weights_create(vkt_trainer *t, const float *weights);
double vkt_sums_loss(const vkt_sums *s);
double vkt_sums_accuracy(const vkt_sums *s, const vkt_head *head); /* NaN: there is no accuracy */

/* Returns the part of the store that is evaluated, kept as the best, and saved. This part is the averaged parameters if
 * they exist, else the parameters. */
vkt_store_part vkt_trainer_served(const vkt_trainer *t);
/* vkt_trainer_get copies `part` of all parameters to `values`. vkt_trainer_put copies `values` to `part` of all
 * parameters. `values` has the order of the store. */
vkt_result vkt_trainer_get(vkt_trainer *t, vkt_store_part part, float *values);
vkt_result vkt_trainer_put(vkt_trainer *t, vkt_store_part part, const float *values);
/* Returns whether all of `values`, in the order of the store, are finite. Frozen parameters are not checked. */
bool vkt_trainer_is_finite(const vkt_trainer *t, const float *values);

/* The graphs of a training step. */
typedef struct vkt_step_graphs {
    vkt_graph *g; /* the graph of data, forward, loss, backward and update. With shards, the sums of the gradients
                   * replace the update */
    vkt_builder *b;
    vkt_graph *update; /* with shards: the graph of the update; else NULL */
    vkt_shard_values shard;
} vkt_step_graphs;
/* Builds the graphs of a training step over `feed`. `lines` (may be NULL) gets the lines of model and loss
 * (identity.h). The caller frees *g with vkt_step_graphs_free, and the lines, also after a failure. */
vkt_result vkt_trainer_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_step_graphs *g, vkt_feed_values *v,
                             vkt_head *head, vkt_text *lines);
void vkt_step_graphs_free(vkt_step_graphs *g);
/* Builds the graph of an evaluation. The caller destroys *g, also after a failure. */
vkt_result vkt_evaluator_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_graph **g, vkt_feed_values *v,
                               vkt_head *head, vkt_tensor *classes);
/* After a trainer did not fit into memory or exceeded another limit of the device, logs advice: a smaller batch that
 * would fit, or a larger cap. */
void vkt_trainer_suggest_batch(vkt_trainer *t);

/* Returns whether each rank validates only a part of the validation set. With metrics of the caller, each rank
 * validates the whole set. */
bool vkt_splits_validation(const vkt_trainer *t);
/* Creates an evaluator of `data` in *out. If `split` is true, all ranks call vkt_evaluator_run, and each rank
 * evaluates a part of `data`. VKT_E_SHAPE or VKT_E_ARG if `data` does not fit the training set. */
vkt_result vkt_evaluator_create(vkt_trainer *t, const vkt_dataset *data, bool split, vkt_evaluator **out);
void vkt_evaluator_destroy(vkt_trainer *t, vkt_evaluator **e);
/* Frees the contents of *e, not *e itself. */
void vkt_evaluator_clear(vkt_evaluator *e);
/* Predicts samples [first, first + count) of the evaluator's data set, a batch at a time. `classes` and `outputs` may
 * be NULL. */
vkt_result vkt_evaluator_predict(const vkt_host *h, vkt_evaluator *e, uint32_t first, uint32_t count, uint32_t *classes,
                                 float *outputs);
/* Evaluates the whole data set. `c`, c->on_batch, `loss` and `accuracy` may be NULL. Without on_batch, `progress` is
 * not used. */
vkt_result vkt_evaluator_run(vkt_evaluator *e, const vkt_fit_callbacks *c, vkt_fit_progress *progress, double *loss,
                             double *accuracy);

/* Copies the caller's metrics (own_metrics.c). VKT_E_ARG, VKT_E_NOMEM. */
vkt_result vkt_own_metrics_create(vkt_trainer *t, const vkt_metric *metrics);
void vkt_own_metrics_free(vkt_trainer *t);
/* Start and stop the caller's metrics. A validation calls the metrics only between these two calls. With several ranks,
 * only rank 0 calls the metrics, and sends their results to the other ranks. `run` is the status of the validation. If
 * `run` is VKT_OK, vkt_own_metrics_end writes the results of the metrics to *r, and returns the status of the exchange
 * of these results. Otherwise vkt_own_metrics_end returns `run`. */
void vkt_own_metrics_begin(vkt_trainer *t);
vkt_result vkt_own_metrics_end(vkt_trainer *t, vkt_result run, vkt_epoch_record *r);
/* Calls the metrics with one batch of `rows` samples. The run of this batch must be the newest run of the program. */
vkt_result vkt_own_metrics_add(vkt_evaluator *e, uint32_t rows);

/* Copies of everything that a training step changes in the store, except the clock. vkt_trainer_restore writes them
 * back, and sets the clock to step t->at.t. Call vkt_snapshot_free also after a failure. */
typedef struct vkt_snapshot {
    float *arenas[VKT_ARENAS]; /* NULL: the store has no such arena */
    vkt_loss_scale scale;
    vkt_accumulation accumulation;
} vkt_snapshot;
vkt_result vkt_trainer_snapshot(vkt_trainer *t, vkt_snapshot *out);
vkt_result vkt_trainer_restore(vkt_trainer *t, const vkt_snapshot *kept);
void vkt_snapshot_free(const vkt_host *h, vkt_snapshot *kept);

/* Connect and disconnect the ranks of this process. vkt_replicas_connect is called before the trainer is built, and
 * sets p->dist.transport if p->n_more_devices is not 0. vkt_replicas_disconnect is called after the trainers of the
 * other ranks are destroyed. */
vkt_result vkt_replicas_connect(vkt_trainer *t, vkt_trainer_params *p);
void vkt_replicas_disconnect(vkt_trainer *t);
uint32_t vkt_replicas_count(const vkt_trainer *t); /* number of the other ranks of this process */
/* vkt_replicas_fit calls `fit` for this rank in the calling thread, and for each other rank of this process in a new
 * thread. */
typedef vkt_result (*vkt_fit_function)(vkt_trainer *t, const vkt_fit_params *p);
vkt_result vkt_replicas_fit(vkt_trainer *t, const vkt_fit_params *p, vkt_fit_function fit);
/* Copies the state of this trainer to its replicas. Functions that load weights or a checkpoint call this at their end.
 * A fit calls this at its start if the application may have written to the store. */
vkt_result vkt_replicas_follow(vkt_trainer *t);

/* Does the same as vkt_trainer_save, but writes t->best. There must be a best epoch. */
vkt_result vkt_trainer_save_best(vkt_trainer *t, const char *path);
/* Writes a checkpoint. All ranks call it, and only rank 0 writes. If the parameters are not finite, no file is written,
 * every rank returns VKT_E_DIVERGED, and no rank logs a message. */
vkt_result vkt_trainer_checkpoint(vkt_trainer *t, const char *path);

enum { VKT_WEIGHT_NAME_ROOM = 96 }; /* bytes of a name with its prefix and NUL */
/* Finds the entry of a file for parameter i: the entry's name is `prefix` followed by the parameter's name.
 * VKT_E_NOT_FOUND: there is no such entry. VKT_E_SHAPE: the entry has another shape than the parameter. */
vkt_result vkt_weights_find(const vkt_host *h, const vkt_store *s, const vkt_safetensors *st, const char *path,
                            const char *prefix, uint32_t i, const vkt_st_entry **out);
/* Returns the prefix of the names of this part's tensors in a checkpoint; NULL for the gradient, which is not saved. */
const char *vkt_part_prefix(vkt_store_part part);

/* Returns the host of scores. The host is valid as long as the scores. */
const vkt_host *vkt_scores_host(const vkt_scores *s);

#endif
