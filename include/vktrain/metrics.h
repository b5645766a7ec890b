/* vktrain/metrics.h - scores of predictions: confusion matrix, precision, recall, F1, top-k accuracy.
 *
 * All functions run on the host, in double precision, on the caller's arrays: labels (N) and predicted classes (N) from
 * vkt_trainer_predict, or outputs (N,K). Definitions are those of sklearn.metrics 1.2 with labels=range(K): a mean
 * counts all K classes, also those that never occur. Threads: any. `host` may be NULL. */
#ifndef VKTRAIN_METRICS_H
#define VKTRAIN_METRICS_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the confusion matrix: counts (K,K), rows are the true classes, columns the predicted ones ---- */

/* Adds n predictions: counts[labels[i] * classes + predicted[i]] grows by 1. The caller's counts begin at 0. VKT_E_ARG
 * for NULL and for a class that is not below `classes`; nothing is added then. */
VKT_API vkt_result vkt_confusion_add(const vkt_host *host, const uint32_t *labels, const uint32_t *predicted,
                                     uint64_t n, uint32_t classes, uint64_t *counts);

/* The scores of one class, or their mean over classes. */
typedef struct vkt_class_score {
    double precision; /* fraction of the rows predicted as this class that belong to it */
    double recall;    /* fraction of the rows of this class that are predicted as it */
    double f1;        /* 2 precision recall / (precision + recall) = 2 right / (predicted + true) */
    uint64_t support; /* rows of this class; for a mean: all rows */
} vkt_class_score;

/* The means over all classes. */
typedef struct vkt_class_means {
    double accuracy;          /* right rows / rows; NaN if there is no row */
    vkt_class_score macro;    /* each class counts the same */
    vkt_class_score weighted; /* each class counts by its support */
} vkt_class_means;

/* Computes precision, recall and F1 of each class into each[0..classes), and their means; either may be NULL. A score
 * whose divisor is 0 is `zero_division`: 0, 1 or NaN, as in scikit-learn. (A class that is never predicted has no
 * precision; a class without rows has no recall.) VKT_E_ARG for counts NULL, 0 classes or another zero_division. */
VKT_API vkt_result vkt_class_scores(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                    double zero_division, vkt_class_score *each, vkt_class_means *means);

/* Prints the scores as a table: a line per class, then accuracy and both means, with zero_division 0. `names`:
 * (classes), UTF-8, or NULL for numbers; control characters in them become ?. vkt_text_release frees *text. VKT_E_ARG,
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_class_scores_text(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                         const char *const *names, char **text);

/* Writes the matrix to a file; the ending decides the format. .csv: a line with the names of the predicted classes,
 * then for each true class a line with name and counts. .svg or .png: an image; the shade of a cell is its fraction of
 * the row, and the counts are printed if they fit. `title`: of the image; NULL: "Confusion matrix". Replaces the file
 * atomically. VKT_E_ARG (another ending; not UTF-8; more than 2048 classes in an image), VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_confusion_write(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                       const char *const *names, const char *title, const char *path);

/* ---- outputs ---- */

/* Writes the indices of the k largest of scores[0..n), the largest first, to top[0..m). Returns m, the smaller of k and
 * n. Among equal scores the lower index comes first (PyTorch's topk does not define the order). NaN counts as largest,
 * as in PyTorch. */
VKT_API uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top);

/* Returns the fraction of the rows whose label is among the k largest outputs of the row, as vkt_top_k orders them.
 * outputs (n, classes), labels (n). NaN if there is no row, for NULL, and for a label that is no class. */
VKT_API double vkt_top_k_accuracy(const float *outputs, const uint32_t *labels, uint64_t n, uint32_t classes,
                                  uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
