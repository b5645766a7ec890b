/* vktrain/metrics.h - how good predictions are: confusion matrix, precision, recall, F1, top-k accuracy.
 *
 * Everything here runs on the host, in double precision, over arrays of the caller's: labels (N) and predicted classes
 * (N) from vkt_trainer_predict, or outputs (N,K). Definitions are scikit-learn's (sklearn.metrics 1.2), where it has
 * them. Threads: any. `host` may be NULL. */
#ifndef VKTRAIN_METRICS_H
#define VKTRAIN_METRICS_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The indices of the k largest of scores[0..n), the largest first, into top[0..m); returns m, the smaller of k and n.
 * Of equal scores the lower index comes first (PyTorch's topk leaves that open); a NaN counts as largest, as there. */
VKT_API uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top);

#ifdef __cplusplus
}
#endif
#endif
