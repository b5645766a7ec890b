/* Tests training on vectors, with targets or with the model's own loss. Also tests the learning rates of a schedule,
 * the monitor of early stopping, and two data sets that share one source. */
#include "train/rig.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "base/file.h"
#include "vktrain/table.h"

enum { ROWS = 300, FEATURES = 3, TARGETS = 2, EPOCHS = 12 };
static const float slope[TARGETS][FEATURES] = { { 1.5f, -2, 0.5f }, { 0, 1, -1 } }, shift[TARGETS] = { 3, -1 };

/* Makes a data set of y = slope * x + shift, where slope is a matrix. Each number of x is a multiple of 1/20. The class
 * is 1 if the first target is above 3, else 0. */
static vkt_dataset *plane(const rig *r, bool labels, bool targets)
{
    static float x[ROWS][FEATURES], y[ROWS][TARGETS];
    static uint32_t classes[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < FEATURES; k++) x[i][k] = (float)(i * (7 + 6 * k) % 41) / 20 - 1;
        for (uint32_t j = 0; j < TARGETS; j++) {
            y[i][j] = shift[j];
            for (uint32_t k = 0; k < FEATURES; k++) y[i][j] += slope[j][k] * x[i][k];
        }
        classes[i] = y[i][0] > 3;
    }
    const vkt_dataset_params p = { .rows = ROWS,
                                   .width = FEATURES,
                                   .type = VKT_ROW_F32,
                                   .labels = labels ? classes : NULL,
                                   .targets = targets ? &y[0][0] : NULL,
                                   .target_width = TARGETS };
    vkt_dataset *d = NULL;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, x, &d), VKT_OK);
    return d;
}

static vkt_tensor affine(vkt_builder *b, vkt_tensor x, void *user)
{
    const vkt_nn_linear_params p = { .out_features = *(const uint32_t *)user };
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &p);
}

static vkt_trainer_params params(const vkt_dataset *d, uint32_t *outputs)
{
    return (vkt_trainer_params){ .model = { .forward = affine, .user = outputs },
                                 .train = d,
                                 .batch = 64,
                                 .optimizer = { .kind = VKT_ADAM },
                                 .lr = 0.1f,
                                 .seed = 5 };
}

static vkt_tensor line(vkt_builder *b, vkt_tensor x, void *user)
{
    vkt_shape *shape = user;
    *shape = vkt_tensor_shape(vkt_builder_graph(b), x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = 1 });
}

/* The rows of a table become samples with one dimension. A linear layer accepts such samples without vkt_nn_flatten. An
 * evaluation refuses samples with another number of dimensions. */
static void rows_of_a_csv_file_are_vectors(void **state)
{
    rig *r = rig_of(state);
    static const char csv[] = "a,b,price\n1,2,5\n2,1,4\n0,1,2\n1,1,3\n3,1,5\n2,2,6\n";
    const char *price = "price", *path = vkt_temp_dir_file(&r->dir, "t.csv");
    vkt_dataset *d, *train, *test;
    vkt_shape shape = { 0 };
    assert_int_equal(vkt_file_write(&r->h, path, csv, sizeof csv - 1), VKT_OK);
    assert_int_equal(vkt_dataset_from_csv(&r->h, path, &(vkt_csv_params){ .targets = &price, .n_targets = 1 }, &d),
                     VKT_OK);
    assert_int_equal(vkt_dataset_sample_rank(d), 1);
    assert_int_equal(vkt_dataset_split(d, 0.3, 1, &train, &test), VKT_OK);
    const vkt_trainer_params p = { .model = { .forward = line, .user = &shape },
                                   .train = train,
                                   .validation = test,
                                   .batch = 4,
                                   .optimizer = { .kind = VKT_ADAM },
                                   .lr = 0.1f };
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    assert_true(shape.rank == 2 && shape.dim[1] == 2);
    double loss;
    assert_int_equal(vkt_trainer_evaluate(t, d, &loss, NULL), VKT_OK);
    vkt_dataset *image;
    const float x[2] = { 1, 2 }, y = 5;
    const vkt_dataset_params q = {
        .rows = 1, .channels = 1, .height = 1, .width = 2, .type = VKT_ROW_F32, .targets = &y
    };
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &q, x, &image), VKT_OK);
    assert_int_equal(vkt_dataset_sample_rank(image), 3);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_evaluate(t, image, &loss, NULL), VKT_E_SHAPE);
    vkt_test_error_contains("want samples of rank 1, as in training, got 3");
    vkt_dataset_destroy(&image);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&test);
    vkt_dataset_destroy(&d);
}

static void targets_are_learned_by_their_squared_error(void **state)
{
    rig *r = rig_of(state);
    uint32_t outputs = TARGETS;
    vkt_dataset *d = plane(r, false, true);
    vkt_trainer_params p = params(d, &outputs);
    p.validation = d;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 80 });
    uint32_t n;
    const vkt_epoch_record *e = vkt_trainer_history(t, &n);
    assert_true(e[n - 1].train_loss < 1e-3 && isnan(e[n - 1].train_acc) && isnan(e[n - 1].val_acc));
    float w[TARGETS][FEATURES], b[TARGETS], y[5][TARGETS];
    assert_int_equal(vkt_store_read(vkt_trainer_store(t), 0, VKT_PART_VALUE, &w[0][0]), VKT_OK);
    assert_int_equal(vkt_store_read(vkt_trainer_store(t), 1, VKT_PART_VALUE, b), VKT_OK);
    for (int j = 0; j < TARGETS; j++) {
        assert_true(fabsf(b[j] - shift[j]) < 0.02f);
        for (int k = 0; k < FEATURES; k++) assert_true(fabsf(w[j][k] - slope[j][k]) < 0.05f);
    }
    double loss, accuracy, sum = 0;
    assert_int_equal(vkt_trainer_evaluate(t, d, &loss, &accuracy), VKT_OK);
    assert_true(isnan(accuracy));
    for (uint32_t i = 0; i < ROWS; i += 5) {
        assert_int_equal(vkt_trainer_predict(t, d, i, 5, NULL, &y[0][0]), VKT_OK);
        const float *want = vkt_dataset_targets(d) + i * TARGETS;
        for (int k = 0; k < 5 * TARGETS; k++) sum += pow((double)(&y[0][0])[k] - (double)want[k], 2);
    }
    assert_true(fabs(sum / (ROWS * TARGETS) - loss) <= 1e-5 * loss + 1e-9);
    uint32_t class;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_predict(t, d, 0, 1, &class, NULL), VKT_E_STATE);
    vkt_test_error_contains("no number for each class");
    vkt_test_expect_errors(false);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&d);
}

/* Builds the model's own loss: twice the mean squared error. Checks that the trainer passes x, labels, targets and
 * `user`. */
static vkt_tensor twice_the_error(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                                  void *user)
{
    vkt_graph *g = vkt_builder_graph(b);
    assert_true(x.id && labels.id && targets.id && user);
    const vkt_tensor e = vkt_mse(g, y, targets);
    return vkt_add(g, e, e);
}

static void a_model_may_bring_its_loss(void **state)
{
    rig *r = rig_of(state);
    uint32_t outputs = TARGETS;
    vkt_dataset *both = plane(r, true, true), *bare = plane(r, true, false);
    vkt_trainer_params p = params(both, &outputs);
    p.model.loss = twice_the_error;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    double loss, accuracy, error = 0;
    float y[ROWS][TARGETS];
    uint32_t classes[ROWS], right = 0;
    assert_int_equal(vkt_trainer_evaluate(t, both, &loss, &accuracy), VKT_OK);
    assert_int_equal(vkt_trainer_predict(t, bare, 0, ROWS, classes, &y[0][0]), VKT_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        right += classes[i] == vkt_dataset_labels(both)[i];
        for (uint32_t j = 0; j < TARGETS; j++)
            error += pow((double)(y[i][j] - vkt_dataset_targets(both)[i * TARGETS + j]), 2) / (ROWS * TARGETS);
    }
    assert_true(fabs(2 * error - loss) <= 1e-5 * loss);
    assert_true(fabs((double)right / ROWS - accuracy) < 1e-9);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_evaluate(t, bare, &loss, NULL), VKT_E_ARG);
    vkt_test_error_contains("has no targets");
    vkt_test_expect_errors(false);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&both);
    vkt_dataset_destroy(&bare);
}

static void the_rate_follows_its_schedule(void **state)
{
    rig *r = rig_of(state);
    static const vkt_schedule schedules[] = {
        { .kind = VKT_SCHEDULE_COSINE, .total = EPOCHS * RIG_STEPS, .warmup = 3 },
        { .kind = VKT_SCHEDULE_STEP, .by_epoch = true, .step_size = 2, .gamma = 0.5 },
    };
    for (size_t i = 0; i < VKT_COUNT(schedules); i++) {
        vkt_trainer_params p = rig_params(r);
        p.schedule = schedules[i];
        vkt_trainer *t = rig_trainer(r, &p);
        rig_fit(t, &(vkt_fit_params){ .epochs = 4 });
        uint32_t n;
        const vkt_epoch_record *e = vkt_trainer_history(t, &n);
        for (uint64_t k = 0; k < n; k++)
            assert_true(e[k].lr == vkt_schedule_lr(&schedules[i], (double)p.lr, k * (i ? 1 : RIG_STEPS)));
    }
    /* From the second epoch on, the rate is too small to change a weight. If the device uses the rate of the current
     * epoch, the weights after three epochs equal the weights after one epoch. */
    vkt_trainer_params p = rig_params(r);
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_MULTI_STEP, .by_epoch = true, .n_milestones = 1, .gamma = 1e-30 };
    p.schedule.milestones[0] = 1;
    vkt_trainer *once = rig_trainer(r, &p), *often = rig_trainer(r, &p);
    rig_fit(once, &(vkt_fit_params){ .epochs = 1 });
    rig_fit(often, &(vkt_fit_params){ .epochs = 3, .monitor = VKT_MONITOR_TRAIN_LOSS });
    rig_same(once, often, VKT_PART_VALUE);
}

static void a_plateau_lowers_the_rate_and_survives_a_resume(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    vkt_trainer_params p = rig_params(r);
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_PLATEAU,
                                 .plateau = { .patience = 1, .factor = 0.5, .threshold = 0.5, .cooldown = 1 } };
    vkt_trainer *t = rig_trainer(r, &p), *first = rig_trainer(r, &p), *second = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = whole });
    uint32_t n;
    const vkt_epoch_record *e = vkt_trainer_history(t, &n);
    vkt_plateau_state s = { .scale = 1 };
    for (uint32_t k = 0; k < n; k++) {
        assert_true(e[k].lr == (double)p.lr * s.scale);
        vkt_plateau_next(&p.schedule.plateau, (double)p.lr, &s, e[k].val_loss);
    }
    assert_true(s.scale < 0.5);
    rig_fit(first, &(vkt_fit_params){ .epochs = EPOCHS / 2, .checkpoint = part });
    assert_int_equal(vkt_trainer_resume(second, part), VKT_OK);
    rig_fit(second, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part });
    rig_same_file(whole, part);
    p.schedule.plateau.patience = 2;
    vkt_trainer *other = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(other, part), VKT_E_STATE);
    vkt_test_expect_errors(false);
}

static void early_stopping_uses_the_named_monitor(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    for (int m = VKT_MONITOR_VAL_ACC; m <= VKT_MONITOR_TRAIN_LOSS; m++) {
        vkt_trainer *t = rig_trainer(r, &p);
        rig_fit(t, &(vkt_fit_params){ .epochs = 9, .patience = 2, .monitor = (vkt_monitor)m, .min_delta = 0.01 });
        uint32_t n, best = 0, since = 0;
        const vkt_epoch_record *e = vkt_trainer_history(t, &n);
        for (uint32_t k = 1; k < n; k++) {
            const bool better = m == VKT_MONITOR_VAL_ACC     ? e[k].val_acc > e[best].val_acc + 0.01
                                : m == VKT_MONITOR_VAL_LOSS  ? e[k].val_loss < e[best].val_loss - 0.01
                                : m == VKT_MONITOR_TRAIN_ACC ? e[k].train_acc > e[best].train_acc + 0.01
                                                             : e[k].train_loss < e[best].train_loss - 0.01;
            since = better ? 0 : since + 1;
            if (better) best = k;
            assert_true(since < 2 || k == n - 1);
        }
        assert_true(since == 2 || n == 9);
        assert_int_equal(t->at.best_epoch, best + 1);
    }
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .monitor = (vkt_monitor)77 }), VKT_E_ARG);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .min_delta = NAN }), VKT_E_ARG);
    vkt_test_expect_errors(false);
}

/* VKT_ZERO stands for 0 also in members whose default is 0. */
static void a_zero_may_be_named(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r), zero = p;
    zero.label_smoothing = VKT_ZERO;
    zero.ema_decay = VKT_ZERO;
    vkt_trainer *t = rig_trainer(r, &p), *same = rig_trainer(r, &zero);
    const char *lines, *same_lines;
    assert_int_equal(vkt_trainer_identity(t, &lines), VKT_OK);
    assert_int_equal(vkt_trainer_identity(same, &same_lines), VKT_OK);
    assert_string_equal(same_lines, lines);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(same, &(vkt_fit_params){ .epochs = 2, .min_delta = VKT_ZERO });
    rig_same(same, t, VKT_PART_VALUE);
}

/* A source that counts overlaps. An overlap is a fetch that begins while another fetch with the same worker index is
 * running. There must be no overlaps, because a source, for instance a decoder, may have scratch memory for each
 * worker. */
typedef struct busy_source {
    atomic_uint fetching[VKT_DATA_MAX_WORKERS], overlaps;
} busy_source;

static vkt_result fetch_slowly(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    busy_source *s = self;
    (void)pass;
    if (atomic_fetch_add(&s->fetching[worker], 1)) atomic_fetch_add(&s->overlaps, 1);
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    for (uint32_t i = 0; i < FEATURES; i++) ((float *)dst)[i] = (float)(row * (i + 3) % 17) / 17;
    atomic_fetch_sub(&s->fetching[worker], 1);
    return VKT_OK;
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

static void parts_of_one_source_are_not_fetched_together(void **state)
{
    rig *r = rig_of(state);
    static busy_source s;
    static uint32_t labels[ROWS];
    uint32_t outputs = 2, classes[2];
    const vkt_data_source source = { .fetch = fetch_slowly, .self = &s };
    vkt_dataset *all = NULL, *train = NULL, *check = NULL;
    const vkt_dataset_params d = {
        .rows = ROWS, .width = FEATURES, .type = VKT_ROW_F32, .labels = labels, .classes = 2
    };
    assert_int_equal(vkt_dataset_from_source(&r->h, &d, &source, &all), VKT_OK);
    assert_int_equal(vkt_dataset_split(all, 0.5, 1, &train, &check), VKT_OK);
    vkt_trainer_params p = params(train, &outputs);
    p.validation = check;
    p.batch = 16;
    p.stream = true;
    vkt_trainer *t = rig_trainer(r, &p);
    for (int i = 0; i < 3; i++) { /* each fit ends while workers fill batches that no step will use */
        rig_fit(t, &(vkt_fit_params){ .epochs = 9, .callbacks.stop = at_once });
        assert_int_equal(vkt_trainer_predict(t, check, 0, 2, classes, NULL), VKT_OK);
    }
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    assert_int_equal(atomic_load(&s.overlaps), 0);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&check);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(rows_of_a_csv_file_are_vectors),
        rig_test(targets_are_learned_by_their_squared_error),
        rig_test(a_model_may_bring_its_loss),
        rig_test(the_rate_follows_its_schedule),
        rig_test(a_plateau_lowers_the_rate_and_survives_a_resume),
        rig_test(early_stopping_uses_the_named_monitor),
        rig_test(a_zero_may_be_named),
        rig_test(parts_of_one_source_are_not_fetched_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
