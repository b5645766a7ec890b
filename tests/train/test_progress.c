/* Tests the text that a reader sees of the library's progress bar: on terminals of many widths and kinds, and in files.
 */
#define _XOPEN_SOURCE 700 /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/host.h"
#include "support/terminal.h"
#include "vktrain/train.h"

enum { EPOCHS = 3, BATCHES = 469, CHECKS = 79 };

/* Sets TERM, LC_CTYPE and COLUMNS; NULL removes a variable. Removes LC_ALL and NO_COLOR, and sets LANG to C. */
static void set_environment(const char *kind, const char *locale, const char *columns)
{
    static const char *const names[] = { "TERM", "LC_CTYPE", "COLUMNS" };
    const char *const values[] = { kind, locale, columns };
    unsetenv("LC_ALL");
    unsetenv("NO_COLOR");
    for (size_t i = 0; i < VKT_COUNT(names); i++)
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    setenv("LANG", "C", 1);
}

/* A bar that writes to a terminal. */
typedef struct screen_rig {
    terminal seen;
    FILE *out;
    vkt_progress *bar;
    vkt_fit_callbacks calls;
} screen_rig;

static void begin(screen_rig *s, unsigned columns)
{
    const vkt_host h = vkt_test_host();
    assert_true(terminal_open(&s->seen, columns));
    s->out = fopen(s->seen.path, "w");
    assert_non_null(s->out);
    assert_int_equal(vkt_progress_create(&h, s->out, &s->bar), VKT_OK);
    s->calls = vkt_progress_callbacks(s->bar);
}

static void end(screen_rig *s)
{
    vkt_progress_destroy(&s->bar);
    fflush(s->out);
    terminal_look(&s->seen, 0);
    fclose(s->out);
}

static void batch(screen_rig *s, uint32_t epoch, uint32_t n, uint32_t of)
{
    const vkt_fit_progress f = { .epoch = epoch,
                                 .epochs = EPOCHS,
                                 .batch = n,
                                 .batches = of,
                                 .loss = 0.1234,
                                 .accuracy = 0.9876,
                                 .seconds = n * 0.06,
                                 .validating = of == CHECKS };
    s->calls.on_batch(s->calls.user, &f);
    terminal_look(&s->seen, 0);
}

static void epoch(screen_rig *s, uint32_t n)
{
    const vkt_epoch_record r = { n, 0.1234, 0.9611, 0.0512, 0.9837, 0.01 / n, 12.1 };
    for (uint32_t i = 1; i <= BATCHES; i++) batch(s, n, i, BATCHES);
    for (uint32_t i = 1; i <= CHECKS; i++) batch(s, n, i, CHECKS);
    assert_false(s->calls.on_epoch(s->calls.user, &r, n == 2));
    terminal_look(&s->seen, 0);
}

/* Checks that the terminal shows exactly these rows and one empty row below them. */
static void expect_rows(const screen_rig *s, const char *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) assert_string_equal(terminal_text(&s->seen, i), rows[i]);
    assert_string_equal(terminal_text(&s->seen, n), "");
    assert_int_equal(s->seen.n_rows, n + 1);
    assert_int_equal(s->seen.torn, 0);
    assert_int_equal(s->seen.wrapped, 0);
    assert_int_equal(s->seen.colours, 0);
}

/* ---- tests ---- */

static void a_fit_leaves_one_record_an_epoch(void **state)
{
    (void)state;
    set_environment("xterm", "en_US.UTF-8", NULL);
    static const struct {
        unsigned columns;
        const char *bar; /* the last row of the screen in the middle of epoch 3 */
        const char *rows[12];
    } cases[] = {
        { 120,
          "epoch 3/3 █████████████▎·········· 259/469  0:16<0:13  16.7 it/s  loss 0.1234  acc 0.9876",
          { "epoch 1/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837",
            "epoch 2/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837  lr 0.005  *",
            "epoch 3/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837  lr 0.00333" } },
        { 80,
          "epoch 3/3 ███████▋······ 259/469  0:16<0:13  16.7 it/s  loss 0.1234  acc 0.9876",
          { "epoch 1/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837",
            "epoch 2/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837", "  lr 0.005  *",
            "epoch 3/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837", "  lr 0.00333" } },
        { 60,
          "epoch 3/3 ████████▊······· 259/469  loss 0.1234  acc 0.9876",
          { "epoch 1/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837",
            "epoch 2/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837  lr 0.005  *",
            "epoch 3/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837  lr 0.00333" } },
        { 40,
          "epoch 3/3 259/469  loss 0.1234",
          { "epoch 1/3  12.1 s  loss 0.1234", "  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837",
            "epoch 2/3  12.1 s  loss 0.1234", "  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837  lr 0.005  *",
            "epoch 3/3  12.1 s  loss 0.1234", "  acc 0.9611  val_loss 0.0512", "  val_acc 0.9837  lr 0.00333" } },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        screen_rig s;
        size_t n = 0;
        begin(&s, cases[i].columns);
        epoch(&s, 1);
        epoch(&s, 2);
        for (uint32_t k = 1; k <= 259; k++) batch(&s, 3, k, BATCHES);
        assert_string_equal(terminal_text(&s.seen, s.seen.n_rows - 1), cases[i].bar);
        epoch(&s, 3);
        end(&s);
        while (n < VKT_COUNT(cases[i].rows) && cases[i].rows[n]) n++;
        expect_rows(&s, cases[i].rows, n);
        terminal_close(&s.seen);
    }
}

static void no_width_is_too_small(void **state)
{
    (void)state;
    set_environment("xterm", "C.UTF-8", NULL);
    for (unsigned columns = 1; columns <= 130; columns++) {
        screen_rig s;
        begin(&s, columns);
        epoch(&s, 1);
        batch(&s, 2, BATCHES, BATCHES);
        assert_int_equal(s.seen.torn, 0);
        /* The longest field, "val_loss 0.0512", has 17 columns with the two blanks before it. So a wider terminal wraps
         * no field. */
        if (columns >= 18) assert_int_equal(s.seen.wrapped, 0);
        if (columns == 20) assert_string_equal(terminal_text(&s.seen, s.seen.n_rows - 1), "epoch 2/3 469/469");
        if (columns == 10) assert_string_equal(terminal_text(&s.seen, s.seen.n_rows - 1), "epoch 2/3");
        end(&s);
        terminal_close(&s.seen);
    }
}

/* The window changes its size in the middle of an epoch. The bar uses the new size at once and needs no signal. */
static void a_resized_window_counts_at_once(void **state)
{
    (void)state;
    set_environment("xterm", "C.UTF-8", NULL);
    static const unsigned sizes[] = { 80, 41, 20, 100, 33 };
    screen_rig s;
    begin(&s, 132);
    for (uint32_t i = 0; i < VKT_COUNT(sizes); i++) {
        assert_true(terminal_resize(&s.seen, sizes[i]));
        for (uint32_t k = 1; k <= 40; k++) batch(&s, 1, 40 * i + k, BATCHES);
        const char *line = terminal_text(&s.seen, 0);
        if (sizes[i] < 60) assert_true(strlen(line) < sizes[i]); /* without a bar, the line is ASCII */
        assert_int_equal(strstr(line, "█") != NULL, sizes[i] >= 80);
        assert_int_equal(s.seen.n_rows, 1);
    }
    assert_int_equal(s.seen.torn + s.seen.wrapped, 0);
    end(&s);
    terminal_close(&s.seen);
}

/* A stream that cannot rewrite a line gets whole lines and no escape sequence. */
static void a_dumb_terminal_gets_plain_lines(void **state)
{
    (void)state;
    static const char *const kinds[] = { "dumb", "", NULL };
    for (size_t i = 0; i < VKT_COUNT(kinds); i++) {
        screen_rig s;
        set_environment(kinds[i], "C.UTF-8", NULL);
        begin(&s, 80);
        epoch(&s, 1);
        end(&s);
        expect_rows(
            &s, (const char *const[]){ "epoch 1/3  12.1 s  loss 0.1234  acc 0.9611  val_loss 0.0512  val_acc 0.9837" },
            1);
        assert_int_equal(s.seen.escapes + s.seen.rewritten, 0);
        terminal_close(&s.seen);
    }
}

static void without_utf8_all_is_ascii(void **state)
{
    (void)state;
    static const struct {
        const char *all, *type, *lang;
        bool unicode;
    } locales[] = { { NULL, "C", "en_US.UTF-8", false },      { NULL, NULL, "en_US.UTF-8", true },
                    { "C", "C.UTF-8", "C.UTF-8", false },     { "", "de_DE.utf8", "C", true },
                    { "POSIX", NULL, NULL, false },           { NULL, NULL, NULL, false },
                    { "ja_JP.EUC-JP", NULL, "C.utf8", false } };
    for (size_t i = 0; i < VKT_COUNT(locales); i++) {
        screen_rig s;
        set_environment("xterm", locales[i].type, NULL);
        if (locales[i].all) setenv("LC_ALL", locales[i].all, 1);
        unsetenv("LANG");
        if (locales[i].lang) setenv("LANG", locales[i].lang, 1);
        begin(&s, 80);
        for (uint32_t k = 1; k <= 259; k++) batch(&s, 1, k, BATCHES);
        assert_int_equal(s.seen.letters > 0, locales[i].unicode);
        if (!locales[i].unicode)
            assert_string_equal(terminal_text(&s.seen, 0),
                                "epoch 1/3 #######....... 259/469  0:16<0:13  16.7 it/s  loss 0.1234  acc 0.9876");
        end(&s);
        terminal_close(&s.seen);
    }
}

/* If the terminal has no size, the width is the environment variable COLUMNS. If COLUMNS is unset or wrong, the width
 * is 80. */
static void columns_of_the_environment_are_the_second_choice(void **state)
{
    (void)state;
    static const char *const values[] = { "60", NULL, "many", "-3" };
    for (size_t i = 0; i < VKT_COUNT(values); i++) {
        screen_rig s;
        set_environment("xterm", "C.UTF-8", values[i]);
        begin(&s, 0);
        batch(&s, 1, 259, BATCHES);
        assert_int_equal(strstr(terminal_text(&s.seen, 0), "it/s") != NULL, i > 0);
        end(&s);
        terminal_close(&s.seen);
    }
    screen_rig s;
    set_environment("xterm", "C.UTF-8", "200");
    begin(&s, 40); /* the terminal's size counts, not COLUMNS */
    batch(&s, 1, 259, BATCHES);
    assert_string_equal(terminal_text(&s.seen, 0), "epoch 1/3 259/469  loss 0.1234");
    end(&s);
    terminal_close(&s.seen);
}

/* 259 batches in 15.54 s, with 38.5 tokens in each batch, are 642 tokens a second. */
static void a_unit_replaces_batches_a_second(void **state)
{
    (void)state;
    screen_rig s;
    set_environment("xterm", "C", NULL);
    begin(&s, 80);
    vkt_progress_set_unit(s.calls.user, "tok", 38.5);
    vkt_progress_set_unit(s.calls.user, NULL, 1); /* does nothing */
    batch(&s, 1, 259, BATCHES);
    assert_string_equal(terminal_text(&s.seen, 0),
                        "epoch 1/3 #######....... 259/469  0:16<0:13  642 tok/s  loss 0.1234  acc 0.9876");
    end(&s);
    terminal_close(&s.seen);
}

static void an_interrupted_bar_ends_its_line(void **state)
{
    (void)state;
    screen_rig s;
    set_environment("xterm", "C.UTF-8", NULL);
    begin(&s, 80);
    batch(&s, 1, 200, BATCHES);
    assert_int_equal(s.seen.n_rows, 1);
    end(&s);
    assert_int_equal(s.seen.n_rows, 2);
    assert_string_equal(terminal_text(&s.seen, 1), "");
    terminal_close(&s.seen);
}

/* A progress that writes to a file. */
typedef struct file_rig {
    FILE *out;
    vkt_progress *bar;
    vkt_fit_callbacks calls;
    char text[512]; /* what the file has at the end */
} file_rig;

static void begin_file(file_rig *r)
{
    const vkt_host h = vkt_test_host();
    set_environment("xterm", "C.UTF-8", "20");
    *r = (file_rig){ .out = tmpfile() };
    assert_non_null(r->out);
    assert_int_equal(vkt_progress_create(&h, r->out, &r->bar), VKT_OK);
    r->calls = vkt_progress_callbacks(r->bar);
}

static void end_file(file_rig *r)
{
    vkt_progress_destroy(&r->bar);
    rewind(r->out);
    assert_true(fread(r->text, 1, sizeof r->text - 1, r->out) > 0);
    fclose(r->out);
}

static void a_file_gets_a_line_a_minute_in_long_epochs(void **state)
{
    (void)state;
    static const struct {
        uint32_t batch;
        double seconds;
        bool validating;
    } calls[] = { { 1, 59.5, false }, { 2, 60, false }, { 3, 119.5, false }, { 4, 125, false },
                  { 5, 190, false },  { 1, 3, true },   { 2, 61, true },     { 5, 200, true } };
    file_rig f;
    begin_file(&f);
    vkt_progress_set_unit(f.bar, "tok", 300);
    const vkt_fit_callbacks c = f.calls;
    for (size_t i = 0; i < VKT_COUNT(calls); i++)
        c.on_batch(c.user, &(vkt_fit_progress){ .epoch = 1,
                                                .epochs = 2,
                                                .batch = calls[i].batch,
                                                .batches = 5,
                                                .loss = 1.5,
                                                .accuracy = NAN,
                                                .seconds = calls[i].seconds,
                                                .validating = calls[i].validating });
    c.on_epoch(c.user, &(vkt_epoch_record){ 1, 1.5, NAN, 2, NAN, .01, 390 }, false);
    end_file(&f);
    assert_string_equal(f.text, "epoch 1/2 2/5  1:00<1:30  10 tok/s  loss 1.5000\n"
                                "epoch 1/2 4/5  2:05<0:31  10 tok/s  loss 1.5000\n"
                                "check 1/2 2/5  1:01<1:32  10 tok/s  loss 1.5000\n"
                                "epoch 1/2  390.0 s  loss 1.5000  val_loss 2.0000\n");
}

/* In a file a record is one line for any COLUMNS. A very large loss has an exponent, so its text stays short. */
static void a_file_gets_one_line_an_epoch(void **state)
{
    (void)state;
    file_rig f;
    begin_file(&f);
    const vkt_fit_callbacks c = f.calls;
    c.on_batch(c.user, &(vkt_fit_progress){ .epoch = 1, .epochs = 2, .batch = 1, .batches = 2 });
    c.on_epoch(c.user, &(vkt_epoch_record){ 1, 3.4e38, NAN, NAN, NAN, .01, 1 }, false);
    c.on_epoch(c.user, &(vkt_epoch_record){ 2, 1, .5, 123456.5, .25, .001, 1 }, true);
    end_file(&f);
    assert_string_equal(
        f.text, "epoch 1/2  1.0 s  loss 3.4e+38\n"
                "epoch 2/2  1.0 s  loss 1.0000  acc 0.5000  val_loss 123456.5000  val_acc 0.2500  lr 0.001  *\n");
}

/* A fit may resume after the last batch of an epoch. Without validation, no batch comes before the record of this
 * epoch. So the progress does not know the number of epochs yet. */
static void a_record_before_the_first_batch_has_no_number_of_epochs(void **state)
{
    (void)state;
    file_rig f;
    begin_file(&f);
    const vkt_fit_callbacks c = f.calls;
    c.on_epoch(c.user, &(vkt_epoch_record){ 3, 1, NAN, NAN, NAN, .01, 1 }, false);
    c.on_batch(c.user, &(vkt_fit_progress){ .epoch = 4, .epochs = 5, .batch = 1, .batches = 1 });
    c.on_epoch(c.user, &(vkt_epoch_record){ 4, 1, NAN, NAN, NAN, .01, 1 }, false);
    end_file(&f);
    assert_string_equal(f.text, "epoch 3  1.0 s  loss 1.0000\n"
                                "epoch 4/5  1.0 s  loss 1.0000\n");
}

static void no_progress_has_no_callbacks(void **state)
{
    (void)state;
    const vkt_fit_callbacks c = vkt_progress_callbacks(NULL);
    assert_true(!c.user && !c.on_batch && !c.on_epoch && !c.stop);
}

/* A record has all losses and accuracies, and VKT_MAX_METRICS metrics. The second epoch has another learning rate. */
static void a_record_has_room_for_all_metrics(void **state)
{
    (void)state;
    vkt_epoch_record r = { 1, 1, .5, 2, .25, .01, 1, .n_metrics = VKT_MAX_METRICS };
    for (int i = 0; i < VKT_MAX_METRICS; i++) r.metrics[i] = (vkt_metric_value){ "f1", i };
    file_rig f;
    begin_file(&f);
    const vkt_fit_callbacks c = f.calls;
    c.on_batch(c.user, &(vkt_fit_progress){ .epoch = 1, .epochs = 2, .batch = 1, .batches = 2 });
    c.on_epoch(c.user, &r, false);
    r.epoch = 2;
    r.lr = .001;
    c.on_epoch(c.user, &r, true);
    end_file(&f);
    assert_string_equal(f.text, "epoch 1/2  1.0 s  loss 1.0000  acc 0.5000  val_loss 2.0000  val_acc 0.2500"
                                "  f1 0.0000  f1 1.0000  f1 2.0000  f1 3.0000\n"
                                "epoch 2/2  1.0 s  loss 1.0000  acc 0.5000  val_loss 2.0000  val_acc 0.2500"
                                "  f1 0.0000  f1 1.0000  f1 2.0000  f1 3.0000  lr 0.001  *\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fit_leaves_one_record_an_epoch),
        TEST(no_width_is_too_small),
        TEST(a_resized_window_counts_at_once),
        TEST(a_dumb_terminal_gets_plain_lines),
        TEST(a_file_gets_a_line_a_minute_in_long_epochs),
        TEST(without_utf8_all_is_ascii),
        TEST(columns_of_the_environment_are_the_second_choice),
        TEST(an_interrupted_bar_ends_its_line),
        TEST(a_file_gets_one_line_an_epoch),
        TEST(a_record_before_the_first_batch_has_no_number_of_epochs),
        TEST(no_progress_has_no_callbacks),
        TEST(a_record_has_room_for_all_metrics),
        TEST(a_unit_replaces_batches_a_second),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
