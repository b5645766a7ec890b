/* train/graphs.c - builds the graphs of a training step and of an evaluation, and chooses whether an evaluation reads
 * the parameters or their averages (vkt_store_part). */
#include "train/identity.h"

/* Builds the graph of a training step: data, forward, loss, backward, and the update. With shards, the graph has the
 * sums of the gradients instead of the update, and out->update is the graph of the update. out->g reports the loss and
 * the number of correct predictions. */
vkt_result vkt_trainer_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_step_graphs *out, vkt_feed_values *v,
                             vkt_head *head, vkt_text *lines)
{
    *out = (vkt_step_graphs){ 0 };
    VKT_TRY(vkt_graph_create(&t->host, &out->g));
    VKT_TRY(vkt_builder_create(out->g, true, &out->b));
    vkt_graph *g = out->g;
    *v = vkt_feed_declare(g, feed);
    VKT_TRY(vkt_head_build(t, out->b, feed, *v, true, head));
    if (lines) VKT_TRY(vkt_identity_graph(g, lines));
    VKT_TRY(vkt_backward(g, head->loss));
    if (t->shards.count) {
        VKT_TRY(vkt_shards_graph(t, g, &out->shard, &out->update));
    } else {
        VKT_TRY(vkt_update(g, &t->params.optimizer));
        if (t->params.ema_decay != 0) VKT_TRY(vkt_publish(g, t->params.ema_decay));
    }
    vkt_report(g, head->loss, head->correct);
    return vkt_graph_status(g);
}

void vkt_step_graphs_free(vkt_step_graphs *g)
{
    vkt_builder_destroy(&g->b);
    vkt_graph_destroy(&g->g);
    vkt_graph_destroy(&g->update);
}

vkt_result vkt_evaluator_graph(const vkt_trainer *t, const vkt_feed *feed, vkt_graph **g, vkt_feed_values *v,
                               vkt_head *head, vkt_tensor *classes)
{
    VKT_TRY(vkt_graph_create(&t->host, g));
    vkt_builder *b = NULL;
    VKT_TRY(vkt_builder_create(*g, false, &b));
    *v = vkt_feed_declare(*g, feed);
    const vkt_result r = vkt_head_build(t, b, feed, *v, false, head);
    vkt_builder_destroy(&b);
    VKT_TRY(r);
    if (head->classifies) vkt_keep(*g, *classes = vkt_argmax(*g, head->y));
    vkt_keep(*g, head->y);
    if (head->loss.id) vkt_report(*g, head->loss, head->correct);
    return vkt_graph_status(*g);
}

vkt_store_part vkt_trainer_served(const vkt_trainer *t)
{
    return t->params.ema_decay != 0 ? VKT_PART_PUBLISHED : VKT_PART_VALUE;
}
