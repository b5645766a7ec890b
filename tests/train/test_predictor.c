/* Tests predictions without training. A predictor needs no trainer. With the same batch size, its outputs have the same
 * bits as the outputs of the trainer that saved the weights. */
#include "train/rig.h"

#include <math.h>

/* Returns the first `rows` samples of r->check, without labels. */
static vkt_dataset *bare_rows(const rig *r, uint32_t rows)
{
    const vkt_dataset_params p = { .rows = rows,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .mean = vkt_dataset_mean(r->check),
                                   .std = vkt_dataset_std(r->check) };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, vkt_dataset_features(r->check), &d), VKT_OK);
    return d;
}

static void the_bits_are_those_of_the_trainer(void **state)
{
    rig *r = rig_of(state);
    enum { FIRST = 3, COUNT = RIG_CHECK_ROWS - 5 };
    const char *weights = vkt_temp_dir_file(&r->dir, "weights");
    vkt_trainer_params tp = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &tp);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    assert_int_equal(vkt_trainer_save(t, weights), VKT_OK);
    static float want[COUNT * RIG_CLASSES], got[COUNT * RIG_CLASSES];
    static uint32_t want_classes[COUNT], classes[COUNT];
    assert_int_equal(vkt_trainer_predict(t, r->check, FIRST, COUNT, want_classes, want), VKT_OK);
    vkt_dataset *bare = bare_rows(r, RIG_CHECK_ROWS);
    for (int stream = 0; stream < 2; stream++) {
        vkt_predictor *p;
        const vkt_predictor_params pp = { .model = { .forward = rig_forward },
                                          .data = bare,
                                          .weights = vkt_temp_dir_file(&r->dir, "weights"),
                                          .batch = RIG_BATCH,
                                          .stream = stream };
        assert_int_equal(vkt_predictor_create(r->ctx, &pp, &p), VKT_OK);
        assert_int_equal(vkt_predictor_width(p), RIG_CLASSES);
        assert_false(vkt_store_has(vkt_predictor_store(p), VKT_PART_GRADIENT));
        for (int again = 0; again < 2; again++) {
            memset(got, 0xff, sizeof got);
            memset(classes, 0xff, sizeof classes);
            assert_int_equal(vkt_predictor_run(p, FIRST, COUNT, classes, got), VKT_OK);
            assert_memory_equal(got, want, sizeof want);
            assert_memory_equal(classes, want_classes, sizeof classes);
        }
        vkt_predictor_destroy(&p);
        assert_null(p);
    }
    vkt_dataset_destroy(&bare);
}

/* The data set has one sample, so a batch has one sample. */
static void a_single_row_is_enough(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *bare = bare_rows(r, 1);
    vkt_predictor *p;
    const vkt_predictor_params pp = { .model = { .forward = rig_forward }, .data = bare };
    assert_int_equal(vkt_predictor_create(r->ctx, &pp, &p), VKT_OK);
    float zeros[RIG_CLASSES] = { 1 };
    uint32_t class = 7;
    assert_int_equal(vkt_predictor_run(p, 0, 1, &class, zeros), VKT_OK); /* no weights file: all weights are 0 */
    for (int k = 0; k < RIG_CLASSES; k++) assert_true(zeros[k] == 0);
    assert_int_equal(class, 0);
    vkt_store *s = vkt_predictor_store(p);
    const float bias[RIG_CLASSES] = { [4] = 2 };
    for (uint32_t i = 0; i < vkt_store_count(s); i++)
        if (strcmp(vkt_store_name(s, i), "fc.bias") == 0)
            assert_int_equal(vkt_store_write(s, i, VKT_PART_VALUE, bias), VKT_OK);
    assert_int_equal(vkt_predictor_run(p, 0, 1, &class, NULL), VKT_OK);
    assert_int_equal(class, 4);
    vkt_predictor_destroy(&p);
    vkt_dataset_destroy(&bare);
}

static vkt_tensor as_it_is(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_relu(b, x);
}

static void what_does_not_fit_is_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_predictor *p = NULL;
    const vkt_predictor_params no_model = { .data = r->check }, no_data = { .model = { .forward = rig_forward } };
    assert_int_equal(vkt_predictor_create(r->ctx, NULL, &p), VKT_E_ARG);
    assert_int_equal(vkt_predictor_create(r->ctx, &no_model, &p), VKT_E_ARG);
    assert_int_equal(vkt_predictor_create(r->ctx, &no_data, &p), VKT_E_ARG);
    vkt_predictor_params pp = { .model = { .forward = rig_forward }, .data = r->check, .weights = "/none" };
    assert_int_equal(vkt_predictor_create(r->ctx, &pp, &p), VKT_E_NOT_FOUND);
    assert_null(p);
    pp = (vkt_predictor_params){ .model = { .forward = as_it_is }, .data = r->check };
    assert_int_equal(vkt_predictor_create(r->ctx, &pp, &p), VKT_OK); /* outputs (B,C,H,W) have no classes */
    assert_int_equal(vkt_predictor_width(p), RIG_SIDE * RIG_SIDE);
    uint32_t classes[2];
    assert_int_equal(vkt_predictor_run(p, 0, 2, classes, NULL), VKT_E_STATE);
    assert_int_equal(vkt_predictor_run(p, RIG_CHECK_ROWS, 1, NULL, NULL), VKT_E_ARG);
    assert_int_equal(vkt_predictor_run(p, 0, 0, NULL, NULL), VKT_E_ARG);
    float out[RIG_SIDE * RIG_SIDE];
    assert_int_equal(vkt_predictor_run(p, 1, 1, NULL, out), VKT_OK);
    const unsigned char *pixels = (const unsigned char *)vkt_dataset_features(r->check) + RIG_SIDE * RIG_SIDE;
    for (int i = 0; i < RIG_SIDE * RIG_SIDE; i++)
        assert_true(fabs((double)out[i] - fmax((pixels[i] / 255.0 - 0.3) / 0.2, 0)) < 1e-5);
    vkt_predictor_destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(the_bits_are_those_of_the_trainer),
        rig_test(a_single_row_is_enough),
        rig_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("predictor", tests, NULL, NULL);
}
