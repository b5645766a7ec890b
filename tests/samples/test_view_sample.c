/* Tests the program vkt-view as its users run it: without a window, and in a window of an X server without a screen. */
#include "samples/program.h"

#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/screen.h"

#ifndef VKT_VIEW_PROGRAM
static void it_is_there(void **state)
{
    (void)state;
    puts("SKIPPED: vkt-view: GLFW was not found when this was built");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_there) };
    return cmocka_run_group_tests_name("vkt-view", tests, NULL, NULL);
}
#else

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_VIEW_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define SMALL "-q", "--side", "128", "--batch", "4096"
#define LEARNED 30.0 /* dB */

/* ---- screenshots ---- */

/* Returns pixel (x,y) of a part of a screenshot. `rect` is the report's member for the part: [left, top, width,
 * height]. */
static const unsigned char *pixel(cairo_surface_t *s, const json_t *rect, int x, int y)
{
    x += (int)json_integer_value(json_array_get(rect, 0));
    y += (int)json_integer_value(json_array_get(rect, 1));
    assert_in_range(x, 0, cairo_image_surface_get_width(s) - 1);
    assert_in_range(y, 0, cairo_image_surface_get_height(s) - 1);
    return cairo_image_surface_get_data(s) + y * cairo_image_surface_get_stride(s) + 4 * x;
}

/* Returns the PSNR of the network's image in a screenshot, compared with the target image beside it. The report has the
 * positions of both images. */
static double psnr_of(const rig *r, const char *shot, const char *report)
{
    cairo_surface_t *s = cairo_image_surface_create_from_png(vkt_temp_dir_file(&r->dir, shot));
    assert_int_equal(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    json_t *o = program_json(r, report);
    const json_t *target = json_object_get(o, "target"), *network = json_object_get(o, "network");
    const int width = (int)json_integer_value(json_array_get(target, 2)),
              height = (int)json_integer_value(json_array_get(target, 3));
    double sum = 0, least = 255, most = 0;
    assert_true(width >= 64 && height >= 64);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int k = 0; k < 3; k++) {
                const double a = pixel(s, target, x, y)[k], b = pixel(s, network, x, y)[k];
                sum += (a - b) * (a - b) / (255.0 * 255.0);
                least = fmin(least, a);
                most = fmax(most, a);
            }
    assert_true(most - least > 200); /* the target image is not blank */
    json_decref(o);
    cairo_surface_destroy(s);
    return -10 * log10(sum / (3.0 * width * height));
}

static double number_in(const rig *r, const char *report, const char *key)
{
    json_t *o = program_json(r, report);
    const double x = json_number_of(o, key);
    json_decref(o);
    return x;
}

/* Checks the program's report and its screenshot: the image must be learned. */
static void expect_learned(const rig *r, const char *shot, const char *report)
{
    const double reported = number_in(r, report, "psnr"), seen = psnr_of(r, shot, report);
    print_message("%s: %.2f dB, on the screen %.2f dB, after %.0f steps\n", report, reported, seen,
                  number_in(r, report, "steps"));
    assert_true(reported > LEARNED && seen > LEARNED - 1);
}

/* ---- without a screen ---- */

static void an_image_is_learned_without_a_screen(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", "-q", "--headless", "1", "--screenshot", "first.png", "--json", "first");
    assert_true(psnr_of(r, "first.png", "first") < 15);
    EXPECT(r, 0, "", "-q", "--headless", "80", "--screenshot", "last.png", "--json", "last");
    expect_learned(r, "last.png", "last");
    assert_true(number_in(r, "last", "steps") == 80);
}

static void recorded_steps_leave_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", SMALL, "--headless", "20", "--save", "submitted", "--json", "saved");
    EXPECT(r, 0, "", SMALL, "--headless", "20", "--save", "recorded", "--recorded");
    EXPECT(r, 0, "", SMALL, "--headless", "20", "--save", "other", "--seed", "2");
    char *const submitted = strdup(vkt_temp_dir_file(&r->dir, "submitted"));
    rig_same_file(submitted, vkt_temp_dir_file(&r->dir, "recorded"));
    free(submitted);
    EXPECT(r, 0, "", SMALL, "--headless", "1", "--load", "submitted", "--lr", "1e-8", "--json", "loaded");
    assert_true(fabs(number_in(r, "loaded", "psnr") - number_in(r, "saved", "psnr")) < 0.01);
    EXPECT(r, 1, "'grid'", "-q", "--side", "64", "--headless", "1", "--load", "submitted");
}

static void images_of_files_are_learned(void **state)
{
    static const char *const files[] = { VKT_TEST_DIR "/golden/images/444.jpg",
                                         VKT_TEST_DIR "/golden/images/444_rgb.png" };
    rig *r = rig_of(state);
    for (int i = 0; i < 2; i++) {
        EXPECT(r, 0, "", "-q", "--image", files[i], "--headless", "40", "--json", "report", "--screenshot", "shot.png");
        assert_true(number_in(r, "report", "psnr") > 20);
    }
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "--screenshot needs", "--screenshot", "x.png");
    EXPECT(r, 2, "--headless", "--headless", "0");
    EXPECT(r, 2, "--budget", "--budget", "-1");
    EXPECT(r, 1, "cannot open", "--headless", "1", "--image", "none.png");
    EXPECT(r, 1, VKT_TEST_DIR, "--headless", "1", "--image", VKT_TEST_DIR "/run.sh");
    EXPECT(r, 1, "no such card", "--headless", "1", "--device", "no such card");
    EXPECT(r, 1, "none/x.png", SMALL, "--headless", "1", "--screenshot", "none/x.png");
    const char *const nowhere[] = { "DISPLAY", "WAYLAND_DISPLAY", NULL };
    run done = program_finish(r, program_start(r, VKT_VIEW_PROGRAM, nowhere, (const char *const[]){ NULL }));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "GLFW"));
    run_forget(r, &done);
}

/* ---- in a window ---- */

static screen server; /* the X server of all tests that need one */
static bool has_server;

static int start_server(void **state)
{
    (void)state;
    has_server = screen_start(&server);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    if (has_server) screen_stop(&server);
    return 0;
}

static void want_server(void)
{
    if (has_server) return;
    puts("SKIPPED: vkt-view in a window: Xvfb is not installed");
    skip();
}

static void expect_in_window(const rig *r, const char *const *args)
{
    const char *const env[] = { server.display, "WAYLAND_DISPLAY", NULL };
    run done = program_finish(r, program_start(r, VKT_VIEW_PROGRAM, env, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    run_forget(r, &done);
}
#define IN_WINDOW(r, ...) expect_in_window(r, (const char *const[]){ SMALL, __VA_ARGS__, NULL })

/* Trains with a budget of time between frames. The budget is doubled until the image is learned, up to 1280 ms,
 * because a machine may be slow. */
static void expect_learned_in_budget(rig *r)
{
    double reported = 0;
    for (int ms = 40; ms <= 1280 && reported <= LEARNED; ms *= 2) {
        char budget[16];
        (void)snprintf(budget, sizeof budget, "%d", ms);
        IN_WINDOW(r, "--frames", "40", "--budget", budget, "--screenshot", "budget.png", "--json", "budget");
        reported = number_in(r, "budget", "psnr");
    }
    expect_learned(r, "budget.png", "budget");
}

/* The program trains either between frames, with a budget of time, or in the command buffers of the frames
 * (--recorded). */
static void an_image_is_learned_while_it_is_drawn(void **state)
{
    rig *r = rig_of(state);
    want_server();
    IN_WINDOW(r, "--frames", "2", "--screenshot", "first.png", "--json", "first");
    assert_true(psnr_of(r, "first.png", "first") < 15);
    expect_learned_in_budget(r);
    IN_WINDOW(r, "--frames", "80", "--recorded", "--screenshot", "recorded.png", "--json", "recorded");
    expect_learned(r, "recorded.png", "recorded");
    assert_true(number_in(r, "recorded", "steps") == 80);
}

static void keys_do_what_help_says(void **state)
{
    rig *r = rig_of(state);
    want_server();
    IN_WINDOW(r, "--recorded", "--frames", "30", "--keys", ".......... ", "--json", "paused");
    assert_true(number_in(r, "paused", "steps") == 10);
    IN_WINDOW(r, "--recorded", "--frames", "100", "--keys", ".................... sq", "--json", "saved");
    assert_true(number_in(r, "saved", "frames") < 30);
    IN_WINDOW(r, "--recorded", "--frames", "3", "--keys", " l", "--json", "loaded");
    assert_true(number_in(r, "loaded", "psnr") > 10 && number_in(r, "loaded", "steps") == 0);
    assert_true(number_in(r, "loaded", "psnr") == number_in(r, "saved", "psnr"));
    IN_WINDOW(r, "--recorded", "--frames", "25", "--keys", ".................... r", "--json", "reset");
    assert_true(number_in(r, "reset", "psnr") < 10);
    IN_WINDOW(r, "--keys", "++-+q", "--json", "budget");
    assert_true(number_in(r, "budget", "budget_ms") == 16);
}

static void a_window_may_change_its_size(void **state)
{
    rig *r = rig_of(state);
    want_server();
    const char *const env[] = { server.display, "WAYLAND_DISPLAY", NULL };
    const char *const args[] = { SMALL,      "--recorded", "--frames", "60", "--screenshot",
                                 "shot.png", "--json",     "report",   NULL };
    int width = 0, height = 0;
    /* The loop repeats if the program ended before its window was resized. */
    for (int i = 0; i < 5 && width != 500; i++) {
        const pid_t child = program_start(r, VKT_VIEW_PROGRAM, env, args);
        (void)screen_resize(&server, 500, 420);
        run done = program_finish(r, child);
        assert_int_equal(done.status, 0);
        run_forget(r, &done);
        cairo_surface_t *shot = cairo_image_surface_create_from_png(vkt_temp_dir_file(&r->dir, "shot.png"));
        width = cairo_image_surface_get_width(shot);
        height = cairo_image_surface_get_height(shot);
        cairo_surface_destroy(shot);
    }
    assert_int_equal(width, 500);
    assert_int_equal(height, 420);
    assert_true(psnr_of(r, "shot.png", "report") > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(an_image_is_learned_without_a_screen),  rig_test(recorded_steps_leave_the_same_bits),
        rig_test(images_of_files_are_learned),           rig_test(errors_are_explained),
        rig_test(an_image_is_learned_while_it_is_drawn), rig_test(keys_do_what_help_says),
        rig_test(a_window_may_change_its_size),
    };
    return cmocka_run_group_tests_name("vkt-view", tests, start_server, stop_server);
}
#endif
