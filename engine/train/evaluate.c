/* train/evaluate.c - the evaluation program. It computes loss and accuracy over a data set, and the model's outputs for
 * single samples. feed.h explains the feed and its order. */
#include "train/trainer.h"

bool vkt_splits_validation(const vkt_trainer *t)
{
    return t->shards.ranks > 1 && !t->params.n_metrics;
}

/* Divides the batches of a data set of `rows` samples among the ranks, and sets the batches of this rank in *e. Sets
 * *room to the largest number of samples that a rank gets. */
static vkt_result split(const vkt_trainer *t, uint32_t rows, uint32_t batch, vkt_evaluator *e, uint32_t *room)
{
    const uint32_t ranks = t->shards.ranks, batches = vkt_div_up(rows, batch);
    e->transport = t->params.dist.transport;
    e->own_batches = vkt_div_up(batches, ranks);
    e->first_batch = t->shards.rank * e->own_batches;
    e->results = vkt_alloc_array(&t->host, (size_t)ranks * e->own_batches, sizeof *e->results);
    *room = (uint32_t)VKT_MIN((uint64_t)e->own_batches * batch, rows);
    return e->results ? VKT_OK
                      : vkt_fail_nomem(&t->host, "results", (size_t)ranks * e->own_batches * sizeof *e->results);
}

/* Returns the number of samples in a batch of an evaluation. This is the trainer's batch size, but at most `rows`. With
 * shards, a batch of this size may be too large for one device. So with shards, the batch also has at most as many
 * samples as one run of a training step (vkt_shards.rows). But this limit is never below 128 samples. */
static uint32_t batch_of(const vkt_trainer *t, uint32_t rows)
{
    const uint32_t most = t->shards.count ? VKT_MAX(t->shards.rows, 128u) : UINT32_MAX;
    return VKT_MIN(VKT_MIN(t->params.batch, most), rows);
}

/* Makes the feed, the graph and the program. */
static vkt_result build(vkt_trainer *t, const vkt_dataset *data, bool splits, vkt_evaluator *e)
{
    const uint32_t rows = vkt_dataset_rows(data);
    vkt_feed_params p = { .batch = batch_of(t, rows), .stream = t->params.stream, .workers = t->params.workers };
    if (splits) VKT_TRY(split(t, rows, p.batch, e, &p.room));
    VKT_TRY(vkt_feed_create(t->ctx, &t->host, data, &p, &e->feed));
    vkt_feed_values v;
    VKT_TRY(vkt_evaluator_graph(t, &e->feed, &e->g, &v, &e->head, &e->classes));
    vkt_binding arrays[VKT_FEED_BINDINGS];
    const uint32_t n_arrays = vkt_feed_bind(&e->feed, v, arrays);
    const vkt_program_params pp = { .name = "evaluate",
                                    .arrays = arrays,
                                    .n_arrays = n_arrays,
                                    .precision = t->params.precision,
                                    .published = vkt_trainer_served(t) == VKT_PART_PUBLISHED };
    return vkt_program_create(t->ctx, e->g, t->store, &pp, &e->program);
}

vkt_result vkt_evaluator_create(vkt_trainer *t, const vkt_dataset *data, bool splits, vkt_evaluator **out)
{
    uint32_t have[3], want[3];
    vkt_dataset_sample_shape(data, have);
    vkt_dataset_sample_shape(t->params.train, want);
    *out = NULL;
    if (memcmp(have, want, sizeof have) != 0)
        return vkt_fail(&t->host, VKT_E_SHAPE, "evaluate: want samples of shape (%u,%u,%u), got (%u,%u,%u)", want[0],
                        want[1], want[2], have[0], have[1], have[2]);
    if (vkt_dataset_sample_rank(data) != vkt_dataset_sample_rank(t->params.train))
        return vkt_fail(&t->host, VKT_E_SHAPE, "evaluate: want samples of rank %u, as in training, got %u",
                        vkt_dataset_sample_rank(t->params.train), vkt_dataset_sample_rank(data));
    if (vkt_dataset_classes(data) > vkt_dataset_classes(t->params.train))
        return vkt_fail(&t->host, VKT_E_ARG, "evaluate: want %u classes at most, as in training, got %u",
                        vkt_dataset_classes(t->params.train), vkt_dataset_classes(data));
    vkt_evaluator *e = vkt_alloc(&t->host, sizeof *e);
    if (!e) return vkt_fail_nomem(&t->host, "an evaluation", sizeof *e);
    e->feed.h = &t->host;
    const vkt_result r = build(t, data, splits, e);
    if (r == VKT_OK)
        *out = e;
    else
        vkt_evaluator_destroy(t, &e);
    return r;
}

void vkt_evaluator_clear(vkt_evaluator *e)
{
    vkt_program_destroy(&e->program);
    vkt_feed_destroy(&e->feed);
    vkt_graph_destroy(&e->g);
    vkt_free(e->feed.h, e->outputs);
    vkt_free(e->feed.h, e->results);
}

void vkt_evaluator_destroy(vkt_trainer *t, vkt_evaluator **pe)
{
    vkt_evaluator *e = *pe;
    if (!e) return;
    vkt_evaluator_clear(e);
    vkt_free(&t->host, e);
    *pe = NULL;
}

static void add_result(vkt_sums *s, const vkt_batch_result *r)
{
    s->loss += (double)r->loss * r->terms;
    s->correct += (double)r->correct;
    s->rows += r->rows;
    s->terms += r->terms;
}

/* Waits for `run`, which computes batch number `batch` of this rank. Adds the result of this batch to *s. */
static vkt_result collect(vkt_evaluator *e, uint64_t run, uint64_t batch, vkt_sums *s)
{
    vkt_metrics m;
    VKT_TRY(vkt_program_metrics(e->program, run, &m));
    const vkt_batch_result result = { m.loss, m.correct, m.rows, m.terms };
    if (e->results) e->results[e->first_batch + batch] = result;
    add_result(s, &result);
    return VKT_OK;
}

/* Writes the indices of this rank's samples to the front of the feed's order, and sets the feed's length to their
 * number. */
static void choose_samples(vkt_evaluator *e)
{
    vkt_feed *f = &e->feed;
    vkt_order_identity(f->host_order, f->n);
    f->length = f->n;
    if (!e->transport) return;
    const uint64_t first = VKT_MIN((uint64_t)e->first_batch * f->batch, f->n);
    f->length = (uint32_t)VKT_MIN((uint64_t)e->own_batches * f->batch, f->n - first);
    memmove(f->host_order, f->host_order + first, f->length * sizeof *f->host_order);
}

/* Exchanges the results of all ranks, and sets *s to their sums. The results are added in the order of the batches. */
static vkt_result join(vkt_evaluator *e, vkt_sums *s)
{
    const uint32_t ranks = e->transport->ranks;
    VKT_TRY(vkt_all_gather(e->transport, e->results, e->own_batches * sizeof *e->results));
    *s = (vkt_sums){ 0 };
    for (uint32_t i = 0; i < ranks * e->own_batches; i++)
        if (e->results[i].rows) add_result(s, &e->results[i]);
    return VKT_OK;
}

/* Runs all batches of this rank, and adds their results to *s. */
static vkt_result run_batches(vkt_evaluator *e, const vkt_fit_callbacks *c, vkt_fit_progress *progress, vkt_sums *s)
{
    uint64_t run = 0, arrived = 0, submitted = 0;
    choose_samples(e);
    VKT_TRY(vkt_feed_start(&e->feed, 0, (vkt_pass){ 0 }));
    const uint64_t start = vkt_now_ns();
    /* A batch's result is read after the next two batches are submitted. The results of the last two batches are read
     * after the last batch is submitted. With metrics, each result is read before the next batch is submitted, because
     * that batch would overwrite the outputs. */
    const uint64_t late = e->metrics ? 1 : 3;
    for (;;) {
        vkt_batch b;
        VKT_TRY(vkt_feed_next(&e->feed, e->program, &b));
        if (b.rows) {
            const vkt_run batch = { .rows = b.rows, .first = b.first, .terms = b.terms };
            VKT_TRY(vkt_program_run(e->program, &batch, &run));
            vkt_feed_used(&e->feed, run);
            submitted++;
        }
        if (arrived == submitted) break;
        if (b.rows && submitted - arrived < late) continue;
        VKT_TRY(collect(e, run - (submitted - arrived - 1), arrived, s));
        arrived++;
        if (e->metrics) VKT_TRY(vkt_own_metrics_add(e, b.rows));
        if (!c || !c->on_batch) continue;
        progress->batch = (uint32_t)arrived;
        progress->batches = vkt_div_up(e->feed.length, e->feed.batch);
        progress->validating = true;
        progress->loss = vkt_sums_loss(s);
        progress->accuracy = vkt_sums_accuracy(s, &e->head);
        progress->seconds = (double)(vkt_now_ns() - start) * 1e-9;
        c->on_batch(c->user, progress);
    }
    return VKT_OK;
}

vkt_result vkt_evaluator_run(vkt_evaluator *e, const vkt_fit_callbacks *c, vkt_fit_progress *progress, double *loss,
                             double *accuracy)
{
    vkt_sums s = { 0 };
    vkt_result r = run_batches(e, c, progress, &s);
    vkt_feed_stop(&e->feed);
    if (r == VKT_OK && e->transport) r = join(e, &s);
    if (r != VKT_OK) return r;
    if (loss) *loss = vkt_sums_loss(&s);
    if (accuracy) *accuracy = vkt_sums_accuracy(&s, &e->head);
    return VKT_OK;
}

vkt_result vkt_trainer_evaluate(vkt_trainer *t, const vkt_dataset *data, double *loss, double *accuracy)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, data);
    VKT_TRY(vkt_head_check(t, data, "evaluate"));
    if (t->validation && t->validation->feed.data == data && !t->validation->transport)
        return vkt_evaluator_run(t->validation, NULL, NULL, loss, accuracy);
    vkt_evaluator *e;
    VKT_TRY(vkt_evaluator_create(t, data, false, &e));
    const vkt_result r = vkt_evaluator_run(e, NULL, NULL, loss, accuracy);
    vkt_evaluator_destroy(t, &e);
    return r;
}

/* Predicts samples [first, first + count), a batch at a time. `room` has space for a batch of outputs (K for each
 * sample) and for a batch of classes. */
static vkt_result predict(vkt_evaluator *e, uint32_t first, uint32_t count, uint32_t *classes, float *outputs, size_t K,
                          void *room)
{
    const uint32_t B = e->feed.batch;
    float *y = room;
    uint32_t *k = (uint32_t *)(void *)(y + B * K);
    /* Puts the wanted samples first in the order, because both kinds of feed, resident and streamed, begin at the start
     * of the order. */
    for (uint32_t i = 0; i < e->feed.n; i++) e->feed.host_order[i] = (first + i) % e->feed.n;
    e->feed.length = e->feed.n;
    VKT_TRY(vkt_feed_start(&e->feed, 0, (vkt_pass){ 0 }));
    for (uint32_t done = 0; done < count;) {
        vkt_batch b;
        uint64_t run;
        VKT_TRY(vkt_feed_next(&e->feed, e->program, &b));
        VKT_TRY(vkt_program_run(e->program, &(vkt_run){ .rows = b.rows, .first = b.first }, &run));
        vkt_feed_used(&e->feed, run);
        const uint32_t n = VKT_MIN(b.rows, count - done);
        if (classes) VKT_TRY(vkt_program_read(e->program, e->classes, k, (uint64_t)B * sizeof *k));
        if (outputs) VKT_TRY(vkt_program_read(e->program, e->head.y, y, (uint64_t)B * K * sizeof *y));
        if (classes) memcpy(classes + done, k, n * sizeof *k);
        if (outputs) memcpy(outputs + done * K, y, n * K * sizeof *y);
        done += n;
    }
    return VKT_OK;
}

static vkt_result check_rows(const vkt_host *h, const vkt_dataset *data, uint32_t first, uint32_t count)
{
    const uint32_t n = vkt_dataset_rows(data);
    if (first > n || count > n - first || count == 0)
        return vkt_fail(h, VKT_E_ARG, "predict: want rows within %u, got %u from %u on", n, count, first);
    return VKT_OK;
}

vkt_result vkt_evaluator_predict(const vkt_host *h, vkt_evaluator *e, uint32_t first, uint32_t count, uint32_t *classes,
                                 float *outputs)
{
    VKT_TRY(check_rows(h, e->feed.data, first, count));
    const vkt_shape s = vkt_tensor_shape(e->g, e->head.y);
    if (s.rank == 0 || s.dim[0] != e->feed.batch)
        return vkt_fail(h, VKT_E_STATE, "predict: the model's output has no row for each row of the batch");
    const size_t K = (size_t)(vkt_shape_elements(s) / s.dim[0]);
    void *room = vkt_alloc_array(h, e->feed.batch, (K + 1) * sizeof(float));
    if (!room) return vkt_fail_nomem(h, "outputs", (size_t)e->feed.batch * (K + 1) * sizeof(float));
    const vkt_result r = predict(e, first, count, classes, outputs, K, room);
    vkt_feed_stop(&e->feed);
    vkt_free(h, room);
    return r;
}

vkt_result vkt_trainer_predict(vkt_trainer *t, const vkt_dataset *data, uint32_t first, uint32_t count,
                               uint32_t *classes, float *outputs)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, data);
    VKT_TRY(check_rows(&t->host, data, first, count));
    if (classes && !t->head.classifies)
        return vkt_fail(&t->host, VKT_E_STATE, "predict: the model gives no number for each class");
    vkt_evaluator *own = NULL, *e = t->validation;
    if (!e || e->feed.data != data || e->transport) {
        VKT_TRY(vkt_evaluator_create(t, data, false, &own));
        e = own;
    }
    const vkt_result r = vkt_evaluator_predict(&t->host, e, first, count, classes, outputs);
    vkt_evaluator_destroy(t, &own);
    return r;
}
