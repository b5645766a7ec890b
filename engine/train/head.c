/* train/head.c - what training and evaluation have in common: the batch, the model over it, loss and hits. */
#include "train/trainer.h"

#include <math.h>

static bool is_labelled(const vkt_dataset *d)
{
    return vkt_dataset_labels(d) != NULL;
}

static bool has_targets(const vkt_dataset *d)
{
    return vkt_dataset_targets(d) != NULL;
}

/* Whether `d` has what the loss of the training set is made of. */
static bool is_measurable(const vkt_trainer *t, const vkt_dataset *d)
{
    const vkt_dataset *train = t->params.train;
    return (is_labelled(d) || !is_labelled(train)) && (has_targets(d) || !has_targets(train));
}

vkt_result vkt_head_check(const vkt_trainer *t, const vkt_dataset *d, const char *what)
{
    const vkt_dataset *train = t->params.train;
    if (!t->params.model.loss && !is_labelled(train) && !has_targets(train))
        return vkt_fail(&t->host, VKT_E_ARG, "%s: want labels or targets, or model.loss", what);
    if (is_measurable(t, d)) return VKT_OK;
    return vkt_fail(&t->host, VKT_E_ARG, "%s: it has no %s, which the training set has", what,
                    is_labelled(d) || !is_labelled(train) ? "targets" : "labels");
}

/* One number a class, so that the largest one is an answer. */
static bool classifies(const vkt_graph *g, const vkt_trainer *t, vkt_tensor y)
{
    const vkt_shape s = vkt_tensor_shape(g, y);
    return is_labelled(t->params.train) && s.rank == 2 && s.dim[1] >= vkt_dataset_classes(t->params.train);
}

static vkt_tensor usual_loss(vkt_graph *g, const vkt_trainer *t, vkt_tensor y, vkt_tensor labels, vkt_tensor targets)
{
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
    return vkt_softmax_cross_entropy(g, y, labels);
}

vkt_result vkt_head_build(const vkt_trainer *t, vkt_builder *b, const vkt_feed *feed, vkt_feed_values v, vkt_head *out)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_model *m = &t->params.model;
    vkt_tensor x, labels;
    vkt_feed_gather(g, feed, v, &x, &labels);
    const vkt_tensor targets = vkt_feed_gather_targets(g, feed, v);
    if (!is_labelled(feed->data)) labels = (vkt_tensor){ 0 };
    *out = (vkt_head){ .y = m->forward(b, x, m->user) };
    out->classifies = classifies(g, t, out->y);
    if (!is_measurable(t, feed->data)) return vkt_graph_status(g); /* good for predictions alone */
    out->loss = m->loss ? m->loss(b, out->y, x, labels, targets, m->user) : usual_loss(g, t, out->y, labels, targets);
    if (out->classifies) out->correct = vkt_count_correct(g, out->y, labels);
    return vkt_graph_status(g);
}

double vkt_sums_loss(const vkt_sums *s)
{
    return s->loss / (double)s->rows;
}

double vkt_sums_accuracy(const vkt_sums *s, const vkt_head *head)
{
    return head->correct.id ? s->correct / (double)s->rows : NAN;
}
