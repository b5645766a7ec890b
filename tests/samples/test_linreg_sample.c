/* Tests the program vkt-linreg as its users run it. */
#include "samples/program.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_LINREG_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define FEW "--rows", "1003", "--epochs", "120"

/* Reads the weights from the report: t = w[0] * x0 + w[1] * x1 + w[2]. */
static void read_weights(const json_t *o, double w[3])
{
    const json_t *list = json_object_get(o, "weight");
    assert_int_equal(json_array_size(list), 2);
    for (size_t i = 0; i < 2; i++) w[i] = json_number_value(json_array_get(list, i));
    w[2] = json_number_of(o, "bias");
}

static void check_epochs(const json_t *o, double step, double last)
{
    const json_t *list = json_object_get(o, "epochs");
    double epoch = 0, loss = INFINITY;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        epoch = fmin(epoch + step, last);
        assert_true(json_number_of(e, "epoch") == epoch && json_number_of(e, "seconds") > 0);
        assert_true(json_number_of(e, "train_loss") <= loss * (1 + 1e-6));
        loss = json_number_of(e, "train_loss");
    }
    assert_true(epoch == last && loss == json_number_of(o, "final_loss"));
}

static void a_million_points_determine_their_plane(void **state)
{
    static const double truth[3] = { 2, -3, 10 };
    rig *r = rig_of(state);
    double w[3];
    run done = program_finish(
        r, program_start(r, VKT_LINREG_PROGRAM, NULL, (const char *const[]){ "--json", "report", NULL }));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain"));
    for (int i = 50; i <= 500; i += 50) {
        char line[32];
        snprintf(line, sizeof line, "epoch %d/500  loss ", i);
        assert_non_null(strstr(done.out, line));
    }
    run_forget(r, &done);
    json_t *report = program_json(r, "report");
    read_weights(report, w);
    for (int i = 0; i < 3; i++) assert_true(fabs(w[i] - truth[i]) < 0.02);
    assert_true(json_number_of(report, "final_loss") > 3.9 && json_number_of(report, "final_loss") < 4.1);
    check_epochs(report, 50, 500);
    assert_true(json_number_of(report, "parameters") == 3);
    assert_true(json_number_of(report, "ms_per_step") > 0 && json_number_of(report, "first_step_ms") > 0);
    assert_true(json_number_of(report, "peak_device_bytes") > 12e6);
    assert_true(json_is_string(json_object_get(report, "device")) && json_is_string(json_object_get(report, "driver")));
    json_decref(report);
}

static void weights_of(const rig *r, const char *name, double w[3])
{
    json_t *report = program_json(r, name);
    read_weights(report, w);
    check_epochs(report, 50, 120);
    json_decref(report);
}

static void options_reach_the_run(void **state)
{
    rig *r = rig_of(state);
    double first[3], again[3], other[3], sgd[3];
    EXPECT(r, 0, "", "-q", FEW, "--json", "first");
    EXPECT(r, 0, "", "-q", FEW, "--json", "again");
    EXPECT(r, 0, "", "-q", FEW, "--json", "other", "--seed", "2");
    EXPECT(r, 0, "", "-q", FEW, "--json", "sgd", "--optimizer", "sgd", "--lr", "0.05");
    assert_false(program_wrote(r, "out"));
    weights_of(r, "first", first);
    weights_of(r, "again", again);
    weights_of(r, "other", other);
    weights_of(r, "sgd", sgd);
    assert_memory_equal(first, again, sizeof first);
    for (int i = 0; i < 3; i++) assert_true(first[i] != other[i] && first[i] != sgd[i]);
    /* Gradient descent has converged. The estimate from 1003 points is within five standard deviations of the
     * true weights. */
    assert_true(fabs(sgd[0] - 2) < 0.11 && fabs(sgd[1] + 3) < 0.11 && fabs(sgd[2] - 10) < 0.32);
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "from 1 to 100000000", "--rows", "0");
    EXPECT(r, 2, "--rows", "--rows", "1e6");
    EXPECT(r, 2, "--epochs", "--epochs", "0");
    EXPECT(r, 2, "--batch", "--batch", "128");
    EXPECT(r, 2, "--data", "--data", ".");
    EXPECT(r, 2, "'stray'", "stray");
    EXPECT(r, 1, "no such card", FEW, "--device", "no such card");
    EXPECT(r, 1, "cap", FEW, "--memory-limit", "64K");
    EXPECT(r, 1, "--json: cannot open the directory of \"none/report\"", "-q", FEW, "--json", "none/report");
}

/* Runs the program with the trait tuning_pays, so that the device counts as one whose kernels should be measured.
 * `more_env` is one more change of the environment. The change "VKT_TRAITS" removes the trait again. */
static run run_as_gpu(const rig *r, const char *more_env, const char *const *args)
{
    char cache[300];
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", r->dir.path);
    const char *const env[] = { cache, "VKT_TRAITS=tuning_pays=1", more_env, NULL };
    const run done = program_finish(r, program_start(r, VKT_LINREG_PROGRAM, env, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    return done;
}
#define AS_GPU(r, more_env, ...) run_as_gpu(r, more_env, (const char *const[]){ FEW, __VA_ARGS__, NULL })

static unsigned hints_in(const char *text)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "hint    ")); at++) n++;
    return n;
}

/* Makes a tuning file in the rig's cache folder. The file has the name of the pipeline cache, but the suffix .tune. The
 * name contains the vector width, which the program may choose differently from this test. So this function looks for
 * the pipeline cache. */
static void tune(const rig *r)
{
    unsigned n = 0;
    DIR *caches = opendir(vkt_temp_dir_file(&r->dir, "vktrain"));
    assert_non_null(caches);
    for (const struct dirent *e; (e = readdir(caches));) {
        const char *suffix = strstr(e->d_name, ".bin");
        char name[300];
        if (!suffix) continue;
        snprintf(name, sizeof name, "vktrain/%.*s.tune", (int)(suffix - e->d_name), e->d_name);
        assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), "old", 3), VKT_OK);
        n++;
    }
    closedir(caches);
    assert_int_equal(n, 1);
}

/* One line, the hint, proposes to measure the kernels. It is between the lines of the device and of the data. There is
 * no hint with --quiet or VKT_NO_TUNING, on a device without the trait tuning_pays, or if there is a tuning file. */
static void tuning_is_offered_until_it_is_done(void **state)
{
    rig *r = rig_of(state);
    run done = AS_GPU(r, NULL, NULL);
    const char *device = strstr(done.out, "device  "), *hint = strstr(done.out, "\nhint    vkt-bench --tune all ");
    const char *data = strstr(done.out, "\ndata    ");
    assert_true(device && hint && data && device < hint && hint < data);
    assert_int_equal(hints_in(done.out), 1);
    assert_int_equal(hints_in(done.err), 0);
    run_forget(r, &done);
    done = AS_GPU(r, NULL, "--json", "-"); /* stdout has only the report; all other lines go to stderr */
    assert_int_equal(hints_in(done.out), 0);
    assert_int_equal(hints_in(done.err), 1);
    json_t *report = program_json(r, "out");
    json_decref(report);
    run_forget(r, &done);
    const char *const silent[][2] = { { NULL, "--quiet" }, { "VKT_NO_TUNING=1", NULL }, { "VKT_TRAITS", NULL } };
    for (size_t i = 0; i <= VKT_COUNT(silent); i++) { /* the last run has a tuning file */
        if (i == VKT_COUNT(silent)) tune(r);
        done = i < VKT_COUNT(silent) ? AS_GPU(r, silent[i][0], silent[i][1]) : AS_GPU(r, NULL, NULL);
        if (hints_in(done.out) + hints_in(done.err)) fail_msg("run %zu: %s%s", i, done.out, done.err);
        if (i == VKT_COUNT(silent)) assert_non_null(strstr(done.err, "ignored (vkt-bench --tune makes a new one)"));
        run_forget(r, &done);
    }
}

static void ctrl_c_ends_it(void **state)
{
    rig *r = rig_of(state);
    const char *const args[] = { "--rows", "1003", "--epochs", "4000000000", NULL };
    const pid_t child = program_start(r, VKT_LINREG_PROGRAM, NULL, args);
    for (int i = 0; i < 60000 && !program_wrote(r, "out"); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(kill(child, SIGINT), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 130);
    run_forget(r, &done);
}

static void help_names_its_options_and_no_others(void **state)
{
    rig *r = rig_of(state);
    run done = program_finish(r, program_start(r, VKT_LINREG_PROGRAM, NULL, (const char *const[]){ "--help", NULL }));
    assert_int_equal(done.status, 0);
    static const char *const options[] = { "--rows",   "--epochs",       "--lr",   "--optimizer", "--seed",
                                           "--device", "--list-devices", "--json", "--quiet",     "--memory-limit" };
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help does not name %s", options[i]);
    assert_non_null(strstr(done.out, "(500)"));
    static const char *const others[] = { "--batch", "--checkpoint", "--patience", "--data", "--stream" };
    for (size_t i = 0; i < VKT_COUNT(others); i++)
        if (strstr(done.out, others[i])) fail_msg("--help names %s", others[i]);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_million_points_determine_their_plane),
        rig_test(options_reach_the_run),
        rig_test(errors_are_explained),
        rig_test(tuning_is_offered_until_it_is_done),
        rig_test(ctrl_c_ends_it),
        rig_test(help_names_its_options_and_no_others),
    };
    return cmocka_run_group_tests_name("vkt-linreg", tests, NULL, NULL);
}
