/* train/trainer.c - creates a trainer: data, graphs, store, programs, initial weights. */
#include "train/identity.h"

#include <math.h>

#include "train/plot.h"

static vkt_result resolve(vkt_trainer *t, const vkt_trainer_params *p)
{
    const vkt_host *h = &t->host;
    t->params = *p;
    vkt_trainer_params *q = &t->params;
    q->ema_decay = vkt_or(q->ema_decay, 0);
    q->label_smoothing = vkt_or_f32(q->label_smoothing, 0);
    if (!q->model.forward) return vkt_fail(h, VKT_E_ARG, "trainer: want model.forward");
    if (!q->train) return vkt_fail(h, VKT_E_ARG, "trainer: want a training set");
    VKT_TRY(vkt_head_check(t, q->train, "trainer: the training set"));
    if (q->validation) VKT_TRY(vkt_head_check(t, q->validation, "trainer: the validation set"));
    VKT_TRY(vkt_class_loss_check(t));
    VKT_TRY(vkt_schedule_check(h, &q->schedule));
    VKT_TRY(vkt_own_metrics_create(t, p->metrics));
    t->name = vkt_strdup(h, q->model.name ? q->model.name : "model");
    if (!t->name) return vkt_fail_nomem(h, "a model's name", strlen(q->model.name ? q->model.name : "model") + 1);
    q->model.name = t->name;
    t->batch_wanted = q->batch ? q->batch : 128;
    q->batch = VKT_MIN(t->batch_wanted, vkt_dataset_rows(q->train)); /* a larger batch would contain padding */
    VKT_TRY(vkt_shards_resolve(t));
    const uint32_t rows = vkt_dataset_rows(q->train);
    if (q->batch < t->batch_wanted)
        vkt_log_line(h, VKT_LOG_INFO, "trainer: a batch of %u is more than the %u rows there are: it has %s%u of them",
                     t->batch_wanted, rows, q->batch == rows ? "all " : "", q->batch);
    const vkt_preset preset = q->optimizer.keras ? VKT_PRESET_KERAS3 : VKT_PRESET_TORCH;
    q->lr = vkt_or_f32(q->lr, q->optimizer.kind == VKT_SGD ? 0.01f : vkt_optimizer_lr(q->optimizer.kind, preset));
    if (q->lr < 0 || !isfinite(q->lr)) return vkt_fail(h, VKT_E_ARG, "trainer: want lr >= 0, got %g", (double)q->lr);
    return VKT_OK;
}

/* Makes the summary: the table of layers, and how many kernels, barriers and bytes of memory t->program has. */
static vkt_result make_summary(vkt_trainer *t)
{
    char *layers, packed[24], bound[24];
    vkt_plan_info plan;
    vkt_text text = { .h = &t->host };
    VKT_TRY(vkt_nn_summary(t->builder, t->params.model.name, &layers));
    vkt_program_plan(t->program, &plan);
    vkt_text_add(&text, "%sstep: %u kernels, %u barriers\n", layers, plan.dispatches, plan.barriers);
    vkt_text_add(&text, "step memory: %s of activations and scratch, %s of them live at once\n",
                 vkt_bytes_text(plan.total_bytes, packed), vkt_bytes_text(plan.lower_bound_bytes, bound));
    if (t->params.batch < t->batch_wanted)
        vkt_text_add(&text, "a batch: %s%u rows, fewer than the %u asked for\n",
                     t->params.batch == vkt_dataset_rows(t->params.train) ? "all " : "", t->params.batch,
                     t->batch_wanted);
    vkt_text_release(&layers);
    t->summary = text.s;
    return text.failed ? vkt_fail_nomem(&t->host, "a summary", text.len) : VKT_OK;
}

/* Makes the graphs of a step, and the store of their parameters. */
static vkt_result make_graphs(vkt_trainer *t, vkt_feed_values *v, vkt_shard_values *shard)
{
    vkt_text lines = { .h = &t->host };
    vkt_step_graphs g;
    const vkt_result r = vkt_trainer_graph(t, &t->feed, &g, v, &t->head, &lines);
    t->graph_lines = lines.s;
    t->g = g.g;
    t->builder = g.b;
    t->shards.g = g.update;
    *shard = g.shard;
    VKT_TRY(r);
    return vkt_store_create(t->ctx, g.update ? g.update : g.g, &t->store); /* a graph with the update has all arenas */
}

static vkt_result make_programs(vkt_trainer *t, vkt_feed_values v, const vkt_shard_values *shard)
{
    const vkt_trainer_params *p = &t->params;
    vkt_binding arrays[VKT_FEED_BINDINGS + 4];
    uint32_t n_arrays = vkt_feed_bind(&t->feed, v, arrays);
    if (t->class_weights) arrays[n_arrays++] = (vkt_binding){ t->head.weights, t->class_weights };
    if (t->shards.count) VKT_TRY(vkt_shards_arrays(t, shard, arrays, &n_arrays));
    const vkt_program_params pp = { .name = "train",
                                    .arrays = arrays,
                                    .n_arrays = n_arrays,
                                    .profile = p->profile,
                                    .recompute = p->recompute,
                                    .precision = p->precision };
    VKT_TRY(vkt_program_create(t->ctx, t->g, t->store, &pp, &t->program));
    return t->shards.count ? vkt_shards_programs(t, shard) : VKT_OK;
}

static vkt_result build(vkt_trainer *t)
{
    const vkt_trainer_params *p = &t->params;
    vkt_feed_values v;
    vkt_shard_values shard;
    const vkt_feed_params fp = { .batch = t->shards.count ? t->shards.rows : p->batch,
                                 .stream = p->stream || vkt_dataset_varies(p->train),
                                 .workers = p->workers,
                                 .room = vkt_steps_most_rows(t) };
    VKT_TRY(vkt_feed_create(t->ctx, &t->host, p->train, &fp, &t->feed));
    VKT_TRY(make_graphs(t, &v, &shard));
    VKT_TRY(vkt_class_weights_create(t, p->class_weights));
    VKT_TRY(make_programs(t, v, &shard));
    VKT_TRY(make_summary(t));
    if (p->validation) VKT_TRY(vkt_evaluator_create(t, p->validation, vkt_splits_validation(t), &t->validation));
    const uint64_t n = vkt_store_elements(t->store);
    t->weights = vkt_alloc_array(&t->host, n, sizeof *t->weights);
    t->best = vkt_alloc_array(&t->host, n, sizeof *t->best);
    t->step_ms = vkt_alloc_array(&t->host, VKT_STEP_TIMES, sizeof *t->step_ms);
    t->host_us = vkt_alloc_array(&t->host, VKT_STEP_TIMES, sizeof *t->host_us);
    t->sorted = vkt_alloc_array(&t->host, VKT_STEP_TIMES, sizeof *t->sorted);
    if (!t->weights || !t->best || !t->step_ms || !t->host_us || !t->sorted)
        return vkt_fail_nomem(&t->host, "weights", n * sizeof(float));
    VKT_TRY(vkt_store_set_clock(t->store, 0, p->seed));
    VKT_TRY(vkt_nn_init(t->builder, t->store, p->seed));
    /* This readback also allocates the memory for readbacks. If a later fit allocated this memory, the cap might not
     * allow it any more. */
    return vkt_trainer_get(t, VKT_PART_VALUE, t->best);
}

/* Makes the trainers of the other ranks of this process. */
static vkt_result make_replicas(vkt_trainer *t, const vkt_trainer_params *p)
{
    for (uint32_t i = 0; i < p->n_more_devices; i++) {
        vkt_trainer_params mine = *p;
        mine.dist.transport = &t->transports[i + 1];
        mine.more_devices = NULL;
        mine.n_more_devices = 0;
        VKT_TRY(vkt_trainer_create(p->more_devices[i], &mine, &t->replicas[i]));
        t->replicas[i]->first = t;
        /* Rank 0 logs for all ranks; the other ranks log only errors from now on. */
        t->replicas[i]->host.log_level = VKT_MIN(t->replicas[i]->host.log_level, VKT_LOG_ERROR);
    }
    return VKT_OK;
}

vkt_result vkt_trainer_create(vkt_ctx *ctx, const vkt_trainer_params *params, vkt_trainer **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(NULL, out);
    VKT_WANT(NULL, params);
    *out = NULL;
    const vkt_host h = vkt_ctx_host(ctx);
    vkt_trainer *t = vkt_alloc(&h, sizeof *t);
    if (!t) return vkt_fail_nomem(&h, "a trainer", sizeof *t);
    t->ctx = ctx;
    t->host = h;
    t->history.h = &t->host;
    t->feed.h = &t->host;
    t->at = (vkt_position){ .epoch = 1, .best = NAN, .plateau.scale = 1 };
    vkt_trainer_params mine = *params;
    vkt_result r = vkt_replicas_connect(t, &mine);
    if (r == VKT_OK) r = resolve(t, &mine);
    const bool sound = r == VKT_OK;
    if (sound) r = build(t);
    if (sound && (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY || r == VKT_E_UNSUPPORTED))
        vkt_trainer_suggest_batch(t);
    if (r == VKT_OK) r = make_replicas(t, &mine);
    if (r == VKT_OK)
        *out = t;
    else
        vkt_trainer_destroy(&t);
    return r;
}

void vkt_trainer_destroy(vkt_trainer **pt)
{
    vkt_trainer *t = pt ? *pt : NULL;
    if (!t) return;
    const vkt_host h = t->host;
    for (uint32_t i = 0; i < vkt_replicas_count(t); i++) vkt_trainer_destroy(&t->replicas[i]);
    vkt_evaluator_destroy(t, &t->validation);
    vkt_shards_destroy(t);
    vkt_program_destroy(&t->program);
    vkt_store_destroy(&t->store);
    vkt_feed_destroy(&t->feed);
    vkt_array_destroy(&t->class_weights);
    vkt_builder_destroy(&t->builder);
    vkt_graph_destroy(&t->g);
    vkt_history_free(&t->history);
    vkt_attachments_free(&h, &t->attached);
    vkt_own_metrics_free(t);
    vkt_free(&h, t->name);
    vkt_free(&h, t->summary);
    vkt_free(&h, t->graph_lines);
    vkt_free(&h, t->run_lines);
    vkt_free(&h, t->rate_lines);
    vkt_free(&h, t->weights);
    vkt_free(&h, t->best);
    vkt_free(&h, t->step_ms);
    vkt_free(&h, t->host_us);
    vkt_free(&h, t->sorted);
    vkt_replicas_disconnect(t);
    vkt_free(&h, t);
    *pt = NULL;
}

/* ---- reports ---- */

const vkt_epoch_record *vkt_trainer_history(const vkt_trainer *t, uint32_t *count)
{
    if (!t || !count) return NULL;
    *count = (uint32_t)t->history.n;
    return t->history.records;
}

vkt_result vkt_trainer_write_history(const vkt_trainer *t, const char *csv_path)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, csv_path);
    return vkt_history_write_csv(&t->host, t->history.records, t->history.n, csv_path);
}

vkt_result vkt_trainer_plot(const vkt_trainer *t, const char *path)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, path);
    const vkt_epoch_record *best = vkt_trainer_best(t), *records = t->history.records;
    return vkt_history_plot(&t->host, records, t->history.n, best ? (size_t)(best - records) : t->history.n,
                            t->params.model.name, path);
}

const char *vkt_trainer_summary(const vkt_trainer *t)
{
    if (!t) return NULL;
    return t->summary;
}

uint64_t vkt_trainer_seed(const vkt_trainer *t)
{
    if (!t) return 0;
    return t->params.seed;
}

uint64_t vkt_trainer_parameters(const vkt_trainer *t)
{
    if (!t) return 0;
    return vkt_nn_parameters(t->builder);
}

double vkt_trainer_best_accuracy(const vkt_trainer *t)
{
    if (!t) return 0;
    const size_t i = vkt_history_best(t->history.records, t->history.n);
    return i < t->history.n ? t->history.records[i].val_acc : NAN;
}

uint32_t vkt_trainer_best_epoch(const vkt_trainer *t)
{
    return t ? t->at.best_epoch : 0;
}

const vkt_epoch_record *vkt_trainer_best(const vkt_trainer *t)
{
    if (!t || !t->at.best_epoch || t->at.best_epoch > t->history.n) return NULL;
    return &t->history.records[t->at.best_epoch - 1];
}

vkt_fit_progress vkt_trainer_position(const vkt_trainer *t)
{
    if (!t) return (vkt_fit_progress){ .loss = NAN, .accuracy = NAN };
    const vkt_sums none = { 0 }, *s = t->diverged ? &none : &t->at.sums;
    return (vkt_fit_progress){ .epoch = t->at.epoch,
                               .batch = t->diverged ? 0 : t->at.batch, /* a diverged epoch begins again */
                               .batches = vkt_steps_of_epoch(t),
                               .loss = s->terms ? vkt_sums_loss(s) : NAN,
                               .accuracy = s->rows ? vkt_sums_accuracy(s, &t->head) : NAN };
}

bool vkt_trainer_streams(const vkt_trainer *t)
{
    if (!t) return false;
    return t->feed.streams;
}

void vkt_trainer_dist_stats(const vkt_trainer *t, vkt_dist_stats *out)
{
    if (t && out) *out = t->shards.x.stats;
}

uint64_t vkt_trainer_first_step_ns(const vkt_trainer *t)
{
    if (!t) return 0;
    return t->first_step_ns;
}

vkt_store *vkt_trainer_store(vkt_trainer *t)
{
    if (!t) return NULL;
    t->store_given = true;
    return t->store;
}

vkt_program *vkt_trainer_program(vkt_trainer *t)
{
    if (!t) return NULL;
    return t->program;
}
