/* Tests vktrain/card.h. A card is a text in a weights file. The card describes the samples of the training set. The
 * test makes a data set from the card, for a predictor. The outputs of this predictor differ from the outputs of the
 * trainer by less than 1e-5. tests/samples/test_predictions.c tests damaged cards. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

#include "vktrain/card.h"

static vkt_tensor one_number(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = 1 });
}

static void a_card_repeats_the_training_data(void **state)
{
    rig *r = rig_of(state);
    enum { BYTES = RIG_SIDE * RIG_SIDE };
    const double mean = 0.25, std = 0.125;
    uint32_t classes = RIG_CLASSES;
    float want[RIG_CLASSES], got[RIG_CLASSES];
    unsigned char row[BYTES];
    double list[2];
    char room[16], path[256];
    vkt_card *c;
    vkt_dataset *rows;
    vkt_predictor *q;
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "w"));
    assert_int_equal(vkt_dataset_normalize(r->train, &mean, &std), VKT_OK);
    assert_int_equal(vkt_dataset_normalize(r->check, &mean, &std), VKT_OK);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    assert_int_equal(vkt_trainer_attach_card(t, "rig", "{\"sizes\": [3, 4.5], \"note\": \"small\"}"), VKT_OK);
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
    assert_int_equal(vkt_trainer_predict(t, r->check, 5, 1, NULL, want), VKT_OK);

    assert_int_equal(vkt_card_read(&r->h, path, "rig", &c), VKT_OK);
    assert_true(c->chw[0] == 1 && c->chw[1] == RIG_SIDE && c->chw[2] == RIG_SIDE && c->classes == RIG_CLASSES);
    assert_true(c->mean[0] == mean && c->std[0] == std);
    assert_string_equal(vkt_card_class(c, 7, room), "7");
    assert_string_equal(vkt_card_text(c, "note"), "small");
    assert_true(!vkt_card_text(c, "sizes") && vkt_card_numbers(c, "note", 2, list) == UINT32_MAX);
    assert_true(vkt_card_numbers(c, "sizes", 2, list) == 2 && list[1] == 4.5);
    assert_true(vkt_card_numbers(c, "classes", 1, list) == 1 && list[0] == RIG_CLASSES);
    assert_int_equal(vkt_dataset_fetch(r->check, 5, row), VKT_OK);
    assert_int_equal(vkt_card_dataset(c, VKT_ROW_U8, row, 1, &rows), VKT_OK);
    vkt_card_destroy(&c);
    assert_null(c);
    const vkt_predictor_params pp = { .model = { .forward = rig_forward, .user = &classes },
                                      .data = rows,
                                      .weights = path };
    assert_int_equal(vkt_predictor_create(r->ctx, &pp, &q), VKT_OK);
    assert_int_equal(vkt_predictor_run(q, 0, 1, NULL, got), VKT_OK);
    for (int k = 0; k < RIG_CLASSES; k++) assert_true(fabsf(got[k] - want[k]) < 1e-5f);
    vkt_predictor_destroy(&q);
    vkt_dataset_destroy(&rows);
}

/* Samples that are vectors stay vectors: a network sees (B,W), not (B,1,1,W). */
static void a_card_of_vectors_makes_vectors(void **state)
{
    rig *r = rig_of(state);
    enum { ROWS = 32, W = RIG_SIDE * RIG_SIDE };
    static float x[ROWS][W], y[ROWS];
    for (int i = 0; i < ROWS; i++) x[i][i % W] = y[i] = (float)i / ROWS;
    char path[256];
    vkt_card *c;
    vkt_dataset *d, *rows;
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "w"));
    const vkt_dataset_params dp = { .rows = ROWS, .width = W, .type = VKT_ROW_F32, .targets = y, .target_width = 1 };
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &dp, x, &d), VKT_OK);
    const vkt_trainer_params p = { .model = { .forward = one_number }, .train = d, .batch = 8 };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    assert_int_equal(vkt_trainer_attach_card(t, "rig", NULL), VKT_OK);
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
    assert_int_equal(vkt_card_read(&r->h, path, "rig", &c), VKT_OK);
    assert_int_equal(vkt_card_dataset(c, VKT_ROW_F32, x, 2, &rows), VKT_OK);
    assert_int_equal(vkt_dataset_sample_rank(rows), 1);
    vkt_card_destroy(&c);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&rows);
    vkt_dataset_destroy(&d);
}

static void names_are_kept(void **state)
{
    vkt_card *c;
    char room[16];
    (void)state;
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_card_from_text(&h, "a text",
                                        "{\"sample\": [1,1,2], \"mean\": [0], \"deviation\": [1], \"classes\": 2, "
                                        "\"names\": [\"cat\", null]}",
                                        &c),
                     VKT_OK);
    assert_string_equal(vkt_card_class(c, 0, room), "cat");
    assert_string_equal(vkt_card_class(c, 1, room), "1");
    vkt_card_destroy(&c);
}

/* A sample may be a long vector. But a card is damaged if a size is 0 or above 2^32 - 1, or if the product of height
 * and width is above 2^40. */
static void a_card_may_have_long_samples(void **state)
{
    static const char *const samples[] = { "[1,1,2000000]", "[1,1,4294967295]", "[1,1,4294967296]",
                                           "[1,2000000,2000000]", "[1,1,0]" };
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(samples); i++) {
        char text[128];
        vkt_card *c;
        snprintf(text, sizeof text, "{\"sample\": %s, \"mean\": [0], \"deviation\": [1], \"classes\": 0}", samples[i]);
        vkt_test_expect_errors(i >= 2);
        assert_int_equal(vkt_card_from_text(&h, "a text", text, &c), i < 2 ? VKT_OK : VKT_E_FORMAT);
        vkt_test_expect_errors(false);
        if (i == 0) assert_int_equal(c->chw[2], 2000000);
        vkt_card_destroy(&c);
    }
}

static void wrong_cards_are_refused(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    char path[256];
    vkt_card *c;
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "w"));
    assert_int_equal(vkt_card_read(&r->h, path, "rig", &c), VKT_E_NOT_FOUND); /* no file: logs no message */
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
    assert_int_equal(vkt_card_read(&r->h, path, "rig", &c), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_trainer_attach_card(t, "rig", NULL), VKT_OK);
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_card_read(&r->h, path, "another", &c), VKT_E_FORMAT);
    vkt_test_error_contains("want weights of another, got those of rig");
    assert_null(c);
    assert_int_equal(vkt_trainer_attach_card(t, "rig", "[1]"), VKT_E_ARG);
    assert_int_equal(vkt_card_from_text(&r->h, "text", "{\"sample\": [1,1,2]}", &c), VKT_E_FORMAT);
    vkt_test_error_contains("text: its metadata of the data are damaged");
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result status = vkt_card_read(&r->h, path, "rig", &c);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_card_destroy(&c);
    }
    vkt_test_expect_errors(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_card_repeats_the_training_data), rig_test(a_card_of_vectors_makes_vectors),
        cmocka_unit_test(names_are_kept),           cmocka_unit_test(a_card_may_have_long_samples),
        rig_test(wrong_cards_are_refused),
    };
    return cmocka_run_group_tests_name("cards", tests, NULL, NULL);
}
