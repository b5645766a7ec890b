/* Tests the program vkt-images as its users run it: CSV files and folders of images, options, schedule, files,
 * messages. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/schema.h"

#define IMAGES VKT_TEST_DIR "/golden/images/"
enum { CLASSES = 4, TRAIN = 30, CHECK = 9 };

static const char *const names[CLASSES] = { "gray.jpg", "cmyk.jpg", "turned.jpg", "noise.png" };

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_IMAGES_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define SMALL "--data", ".", "--batch", "8"

static run finished(const rig *r, const char *const *env, const char *const *args)
{
    return program_finish(r, program_start(r, VKT_IMAGES_PROGRAM, env, args));
}

/* ---- a data set of four images; the first is the most frequent ---- */

static const char *name_of(uint32_t row)
{
    return names[row % 5 % CLASSES];
}

static void write_text(const rig *r, const char *name, const char *text)
{
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), text, strlen(text)), VKT_OK);
}

/* Writes a CSV file that lists images. Each image file is a class of its own, with the name of the image file. */
static void write_table(const rig *r, const char *name, uint32_t rows)
{
    char text[TRAIN * 300] = "path,label\n";
    for (uint32_t i = 0; i < rows; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, IMAGES "%s,%s\n", name_of(i), name_of(i));
    }
    write_text(r, name, text);
}

static void write_tables(const rig *r)
{
    write_table(r, "train.csv", TRAIN);
    write_table(r, "valid.csv", CHECK);
    write_table(r, "test.csv", CHECK);
}

/* Makes links <folder>/<class>/<number>.png for `rows` rows. */
static void link_folders(const rig *r, const char *folder, uint32_t rows)
{
    char path[128];
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, folder), 0777), 0);
    for (uint32_t i = 0; i < rows; i++) {
        char target[512];
        snprintf(path, sizeof path, "%s/%s", folder, name_of(i));
        mkdir(vkt_temp_dir_file(&r->dir, path), 0777);
        snprintf(path, sizeof path, "%s/%s/%u.png", folder, name_of(i), i);
        snprintf(target, sizeof target, IMAGES "%s", name_of(i));
        assert_int_equal(symlink(target, vkt_temp_dir_file(&r->dir, path)), 0);
    }
}

/* ---- tests ---- */

static void a_run_learns_and_writes_what_it_was_asked_for(void **state)
{
    rig *r = rig_of(state);
    write_tables(r);
    run done =
        finished(r, NULL,
                 (const char *const[]){ SMALL, "--epochs", "4", "--lr", "0.05", "--checkpoint", "c", "--save", "w",
                                        "--json", "report", "--history", "h.csv", "--plot", "p.svg", NULL });
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain")); /* no warning */
    assert_non_null(strstr(done.out, "30 to train on, 9 to validate on, 3x32x32, 4 classes"));
    assert_non_null(strstr(done.out, "fc1 (Linear)"));
    assert_non_null(strstr(done.out, "epoch 4/4"));
    assert_non_null(strstr(done.out, "test    9 images: loss "));
    assert_non_null(strstr(done.out, "* gray.jpg           gray.jpg "));
    run_forget(r, &done);
    json_t *report = program_json(r, "report"), *epochs = json_object_get(report, "epochs");
    assert_int_equal(json_array_size(epochs), 4);
    const double first = json_number_of(json_array_get(epochs, 0), "train_loss"),
                 last = json_number_of(json_array_get(epochs, 3), "train_loss");
    assert_true(fabs(first - log(CLASSES)) < 0.1 && last < first);
    assert_true(json_number_of(report, "final_loss") == last);
    assert_true(json_number_of(report, "parameters") == 655397 - 129 * (101 - CLASSES));
    double best = 0;
    for (size_t i = 0; i < 4; i++) best = fmax(best, json_number_of(json_array_get(epochs, i), "val_acc"));
    assert_true(json_number_of(report, "best_val_acc") == best && best >= 1.0 / 3);
    char why[256];
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, "report"), why)) fail_msg("%s", why);
    const json_t *data = json_object_get(report, "data");
    assert_true(json_number_of(data, "test") == 9 && json_is_false(json_object_get(data, "test_is_validation")));
    assert_true(json_number_of(report, "test_loss") > 0 && json_number_of(report, "test_accuracy") <= 1);
    json_decref(report);
    assert_true(program_wrote(r, "c") && program_wrote(r, "w") && program_wrote(r, "h.csv") &&
                program_wrote(r, "p.svg"));
}

/* An epoch counts as better if it lowers the validation loss by more than 1e-4 of the best loss. The rate of 1e-5 is so
 * small that no epoch is better than epoch 1. A patience of 1 allows one bad epoch, so the rate falls after epoch 3. */
static void the_rate_falls_when_the_validation_loss_does_not(void **state)
{
    rig *r = rig_of(state);
    write_tables(r);
    run done = finished(r, NULL,
                        (const char *const[]){ SMALL, "--epochs", "5", "--lr", "1e-5", "--lr-patience", "1", "--json",
                                               "report", NULL });
    assert_int_equal(done.status, 0);
    char *line = strstr(done.out, "epoch 4/5"), *end = line ? strchr(line, '\n') : NULL;
    assert_non_null(end);
    *end = 0;
    assert_non_null(strstr(line, "lr 1e-06"));
    run_forget(r, &done);
    json_t *report = program_json(r, "report"), *epochs = json_object_get(report, "epochs");
    for (size_t i = 0; i < 5; i++) {
        const double want = i < 3 ? 1e-5 : 1e-6;
        assert_true(fabs(json_number_of(json_array_get(epochs, i), "lr") - want) < 1e-6 * want);
    }
    json_decref(report);
}

static void a_resumed_run_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_tables(r);
    EXPECT(r, 0, "", SMALL, "-q", "--lr-patience", "0", "--epochs", "3", "--checkpoint", "whole");
    EXPECT(r, 0, "", SMALL, "-q", "--lr-patience", "0", "--epochs", "1", "--checkpoint", "c");
    EXPECT(r, 0, "", SMALL, "-q", "--lr-patience", "0", "--epochs", "3", "--checkpoint", "c", "--resume", "c");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "c"));
    assert_false(program_wrote(r, "out")); /* --quiet */
    EXPECT(r, 1, "is of another run", SMALL, "-q", "--size", "16", "--resume", "c");
}

/* At a rate of 1e-12 no prediction changes, so epoch 2 is no better than epoch 1. */
static void a_run_that_stopped_early_reports_that_it_does_not_continue(void **state)
{
    rig *r = rig_of(state);
    write_tables(r);
    EXPECT(r, 0, "", SMALL, "-q", "--lr", "1e-12", "--patience", "1", "--epochs", "9", "--checkpoint", "c");
    EXPECT(r, 0, "nothing is trained: the run has stopped early, after epoch 2", SMALL, "--lr", "1e-12", "--patience",
           "1", "--epochs", "9", "--resume", "c");
}

/* Fails the test unless a run with this data set prints `says` about it. The run ends before the training, because
 * --class-weights has one weight, which is too few. */
static void finds(const rig *r, const char *const *env, const char *data, const char *says)
{
    const char *const args[] = { "--class-weights", "1", data ? "--data" : NULL, data, NULL };
    run done = finished(r, env, args);
    const bool good = done.status == 1 && strstr(done.out, says);
    if (!good) print_error("status %d; stdout '%s', want '%s'\n", done.status, done.out, says);
    run_forget(r, &done);
    assert_true(good);
}

static void images_are_found_in_tables_and_folders(void **state)
{
    rig *r = rig_of(state);
    link_folders(r, "whole", 20);
    finds(r, NULL, "whole", "whole: 16 to train on, 4 to validate on, 3x32x32, 4 classes");
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "parts"), 0777), 0);
    link_folders(r, "parts/train", 10);
    finds(r, NULL, "parts", "parts: 8 to train on, 2 to validate on");
    link_folders(r, "parts/valid", 5);
    finds(r, NULL, "parts", "parts: 10 to train on, 5 to validate on");
    write_table(r, "parts/valid.csv", 6);
    finds(r, NULL, "parts", "parts: 10 to train on, 6 to validate on");
}

static void without_data_forms_are_generated(void **state)
{
    rig *r = rig_of(state);
    finds(r, (const char *const[]){ "VKT_DATA", NULL }, NULL, "generated forms: 2000 to train on, 400 to validate on");
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data"), 0777), 0);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "data/caltech101"), 0777), 0);
    write_table(r, "data/caltech101/train.csv", TRAIN);
    finds(r, (const char *const[]){ "VKT_DATA", NULL }, NULL, "data/caltech101: 24 to train on, 6 to validate on");
    finds(r, (const char *const[]){ "VKT_DATA=./data", NULL }, NULL, "./data/caltech101: 24 to train on");
}

static void wrong_options_end_with_2_and_a_reason(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "from 10 to 1024, got '9'", "--size", "9");
    EXPECT(r, 2, "--lr-patience: want an integer", "--lr-patience", "often");
    EXPECT(r, 2, "--no-flip", "--no-flip=1");
    EXPECT(r, 2, "'stray'", "stray");
}

/* Fails the test unless a run with this data set ends with status 1 and one line on stderr that begins with `says`. */
static void one_error(const rig *r, const char *says, const char *data)
{
    run done = finished(r, NULL, (const char *const[]){ "--data", data, NULL });
    assert_int_equal(done.status, 1);
    if (strncmp(done.err, says, strlen(says)) != 0) fail_msg("'%s', want '%s'", done.err, says);
    assert_string_equal(strchr(done.err, '\n'), "\n");
    run_forget(r, &done);
}

static void what_cannot_work_ends_with_1_and_a_reason(void **state)
{
    rig *r = rig_of(state);
    one_error(r, "vkt-images: --data: missing does not exist: want train.csv", "missing");
    one_error(r, "vkt-images: --data: . has no images: want train.csv", ".");
    write_text(r, "train.csv", "path,label\n" IMAGES "noise.png,noise\nnone.png,none\n");
    EXPECT(r, 1, "none.png", SMALL);
    EXPECT(r, 1, "want a share of test rows that leaves both parts at least one row of ", SMALL, "--skip-broken");
    write_tables(r);
    write_text(r, "valid.csv", "path,label\n" IMAGES "noise.png,sound\n");
    EXPECT(r, 1, "sound", SMALL);
    write_text(r, "valid.csv", "path\n" IMAGES "noise.png\n");
    EXPECT(r, 1, "labels", SMALL);
    write_text(r, "train.csv", "path\n" IMAGES "noise.png\n" IMAGES "gray.jpg\n");
    EXPECT(r, 1, "labels", SMALL);
    write_tables(r);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--save", "w");
    EXPECT(r, 1, "fc1.weight", SMALL, "--size", "16", "--load", "w");
}

static void broken_files_are_left_out_if_asked_for(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "train.csv",
               "path,label\n" IMAGES "noise.png,a\nnone.png,b\n" IMAGES "gray.jpg,b\n" IMAGES "turned.jpg,a\n");
    run done = finished(r, NULL, (const char *const[]){ SMALL, "--skip-broken", "--no-flip", "--epochs", "1", NULL });
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.err, "none.png"));
    assert_non_null(strstr(done.out, "2 to train on, 1 to validate on"));
    assert_null(strstr(done.out, "test    "));
    run_forget(r, &done);
}

static void help_names_the_options_of_its_own(void **state)
{
    rig *r = rig_of(state);
    run done = finished(r, NULL, (const char *const[]){ "--help", NULL });
    assert_int_equal(done.status, 0);
    static const char *const options[] = { "--data", "--size", "--no-flip", "--skip-broken", "--lr-patience", "(50)" };
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help does not name %s", options[i]);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_learns_and_writes_what_it_was_asked_for),
        rig_test(the_rate_falls_when_the_validation_loss_does_not),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(a_run_that_stopped_early_reports_that_it_does_not_continue),
        rig_test(images_are_found_in_tables_and_folders),
        rig_test(without_data_forms_are_generated),
        rig_test(wrong_options_end_with_2_and_a_reason),
        rig_test(what_cannot_work_ends_with_1_and_a_reason),
        rig_test(broken_files_are_left_out_if_asked_for),
        rig_test(help_names_the_options_of_its_own),
    };
    return cmocka_run_group_tests_name("vkt-images", tests, NULL, NULL);
}
