/* Tests vkt_trainer_settings, vkt_trainer_results, vkt_trainer_best and vkt_events_epoch. */
#include "train/rig.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "vktrain/events.h"

static json_t *parse(vkt_result (*write)(const vkt_trainer *t, char **json), const vkt_trainer *t)
{
    char *text = NULL;
    assert_int_equal(write(t, &text), VKT_OK);
    json_t *object = json_loads(text, 0, NULL);
    if (!object) fail_msg("no JSON: %s", text);
    vkt_text_release(&text);
    return object;
}

static double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v)) fail_msg("%s is no number", key);
    return json_number_value(v);
}

static void settings_have_defaults_filled_in(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.optimizer = (vkt_optimizer){ .kind = VKT_ADAM, .clip_norm = 2, .beta1 = VKT_ZERO };
    p.batch = 500; /* more than there are samples */
    p.precision = VKT_PRECISION_F16;
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_STEP, .step_size = 3 };
    json_t *s = parse(vkt_trainer_settings, rig_trainer(r, &p)), *o = json_object_get(s, "optimizer");
    assert_true(number(s, "batch") == 500 && number(s, "lr") == 0.01 && number(s, "ema_decay") == 0);
    assert_string_equal(json_string_value(json_object_get(s, "schedule")), "step");
    assert_string_equal(json_string_value(json_object_get(s, "precision")), "f16");
    assert_string_equal(json_string_value(json_object_get(o, "name")), "adam");
    assert_true(number(o, "beta1") == 0 && number(o, "beta2") == 0.999 && number(o, "clip_norm") == 2);
    assert_true(number(o, "micro_batches") == 1);
    json_decref(s);
}

static void results_are_those_of_the_history(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    json_t *before = parse(vkt_trainer_results, t);
    assert_null(vkt_trainer_best(t));
    assert_int_equal(json_array_size(json_object_get(before, "epochs")), 0);
    assert_true(json_is_null(json_object_get(before, "final_loss")));
    assert_true(json_is_null(json_object_get(before, "best_epoch")));
    json_decref(before);
    rig_fit(t, &(vkt_fit_params){ .epochs = 3 });
    uint32_t n;
    const vkt_epoch_record *h = vkt_trainer_history(t, &n), *best = vkt_trainer_best(t);
    json_t *s = parse(vkt_trainer_results, t), *epochs = json_object_get(s, "epochs");
    assert_true(best >= h && best < h + n && best->epoch == vkt_trainer_best_epoch(t));
    assert_int_equal(json_array_size(epochs), 3);
    for (size_t i = 0; i < 3; i++) assert_true(number(json_array_get(epochs, i), "train_loss") == h[i].train_loss);
    assert_true(number(s, "final_loss") == h[2].train_loss && number(s, "best_epoch") == best->epoch);
    assert_true(number(s, "parameters") == (double)vkt_trainer_parameters(t) && number(s, "ms_per_step") > 0);
    json_decref(s);
}

/* Each host allocation of vkt_trainer_settings fails once. Each time, the function must return VKT_E_NOMEM. */
static void no_memory_is_an_error(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    for (unsigned n = 1, failed = 1; failed; n++) {
        char *text = NULL;
        vkt_test_fail_allocation(n);
        const vkt_result status = vkt_trainer_settings(t, &text);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
        assert_true((text == NULL) == (status != VKT_OK));
        vkt_text_release(&text);
    }
    vkt_test_expect_errors(false);
}

/* Returns the bytes of the only event file of a folder, and how many in *n. Free the bytes with vkt_free. */
static char *events_of(const rig *r, const char *folder, size_t *n)
{
    char path[512] = "";
    void *bytes;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (strstr(e->d_name, "tfevents")) snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    closedir(d);
    assert_int_equal(vkt_file_read(&r->h, path, 1 << 20, &bytes, n), VKT_OK);
    return bytes;
}

static bool has(const char *bytes, size_t n, const char *tag)
{
    const size_t length = strlen(tag);
    for (size_t i = 0; i + length <= n; i++)
        if (memcmp(bytes + i, tag, length) == 0) return true;
    return false;
}

/* If a value of the record was not measured, it is NaN. The file must not have such a value. */
static void events_of_an_epoch_have_its_numbers(void **state)
{
    rig *r = rig_of(state);
    vkt_events *e = NULL;
    size_t n;
    const char *folder = r->dir.path;
    vkt_epoch_record record = { .epoch = 4, .train_loss = 0.5, .train_acc = NAN, .val_loss = 0.25, .val_acc = NAN };
    record.n_metrics = 2;
    record.metrics[0] = (vkt_metric_value){ "auc", 0.75 };
    record.metrics[1] = (vkt_metric_value){ "none", NAN };
    assert_int_equal(vkt_events_create(&r->h, folder, 0, &e), VKT_OK);
    assert_int_equal(vkt_events_epoch(e, &record), VKT_OK);
    char *bytes = events_of(r, folder, &n); /* vkt_events_epoch has flushed the file */
    assert_true(has(bytes, n, "loss/training") && has(bytes, n, "loss/validation") && has(bytes, n, "metric/auc"));
    assert_false(has(bytes, n, "accuracy/") || has(bytes, n, "metric/none"));
    vkt_free(&r->h, bytes);
    vkt_events_destroy(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(settings_have_defaults_filled_in),
        rig_test(results_are_those_of_the_history),
        rig_test(no_memory_is_an_error),
        rig_test(events_of_an_epoch_have_its_numbers),
    };
    return cmocka_run_group_tests_name("results of a trainer", tests, NULL, NULL);
}
