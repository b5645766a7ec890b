/* train/head.c - the common part of training and evaluation: the batch, the model, the loss, and the number of correct
 * predictions. */
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool is_labelled(const vkt_dataset *d)
{
    return vkt_dataset_labels(d) != NULL;
}

static bool has_targets(const vkt_dataset *d)
{
    return vkt_dataset_targets(d) != NULL;
}

/* Returns "labels", "targets" or "terms" if the training set has them and `d` does not; else NULL. The loss may need
 * everything that the training set has. */
static const char *lacks(const vkt_trainer *t, const vkt_dataset *d)
{
    const vkt_dataset *train = t->params.train;
    if (is_labelled(train) && !is_labelled(d)) return "labels";
    if (has_targets(train) && !has_targets(d)) return "targets";
    return vkt_dataset_terms(train) && !vkt_dataset_terms(d) ? "terms" : NULL;
}

vkt_result vkt_head_check(const vkt_trainer *t, const vkt_dataset *d, const char *what)
{
    const vkt_dataset *train = t->params.train;
    const char *lacked = lacks(t, d);
    if (!t->params.model.loss && !is_labelled(train) && !has_targets(train))
        return vkt_fail(&t->host, VKT_E_ARG, "%s: want labels or targets, or model.loss", what);
    if (!lacked) return VKT_OK;
    return vkt_fail(&t->host, VKT_E_ARG, "%s: it has no %s, which the training set has", what, lacked);
}

/* Returns whether the training set has labels, and the output has a number for each class. In this case, the predicted
 * class is the one with the largest number. */
static bool classifies(const vkt_graph *g, const vkt_trainer *t, vkt_tensor y)
{
    const vkt_shape s = vkt_tensor_shape(g, y);
    return is_labelled(t->params.train) && s.rank == 2 && s.dim[1] >= vkt_dataset_classes(t->params.train);
}

static vkt_tensor default_loss(vkt_graph *g, const vkt_trainer *t, vkt_tensor labels, vkt_tensor targets, bool training,
                               vkt_head *h)
{
    const vkt_tensor y = h->y;
    if (!is_labelled(t->params.train)) return vkt_mse(g, y, targets);
    const vkt_shape s = vkt_tensor_shape(g, y);
    const uint32_t classes = vkt_dataset_classes(t->params.train);
    if (y.id && (s.rank != 2 || s.dim[1] < classes)) {
        char text[80];
        vkt_graph_error(
            g, vkt_fail(&t->host, VKT_E_SHAPE,
                        "trainer: want outputs (rows, %u or more) for the data set's classes, the model gives %s",
                        classes, vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    const float smoothing = t->params.label_smoothing;
    if (!training || (!t->params.class_weights && smoothing == 0)) return vkt_softmax_cross_entropy(g, y, labels);
    if (t->params.class_weights && y.id) h->weights = vkt_external(g, "class.weights", VKT_F32, vkt_shape1(s.dim[1]));
    return vkt_cross_entropy(g, y, labels,
                             &(vkt_cross_entropy_params){ .weight = h->weights, .label_smoothing = smoothing });
}

vkt_result vkt_head_build(const vkt_trainer *t, vkt_builder *b, const vkt_feed *feed, vkt_feed_values v, bool training,
                          vkt_head *out)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_model *m = &t->params.model;
    vkt_tensor x, labels;
    vkt_feed_gather(g, feed, v, &x, &labels);
    const vkt_tensor targets = vkt_feed_gather_targets(g, feed, v);
    if (!is_labelled(feed->data)) labels = (vkt_tensor){ 0 };
    *out = (vkt_head){ .y = m->forward(b, x, m->user) };
    out->classifies = classifies(g, t, out->y);
    if (lacks(t, feed->data)) return vkt_builder_check(b); /* predictions need only y */
    out->loss =
        m->loss ? m->loss(b, out->y, x, labels, targets, m->user) : default_loss(g, t, labels, targets, training, out);
    if (out->classifies) out->correct = vkt_count_correct(g, out->y, labels);
    return vkt_builder_check(b);
}

double vkt_sums_loss(const vkt_sums *s)
{
    return s->loss / (double)s->terms;
}

double vkt_sums_accuracy(const vkt_sums *s, const vkt_head *head)
{
    return head->correct.id ? s->correct / (double)s->rows : NAN;
}

/* ---- class weights and label smoothing ---- */

vkt_result vkt_class_loss_check(const vkt_trainer *t)
{
    const vkt_trainer_params *p = &t->params;
    const float s = p->label_smoothing;
    if (!(s >= 0 && s < 1))
        return vkt_fail(&t->host, VKT_E_ARG, "trainer: want label_smoothing in [0,1), got %g", (double)s);
    if (!p->class_weights && s == 0) return VKT_OK;
    if (p->model.loss || !is_labelled(p->train))
        return vkt_fail(&t->host, VKT_E_ARG,
                        "trainer: class_weights and label_smoothing want a labelled training set and the default loss, "
                        "got %s",
                        p->model.loss ? "model.loss" : "no labels");
    double sum = 0;
    for (uint32_t k = 0; p->class_weights && k < vkt_dataset_classes(p->train); k++) {
        const float w = p->class_weights[k];
        if (!(w >= 0) || !isfinite(w))
            return vkt_fail(&t->host, VKT_E_ARG, "trainer: want class_weights of 0 or more, got %g for class %u",
                            (double)w, k);
        sum += (double)w;
    }
    if (p->class_weights && sum == 0)
        return vkt_fail(&t->host, VKT_E_ARG, "trainer: want a class weight above 0, got none");
    return VKT_OK;
}

vkt_result vkt_class_weights_create(vkt_trainer *t, const float *weights)
{
    if (!t->head.weights.id) return VKT_OK;
    const vkt_shape shape = vkt_tensor_shape(t->g, t->head.weights);
    const uint32_t classes = vkt_dataset_classes(t->params.train);
    float *all = vkt_alloc_array(&t->host, shape.dim[0], sizeof *all);
    if (!all) return vkt_fail_nomem(&t->host, "class weights", shape.dim[0] * sizeof *all);
    /* The model may have more outputs than the data set has classes. An additional output has the weight 1. The label
     * of a sample is never an additional output, so only label smoothing uses this weight. */
    for (uint32_t k = 0; k < shape.dim[0]; k++) all[k] = k < classes ? weights[k] : 1;
    const vkt_array_params p = { .shape = shape, .data = all, .name = "class.weights" };
    t->weights_hash = vkt_hash(VKT_HASH_START, all, shape.dim[0] * sizeof *all);
    const vkt_result r = vkt_array_create(t->ctx, &p, &t->class_weights);
    vkt_free(&t->host, all);
    return r;
}
