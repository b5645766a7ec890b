/* Tests --devices, --shards and --mpi of vkt-lora on a tiny random model. The number of ranks changes no byte of a
 * file, and only one rank prints answers. */
#include "samples/lora.h"
#include "samples/mpi.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define TINY LORA_TINY, "--data", "data.jsonl", "--lr", "0.02", "--epochs", "1", "--lora-dropout", "0.1"
#define QUIET TINY, "-q", "--answer", "0"
#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_LORA_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* Writes 20 questions with answers of different lengths. */
static void write_data(const rig *r)
{
    char text[4096];
    size_t at = 0;
    for (int i = 0; i < 20; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{\"question\": \"what is %d?\", \"answer\": \"%.*sit is %d\"}\n", i, i % 5, "well", i);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "data.jsonl"), text, at), VKT_OK);
}

static void same(const rig *r, const char *a, const char *b)
{
    char path[512];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, a));
    rig_same_file(path, vkt_temp_dir_file(&r->dir, b));
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text++) n++;
    return n;
}

/* Returns the number behind `name` in the memory plan that the program prints. */
static double planned(const run *done, const char *name)
{
    const char *at = strstr(done->out, name);
    double x = 0;
    if (!at || sscanf(at + strlen(name), " %lf", &x) != 1) fail_msg("no number behind '%s' in: %s", name, done->out);
    return x;
}

static run output_of(const rig *r, const char *program, const char *const *env, const char *const *args)
{
    run done = program_finish(r, program_start(r, program, env, args));
    if (done.status != 0) fail_msg("%s%s", done.out, done.err);
    return done;
}

static void devices_change_no_byte(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    run one = output_of(r, VKT_LORA_PROGRAM, NULL,
                        (const char *const[]){ TINY, "--answer", "0", "--rank", "64", "--shards", "2", "--save-adapter",
                                               "a", "--checkpoint", "c", NULL });
    run two =
        output_of(r, VKT_LORA_PROGRAM, NULL,
                  (const char *const[]){ TINY, "--answer", "4", "--rank", "64", "--shards", "2", "--devices", "0,0",
                                         "--bucket", "64KiB", "--save-adapter", "b", "--checkpoint", "d", NULL });
    same(r, "a/adapter_model.safetensors", "b/adapter_model.safetensors");
    same(r, "c", "d");
    assert_non_null(strstr(two.out, "MiB on each device\n"));
    assert_non_null(strstr(two.out, "MiB for a step of 2 shards on each of 2 devices: model "));
    assert_int_equal(count(two.out, "answer before the training\n"), 1);
    assert_int_equal(count(two.out, "answer after the training\n"), 1);
    /* The plan counts the memory of one device. For each element of the adapters, the second run has five numbers: the
     * value, the gradient, two moments, and the sum of the gradients of all shards. The first run has both shards on
     * one device, and a sixth number: the sum of the gradients of the shards of this device. */
    const char adapters[] = "adapters with gradients and moments";
    assert_true(planned(&one, ": model") == planned(&two, ": model"));
    const double saved = planned(&one, adapters) - planned(&two, adapters), all = planned(&two, adapters);
    if (!(saved > all / 5 - 0.15 && saved < all / 5 + 0.15)) fail_msg("want %g less, got %g", all / 5, saved);
    /* On several devices, the validation before the training has a vkt_program of its own. Another vkt_program is for
     * the later validations. So the plan has twice the memory for validation. */
    const double each = planned(&one, "validation"), both = planned(&two, "validation");
    if (!(both > 2 * each - 0.15 && both < 2 * each + 0.15)) fail_msg("want %g for validation, got %g", 2 * each, both);
    run_forget(r, &one);
    run_forget(r, &two);
}

/* The training set has 18 rows, so the program reduces a batch of 64 to 16, a multiple of the 8 shards. The schedule
 * must then count steps of 16 rows, not of 64. So a run with --batch 64 must write the same adapter as a run with
 * --batch 16. */
static void a_large_batch_has_the_schedule_of_the_batch_that_is_used(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", QUIET, "--shards", "8", "--batch", "16", "--save-adapter", "a");
    EXPECT(r, 0, "", QUIET, "--shards", "8", "--batch", "64", "--save-adapter", "b");
    same(r, "a/adapter_model.safetensors", "b/adapter_model.safetensors");
}

/* Without --shards, a run on several devices chooses the number of shards: 4 for the default batch of 4. */
static void the_shards_divide_the_batch(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", QUIET, "--shards", "4", "--save-adapter", "a");
    EXPECT(r, 0, "", QUIET, "--devices", "0,0", "--save-adapter", "b");
    same(r, "a/adapter_model.safetensors", "b/adapter_model.safetensors");
}

static void a_run_of_one_device_goes_on_with_two(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
#define STEADY QUIET, "--shards", "2", "--schedule", "constant"
    EXPECT(r, 0, "", STEADY, "--epochs", "2", "--save-adapter", "a", "--checkpoint", "c");
    EXPECT(r, 0, "", STEADY, "--checkpoint", "d");
    EXPECT(r, 0, "", STEADY, "--epochs", "2", "--devices", "0,0", "--resume", "d", "--checkpoint", "d",
           "--save-adapter", "b");
    same(r, "a/adapter_model.safetensors", "b/adapter_model.safetensors");
    same(r, "c", "d");
}

static void numbers_that_do_not_fit_are_explained(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 1, "--batch: want a multiple of the 8 shards, got 3: --batch 8 would work, or another --shards", QUIET,
           "--devices", "0,0", "--batch", "3");
    EXPECT(r, 1, "--shards: want at most the 18 rows to train on, got 32", QUIET, "--shards", "32", "--batch", "64");
    EXPECT(r, 1, "want a number of shards that is a power of two", QUIET, "--shards", "3", "--batch", "6");
    EXPECT(r, 2, "--devices, --mpi: are for training", "--model", LORA_MODEL, "--prompt", "a", "--devices", "0,0");
    /* The message proposes a value of --batch, which counts the rows of all shards. A run with this batch does fit. */
    const char *const args[] = { QUIET, "--devices",      "0,0",  "--batch", "16", "--shards",
                                 "4",   "--memory-limit", "6MiB", NULL };
    run done = program_finish(r, program_start(r, VKT_LORA_PROGRAM, NULL, args));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "too little memory: a step with --batch 16 --context 48 needs "));
    const char *line = strstr(done.err, " --context 48 fits");
    unsigned batch = 0;
    char text[16];
    while (line && line > done.err && line[-1] != '\n') line--;
    line = line ? strstr(line, "--batch ") : NULL;
    assert_true(line && sscanf(line, "--batch %u", &batch) == 1 && batch < 16 && batch % 4 == 0);
    snprintf(text, sizeof text, "%u", batch);
    EXPECT(r, 0, "", QUIET, "--devices", "0,0", "--batch", text, "--shards", "4", "--memory-limit", "6MiB");
    run_forget(r, &done);
}

/* Only rank 0 answers, computes the perplexity and writes the adapter. */
static void processes_change_no_byte(void **state)
{
    rig *r = rig_of(state);
    if (!mpirun) {
        puts("SKIPPED: vkt-lora over MPI: it was not found when the build was configured");
        skip();
    }
    write_data(r);
    EXPECT(r, 0, "", QUIET, "--shards", "2", "--save-adapter", "a", "--checkpoint", "c");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), "what is 3?", 10), VKT_OK);
#define MPI "-n", "2", VKT_LORA_PROGRAM, "--mpi", TINY, "--shards", "2"
    run done = output_of(r, mpirun, mpi_env,
                         (const char *const[]){ MPI, "--answer", "4", "--save-adapter", "b", "--checkpoint", "d",
                                                "--perplexity", "text", NULL });
    same(r, "a/adapter_model.safetensors", "b/adapter_model.safetensors");
    same(r, "c", "d");
    assert_int_equal(count(done.out, "answer after the training\n"), 1);
    assert_int_equal(count(done.out, "\nperplexity "), 1);
    assert_int_equal(count(done.out, "wrote   b\n"), 1);
    run_forget(r, &done);
}

/* Runs two processes. One of them fails. Fails the test unless stderr contains `says` and `also`. The failed process
 * prints both texts. The test expects no text of the other process, because MPI may end that process before it prints
 * anything. */
static void fails(const rig *r, const char *says, const char *also, const char *const *args)
{
    run done = program_finish(r, program_start(r, mpirun, mpi_env, args));
    assert_int_not_equal(done.status, 0);
    if (!strstr(done.err, says) || !strstr(done.err, also) || strstr(done.err, "do not match"))
        fail_msg("want '%s' and '%s', got: %s", says, also, done.err);
    run_forget(r, &done);
}

static void an_error_of_a_process_ends_the_other_one(void **state)
{
    rig *r = rig_of(state);
    if (!mpirun) {
        puts("SKIPPED: vkt-lora over MPI: it was not found when the build was configured");
        skip();
    }
    write_data(r);
#define FAIL(says, also, ...) fails(r, says, also, (const char *const[]){ __VA_ARGS__, NULL })
#define ONE "-n", "1", VKT_LORA_PROGRAM, "--mpi", QUIET, "--shards", "2"
    FAIL("--save-adapter: none/deep cannot be made", "rank 0 has failed", MPI, "-q", "--save-adapter", "none/deep");
    FAIL("none/deep/h", "rank 0 has failed", MPI, "-q", "--history", "none/deep/h");
    FAIL("rank 1: no.jsonl", "", ONE, ":", ONE, "--data", "no.jsonl");
    EXPECT(r, 0, "", QUIET, "--shards", "2", "--checkpoint", "c");
    FAIL("rank 1: c is of another run", "", ONE, "--resume", "c", ":", ONE, "--resume", "c", "--rank", "4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(devices_change_no_byte),
        rig_test(a_large_batch_has_the_schedule_of_the_batch_that_is_used),
        rig_test(the_shards_divide_the_batch),
        rig_test(a_run_of_one_device_goes_on_with_two),
        rig_test(numbers_that_do_not_fit_are_explained),
        rig_test(processes_change_no_byte),
        rig_test(an_error_of_a_process_ends_the_other_one),
    };
    return cmocka_run_group_tests_name("vkt-lora on several devices", tests, NULL, NULL);
}
