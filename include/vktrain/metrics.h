/* vktrain/metrics.h - how good predictions are: confusion matrix, precision, recall, F1, top-k accuracy.
 *
 * Everything here runs on the host, in double precision, over arrays of the caller's: labels (N) and predicted classes
 * (N) from vkt_trainer_predict, or outputs (N,K). Definitions are those of sklearn.metrics 1.2, with labels=range(K):
 * all K classes count in a mean, also those that never occur. Threads: any. `host` may be NULL. */
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
    double precision; /* of the rows predicted as this class, the part that is of it */
    double recall;    /* of the rows of this class, the part that is predicted so */
    double f1;        /* 2 precision recall / (precision + recall) = 2 right / (predicted + true) */
    uint64_t support; /* rows of this class; of a mean, all rows */
} vkt_class_score;

/* Over all classes. */
typedef struct vkt_class_means {
    double accuracy;          /* right rows / rows; NaN where there is no row */
    vkt_class_score macro;    /* each class counts the same */
    vkt_class_score weighted; /* each class counts by its support */
} vkt_class_means;

/* Precision, recall and F1 of each class into each[0..classes), and their means; either may be NULL. A score whose
 * divisor is 0 (a class that is never predicted has no precision, one without rows no recall) is `zero_division`, 0 or
 * 1 or NaN, as scikit-learn's parameter of that name. VKT_E_ARG for counts NULL, 0 classes or another zero_division. */
VKT_API vkt_result vkt_class_scores(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                    double zero_division, vkt_class_score *each, vkt_class_means *means);

/* The scores as a table, a line a class, then accuracy and both means, with zero_division 0. `names`: (classes), UTF-8,
 * or NULL for numbers; control characters in them are written as ?. vkt_text_release frees *text. VKT_E_ARG,
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_class_scores_text(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                         const char *const *names, char **text);

/* The matrix as a file, by its ending: .csv, a line of the predicted classes' names, then a line of name and counts for
 * each true class; .svg or .png, a picture whose cells show the part of their row, with the counts where they have
 * room. `title`: of the picture; NULL: "Confusion matrix". Replaces the file atomically. VKT_E_ARG (another ending; no
 * UTF-8; more than 2048 classes in a picture), VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_confusion_write(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                       const char *const *names, const char *title, const char *path);

/* ---- outputs ---- */

/* The indices of the k largest of scores[0..n), the largest first, into top[0..m); returns m, the smaller of k and n.
 * Where scores are equal the lower index comes first (PyTorch's topk leaves that open); a NaN counts as largest, as
 * there. */
VKT_API uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top);

/* The part of the rows whose label is among the k largest outputs of its row, as vkt_top_k has them: outputs (n,
 * classes), labels (n). NaN where there is no row, for NULL, and for a label that is no class. */
VKT_API double vkt_top_k_accuracy(const float *outputs, const uint32_t *labels, uint64_t n, uint32_t classes,
                                  uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
