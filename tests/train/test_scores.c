/* Tests vkt_trainer_scores, vkt_scores_json and vkt_likeliest. (test_metrics.c checks the formulas of the scores.) */
#include "train/rig.h"

#include <jansson.h>
#include <math.h>

#include "vktrain/metrics.h"

/* Builds a model with more outputs than the data have classes. */
static vkt_tensor wide_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = RIG_CLASSES + 2 });
}

static void expect_scores(const rig *r, vkt_trainer *t, uint32_t classes)
{
    vkt_scores *s;
    double accuracy;
    uint64_t sum = 0, right = 0;
    char *text;
    assert_int_equal(vkt_trainer_scores(t, r->check, &s), VKT_OK);
    assert_int_equal(vkt_trainer_evaluate(t, r->check, NULL, &accuracy), VKT_OK);
    assert_true(s->rows == RIG_CHECK_ROWS && s->classes == classes && s->names == NULL);
    for (uint32_t i = 0; i < classes * classes; i++) sum += s->counts[i];
    for (uint32_t k = 0; k < classes; k++) right += s->counts[k * classes + k];
    assert_true(sum == RIG_CHECK_ROWS && s->means.accuracy == (double)right / RIG_CHECK_ROWS);
    assert_true(fabs(s->means.accuracy - accuracy) < 1e-6 && s->top5 >= s->means.accuracy && s->top5 <= 1);
    assert_int_equal(vkt_scores_json(s, &text), VKT_OK);
    json_t *all = json_loads(text, 0, NULL), *one = json_array_get(json_object_get(all, "classes"), 3);
    assert_true(json_number_value(json_object_get(all, "accuracy")) == s->means.accuracy);
    assert_true(json_number_value(json_object_get(one, "recall")) == s->each[3].recall);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(json_object_get(all, "confusion"), 3), 3)),
                     s->counts[3 * classes + 3]);
    json_decref(all);
    vkt_text_release(&text);
    vkt_scores_destroy(&s);
    assert_null(s);
}

static void scores_are_those_of_the_predictions(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    expect_scores(r, t, RIG_CLASSES);
    p.model.forward = wide_forward;
    expect_scores(r, rig_trainer(r, &p), RIG_CLASSES + 2);
}

static void what_has_no_scores_is_refused(void **state)
{
    rig *r = rig_of(state);
    static const float numbers[RIG_SIDE * RIG_SIDE];
    const vkt_trainer_params p = rig_params(r);
    const vkt_dataset_params bare = {
        .rows = 1, .channels = 1, .height = RIG_SIDE, .width = RIG_SIDE, .type = VKT_ROW_F32
    };
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_dataset *d;
    vkt_scores *s;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &bare, numbers, &d), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_scores(t, d, &s), VKT_E_ARG);
    vkt_test_error_contains("labels");
    assert_null(s);
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result status = vkt_trainer_scores(t, r->check, &s);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_scores_destroy(&s);
    }
    vkt_test_expect_errors(false);
    vkt_dataset_destroy(&d);
}

static void probabilities_are_the_softmax(void **state)
{
    const float z[] = { 1, 3, 3, -1000 };
    uint32_t top[4];
    double p[4];
    (void)state;
    assert_int_equal(vkt_likeliest(z, 4, 3, top, p), 3);
    assert_true(top[0] == 1 && top[1] == 2 && top[2] == 0);
    assert_true(p[0] == p[1] && fabs(p[0] - 1 / (2 + exp(-2))) < 1e-15 && fabs(p[0] + p[1] + p[2] - 1) < 1e-15);
    assert_int_equal(vkt_likeliest(z, 4, 9, top, p), 4);
    assert_int_equal(vkt_likeliest(z, 4, 3, top, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(scores_are_those_of_the_predictions),
        rig_test(what_has_no_scores_is_refused),
        cmocka_unit_test(probabilities_are_the_softmax),
    };
    return cmocka_run_group_tests_name("scores", tests, NULL, NULL);
}
