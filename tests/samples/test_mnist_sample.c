/* Tests the program vkt-mnist as its users run it: options, exit codes, files, data lookup. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "samples/program.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/schema.h"

enum { SIDE = 16, CLASSES = 4, TRAIN = 90, CHECK = 30 };

static pid_t start(const rig *r, const char *const *args)
{
    return program_start(r, VKT_MNIST_PROGRAM, NULL, args);
}

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_MNIST_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- a small data set for this test: 1x16x16, four classes ---- */

static void write_idx(const rig *r, const char *name, uint32_t n, uint32_t side, const unsigned char *bytes,
                      size_t size)
{
    unsigned char head[16] = { 0, 0, 8, side ? 3 : 1, 0, 0, (unsigned char)(n >> 8), (unsigned char)n };
    head[11] = head[15] = (unsigned char)side;
    const size_t head_bytes = side ? 16 : 8;
    unsigned char *all = test_malloc(head_bytes + size);
    memcpy(all, head, head_bytes);
    memcpy(all + head_bytes, bytes, size);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), all, head_bytes + size), VKT_OK);
    test_free(all);
}

static void write_part(const rig *r, const char *part, uint32_t n, uint32_t side)
{
    char name[64];
    unsigned char *pixels = test_calloc((size_t)n * side, side), labels[TRAIN];
    for (uint32_t i = 0; i < n; i++) {
        labels[i] = (unsigned char)(i % CLASSES);
        for (uint32_t y = 0; y < side; y++) /* in an image of class c, quarter c is bright */
            for (uint32_t x = 0; x < side; x++)
                if (y / (side / 2) * 2 + x / (side / 2) == labels[i])
                    pixels[(i * side + y) * side + x] = (unsigned char)(150 + (i * 37 + x * y) % 100);
    }
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    write_idx(r, name, n, side, pixels, (size_t)n * side * side);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    write_idx(r, name, n, 0, labels, n);
    test_free(pixels);
}

static void write_data(const rig *r, uint32_t side)
{
    write_part(r, "train", TRAIN, side);
    write_part(r, "t10k", CHECK, side);
}

#define SMALL "--data", ".", "--batch", "32"

/* ---- the report ---- */

static void check_epoch(const json_t *e, double epoch, bool timed)
{
    assert_int_equal(json_object_size(e), 7);
    assert_true(json_number_of(e, "epoch") == epoch && json_number_of(e, "lr") > 0 &&
                json_number_of(e, "train_loss") >= 0 && json_number_of(e, "val_loss") >= 0);
    assert_true(json_number_of(e, "train_acc") >= 0 && json_number_of(e, "train_acc") <= 1 &&
                json_number_of(e, "val_acc") <= 1);
    if (timed)
        assert_true(json_number_of(e, "seconds") > 0);
    else
        assert_true(json_is_null(json_object_get(e, "seconds")));
}

static void check_report(const json_t *o, size_t epochs, size_t resumed)
{
    const json_t *list = json_object_get(o, "epochs");
    assert_true(json_is_string(json_object_get(o, "device")) && json_is_string(json_object_get(o, "driver")));
    assert_true(json_number_of(o, "parameters") == 320 + 51264 + 2080 + 33 * CLASSES);
    assert_true(json_number_of(o, "ms_per_step") > 0 && json_number_of(o, "first_step_ms") > 0 &&
                json_number_of(o, "peak_device_bytes") > 1e6);
    assert_true(json_number_of(o, "host_us_per_step") > 0);
    assert_true(json_number_of(o, "data_wait_us_per_step") >= 0);
    assert_int_equal(json_array_size(list), epochs);
    double best = 0;
    for (size_t i = 0; i < epochs; i++) {
        check_epoch(json_array_get(list, i), (double)(i + 1), i >= resumed);
        best = fmax(best, json_number_of(json_array_get(list, i), "val_acc"));
    }
    assert_true(json_number_of(o, "best_val_acc") == best);
    const json_t *of_best = json_array_get(list, (size_t)json_number_of(o, "best_epoch") - 1);
    assert_true(json_number_of(of_best, "val_acc") == best);
    assert_true(json_number_of(o, "test_accuracy") == best &&
                json_number_of(o, "test_loss") == json_number_of(of_best, "val_loss"));
}

/* Checks the data and the settings in the report. */
static void check_run(const rig *r, const json_t *o)
{
    static const char *const arguments[] = { SMALL, "--epochs" };
    const json_t *data = json_object_get(o, "data"), *optimizer = json_object_get(o, "optimizer");
    char why[256];
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, "report"), why)) fail_msg("%s", why);
    for (size_t i = 0; i < VKT_COUNT(arguments); i++)
        assert_string_equal(json_string_value(json_array_get(json_object_get(o, "arguments"), i)), arguments[i]);
    assert_string_equal(json_string_value(json_object_get(data, "source")), ".");
    assert_true(json_is_false(json_object_get(data, "made_up")));
    assert_true(json_number_of(data, "train") == TRAIN && json_number_of(data, "validation") == CHECK &&
                json_number_of(data, "test") == CHECK && json_is_true(json_object_get(data, "test_is_validation")));
    assert_true(json_number_of(o, "batch") == 32 && json_number_of(o, "seed") == 5 && json_number_of(o, "lr") == 0.003);
    assert_string_equal(json_string_value(json_object_get(optimizer, "name")), "adam");
    assert_true(json_number_of(optimizer, "beta1") == 0.9 && json_number_of(optimizer, "eps") == 1e-8);
    assert_true(json_is_null(json_object_get(o, "stopped_by")));
}

/* ---- tests ---- */

static void a_run_writes_what_it_was_asked_for(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    const char *const args[] = { SMALL,    "--epochs",  "3",         "--checkpoint", "c",      "--save", "w",
                                 "--json", "report",    "--history", "h.csv",        "--plot", "p.svg",  "--lr",
                                 "0.003",  "--profile", "trace",     "--seed",       "5",      NULL };
    run done = program_finish(r, start(r, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain")); /* no warning of the library; a sanitizer may print lines */
    assert_non_null(strstr(done.out, "90 to train on, 30 to validate on, 1x16x16, 4 classes"));
    assert_non_null(strstr(done.out, "conv2 (Conv2d)"));
    assert_non_null(strstr(done.out, "epoch 3/3"));
    run_forget(r, &done);
    json_t *report = program_json(r, "report"), *trace = program_json(r, "trace");
    check_report(report, 3, 0);
    check_run(r, report);
    assert_true(json_array_size(json_object_get(trace, "traceEvents")) > 20);
    assert_true(json_number_of(json_object_get(trace, "otherData"), "host_us_per_step") > 0);
    assert_true(json_number_of(json_object_get(trace, "otherData"), "data_wait_us_per_step") == 0);
    json_decref(report);
    json_decref(trace);
    assert_true(program_wrote(r, "c") && program_wrote(r, "w") && program_wrote(r, "h.csv") &&
                program_wrote(r, "p.svg"));
    assert_int_equal(vkt_temp_dir_count(&r->dir), 4 + 2 + 6); /* 4 data files, out and err, 6 results; no other file */
}

/* The file classes.txt has the names of the classes. The program prints a control sequence in a name as plain text. A
 * file with too few names is an error. */
static void classes_have_the_names_of_the_folder(void **state)
{
    rig *r = rig_of(state);
    static const char names[] = "Pullover\nAnkle boot\nT-shirt/top\nBag\x1b[2J\n";
    write_data(r, SIDE);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "classes.txt"), names, sizeof names - 1), VKT_OK);
    run done = program_finish(r, start(r, (const char *const[]){ SMALL, "--epochs", "1", NULL }));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "Pullover"));
    assert_non_null(strstr(done.out, "Ankle boot"));
    assert_non_null(strstr(done.out, "Bag\\x1b[2J"));
    assert_null(strstr(done.out, "Bag\x1b"));
    run_forget(r, &done);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "classes.txt"), names, 9), VKT_OK);
    EXPECT(r, 1, "want a class below 1", SMALL, "-q", "--epochs", "1");
}

static void a_resumed_run_reports_all_epochs_and_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--checkpoint", "whole", "--ema", "0.9", "--seed", "3");
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--checkpoint", "c", "--stream", "--ema", "0.9", "--seed", "3");
    EXPECT(r, 1, "is of another run: ema_decay: checkpoint 0.9, this run 0; use the checkpoint's settings", SMALL, "-q",
           "--epochs", "3", "--resume", "c");
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--resume", "c", "--checkpoint", "c", "--json", "report", "--ema",
           "0.9");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "c"));
    json_t *report = program_json(r, "report");
    check_report(report, 3, 1);
    assert_true(json_number_of(report, "seed") == 3); /* the seed of the checkpoint */
    json_decref(report);
    assert_false(program_wrote(r, "out")); /* --quiet */
    EXPECT(r, 1, "batch: checkpoint 32, this run 16", SMALL, "--batch", "16", "--resume", "c");
    EXPECT(r, 1, "vkt-mnist: --resume: cannot open \"none\"", SMALL, "--resume", "none");
}

static void activations_are_stored_as_asked_for(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    static const char *const names[] = { "f32", "f16", "bf16", "f32-split" };
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--precision", names[i], "--json", "report");
        json_t *report = program_json(r, "report");
        check_report(report, 1, 0);
        assert_string_equal(json_string_value(json_object_get(report, "precision")), names[i]);
        assert_true(json_number_of(report, "skipped_steps") >= 0);
        json_decref(report);
    }
}

/* ---- runs that go wrong ---- */

static void a_diverged_run_fails_and_saves_nothing(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    EXPECT(r, 1, "the loss is not a finite number, at learning rate 1e+30", SMALL, "-q", "--lr", "1e30", "--epochs",
           "2", "--save", "w", "--json", "report");
    run done = program_finish(r, start(r, (const char *const[]){ SMALL, "--lr", "1e30", "--save", "w", NULL }));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "try a smaller --lr (it was 1e+30), --clip-norm 1; --allow-nonfinite"));
    assert_non_null(strstr(done.err, "w is not written: no epoch had a finite loss"));
    run_forget(r, &done);
    assert_false(program_wrote(r, "w"));
    json_t *report = program_json(r, "report");
    assert_int_equal(json_array_size(json_object_get(report, "epochs")), 0);
    assert_true(json_is_null(json_object_get(report, "best_val_acc")));
    json_decref(report);

    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--lr", "0.003", "--checkpoint", "c", "--save", "good");
    EXPECT(r, 1, "epoch 2", SMALL, "-q", "--epochs", "3", "--lr", "1e30", "--resume", "c", "--checkpoint", "c",
           "--save", "w");
    /* w has the weights of the best epoch, which is epoch 1. */
    rig_same_file(vkt_temp_dir_file(&r->dir, "w"), vkt_temp_dir_file(&r->dir, "good"));
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "2", "--lr", "0.003", "--resume", "c");
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--lr", "1e30", "--resume", "c", "--allow-nonfinite");
}

/* The size limit for files (ulimit -f) is above the size of the weights file and below the size of the checkpoint. */
static void a_checkpoint_that_cannot_be_written_costs_nothing_else(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    const char *const args[] = { "-c",
                                 "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\"",
                                 VKT_MNIST_PROGRAM,
                                 SMALL,
                                 "--epochs",
                                 "2",
                                 "--checkpoint",
                                 "c",
                                 "--save",
                                 "w",
                                 "--json",
                                 "report",
                                 NULL };
    run done = program_finish(r, program_start(r, "/bin/sh", NULL, args));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "cannot write"));
    assert_non_null(strstr(done.err, "training goes on without this checkpoint"));
    assert_non_null(strstr(done.out, "epoch 2/2"));
    assert_non_null(strstr(done.out, "best    epoch"));
    run_forget(r, &done);
    assert_true(program_wrote(r, "w") && !program_wrote(r, "c"));
    json_t *report = program_json(r, "report");
    assert_int_equal(json_array_size(json_object_get(report, "epochs")), 2);
    json_decref(report);
}

static void a_resume_prints_where_it_continues_and_which_run_it_is(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "2", "--checkpoint", "c", "--monitor", "loss");
    const char *const on[] = { SMALL, "--epochs", "4", "--resume", "c", "--lr", "0.002", "--monitor", "loss", NULL };
    run done = program_finish(r, start(r, on));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "resume  c: goes on with epoch 3 of 4\n"));
    assert_non_null(strstr(done.out, ": validation loss "));
    assert_non_null(strstr(done.err, "learning rate: checkpoint 0.01, this run 0.002"));
    run_forget(r, &done);
    done = program_finish(r, start(r, (const char *const[]){ SMALL, "--epochs", "2", "--resume", "c", NULL }));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "resume  c: 2 epochs are done; a larger --epochs goes on\n"));
    assert_non_null(strstr(done.err, "the monitor was val_loss and is val_acc"));
    run_forget(r, &done);
    unsigned char *images;
    /* Makes the same data set except for one pixel. */
    size_t n;
    const char *path = vkt_temp_dir_file(&r->dir, "train-images-idx3-ubyte");
    assert_int_equal(vkt_file_read(&r->h, path, 1u << 20, (void **)&images, &n), VKT_OK);
    images[n - 1] ^= 1;
    assert_int_equal(vkt_file_write(&r->h, path, images, n), VKT_OK);
    vkt_free(&r->h, images);
    EXPECT(r, 1, "c is of another run: attached text \"data\": not the same as in the checkpoint; data: not the same",
           SMALL, "--epochs", "4", "--resume", "c");
}

/* Checks the learning rates of the first n epochs in the file "history" of the last run. */
static void expect_rates(const rig *r, const double *rates, int n)
{
    char *text = program_text(r, "history"), *line = strchr(text, '\n');
    for (int i = 0; i < n; i++) {
        double lr, numbers[4];
        unsigned epoch;
        assert_non_null(line);
        assert_int_equal(
            sscanf(line, "\n%u,%lf,%lf,%lf,%lf,%lf", &epoch, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &lr),
            6);
        assert_true(fabs(lr - rates[i]) <= 1e-6 * rates[i]);
        line = strchr(line + 1, '\n');
    }
    vkt_free(&r->h, text);
}

static void the_optimizer_and_its_schedule_are_options(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--lr", "0.1", "--clip-norm", "1", "--micro-batches", "2",
           "--weight-decay", "0.01", "--optimizer", "momentum", "--schedule", "step=2", "--history", "history",
           "--checkpoint", "c");
    expect_rates(r, (const double[]){ 0.1, 0.1, 0.01 }, 3);
    vkt_test_expect_errors(true); /* this run lacks settings of the checkpoint */
    EXPECT(r, 1, "clip_norm: checkpoint 1, this run 0", SMALL, "-q", "--epochs", "4", "--optimizer", "momentum",
           "--resume", "c");
    vkt_test_expect_errors(false);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "2", "--lr", "0.1", "--schedule", "cosine", "--history", "history");
    expect_rates(r, (const double[]){ 0.1, 0.05 }, 2); /* epoch 2 begins in the middle of the cosine schedule */
}

static void an_interrupted_run_leaves_a_checkpoint(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    const char *const args[] = { SMALL, "--epochs", "100000", "--checkpoint", "c", "--checkpoint-every", "1", NULL };
    const pid_t child = start(r, args);
    for (int i = 0; i < 60000 && !program_wrote(r, "c"); i++) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(kill(child, SIGINT), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 130);
    run_forget(r, &done);
    EXPECT(r, 0, "", SMALL, "--epochs", "1", "--resume", "c");
}

/* Digits are printed in Braille characters only if the locale uses UTF-8. */
static void without_utf8_all_that_is_printed_is_ascii(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    static const char *const locales[] = { "LC_ALL=C", "LC_ALL=C.UTF-8" };
    for (size_t i = 0; i < VKT_COUNT(locales); i++) {
        const char *const env[] = { locales[i], NULL }, *const args[] = { SMALL, "--epochs", "1", NULL };
        run done = program_finish(r, program_start(r, VKT_MNIST_PROGRAM, env, args));
        size_t letters = 0;
        for (const char *c = done.out; *c; c++) letters += (unsigned char)*c >= 0x80;
        assert_int_equal(done.status, 0);
        assert_int_equal(letters > 0, i == 1);
        assert_true(i == 1 || strchr(done.out, '@'));
        run_forget(r, &done);
    }
}

static void wrong_options_end_with_2_and_a_reason(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "--nonsense", "--nonsense");
    EXPECT(r, 2, "'9z'", "--epochs", "9z");
    EXPECT(r, 2, "--epochs", "--epochs", "0");
    EXPECT(r, 2, "--batch", "--batch", "-1");
    EXPECT(r, 2, "--batch", "--batch", "4294967296");
    EXPECT(r, 2, "--lr", "--lr", "0");
    EXPECT(r, 2, "--lr", "--lr", "nan");
    EXPECT(r, 2, "--optimizer", "--optimizer", "lion");
    EXPECT(r, 2, "--weight-decay: want a number above 0, got '-1'", "--weight-decay", "-1");
    EXPECT(r, 2, "--clip-norm", "--clip-norm", "0");
    EXPECT(r, 2, "--micro-batches", "--micro-batches", "0");
    EXPECT(r, 2, "plateau, step=N, multi-step=N,N or exponential=X", "--schedule", "sine");
    EXPECT(r, 2, "N of 1 or more, rising, and X above 0 and up to 1, got 'step=0'", "--schedule", "step=0");
    EXPECT(r, 2, "f32, f16, bf16 or f32-split", "--precision", "half");
    EXPECT(r, 2, "--memory-limit", "--memory-limit", "12Q");
    EXPECT(r, 2, "--memory-limit", "--memory-limit", "99999999999T");
    EXPECT(r, 2, "--checkpoint FILE", "--checkpoint-every", "5");
    EXPECT(r, 2, "--monitor: want accuracy, loss, train_acc or train_loss, got 'speed'", "--monitor", "speed");
    EXPECT(r, 2, "--seed: a run that --resume goes on with keeps its seed", "--resume", "c", "--seed", "1");
    EXPECT(r, 2, "--load: a run that --resume goes on with", "--load", "w", "--resume", "c");
    EXPECT(r, 2, "'stray'", "stray");
}

static void what_cannot_work_ends_with_1_and_a_reason(void **state)
{
    rig *r = rig_of(state);
    write_data(r, SIDE);
    EXPECT(r, 1, "no such card", SMALL, "--device", "no such card");
    EXPECT(r, 1,
           "vkt-mnist: --data: want a folder with train-images-idx3-ubyte and the other three files of MNIST, but "
           "missing does not exist\n",
           "--data", "missing");
    EXPECT(r, 1, "but out is no folder\n", "--data", "out");
    EXPECT(r, 1, "cap", SMALL, "--memory-limit", "64K");
    EXPECT(r, 1, "--json: cannot open the directory of \"none/report\"", SMALL, "-q", "--epochs", "1", "--json",
           "none/report");
    EXPECT(r, 1, "none/w", SMALL, "-q", "--epochs", "1", "--save", "none/w");
    write_data(r, 8);
    EXPECT(r, 1, "14x14 or more", SMALL);
}

static void devices_are_listed_and_help_names_every_option(void **state)
{
    rig *r = rig_of(state);
    run done = program_finish(r, start(r, (const char *const[]){ "--list-devices", NULL }));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, vkt_ctx_device(r->ctx)->name));
    run_forget(r, &done);
    done = program_finish(r, start(r, (const char *const[]){ "--version", NULL }));
    assert_int_equal(done.status, 0);
    assert_memory_equal(done.out, "vktrain ", 8);
    run_forget(r, &done);
    done = program_finish(r, start(r, (const char *const[]){ "-h", NULL })); /* the same as --help */
    assert_int_equal(done.status, 0);
    static const char *const options[] = {
        "data",     "device",       "list-devices",   "epochs",    "batch",
        "lr",       "optimizer",    "seed",           "patience",  "checkpoint",
        "save",     "memory-limit", "stream",         "json",      "checkpoint-every",
        "quiet",    "profile",      "history",        "plot",      "resume",
        "help",     "precision",    "weight-decay",   "clip-norm", "micro-batches",
        "schedule", "monitor",      "allow-nonfinite"
    };
    for (size_t i = 0; i < VKT_COUNT(options); i++) {
        char option[32];
        snprintf(option, sizeof option, "--%s", options[i]);
        if (!strstr(done.out, option)) fail_msg("--help does not name %s", option);
    }
    run_forget(r, &done);
}

/* ---- the source of the data; each run ends before the training, because --class-weights is wrong ---- */

/* Runs the sample program without VKT_DATA and with this mirror ("": no mirror). */
static run look_for_data(const rig *r, const char *mirror)
{
    char assignment[640];
    snprintf(assignment, sizeof assignment, "VKT_MNIST_MIRROR=%s", mirror);
    const char *const env[] = { assignment, "VKT_DATA", NULL };
    run done = program_finish(
        r, program_start(r, VKT_MNIST_PROGRAM, env, (const char *const[]){ "--class-weights", "1", NULL }));
    assert_int_equal(done.status, 1);
    return done;
}

static void without_data_digits_are_generated(void **state)
{
    rig *r = rig_of(state);
    run done = look_for_data(r, "");
    assert_non_null(strstr(done.err, "training on generated digits\n"));
    assert_non_null(strstr(done.out, "generated digits: 20000 to train on"));
    run_forget(r, &done);
    const char *const env[] = { "VKT_MNIST_MIRROR=", "VKT_DATA", NULL };
    const char *const quiet[] = { "-q", "--class-weights", "1", NULL };
    done = program_finish(r, program_start(r, VKT_MNIST_PROGRAM, env, quiet));
    assert_non_null(strstr(done.err, "training on generated digits\n"));
    run_forget(r, &done);
}

static void a_folder_without_labels_is_passed_by(void **state)
{
    rig *r = rig_of(state);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data"), 0777), 0);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data/mnist"), 0777), 0);
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, "data/mnist/train-images-idx3-ubyte"), "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    run done = look_for_data(r, "");
    assert_non_null(strstr(done.err, "data/mnist"));
    assert_non_null(strstr(done.err, "found no such pair"));
    assert_non_null(strstr(done.err, "training on generated digits\n"));
    run_forget(r, &done);
}

static void remove_data(const rig *r)
{
    static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                         "t10k-labels-idx1-ubyte" };
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "data/mnist/%s", names[i]);
        unlink(vkt_temp_dir_file(&r->dir, path));
    }
    assert_int_equal(rmdir(vkt_temp_dir_file(&r->dir, "data/mnist")), 0); /* the folder must be empty */
    assert_int_equal(rmdir(vkt_temp_dir_file(&r->dir, "data")), 0);
}

static void data_are_fetched_checked_and_kept(void **state)
{
    rig *r = rig_of(state);
    char folder[512], mirror[600];
    if (!vkt_test_find_mnist(folder)) skip();
    char *real = realpath(folder, NULL); /* curl removes ".." from a path without regard to symbolic links */
    assert_non_null(real);
    snprintf(mirror, sizeof mirror, "file://%s", real);
    free(real);
    run done = look_for_data(r, mirror);
    assert_non_null(strstr(done.out, "fetching MNIST"));
    assert_non_null(strstr(done.out, "data/mnist: 60000 to train on"));
    run_forget(r, &done);
    done = look_for_data(r, ""); /* the second run finds the files */
    assert_non_null(strstr(done.out, "data/mnist: 60000 to train on"));
    run_forget(r, &done);
    remove_data(r);
}

static void files_with_another_hash_are_not_kept(void **state)
{
    rig *r = rig_of(state);
    char mirror[300];
    static const unsigned char gzip_of_nothing[20] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3 };
    assert_int_equal(
        vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "train-images-idx3-ubyte.gz"), gzip_of_nothing, 20), VKT_OK);
    snprintf(mirror, sizeof mirror, "file://%s", r->dir.path);
    run done = look_for_data(r, mirror);
    assert_non_null(strstr(done.err, "training on generated digits\n"));
    run_forget(r, &done);
    assert_int_not_equal(access(vkt_temp_dir_file(&r->dir, "data"), F_OK), 0); /* the failed download left no folder */
}

/* A download replaces no file that is in the folder already. */
static void files_of_others_are_never_replaced(void **state)
{
    rig *r = rig_of(state);
    char folder[512], mirror[600];
    if (!vkt_test_find_mnist(folder)) skip();
    char *real = realpath(folder, NULL);
    assert_non_null(real);
    snprintf(mirror, sizeof mirror, "file://%s", real);
    free(real);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data"), 0777), 0);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data/mnist"), 0777), 0);
    const char *own = vkt_temp_dir_file(&r->dir, "data/mnist/t10k-labels-idx1-ubyte");
    assert_int_equal(vkt_file_write(&r->h, own, "mine", 4), VKT_OK);
    run done = look_for_data(r, mirror);
    assert_non_null(strstr(done.err, "training on generated digits\n"));
    run_forget(r, &done);
    struct stat kept;
    assert_int_equal(stat(vkt_temp_dir_file(&r->dir, "data/mnist/t10k-labels-idx1-ubyte"), &kept), 0);
    assert_int_equal(kept.st_size, 4);
    assert_int_not_equal(access(vkt_temp_dir_file(&r->dir, "data/mnist/train-images-idx3-ubyte"), F_OK), 0);
    remove_data(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_writes_what_it_was_asked_for),
        rig_test(classes_have_the_names_of_the_folder),
        rig_test(a_resumed_run_reports_all_epochs_and_ends_in_the_same_bytes),
        rig_test(activations_are_stored_as_asked_for),
        rig_test(a_diverged_run_fails_and_saves_nothing),
        rig_test(a_checkpoint_that_cannot_be_written_costs_nothing_else),
        rig_test(a_resume_prints_where_it_continues_and_which_run_it_is),
        rig_test(the_optimizer_and_its_schedule_are_options),
        rig_test(an_interrupted_run_leaves_a_checkpoint),
        rig_test(without_utf8_all_that_is_printed_is_ascii),
        rig_test(wrong_options_end_with_2_and_a_reason),
        rig_test(what_cannot_work_ends_with_1_and_a_reason),
        rig_test(devices_are_listed_and_help_names_every_option),
        rig_test(without_data_digits_are_generated),
        rig_test(a_folder_without_labels_is_passed_by),
        rig_test(data_are_fetched_checked_and_kept),
        rig_test(files_with_another_hash_are_not_kept),
        rig_test(files_of_others_are_never_replaced),
    };
    return cmocka_run_group_tests_name("vkt-mnist", tests, NULL, NULL);
}
