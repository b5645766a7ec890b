/* Tests that a trainer refuses to resume a checkpoint of another run. The error message names up to five differences. A
 * trainer that differs only in certain settings may resume the checkpoint. */
#include "train/rig.h"

#include <stdio.h>

#include "train/identity.h"

/* ---- a small transformer: heads and dropout change neither shapes nor names of parameters ---- */

typedef struct net {
    uint32_t heads;
    float eps, dropout;
    bool causal, twice, deeper;
} net;

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const net *n = user;
    vkt_graph *g = vkt_builder_graph(b);
    x = vkt_to_layout(g, x, VKT_ROWS);
    x = vkt_reshape(g, x, vkt_shape3(RIG_BATCH, RIG_SIDE, RIG_SIDE));
    x = vkt_nn_layer_norm(b, "norm", x, &(vkt_nn_norm_params){ .eps = n->eps });
    const vkt_nn_multi_head_attention_params p = { .heads = n->heads, .causal = n->causal };
    x = vkt_nn_multi_head_attention(b, "attn", x, &p);
    if (n->twice) x = vkt_relu(g, x);
    x = vkt_nn_dropout(b, x, n->dropout);
    x = vkt_nn_flatten(b, x);
    if (n->deeper) x = vkt_nn_linear(b, "more", x, &(vkt_nn_linear_params){ .out_features = 8 });
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static const net defaults = { .heads = 1, .eps = 1e-5f, .dropout = 0.1f, .causal = true };

static vkt_trainer_params params_of(const rig *r, net *n)
{
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .forward = forward, .user = n };
    return p;
}

/* Makes a trainer of p. Checks that the trainer refuses the checkpoint with this message. Destroys the trainer. */
static void refused(rig *r, const vkt_trainer_params *p, const char *path, const char *says)
{
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, p, &t), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_test_error_contains(says);
    vkt_test_error_contains("is of another run: ");
    assert_int_equal(t->at.t, 0);
    vkt_trainer_destroy(&t);
}

static void another_network_is_refused_by_the_op_and_its_attribute(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    net n = defaults;
    const vkt_trainer_params p = params_of(r, &n);
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = path });
    static const struct {
        net other;
        const char *says;
    } cases[] = {
        { { 3, 1e-5f, 0.1f, true, false, false }, "heads: checkpoint 1, this run 3" },
        { { 1, 1e-3f, 0.1f, true, false, false }, "norm eps: checkpoint 1e-05, this run 0.001" },
        { { 1, 1e-5f, 0.1f, false, false, false }, "causal: checkpoint 1, this run 0" },
        { { 1, 1e-5f, 0.2f, true, false, false }, "probability: checkpoint 0.1, this run 0.2" },
        /* A checkpoint stores p * 2^32 for a probability p. For 0.3 the stored text has an exponent: 1.28849024e+09. */
        { { 1, 1e-5f, 0.3f, true, false, false }, "probability: checkpoint 0.1, this run 0.3" },
        { { 1, 1e-5f, 0, true, false, false }, "dropout: checkpoint has 1, this run 0 of them" },
        { { 1, 1e-5f, 0.1f, true, true, false }, "relu: checkpoint has 0, this run 1 of them" },
        { { 1, 1e-5f, 0.1f, true, false, true }, "of another run: the network is another: linear: checkpoint has " },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        n = cases[i].other;
        refused(r, &p, path, cases[i].says);
    }
    n = defaults;
    assert_int_equal(vkt_trainer_resume(rig_trainer(r, &p), path), VKT_OK);
}

/* ---- settings ---- */

static void another_setting_is_refused_by_its_name(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    const vkt_trainer_params default_params = rig_params(r);
    vkt_trainer_params p = default_params;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = path });
    p.batch = 16;
    p.no_shuffle = true;
    refused(r, &p, path, "batch: checkpoint 32, this run 16; shuffle: checkpoint 1, this run 0");
    p = default_params;
    p.optimizer.beta1 = 0.8;
    refused(r, &p, path, "beta1: checkpoint 0, this run 0.8");
    p.optimizer = (vkt_optimizer){ .kind = VKT_ADAMW, .clip_norm = 0.1f };
    refused(r, &p, path, "optimizer: checkpoint adam, this run adamw; clip_norm: checkpoint 0, this run 0.1");
    p = default_params;
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_COSINE, .total = 9 };
    refused(r, &p, path, "schedule: checkpoint constant, this run cosine");
    p = default_params;
    p.validation = NULL;
    refused(r, &p, path, "validation set: checkpoint #");
}

static double same_rate(void *user, uint64_t t)
{
    (void)user;
    (void)t;
    return 1;
}

static void each_schedule_has_its_name(void **state)
{
    rig *r = rig_of(state);
    static const char *const names[VKT_SCHEDULE_KIND_COUNT] = { "constant",    "step",    "multi-step",
                                                                "exponential", "cosine",  "one-cycle",
                                                                "function",    "plateau", "warmup-cosine" };
    for (int kind = 0; kind < VKT_SCHEDULE_KIND_COUNT; kind++) {
        vkt_trainer_params p = rig_params(r);
        p.schedule = (vkt_schedule){ .kind = (vkt_schedule_kind)kind,
                                     .total = 9,
                                     .gamma = 0.5,
                                     .step_size = 3,
                                     .milestones = { 2 },
                                     .n_milestones = 1,
                                     .function = same_rate };
        vkt_trainer *t;
        const char *lines;
        char want[64];
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
        assert_int_equal(vkt_trainer_identity(t, &lines), VKT_OK);
        snprintf(want, sizeof want, "\nschedule=%s\n", names[kind]);
        if (!strstr(lines, want)) fail_msg("want %s in %s", want, lines);
        vkt_trainer_destroy(&t);
    }
}

/* Only MULTI_STEP reads the milestones, so other kinds accept any number of them. The text of the run has at most the
 * eight milestones that a schedule has room for. */
static void too_many_unused_milestones_do_no_harm(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c"), *lines;
    vkt_trainer_params p = rig_params(r);
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_COSINE, .total = 100, .n_milestones = 64 };
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_identity(t, &lines), VKT_OK);
    assert_non_null(strstr(lines, "\nschedule's milestones=0,0,0,0,0,0,0,0\n"));
    rig_fit(t, &(vkt_fit_params){ .checkpoint = path });
    assert_int_equal(vkt_trainer_resume(rig_trainer(r, &p), path), VKT_OK);
}

/* The run continues with another learning rate, a longer cosine, another number of workers, and data that are streamed
 * from the host. From there on, the learning rate follows the new schedule. */
static void what_may_change_does(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    vkt_trainer_params p = rig_params(r);
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_COSINE, .total = (uint64_t)2 * RIG_STEPS };
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = 2, .checkpoint = path });
    p.schedule.total *= 2;
    p.lr = 0.02f;
    p.stream = true;
    p.workers = 3;
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK);
    const vkt_fit_progress at = vkt_trainer_position(t);
    assert_true(at.epoch == 3 && at.batch == 0 && at.batches == RIG_STEPS);
    rig_fit(t, &(vkt_fit_params){ .epochs = 4 });
    uint32_t n;
    const vkt_epoch_record *e = vkt_trainer_history(t, &n);
    assert_int_equal(n, 4);
    assert_true(e[2].lr > 0.0099 && e[2].lr < 0.0101); /* half of 0.02, in the middle of the new cosine */
}

/* ---- data ---- */

static vkt_dataset *changed(const rig *r, const vkt_dataset *d, uint32_t pixel, uint32_t label)
{
    const size_t n = (size_t)vkt_dataset_rows(d) * vkt_dataset_row_bytes(d);
    unsigned char *x = test_malloc(n);
    uint32_t *labels = test_malloc(vkt_dataset_rows(d) * sizeof *labels);
    memcpy(x, vkt_dataset_features(d), n);
    memcpy(labels, vkt_dataset_labels(d), vkt_dataset_rows(d) * sizeof *labels);
    if (pixel) x[pixel] ^= 1;
    if (label) labels[label] = (labels[label] + 1) % RIG_CLASSES;
    const vkt_dataset_params p = { .rows = vkt_dataset_rows(d),
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .labels = labels,
                                   .classes = RIG_CLASSES,
                                   .mean = vkt_dataset_mean(d),
                                   .std = vkt_dataset_std(d) };
    vkt_dataset *out;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, x, &out), VKT_OK);
    test_free(x);
    test_free(labels);
    return out;
}

static void another_data_set_of_the_same_sizes_is_refused(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    const vkt_trainer_params default_params = rig_params(r);
    rig_fit(rig_trainer(r, &default_params), &(vkt_fit_params){ .checkpoint = path });
    vkt_dataset *sets[] = { changed(r, r->train, 0, 0), changed(r, r->train, 20001, 0), changed(r, r->train, 0, 77),
                            changed(r, r->check, 1, 0), changed(r, r->check, 0, 0) };
    vkt_trainer_params p = default_params;
    p.train = sets[0]; /* a copy of the same data */
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK);
    vkt_trainer_destroy(&t);
    p.train = sets[1];
    refused(r, &p, path, "another run: data: not the same as in the checkpoint");
    p.train = sets[2];
    refused(r, &p, path, "another run: labels: not the same as in the checkpoint");
    p.train = sets[0];
    p.validation = sets[3];
    refused(r, &p, path, "another run: validation set: not the same as in the checkpoint");
    const double mean = 0.31, std = 0.2;
    p.validation = sets[4];
    assert_int_equal(vkt_dataset_normalize(sets[4], &mean, &std), VKT_OK);
    refused(r, &p, path, "another run: validation set: not the same as in the checkpoint");
    p.validation = r->check;
    assert_int_equal(vkt_dataset_normalize(sets[0], &mean, &std), VKT_OK);
    refused(r, &p, path, "mean: checkpoint 0.3, this run 0.31");
    for (size_t i = 0; i < VKT_COUNT(sets); i++) vkt_dataset_destroy(&sets[i]);
}

/* Samples that come from a source are compared too, at most 256 of them. */
static void rows_that_are_made_are_compared_too(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    vkt_dataset *varying = rig_varying(r);
    vkt_trainer_params p = rig_params(r);
    p.train = varying;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = path });
    assert_int_equal(vkt_trainer_resume(rig_trainer(r, &p), path), VKT_OK);
    p.train = r->train; /* the same samples, but they do not vary */
    refused(r, &p, path, "another run: rows that vary: checkpoint 1, this run 0");
    vkt_dataset *before = r->train, *other;
    r->train = changed(r, before, 3, 0); /* pixel 3 is in the first sample, which is always compared */
    p.train = other = rig_varying(r);
    refused(r, &p, path, "another run: data: not the same as in the checkpoint");
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&other);
    vkt_dataset_destroy(&varying);
    vkt_dataset_destroy(&r->train);
    r->train = before;
}

/* ---- the comparison itself, on texts ---- */

static void compare(const char *was, const char *is, bool graphs, const char *want)
{
    const vkt_host h = vkt_test_host();
    vkt_differences d = { .text.h = &h };
    (graphs ? vkt_compare_graphs : vkt_compare_settings)(was, is, &d);
    assert_string_equal(vkt_differences_text(&d), want);
    vkt_text_free(&d.text);
}

static void texts_are_compared_name_by_name(void **state)
{
    (void)state;
    compare("a=1\nb=2\n", "a=1\nb=2\n", false, "");
    compare("a=1\nb=2\n", "a=1\nb=3\n", false, "b: checkpoint 2, this run 3");
    compare("a=1\nb=2\n", "b=2\n", false, "a: checkpoint 1, this run none");
    compare("b=2\n", "b=2\nc=\n", false, "c: checkpoint none, this run ");
    compare("b=2\na=1\n", "a=1\nb=2\n", false, "the settings are in another order");
    compare("d=#1\n", "d=#2\n", false, "d: not the same as in the checkpoint");
    compare("d=#1\n", "d=none\n", false, "d: checkpoint #1, this run none");
    compare("d=\033[2J\n", "d=1\n", false, "d: checkpoint ?[2J, this run 1");
    compare("", "a=1\n", false, "a: checkpoint none, this run 1");
    compare("a=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\n", "a=2\nb=2\nc=2\nd=2\ne=2\nf=2\ng=2\n", false,
            "a: checkpoint 1, this run 2; b: checkpoint 1, this run 2; c: checkpoint 1, this run 2; "
            "d: checkpoint 1, this run 2; e: checkpoint 1, this run 2; and 2 more");
    compare("relu relu.1 x=1\n", "relu relu.1 x=2\n", true, "relu.1 x: checkpoint 1, this run 2");
    compare("relu relu.1\n", "relu relu.1\nexp exp.2\n", true, "exp: checkpoint has 0, this run 1 of them");
    compare("relu relu.1\nexp exp.2\n", "exp exp.1\nrelu relu.2\n", true, "node 0: checkpoint relu, this run exp");
    compare("linear fc x=1\n", "linear fd x=1\n", true, "layer: checkpoint fc, this run fd");
    compare("gather_rows g n=1 scale=0 m=2\n", "gather_rows g n=1 scale=1 m=2\n", true, "");
    compare("gather_rows g n=1 scale=0\n", "gather_rows g n=2 scale=1\n", true,
            "g n: checkpoint 1, this run 2; g scale: checkpoint 0, this run 1");
    compare("relu r scale=0\n", "relu r scale=1\n", true, "r scale: checkpoint 0, this run 1");
    compare("\n\n", "garbage", true, "garbage: checkpoint has 0, this run 1 of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(another_network_is_refused_by_the_op_and_its_attribute),
        rig_test(another_setting_is_refused_by_its_name),
        rig_test(each_schedule_has_its_name),
        rig_test(too_many_unused_milestones_do_no_harm),
        rig_test(what_may_change_does),
        rig_test(another_data_set_of_the_same_sizes_is_refused),
        rig_test(rows_that_are_made_are_compared_too),
        cmocka_unit_test_setup_teardown(texts_are_compared_name_by_name, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("resume identity", tests, NULL, NULL);
}
