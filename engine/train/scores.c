/* train/scores.c - vkt_trainer_scores: the scores of a classifier on a whole data set (vktrain/metrics.h). */
#include <math.h>

#include "train/trainer.h"
#include "vktrain/metrics.h"

enum { TOP = 5 };

/* Scores with their private members. The public scores are the first member, so a pointer to them is a pointer to this
 * struct. */
typedef struct owned {
    vkt_scores s;
    vkt_host h;
    uint32_t *predicted;
    float *outputs;
    uint64_t *counts;
    vkt_class_score *each;
    const char **names;
} owned;

static vkt_result measure(vkt_trainer *t, const vkt_dataset *d, owned *x)
{
    const uint32_t rows = x->s.rows, classes = x->s.classes, named = vkt_dataset_classes(d);
    x->predicted = vkt_alloc_array(&x->h, rows, sizeof *x->predicted);
    x->outputs = vkt_alloc_array(&x->h, rows, classes * sizeof *x->outputs);
    x->counts = vkt_alloc_array(&x->h, classes, classes * sizeof *x->counts);
    x->each = vkt_alloc_array(&x->h, classes, sizeof *x->each);
    x->names = vkt_alloc_array(&x->h, classes, sizeof *x->names);
    if (!x->predicted || !x->outputs || !x->counts || !x->each || !x->names)
        return vkt_fail_nomem(&x->h, "the scores", (size_t)rows * classes * sizeof *x->outputs);
    for (uint32_t k = 0; k < named && k < classes; k++) x->names[k] = vkt_dataset_class_name(d, k);
    VKT_TRY(vkt_trainer_predict(t, d, 0, rows, x->predicted, x->outputs));
    const uint32_t *labels = vkt_dataset_labels(d);
    VKT_TRY(vkt_confusion_add(&x->h, labels, x->predicted, rows, classes, x->counts));
    x->s.top5 = vkt_top_k_accuracy(x->outputs, labels, rows, classes, TOP);
    x->s.counts = x->counts;
    x->s.each = x->each;
    x->s.names = vkt_dataset_class_name(d, 0) ? x->names : NULL;
    return vkt_class_scores(&x->h, x->counts, classes, 0, x->each, &x->s.means);
}

vkt_result vkt_trainer_scores(vkt_trainer *t, const vkt_dataset *data, vkt_scores **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, t);
    const vkt_host *h = &t->host;
    VKT_WANT(h, out);
    VKT_WANT(h, data);
    if (!vkt_dataset_labels(data)) return vkt_fail(h, VKT_E_ARG, "scores: want a data set with labels");
    if (!t->head.classifies) return vkt_fail(h, VKT_E_STATE, "scores: want a model whose output is (B,K)");
    owned *x = vkt_alloc(h, sizeof *x);
    if (!x) return vkt_fail_nomem(h, "the scores", sizeof *x);
    x->h = *h;
    x->s.rows = vkt_dataset_rows(data);
    x->s.classes = vkt_tensor_shape(t->g, t->head.y).dim[1];
    vkt_scores *s = &x->s;
    const vkt_result r = measure(t, data, x);
    if (r == VKT_OK)
        *out = s;
    else
        vkt_scores_destroy(&s);
    return r;
}

const vkt_host *vkt_scores_host(const vkt_scores *s)
{
    return &((const owned *)s)->h;
}

void vkt_scores_destroy(vkt_scores **s)
{
    if (!s || !*s) return;
    owned *x = (owned *)*s;
    const vkt_host h = x->h;
    void *const parts[] = { x->predicted, x->outputs, x->counts, x->each, x->names, x };
    for (size_t i = 0; i < VKT_COUNT(parts); i++) vkt_free(&h, parts[i]);
    *s = NULL;
}
