/* Tests runs whose data cannot be read in epoch 1 or 2. Their status is 1. They write the results of the steps before
 * the error. If no step was made before the error, they do not write the files of --save and --json. */
#include "samples/program.h"

#include <unistd.h>

#include "bench/schema.h"

enum { WEIGHTS = 18 }; /* number of parameters of the program's network */

/* Runs the program with the variable VKT_TEST_FAIL (failing/main.c). `fail` is the assignment, for instance
 * "VKT_TEST_FAIL=2". Fails the test unless the program ends with status 1 and prints why its data could not be read. */
static run failed_run(const rig *r, const char *fail, const char *const *args)
{
    const char *const env[] = { fail, NULL };
    const run done = program_finish(r, program_start(r, VKT_FAILING_PROGRAM, env, args));
    if (done.status != 1) fail_msg("status %d; stderr '%s'", done.status, done.err);
    assert_non_null(strstr(done.err, "the disk was taken out"));
    return done;
}

/* Returns how often `what` is in the text. */
static uint32_t count_of(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

static bool same_weights(const rig *r, const char *a, const char *b)
{
    char *of_a = program_text(r, a), *of_b = program_text(r, b);
    uint64_t head_a, head_b;
    memcpy(&head_a, of_a, 8); /* a safetensors file has the length of its header, the header, the values */
    memcpy(&head_b, of_b, 8);
    const bool same = memcmp(of_a + 8 + head_a, of_b + 8 + head_b, WEIGHTS * sizeof(float)) == 0;
    vkt_free(&r->h, of_a);
    vkt_free(&r->h, of_b);
    return same;
}

static void an_error_in_epoch_2_leaves_the_results_of_epoch_1(void **state)
{
    rig *r = rig_of(state);
    run done = failed_run(
        r, "VKT_TEST_FAIL=2",
        (const char *const[]){ "--save", "w", "--json", "report", "--history", "h.csv", "--plot", "p.svg", NULL });
    assert_non_null(strstr(done.err, "ended by an error after 1 of 3 epochs: "));
    assert_non_null(strstr(done.err, "w has the weights so far"));
    assert_non_null(strstr(done.out, "best    epoch 1"));
    run_forget(r, &done);
    assert_true(program_wrote(r, "w") && program_wrote(r, "h.csv") && program_wrote(r, "p.svg"));
    char *history = program_text(r, "h.csv"), why[256];
    assert_int_equal(count_of(history, "\n"), 2); /* two lines: names, epoch 1 */
    vkt_free(&r->h, history);
    json_t *report = program_json(r, "report");
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, "report"), why)) fail_msg("%s", why);
    assert_non_null(json_string_value(json_object_get(report, "error")));
    assert_int_equal(json_array_size(json_object_get(report, "epochs")), 1);
    json_decref(report);
    program_expect(r, VKT_FAILING_PROGRAM, 0, "", /* the weights file is complete */
                   (const char *const[]){ "-q", "--load", "w", "--epochs", "1", NULL });
}

/* If the weights cannot be written at the end, an older file of the same name is not called the weights so far. */
static void an_older_file_is_not_the_weights_so_far(void **state)
{
    rig *r = rig_of(state);
    const char *const env[] = { "VKT_TEST_FAIL=2", "VKT_TEST_BLOCK=w", NULL };
    run done = program_finish(
        r, program_start(r, VKT_FAILING_PROGRAM, env, (const char *const[]){ "-q", "--save", "w", NULL }));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "ended by an error after 1 of 3 epochs: "));
    assert_null(strstr(done.err, "has the weights"));
    run_forget(r, &done);
    assert_true(access(vkt_temp_dir_file(&r->dir, "w"), F_OK) == 0); /* an older file is there */
}

/* The failed run keeps the checkpoint of epoch 1. The same command without the error continues from this checkpoint. It
 * writes the same weights as a run that had no error. */
static void a_folder_records_it_in_its_log_and_training_continues(void **state)
{
    rig *r = rig_of(state);
    const char *const args[] = { "-q", "--run", "d", NULL };
    run done = failed_run(r, "VKT_TEST_FAIL=2", args);
    assert_non_null(strstr(done.err, "ended by an error after 1 of 3 epochs: "));
    run_forget(r, &done);
    char *log = program_text(r, "d/log.txt");
    assert_non_null(strstr(log, "ended by an error: "));
    vkt_free(&r->h, log);
    program_expect(r, VKT_FAILING_PROGRAM, 0, "", args);
    program_expect(r, VKT_FAILING_PROGRAM, 0, "", (const char *const[]){ "-q", "--run", "whole", NULL });
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole/best.safetensors"),
                  vkt_temp_dir_file(&r->dir, "d/best.safetensors"));
}

/* Row 40 is in the last batch of epoch 2. --save writes the weights after the last complete step. A folder of --run
 * keeps the weights of the best epoch. */
static void an_error_within_an_epoch_saves_the_last_step_but_a_folder_keeps_the_best(void **state)
{
    rig *r = rig_of(state);
    program_expect(r, VKT_FAILING_PROGRAM, 0, "", (const char *const[]){ "-q", "--epochs", "1", "--save", "1", NULL });
    run done = failed_run(r, "VKT_TEST_FAIL=2 40", (const char *const[]){ "-q", "--save", "w", NULL });
    run_forget(r, &done);
    assert_true(program_wrote(r, "w") && !same_weights(r, "w", "1"));
    done = failed_run(r, "VKT_TEST_FAIL=2 40", (const char *const[]){ "-q", "--run", "d", NULL });
    assert_non_null(strstr(done.err, "d/best.safetensors has the weights of epoch 1, the best so far"));
    run_forget(r, &done);
    assert_true(same_weights(r, "d/best.safetensors", "1"));
}

static void an_error_before_the_first_step_keeps_older_files(void **state)
{
    rig *r = rig_of(state);
    run done = failed_run(r, "VKT_TEST_FAIL=1", (const char *const[]){ "--save", "w", "--json", "report", NULL });
    assert_null(strstr(done.err, "ended by an error"));
    run_forget(r, &done);
    assert_false(program_wrote(r, "w") || program_wrote(r, "report"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(an_error_in_epoch_2_leaves_the_results_of_epoch_1),
        rig_test(an_older_file_is_not_the_weights_so_far),
        rig_test(a_folder_records_it_in_its_log_and_training_continues),
        rig_test(an_error_within_an_epoch_saves_the_last_step_but_a_folder_keeps_the_best),
        rig_test(an_error_before_the_first_step_keeps_older_files),
    };
    return cmocka_run_group_tests_name("samples/failing_run", tests, NULL, NULL);
}
