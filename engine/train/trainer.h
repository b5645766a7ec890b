/* train/trainer.h - inside of a trainer. */
#ifndef VKT_TRAINER_H
#define VKT_TRAINER_H

#include "ir/ir.h"
#include "io/safetensors.h"
#include "train/compare.h"
#include "train/feed.h"
#include "train/history.h"
#include "vktrain/train.h"

/* The values of a graph that training and evaluation ask for. */
typedef struct vkt_head {
    vkt_tensor y, loss; /* loss: null where the data set lacks what it is made of */
    vkt_tensor correct; /* null where there is no accuracy */
    bool classifies;    /* y is (B,K), a number for each class */
    vkt_tensor weights; /* (K) of the classes, external; null: none */
} vkt_head;

/* A recorded evaluation of one data set. */
typedef struct vkt_evaluator {
    vkt_feed feed;
    vkt_graph *g;
    vkt_program *program;
    vkt_head head;
    vkt_tensor classes; /* of the last batch, kept as head.y is; null where the model does not classify */
    /* Metrics of the caller's, in a fit alone: see own_metrics.c. */
    const vkt_metric *metrics;    /* NULL: none now */
    uint32_t n_metrics, measured; /* measured: rows of the epoch so far */
    float *outputs;               /* room for those of a batch; NULL: none are ever wanted */
} vkt_evaluator;

/* Sums over the batches of an epoch whose results have arrived. */
typedef struct vkt_sums {
    double loss, correct; /* loss times rows */
    uint64_t rows;
} vkt_sums;

/* The place of a run between two steps: with parameters, moments and best weights, all that a checkpoint holds. */
typedef struct vkt_position {
    uint64_t t;     /* completed steps */
    uint32_t epoch; /* running epoch, from 1 */
    uint32_t batch; /* batches of it that are done */
    vkt_sums sums;  /* of those batches */
    double best;    /* monitored value of the best epoch; NaN before there is one */
    uint32_t best_epoch;
    uint32_t since_best; /* epochs since */
    bool stopped;        /* early stopping has ended the run */
    vkt_plateau_state plateau;
    vkt_monitor monitor; /* what `best` is a value of; AUTO before the first fit */
} vkt_position;

/* Texts that go into files, as metadata: see attach.c. */
typedef struct vkt_attachments {
    vkt_meta *items; /* their texts are owned */
    size_t n, cap;
} vkt_attachments;
void vkt_attachments_free(const vkt_host *h, vkt_attachments *a);
/* `own` (n of them, may be NULL) and then what is attached, for the call of a writer; vkt_free frees *all alone. */
vkt_result vkt_attachments_join(const vkt_host *h, const vkt_attachments *a, const vkt_meta *own, size_t n,
                                vkt_meta **all);
/* Attaches what a checkpoint has and the trainer has not: the next checkpoint would be without it. */
vkt_result vkt_attachments_resume(vkt_trainer *t, const vkt_safetensors *st);
/* Adds the texts that both have, and not alike. */
void vkt_attachments_compare(const vkt_attachments *a, const vkt_safetensors *st, vkt_differences *d);

struct vkt_trainer {
    vkt_ctx *ctx;
    vkt_host host;
    vkt_trainer_params params; /* resolved; the data sets are borrowed */
    char *name;                /* a copy: params.model.name */
    uint32_t batch_wanted;     /* more than params.batch where the training set has fewer rows */
    vkt_feed feed;
    vkt_graph *g;
    vkt_head head;
    vkt_builder *builder;
    char *graph_lines, *run_lines, *rate_lines; /* identity.h; the last two NULL before somebody asked */
    vkt_store *store;
    vkt_program *program;
    vkt_evaluator *validation; /* NULL: none */
    char *summary;
    vkt_history history;
    vkt_position at;
    bool owes_checkpoint; /* the last one of a fit could not be written */
    bool diverged;        /* the last fit did, and nothing has been loaded since: see go_on in fit.c */
    vkt_attachments attached;
    vkt_metric metrics[VKT_MAX_METRICS]; /* params.n_metrics; their names are owned */
    vkt_array *class_weights;            /* head.weights; NULL: none */
    uint64_t weights_hash;               /* of what is in it */
    float *weights;                      /* room for all parameters, in the order of the store */
    float *best;                         /* the best epoch's, same order; valid once at.best_epoch > 0 */
    float *step_ms;                      /* wall times of the last steps, a ring */
    float *host_us;                      /* CPU times of the same steps on the thread of fit, likewise */
    float *sorted;                       /* room to sort one of them */
    uint32_t n_steps;
    uint64_t submitted;     /* training steps of all fits */
    uint64_t first_step_ns; /* vkt_now_ns() when the first step's result was there; 0: not yet */
};

enum { VKT_STEP_TIMES = 4096 };

/* Whether `d` has what the loss is made of; `what` begins the message. */
vkt_result vkt_head_check(const vkt_trainer *t, const vkt_dataset *d, const char *what);
/* Batch, model and loss, in the builder's graph. With `training`, the loss has class weights and label smoothing. */
vkt_result vkt_head_build(const vkt_trainer *t, vkt_builder *b, const vkt_feed *feed, vkt_feed_values v, bool training,
                          vkt_head *out);
/* Class weights and label smoothing: whether they may be; the array of the weights; as text for a checkpoint. */
vkt_result vkt_class_loss_check(const vkt_trainer *t);
vkt_result vkt_class_weights_create(vkt_trainer *t, const float *weights);
double vkt_sums_loss(const vkt_sums *s);
double vkt_sums_accuracy(const vkt_sums *s, const vkt_head *head); /* NaN: there is none */

/* The parameters that are evaluated, kept as the best and saved: the averaged ones, where there are such. */
vkt_store_part vkt_trainer_served(const vkt_trainer *t);
/* Copies all parameters to or from `values`, in the order of the store. */
vkt_result vkt_trainer_get(vkt_trainer *t, vkt_store_part part, float *values);
vkt_result vkt_trainer_put(vkt_trainer *t, vkt_store_part part, const float *values);
/* Whether all of `values`, in the order of the store, are finite; frozen parameters may be anything. */
bool vkt_trainer_is_finite(const vkt_trainer *t, const float *values);

/* The graph of a training step over `feed`: data, forward, loss, backward, update. `lines` (NULL: not wanted) takes
 * what tells model and loss from others (identity.h). The caller destroys *g and *b and frees the lines, also after a
 * failure. */
vkt_result vkt_trainer_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_graph **g, vkt_builder **b,
                             vkt_feed_values *v, vkt_head *head, vkt_text *lines);
/* Likewise of an evaluation. */
vkt_result vkt_evaluator_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_graph **g, vkt_feed_values *v,
                               vkt_head *head, vkt_tensor *classes);
/* After a trainer did not fit: logs which smaller batch, or which larger cap, would do. */
void vkt_trainer_advise(vkt_trainer *t);

vkt_result vkt_evaluator_create(vkt_trainer *t, const vkt_dataset *data, vkt_evaluator **out);
void vkt_evaluator_destroy(vkt_trainer *t, vkt_evaluator **e);
/* Frees what *e holds, not *e itself. */
void vkt_evaluator_clear(vkt_evaluator *e);
/* Rows [first, first + count) of its data set, a batch at a time. `classes` may be NULL, and so may `outputs`. */
vkt_result vkt_evaluator_predict(const vkt_host *h, vkt_evaluator *e, uint32_t first, uint32_t count, uint32_t *classes,
                                 float *outputs);
/* on_batch may be NULL. */
vkt_result vkt_evaluator_run(vkt_evaluator *e, const vkt_fit_callbacks *c, vkt_fit_progress *progress, double *loss,
                             double *accuracy);

/* Metrics of the caller's: own_metrics.c. The first copies those of the params. */
vkt_result vkt_own_metrics_create(vkt_trainer *t, const vkt_metric *metrics);
void vkt_own_metrics_free(vkt_trainer *t);
/* From now on the validation measures; all of its results, into the record, and no more after that. */
void vkt_own_metrics_begin(vkt_trainer *t);
void vkt_own_metrics_end(vkt_trainer *t, vkt_epoch_record *r);
/* One batch, whose run is the program's last. */
vkt_result vkt_own_metrics_add(vkt_evaluator *e, uint32_t rows);

/* Copies of all that a training step changes on the device. vkt_trainer_restore writes them back, with the clock of
 * t->at; call vkt_kept_free in any case. */
typedef struct vkt_kept {
    float *arenas[VKT_ARENAS]; /* NULL: the store has no such arena */
    vkt_loss_scale scale;
    vkt_accumulation accumulation;
} vkt_kept;
vkt_result vkt_trainer_keep(vkt_trainer *t, vkt_kept *out);
vkt_result vkt_trainer_restore(vkt_trainer *t, const vkt_kept *kept);
void vkt_kept_free(const vkt_host *h, vkt_kept *kept);

/* VKT_E_DIVERGED, which is not logged, and no file if the parameters are not finite. */
vkt_result vkt_trainer_checkpoint(vkt_trainer *t, const char *path);

/* The entry of a file for parameter i, under `prefix`, if its shape fits; VKT_E_NOT_FOUND, VKT_E_SHAPE. */
enum { VKT_WEIGHT_NAME_ROOM = 96 }; /* of a name with its prefix */
vkt_result vkt_weights_find(const vkt_host *h, const vkt_store *s, const vkt_safetensors *st, const char *path,
                            const char *prefix, uint32_t i, const vkt_st_entry **out);

#endif
