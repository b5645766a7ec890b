/* Tests vkt_trainer_find_lr and vkt_rates_plot. Also tests --find-lr of vkt-gpt on a small text. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

#define TINY "--data", "text", "--context", "8", "--layers", "1", "--heads", "2", "--width", "16", "--lr", "0.002"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_GPT_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

static void write_text(const rig *r)
{
    char text[401];
    for (int i = 0; i < 400; i++) text[i] = "the old cat hid. "[i % 17];
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), text, 400), VKT_OK);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

/* The suggested rate must be between 1e-4 and 1, because the network learns this text at a rate of 0.01, and its loss
 * does not change at a rate of 1e-6. */
static void a_rate_is_suggested_and_nothing_else_happens(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    for (int micro = 0; micro < 2; micro++) {
        const char *const args[] = { TINY, "--find-lr", "f.svg", micro ? "--micro-batches" : NULL, "2", NULL };
        run done = program_finish(r, program_start(r, VKT_GPT_PROGRAM, NULL, args));
        double from, to, rate;
        unsigned steps;
        if (done.status != 0) fail_msg("%s", done.err);
        const char *rates = strstr(done.out, "rates   "), *suggested = strstr(done.out, "try     --lr ");
        assert_true(rates && suggested);
        assert_int_equal(sscanf(rates, "rates   %lg to %lg in %u steps", &from, &to, &steps), 3);
        assert_int_equal(sscanf(suggested, "try     --lr %lg:", &rate), 1);
        assert_true(fabs(from - 2e-6) < 1e-12 && to > 0.02 && steps > 50 && steps <= 100);
        assert_true(rate > 1e-4 && rate < 1 && rate < to);
        assert_null(strstr(done.out, "epoch 1/"));
        assert_null(strstr(done.out, "generated text"));
        run_forget(r, &done);
        char *svg = program_text(r, "f.svg");
        assert_true(count(svg, "learning rate") == 2 && count(svg, ">1e-05</text>") == 1); /* title and axis */
        assert_true(count(svg, "<path") > steps / 2);
        vkt_free(&r->h, svg);
        assert_int_equal(vkt_temp_dir_count(&r->dir), 4); /* text, f.svg, out and err */
    }
    EXPECT(r, 0, "", TINY, "-q", "--find-lr", "f.png");
    char *out = program_text(r, "out");
    assert_string_equal(out, "");
    vkt_free(&r->h, out);
    assert_true(program_wrote(r, "f.png"));
}

static void files_of_a_training_are_refused(void **state)
{
    rig *r = rig_of(state);
    static const char *const others[] = { "--run",     "--checkpoint", "--resume",  "--save",     "--json",
                                          "--history", "--plot",       "--profile", "--confusion" };
    write_text(r);
    for (size_t i = 0; i < VKT_COUNT(others) - 1; i++) /* vkt-gpt has no --confusion */
        EXPECT(r, 2, "--find-lr ends before the training", TINY, "--find-lr", "f.svg", others[i], "x");
    EXPECT(r, 2, "--find-lr: want a name that ends in .svg or .png, got 'f.pdf'", TINY, "--find-lr", "f.pdf");
    EXPECT(r, 1, "--find-lr: cannot open the directory", TINY, "--find-lr", "none/f.svg");
}

static bool at_once(void *user)
{
    return ++*(unsigned *)user == 3;
}

/* A learning rate test between two fits changes no bit of the second fit. */
static void a_test_leaves_the_trainer_as_it_was(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *tested = rig_trainer(r, &p), *plain = rig_trainer(r, &p);
    static vkt_lr_test x;
    unsigned calls = 0;
    uint32_t n;
    rig_fit(tested, &(vkt_fit_params){ .epochs = 1 });
    rig_fit(plain, &(vkt_fit_params){ .epochs = 1 });
    assert_int_equal(vkt_trainer_find_lr(tested, NULL, &x), VKT_OK);
    assert_true(x.n > 20 && !x.stopped && x.suggested > 1e-5 && x.suggested < 10);
    assert_float_equal(x.rates[0], 1e-5, 1e-11);
    for (uint32_t i = 1; i < x.n; i++) assert_true(x.rates[i] > x.rates[i - 1] && x.losses[i] > 0);
    const double first = (x.losses[0] + x.losses[1] + x.losses[2] + x.losses[3] + x.losses[4] + x.losses[5]) / 6;
    assert_float_equal(x.smoothed[0], first, 1e-12);
    vkt_trainer_history(tested, &n);
    assert_int_equal(n, 1);
    assert_int_equal(vkt_trainer_position(tested).epoch, 2);
    for (vkt_store_part part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++)
        if (vkt_store_has(tested->store, part)) rig_same(tested, plain, part);
    rig_fit(tested, &(vkt_fit_params){ .epochs = 3 });
    rig_fit(plain, &(vkt_fit_params){ .epochs = 3 });
    rig_same(tested, plain, VKT_PART_VALUE);
    rig_same(tested, plain, VKT_PART_MOMENT1);
    assert_int_equal(vkt_trainer_find_lr(tested, &(vkt_fit_callbacks){ .user = &calls, .stop = at_once }, &x), VKT_OK);
    assert_true(x.stopped && x.n == 3);
}

static void a_rate_that_is_too_large_is_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    static vkt_lr_test x;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD };
    p.lr = 1e30f;
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_find_lr(t, NULL, &x), VKT_E_DIVERGED);
    vkt_test_error_contains("want a smaller learning rate, got 1e+30");
    assert_int_equal(vkt_trainer_find_lr(t, NULL, NULL), VKT_E_ARG);
    vkt_test_expect_errors(false);
}

static void the_plot_wants_rising_rates(void **state)
{
    rig *r = rig_of(state);
    const double rates[] = { 1e-3, 1e-2, 1e-1, 1 }, losses[] = { 2, 1, NAN, 9 }, line[] = { 2, 1.5, 1, INFINITY },
                 falling[] = { 1e-3, 1e-4 }, zero[] = { 0, 1 }, none[] = { NAN, INFINITY };
    char path[512];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "p.svg"));
    assert_int_equal(vkt_rates_plot(&r->h, rates, losses, line, 4, 0.02, path), VKT_OK);
    char *svg = program_text(r, "p.svg");
    assert_true(strstr(svg, ">0.02</text>") && strstr(svg, ">0.01</text>") && strstr(svg, ">loss</text>"));
    assert_true(!strstr(svg, "nan") && !strstr(svg, "inf"));
    vkt_free(&r->h, svg);
    assert_int_equal(vkt_rates_plot(&r->h, rates, losses, none, 2, NAN, path), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_rates_plot(&r->h, rates, losses, line, 1, NAN, path), VKT_E_ARG);
    assert_int_equal(vkt_rates_plot(&r->h, falling, losses, line, 2, NAN, path), VKT_E_ARG);
    assert_int_equal(vkt_rates_plot(&r->h, zero, losses, line, 2, NAN, path), VKT_E_ARG);
    assert_int_equal(vkt_rates_plot(&r->h, rates, none, none, 2, NAN, path), VKT_E_ARG);
    assert_int_equal(vkt_rates_plot(&r->h, rates, losses, line, 4, 2, path), VKT_E_ARG);
    assert_int_equal(vkt_rates_plot(&r->h, rates, losses, line, 4, NAN, "p.pdf"), VKT_E_ARG);
    vkt_test_expect_errors(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_rate_is_suggested_and_nothing_else_happens),
        rig_test(files_of_a_training_are_refused),
        rig_test(a_test_leaves_the_trainer_as_it_was),
        rig_test(a_rate_that_is_too_large_is_refused),
        rig_test(the_plot_wants_rising_rates),
    };
    return cmocka_run_group_tests_name("--find-lr", tests, NULL, NULL);
}
