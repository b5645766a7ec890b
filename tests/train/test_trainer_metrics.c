/* Compares training that uses class weights and label smoothing with the same training in PyTorch. Also tests metrics
 * of the caller (vkt_metric). */
#include "train/golden.h"

#include <math.h>

#include "base/file.h"
#include "vktrain/metrics.h"

enum { ROWS = 20, FEATURES = 5, CLASSES = 4, EPOCHS = 3 };

static vkt_tensor linear(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = CLASSES });
}

static float *floats(const vkt_safetensors *st, const char *name)
{
    uint64_t n;
    double *v = golden_numbers(st, name, &n);
    float *out = test_malloc(n * sizeof *out);
    for (uint64_t i = 0; i < n; i++) out[i] = (float)v[i];
    test_free(v);
    return out;
}

static vkt_dataset *golden_rows(const vkt_host *h, const vkt_safetensors *st)
{
    float *x = floats(st, "train_x"), *t = floats(st, "train_t");
    uint32_t labels[ROWS];
    for (int i = 0; i < ROWS; i++) labels[i] = (uint32_t)t[i];
    const vkt_dataset_params p = {
        .rows = ROWS, .width = FEATURES, .type = VKT_ROW_F32, .labels = labels, .classes = CLASSES
    };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, x, &d), VKT_OK);
    test_free(x);
    test_free(t);
    return d;
}

static void expect(const vkt_safetensors *st, const char *run, const char *what, const double *got, uint64_t n)
{
    char name[48];
    uint64_t have;
    snprintf(name, sizeof name, "%s_%s", run, what);
    double *want = golden_numbers(st, name, &have);
    assert_int_equal(have, n);
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 2e-6 * fmax(1, fabs(want[i]))))
            fail_msg("%s[%u]: want %.9g, got %.9g", name, (unsigned)i, want[i], got[i]);
    test_free(want);
}

/* Trains three epochs from the weights of the golden file, and compares weights and losses with PyTorch's. The batches
 * of an epoch have 8, 8 and 4 samples. */
static void train(rig *r, const vkt_safetensors *st, const char *run, const vkt_trainer_params *p)
{
    vkt_trainer *t = rig_trainer(r, p);
    vkt_store *s = vkt_trainer_store(t);
    float *w = floats(st, "w0"), *b = floats(st, "b0");
    assert_int_equal(vkt_store_write(s, 0, VKT_PART_VALUE, w), VKT_OK);
    assert_int_equal(vkt_store_write(s, 1, VKT_PART_VALUE, b), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = EPOCHS, .monitor = VKT_MONITOR_TRAIN_LOSS });
    assert_int_equal(vkt_store_read(s, 0, VKT_PART_VALUE, w), VKT_OK);
    assert_int_equal(vkt_store_read(s, 1, VKT_PART_VALUE, b), VKT_OK);
    double numbers[CLASSES * FEATURES];
    for (int i = 0; i < CLASSES * FEATURES; i++) numbers[i] = (double)w[i];
    expect(st, run, "w", numbers, CLASSES * FEATURES);
    for (int i = 0; i < CLASSES; i++) numbers[i] = (double)b[i];
    expect(st, run, "b", numbers, CLASSES);
    uint32_t n;
    const vkt_epoch_record *history = vkt_trainer_history(t, &n);
    assert_int_equal(n, EPOCHS);
    for (int i = 0; i < EPOCHS; i++) numbers[i] = history[i].train_loss;
    expect(st, run, "loss", numbers, EPOCHS);
    /* The validation loss uses neither class weights nor label smoothing. */
    expect(st, run, "val_loss", &history[EPOCHS - 1].val_loss, 1);
    double loss;
    assert_int_equal(vkt_trainer_evaluate(t, p->train, &loss, NULL), VKT_OK);
    expect(st, run, "val_loss", &loss, 1);
    test_free(w);
    test_free(b);
}

static void weights_and_smoothing_train_as_in_pytorch(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "metrics");
    vkt_dataset *d = golden_rows(&r->h, st);
    for (int run = 0; run < 3; run++) {
        static const char *const names[] = { "weighted", "smoothed", "both" };
        static const float smoothing[] = { 0, 0.1f, 0.2f };
        float *weights = floats(st, "class_weights");
        const vkt_trainer_params p = { .model = { .forward = linear },
                                       .train = d,
                                       .validation = d,
                                       .batch = 8,
                                       .lr = 0.5f,
                                       .no_shuffle = true,
                                       .class_weights = run == 1 ? NULL : weights,
                                       .label_smoothing = smoothing[run] };
        train(r, st, names[run], &p);
        test_free(weights);
    }
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&d);
    vkt_safetensors_close(&st);
}

static vkt_tensor own_loss(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                           void *user)
{
    (void)x;
    (void)targets;
    (void)user;
    return vkt_softmax_cross_entropy(vkt_builder_graph(b), y, labels);
}

static void wrong_weights_are_refused(void **state)
{
    rig *r = rig_of(state);
    static float weights[RIG_CLASSES];
    vkt_trainer *t;
    vkt_trainer_params p = rig_params(r);
    p.class_weights = weights;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG); /* all weights are 0 */
    weights[3] = 1;
    weights[4] = -1;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    weights[4] = NAN;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    weights[4] = 2;
    p.model.loss = own_loss;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    p = rig_params(r);
    p.label_smoothing = 1;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    p.label_smoothing = -0.1f;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
}

/* Only a run with the same class weights can resume a checkpoint. */
static void a_resumed_run_has_the_same_weights(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "checkpoint");
    float weights[RIG_CLASSES];
    for (int k = 0; k < RIG_CLASSES; k++) weights[k] = (float)(1 + k);
    vkt_trainer_params p = rig_params(r);
    p.class_weights = weights;
    p.label_smoothing = 0.1f;
    vkt_trainer *whole = rig_trainer(r, &p), *half = rig_trainer(r, &p), *rest = rig_trainer(r, &p);
    rig_fit(whole, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(half, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    weights[2] = 7;
    vkt_trainer *other = rig_trainer(r, &p);
    path = vkt_temp_dir_file(&r->dir, "checkpoint");
    assert_int_equal(vkt_trainer_resume(other, path), VKT_E_STATE);
    assert_int_equal(vkt_trainer_resume(rest, path), VKT_OK);
    rig_fit(rest, &(vkt_fit_params){ .epochs = 2 });
    rig_same(whole, rest, VKT_PART_VALUE);
}

/* ---- metrics of the caller ---- */

/* The state of a metric, the top-2 accuracy. rows: number of samples so far. right: number of samples whose label has
 * one of the two largest outputs. resets, adds: number of calls of `reset` and of `add`. */
typedef struct top2 {
    uint32_t rows, right, resets, adds;
    const vkt_dataset *data; /* `add` checks that it gets the labels in the order of this set */
} top2;

static void reset(void *user)
{
    top2 *m = user;
    m->rows = m->right = 0;
    m->resets++;
}

static void add(void *user, const vkt_metric_batch *b)
{
    top2 *m = user;
    assert_int_equal(b->width, RIG_CLASSES);
    assert_memory_equal(b->labels, vkt_dataset_labels(m->data) + m->rows, b->rows * sizeof *b->labels);
    assert_null(b->targets);
    m->right += (uint32_t)round(b->rows * vkt_top_k_accuracy(b->outputs, b->labels, b->rows, RIG_CLASSES, 2));
    m->rows += b->rows;
    m->adds++;
}

static double result(void *user)
{
    const top2 *m = user;
    return (double)m->right / m->rows;
}

static double falling(void *user)
{
    return 1 / (1 + (double)((const top2 *)user)->resets);
}

static void metrics_are_in_record_history_and_checkpoint(void **state)
{
    rig *r = rig_of(state);
    top2 m = { .data = r->check };
    const vkt_metric metrics[] = {
        { .name = "top2", .reset = reset, .add = add, .result = result, .user = &m },
        { .name = "again", .less_is_better = true, .add = add, .result = falling, .user = &(top2){ .data = r->check } },
    };
    for (int stream = 0; stream < 2; stream++) {
        m = (top2){ .data = r->check };
        vkt_trainer_params p = rig_params(r);
        p.metrics = metrics;
        p.n_metrics = 1;
        p.stream = stream;
        vkt_trainer *t = rig_trainer(r, &p);
        const char *path = vkt_temp_dir_file(&r->dir, "checkpoint");
        rig_fit(t, &(vkt_fit_params){ .epochs = 2, .checkpoint = path, .monitor = VKT_MONITOR_METRIC });
        assert_true(m.resets == 2 && m.adds == 2 * 3 && m.rows == RIG_CHECK_ROWS);
        uint32_t n;
        const vkt_epoch_record *h = vkt_trainer_history(t, &n);
        assert_true(n == 2 && h[1].n_metrics == 1 && strcmp(h[1].metrics[0].name, "top2") == 0);
        assert_true(h[1].metrics[0].value == result(&m) && h[1].metrics[0].value >= h[1].val_acc);
        static float outputs[RIG_CHECK_ROWS * RIG_CLASSES]; /* computed with the weights of the best epoch */
        assert_int_equal(vkt_trainer_predict(t, r->check, 0, RIG_CHECK_ROWS, NULL, outputs), VKT_OK);
        const double best = vkt_top_k_accuracy(outputs, vkt_dataset_labels(r->check), RIG_CHECK_ROWS, RIG_CLASSES, 2);
        assert_true(best == fmax(h[0].metrics[0].value, h[1].metrics[0].value));
        assert_int_equal(vkt_trainer_evaluate(t, r->check, NULL, NULL), VKT_OK);
        assert_int_equal(m.resets, 2); /* vkt_trainer_evaluate does not call the metrics */
        assert_int_equal(vkt_trainer_write_history(t, vkt_temp_dir_file(&r->dir, "h.csv")), VKT_OK);
        void *csv;
        size_t bytes;
        assert_int_equal(vkt_file_read(&r->h, vkt_temp_dir_file(&r->dir, "h.csv"), 4096, &csv, &bytes), VKT_OK);
        assert_non_null(strstr(csv, ",seconds,top2\n1,"));
        vkt_free(&r->h, csv);
        vkt_trainer *other = rig_trainer(r, &p);
        path = vkt_temp_dir_file(&r->dir, "checkpoint");
        assert_int_equal(vkt_trainer_resume(other, path), VKT_OK);
        const vkt_epoch_record *again = vkt_trainer_history(other, &n);
        assert_true(n == 2 && again[0].metrics[0].value == h[0].metrics[0].value);
        assert_string_equal(again[0].metrics[0].name, "top2");
        p.n_metrics = 2;
        vkt_trainer *two = rig_trainer(r, &p);
        assert_int_equal(vkt_trainer_resume(two, path), VKT_E_STATE);
    }
}

static void a_monitor_may_fall(void **state)
{
    rig *r = rig_of(state);
    top2 m = { .data = r->check };
    const vkt_metric metric = {
        .name = "falls", .less_is_better = true, .reset = reset, .add = add, .result = falling, .user = &m
    };
    vkt_trainer_params p = rig_params(r);
    p.metrics = &metric;
    p.n_metrics = 1;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 3, .patience = 1, .monitor = VKT_MONITOR_METRIC });
    assert_true(t->at.best_epoch == 3 && t->at.best == 0.25);
}

static double not_measured(void *user)
{
    (void)user;
    return NAN;
}

static void a_monitor_that_is_always_nan_is_reported(void **state)
{
    rig *r = rig_of(state);
    top2 m = { .data = r->check };
    const vkt_metric metric = { .name = "nothing", .add = add, .result = not_measured, .user = &m };
    vkt_trainer_params p = rig_params(r);
    p.metrics = &metric;
    p.n_metrics = 1;
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .monitor = VKT_MONITOR_METRIC }), VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("metric 'nothing', is NaN in each epoch with a finite loss");
}

static void wrong_metrics_are_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer *t;
    vkt_metric m[VKT_MAX_METRICS + 1];
    const char *const wrong[] = { NULL, "", "a b", "a,b", "val_acc", "a_name_of_thirty_two_letters_is_1" };
    vkt_trainer_params p = rig_params(r);
    for (size_t i = 0; i < VKT_COUNT(m); i++) m[i] = (vkt_metric){ .name = "m", .add = add, .result = result };
    p.metrics = m;
    p.n_metrics = VKT_MAX_METRICS + 1;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    p.n_metrics = 2;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG); /* two metrics have the same name */
    p.n_metrics = 1;
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        m[0].name = wrong[i];
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    }
    m[0] = (vkt_metric){ .name = "m", .result = result };
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    m[0] = (vkt_metric){ .name = "m", .add = add };
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    m[0].result = result;
    p.validation = NULL;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    p.validation = r->check;
    p.metrics = NULL;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    p.n_metrics = 0;
    t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .monitor = VKT_MONITOR_METRIC }), VKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(weights_and_smoothing_train_as_in_pytorch),
        rig_test(wrong_weights_are_refused),
        rig_test(a_resumed_run_has_the_same_weights),
        rig_test(metrics_are_in_record_history_and_checkpoint),
        rig_test(a_monitor_may_fall),
        rig_test(a_monitor_that_is_always_nan_is_reported),
        rig_test(wrong_metrics_are_refused),
    };
    return cmocka_run_group_tests_name("trainer_metrics", tests, NULL, NULL);
}
