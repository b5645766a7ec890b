/* train/own_metrics.c - the caller's own metrics (vkt_metric). The fit of rank 0 calls them with every batch of
 * the validation. */
#include "train/trainer.h"

#include <stdint.h>
#include <stdio.h>

enum { MAX_NAME = 31 };

static bool is_name(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const size_t n = s ? strlen(s) : 0;
    return n >= 1 && n <= MAX_NAME && strspn(s, letters) == n;
}

/* Returns whether a column of the history has this name already. The history has the columns below, and a column for
 * each of the first n metrics. */
static bool is_taken(const vkt_trainer *t, uint32_t n, const char *name)
{
    static const char *const columns[] = { "epoch", "train_loss", "train_acc", "val_loss", "val_acc", "lr", "seconds" };
    for (size_t i = 0; i < VKT_COUNT(columns); i++)
        if (strcmp(columns[i], name) == 0) return true;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(t->metrics[i].name, name) == 0) return true;
    return false;
}

vkt_result vkt_own_metrics_create(vkt_trainer *t, const vkt_metric *metrics)
{
    const vkt_host *h = &t->host;
    const uint32_t n = t->params.n_metrics;
    t->params.n_metrics = 0; /* from here on, n_metrics counts the metrics that are copied */
    t->params.metrics = t->metrics;
    if (n == 0) return VKT_OK;
    if (!metrics || n > VKT_MAX_METRICS || !t->params.validation)
        return vkt_fail(h, VKT_E_ARG, "trainer: metrics: want 1 to %d of them and a validation set, got %u%s",
                        VKT_MAX_METRICS, n,
                        !metrics                ? " at NULL"
                        : !t->params.validation ? " and no such set"
                                                : "");
    for (uint32_t i = 0; i < n; i++) {
        const vkt_metric *m = &metrics[i];
        if (!is_name(m->name) || is_taken(t, i, m->name))
            return vkt_fail(h, VKT_E_ARG,
                            "trainer: metric %u: want a name of its own, of 1 to %d letters, digits and _, got '%s'", i,
                            MAX_NAME, m->name ? m->name : "NULL");
        if (!m->add || !m->result)
            return vkt_fail(h, VKT_E_ARG, "trainer: metric '%s': want add and result, got NULL", m->name);
        t->metrics[i] = *m;
        t->metrics[i].name = vkt_strdup(h, m->name);
        if (!t->metrics[i].name) return vkt_fail_nomem(h, "a metric's name", strlen(m->name) + 1);
        t->params.n_metrics++;
    }
    return VKT_OK;
}

void vkt_own_metrics_free(vkt_trainer *t)
{
    for (uint32_t i = 0; i < VKT_MAX_METRICS; i++) vkt_free(&t->host, (void *)(uintptr_t)t->metrics[i].name);
}

void vkt_own_metrics_begin(vkt_trainer *t)
{
    vkt_evaluator *e = t->validation;
    if (!t->params.n_metrics || t->shards.rank > 0) return;
    e->metrics = t->metrics;
    e->n_metrics = t->params.n_metrics;
    e->measured = 0;
    for (uint32_t i = 0; i < e->n_metrics; i++)
        if (e->metrics[i].reset) e->metrics[i].reset(e->metrics[i].user);
}

vkt_result vkt_own_metrics_end(vkt_trainer *t, vkt_result run, vkt_epoch_record *r)
{
    const uint32_t n = t->params.n_metrics;
    double values[VKT_MAX_METRICS] = { 0 };
    t->validation->metrics = NULL;
    if (run != VKT_OK || n == 0) return run;
    for (uint32_t i = 0; i < n && t->shards.rank == 0; i++) values[i] = t->metrics[i].result(t->metrics[i].user);
    VKT_TRY(vkt_ranks_share(t, values, n * sizeof *values));
    r->n_metrics = n;
    for (uint32_t i = 0; i < n; i++) r->metrics[i] = (vkt_metric_value){ t->metrics[i].name, values[i] };
    return VKT_OK;
}

vkt_result vkt_own_metrics_add(vkt_evaluator *e, uint32_t rows)
{
    const vkt_host *h = e->feed.h;
    const vkt_shape s = vkt_tensor_shape(e->g, e->head.y);
    const uint64_t elements = vkt_shape_elements(s);
    if (s.rank == 0 || s.dim[0] != e->feed.batch)
        return vkt_fail(h, VKT_E_STATE, "metrics: the model's output has no row for each row of the batch");
    if (!e->outputs) e->outputs = vkt_alloc_array(h, elements, sizeof *e->outputs);
    if (!e->outputs) return vkt_fail_nomem(h, "outputs", elements * sizeof *e->outputs);
    VKT_TRY(vkt_program_read(e->program, e->head.y, e->outputs, elements * sizeof *e->outputs));
    const vkt_dataset *d = e->feed.data;
    const uint32_t width = vkt_dataset_target_width(d);
    const vkt_metric_batch b = { .rows = rows,
                                 .width = elements / s.dim[0],
                                 .outputs = e->outputs,
                                 .labels = vkt_dataset_labels(d) ? vkt_dataset_labels(d) + e->measured : NULL,
                                 .targets = width ? vkt_dataset_targets(d) + (size_t)e->measured * width : NULL,
                                 .target_width = width };
    for (uint32_t i = 0; i < e->n_metrics; i++) e->metrics[i].add(e->metrics[i].user, &b);
    e->measured += rows;
    return VKT_OK;
}
