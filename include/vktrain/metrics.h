/* vktrain/metrics.h - scores of predictions: confusion matrix, precision, recall, F1, top-k accuracy.
 *
 * vkt_trainer_scores predicts with a trainer, and computes all scores. The rule for threads is that of a trainer
 * (train.h). The other functions run on the host, in double precision, on any thread. They read arrays of the caller,
 * for instance the labels (N), and the predicted classes (N) or outputs (N,K) of vkt_trainer_predict. `host` may be
 * NULL. A sample is a row of the data set.
 *
 * Definitions are those of sklearn.metrics 1.2 with labels=range(K): a mean is over all K classes, also classes that
 * never occur. */
#ifndef VKTRAIN_METRICS_H
#define VKTRAIN_METRICS_H

#include "vktrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the confusion matrix: counts (K,K); rows are true classes, columns are predicted classes ---- */

/* Adds n predictions: counts[labels[i] * classes + predicted[i]] grows by 1. The caller sets counts to 0 before the
 * first call. VKT_E_ARG for NULL, for 0 classes, and for a class that is not below `classes`. After an error nothing is
 * added. */
VKT_API vkt_result vkt_confusion_add(const vkt_host *host, const uint32_t *labels, const uint32_t *predicted,
                                     uint64_t n, uint32_t classes, uint64_t *counts);

/* The scores of one class, or their mean over classes. */
typedef struct vkt_class_score {
    double precision; /* of the samples that are predicted as this class: the fraction that belongs to it */
    double recall;    /* of the samples of this class: the fraction that is predicted as this class */
    double f1;        /* harmonic mean of precision and recall: 2 * samples of this class predicted as this class /
                       * (samples predicted as this class + samples of this class) */
    uint64_t support; /* number of samples of this class; for a mean: of all classes */
} vkt_class_score;

/* The means over all classes. */
typedef struct vkt_class_means {
    double accuracy;          /* fraction of the samples that are predicted as their class; NaN: there is no sample */
    vkt_class_score macro;    /* plain mean: all classes have the same weight */
    vkt_class_score weighted; /* weighted mean: the weight of a class is its support */
} vkt_class_means;

/* Computes precision, recall and F1 of each class into each[0..classes), and their means. `each` and `means` may be
 * NULL. A score whose divisor is 0 is `zero_division`, which is 0, 1 or NaN. (The divisor of the precision is 0 if the
 * class is never predicted. The divisor of the recall is 0 if the class has no samples. The divisor of F1 is 0 if both
 * divisors are 0.) If the score of a class is NaN, the mean is NaN, unless the weight of the class is 0. VKT_E_ARG:
 * counts is NULL, classes is 0, or zero_division is another number. */
VKT_API vkt_result vkt_class_scores(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                    double zero_division, vkt_class_score *each, vkt_class_means *means);

/* Prints the scores as a table: a line per class, then accuracy and both means, with zero_division 0. `names` has the
 * names of the classes in UTF-8. A class without a name, or each class if `names` is NULL, has its number as name. A
 * name is cut after 32 characters, and its control characters become ?. vkt_text_release frees *text. VKT_E_ARG,
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_class_scores_text(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                         const char *const *names, char **text);

/* Writes the matrix to a file. The ending of `path` decides the format. .csv: a line with the names of the predicted
 * classes, then for each true class a line with name and counts. .svg or .png: an image. The shade of an entry shows
 * its share of the samples of the true class. Counts are printed if they fit. A class without a name, or each class if
 * `names` is NULL, has its number as name. An image shortens long names. `title` is the title of the image; NULL:
 * "Confusion matrix". Replaces the file atomically. VKT_E_ARG: another ending; an image of more than 2048 classes; an
 * image with a text that is not UTF-8. VKT_E_UNSUPPORTED: an image, in a build without cairo. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_confusion_write(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                       const char *const *names, const char *title, const char *path);

/* ---- all scores of a classifier on a labelled data set ---- */

typedef struct vkt_scores vkt_scores;
/* The scores of a classifier. The caller reads the members. */
struct vkt_scores {
    uint32_t rows;               /* number of samples of the data set */
    uint32_t classes;            /* K, the number of outputs of the model */
    const uint64_t *counts;      /* (classes, classes): the confusion matrix */
    const vkt_class_score *each; /* (classes); a score whose divisor is 0 is 0 */
    vkt_class_means means;       /* accuracy and both means */
    double top5;                 /* fraction of the samples whose class is among the five likeliest */
    const char *const *names;    /* (classes): names of the classes in the data set; NULL: no names */
};

/* Predicts all samples of `data` with the trainer's weights, and computes the scores of these predictions. The members
 * of *out can be passed to vkt_class_scores_text and vkt_confusion_write. VKT_E_ARG: `data` has no labels, or a label
 * is no class of the model. VKT_E_STATE: the model does not classify. VKT_E_NOMEM, and the errors of
 * vkt_trainer_predict. After an error *out = NULL. Owner: the caller; `data` must outlive the scores. */
VKT_API vkt_result vkt_trainer_scores(vkt_trainer *t, const vkt_dataset *data, vkt_scores **out);
VKT_API void vkt_scores_destroy(vkt_scores **s);
/* Writes the scores as a JSON object, as docs/scores.schema.json describes it, but without the member "set". The matrix
 * is null for more than 1000 classes. vkt_text_release frees *json. VKT_E_UNSUPPORTED: a build without jansson.
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_scores_json(const vkt_scores *s, char **json);

/* ---- outputs ---- */

/* Writes the indices of the k largest of scores[0..n), the largest first, to top[0..m). Returns m, the smaller of k and
 * n. Among equal scores the lower index comes first (PyTorch's topk does not define the order). NaN counts as largest,
 * as in PyTorch. */
VKT_API uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top);

/* Finds the k likeliest classes by the softmax of logits[0..n), in the order of vkt_top_k. Writes the classes to
 * top[0..m) and their probabilities to probabilities[0..m). Returns m, the smaller of k and n. */
VKT_API uint32_t vkt_likeliest(const float *logits, uint32_t n, uint32_t k, uint32_t *top, double *probabilities);

/* Returns the fraction of the samples whose label is among the k largest outputs of the sample, as vkt_top_k orders
 * them. outputs (n, classes), labels (n). NaN if there is no sample, for NULL, and for a label that is no class. */
VKT_API double vkt_top_k_accuracy(const float *outputs, const uint32_t *labels, uint64_t n, uint32_t classes,
                                  uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
