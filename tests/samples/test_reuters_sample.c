/* Tests the program vkt-reuters as its users run it: options, exit codes, files, data lookup. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "vktrain/text.h"

enum { TRAIN = 70, CHECK = 30, TOPICS = 3, OWN = 6, COMMON = 20, WORDS = 3 + TOPICS * OWN + COMMON };

#define RUN(r, ...) \
    program_finish(r, program_start(r, VKT_REUTERS_PROGRAM, NULL, (const char *const[]){ __VA_ARGS__, NULL }))
#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_REUTERS_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define SMALL "--data", ".", "--batch", "32"

/* ---- a small corpus for this test ---- */

static void write_text(const rig *r, const char *name, const char *text)
{
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), text, strlen(text)), VKT_OK);
}

/* Writes texts of 40 words. Every second word belongs to the topic. */
static void write_part(const rig *r, const char *name, uint32_t n)
{
    static const char *const topics[TOPICS] = { "tea", "ale", "gin" };
    static char text[TRAIN * 400];
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\t", topics[i % TOPICS]);
        for (uint32_t k = 0; k < 20; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u All%u ", topics[i % TOPICS], (i + k) % OWN,
                                   (7 * i + k) % COMMON);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
        assert_true(at < sizeof text);
    }
    write_text(r, name, text);
}

static void write_data(const rig *r)
{
    write_part(r, "train.tsv", TRAIN);
    write_part(r, "test.tsv", CHECK);
}

/* ---- the report ---- */

static void check_report(const json_t *o, size_t epochs)
{
    const json_t *list = json_object_get(o, "epochs");
    assert_int_equal(json_array_size(list), epochs);
    double best = 0;
    for (size_t i = 0; i < epochs; i++) best = fmax(best, json_number_of(json_array_get(list, i), "val_acc"));
    assert_true(json_number_of(o, "best_val_acc") == best);
    assert_true(json_number_of(o, "final_loss") == json_number_of(json_array_get(list, epochs - 1), "train_loss"));
    assert_true(json_number_of(o, "parameters") == 7 * WORDS + 2304 + 6176 + 2337 * TOPICS);
    assert_true(json_number_of(o, "ms_per_step") > 0);
}

/* ---- tests ---- */

static void a_run_learns_and_writes_what_it_was_asked_for(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    run done = RUN(r, SMALL, "--epochs", "12", "--lr", "0.01", "--checkpoint", "c", "--save", "w", "--json", "report",
                   "--history", "h.csv", "--plot", "p.svg", "--profile", "trace");
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain")); /* no warning of the library; a sanitizer may print lines */
    assert_non_null(strstr(done.out, "70 to train on, 30 to validate on, 300 numbers each, 3 classes"));
    assert_non_null(strstr(done.out, "words   41 in the vocabulary"));
    assert_non_null(strstr(done.out, "embedding (Embedding)"));
    assert_non_null(strstr(done.out, "epoch 12/12"));
    assert_non_null(strstr(done.out, "correct: topic"));
    assert_non_null(strstr(done.out, "ale0 All"));
    run_forget(r, &done);
    json_t *report = program_json(r, "report");
    check_report(report, 12);
    assert_true(json_number_of(report, "best_val_acc") > 0.9);
    json_decref(report);
    assert_true(program_wrote(r, "h.csv") && program_wrote(r, "p.svg") && program_wrote(r, "trace"));
}

/* The checkpoint and the weights file contain the vocabulary. */
static void files_have_the_vocabulary(void **state)
{
    static const char *const files[] = { "c", "w" };
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--checkpoint", "c", "--save", "w");
    for (size_t i = 0; i < VKT_COUNT(files); i++) {
        char *text;
        vkt_vocab *v;
        const char *path = vkt_temp_dir_file(&r->dir, files[i]);
        assert_int_equal(vkt_read_attachment(&r->h, path, "vocabulary", &text), VKT_OK);
        assert_int_equal(vkt_vocab_from_text(&r->h, path, text, &v), VKT_OK);
        assert_int_equal(vkt_vocab_size(v), WORDS);
        assert_true(vkt_vocab_id(v, "tea0") > VKT_ID_UNKNOWN && vkt_vocab_id(v, "rum0") == VKT_ID_UNKNOWN);
        vkt_vocab_destroy(&v);
        vkt_text_release(&text);
    }
}

static void a_resumed_run_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--checkpoint", "whole");
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "1", "--checkpoint", "c", "--stream");
    EXPECT(r, 0, "", SMALL, "-q", "--epochs", "3", "--resume", "c", "--checkpoint", "c", "--json", "report");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "c"));
    json_t *report = program_json(r, "report");
    check_report(report, 3);
    json_decref(report);
    assert_false(program_wrote(r, "out")); /* --quiet */
}

static void classes_have_the_order_of_their_file(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    write_text(r, "classes.txt", "rum\ngin\nale\ntea\n");
    run done = RUN(r, SMALL, "--class-weights", "1");
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.out, "4 classes"));
    run_forget(r, &done);
    write_text(r, "classes.txt", "gin\nale\n");
    EXPECT(r, 1, "label \"tea\" is none of the 2 classes", SMALL);
}

static void bad_corpora_are_refused(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 1, "want a folder with train.tsv and test.tsv (or .tsv.gz), got 'missing'", "--data", "missing");
    write_data(r);
    write_text(r, "test.tsv", "tea\tgreen\nrum\tbrown\n");
    EXPECT(r, 1, "test.tsv, line 2: label \"rum\" is none of the 3 classes", SMALL);
    write_text(r, "train.tsv", "no tab\n");
    EXPECT(r, 1, "want a label, a tab and a text", SMALL);
}

static void wrong_options_have_a_reason(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 2, "--nonsense", "--nonsense");
    EXPECT(r, 2, "--lr", "--lr", "0");
    EXPECT(r, 1, "cap", SMALL, "--memory-limit", "64K");
    EXPECT(r, 1, "none/w", SMALL, "-q", "--epochs", "1", "--save", "none/w");
}

/* Each run prints the source of its data. It ends before the training, because --class-weights is wrong. */
static void data_are_looked_for(void **state)
{
    rig *r = rig_of(state);
    const char *const no_env[] = { "VKT_DATA", NULL }, *const args[] = { "--class-weights", "1", NULL };
    run done = program_finish(r, program_start(r, VKT_REUTERS_PROGRAM, no_env, args));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "the Reuters corpus was not found: training on generated news\n"));
    assert_non_null(
        strstr(done.out, "generated news: 2400 to train on, 600 to validate on, 300 numbers each, 8 classes"));
    run_forget(r, &done);
    char folder[512], env[600];
    if (!vkt_test_find_data("reuters46-keras/train.tsv.gz", folder)) skip();
    char *real = realpath(folder, NULL), *end = strstr(real, "/reuters46-keras");
    assert_non_null(end);
    *end = 0;
    snprintf(env, sizeof env, "VKT_DATA=%s", real);
    free(real);
    done = program_finish(r, program_start(r, VKT_REUTERS_PROGRAM, (const char *const[]){ env, NULL }, args));
    assert_non_null(strstr(done.out, "8982 to train on, 2246 to validate on, 300 numbers each, 46 classes"));
    run_forget(r, &done);
}

static void help_prints_the_defaults(void **state)
{
    rig *r = rig_of(state);
    run done = RUN(r, "--help");
    assert_int_equal(done.status, 0);
    static const char *const says[] = { "--epochs=N", "(10)",    "--batch=N",
                                        "(32)",       "(0.001)", "(default: keras-nadam)",
                                        "train.tsv",  "--save",  "--json" };
    for (size_t i = 0; i < VKT_COUNT(says); i++)
        if (!strstr(done.out, says[i])) fail_msg("--help does not say %s", says[i]);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_learns_and_writes_what_it_was_asked_for),
        rig_test(files_have_the_vocabulary),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(classes_have_the_order_of_their_file),
        rig_test(bad_corpora_are_refused),
        rig_test(wrong_options_have_a_reason),
        rig_test(data_are_looked_for),
        rig_test(help_prints_the_defaults),
    };
    return cmocka_run_group_tests_name("vkt-reuters", tests, NULL, NULL);
}
