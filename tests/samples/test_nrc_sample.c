/* Tests the program vkt-nrc as its users run it: without a window, and in a window of an X server without a screen. */
#include "samples/program.h"

#include <cairo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/screen.h"

#ifndef VKT_NRC_PROGRAM
static void it_is_there(void **state)
{
    (void)state;
    puts("SKIPPED: vkt-nrc: GLFW was not found when this was built");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_there) };
    return cmocka_run_group_tests_name("vkt-nrc", tests, NULL, NULL);
}
#else

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_NRC_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
enum { WIDTH = 96, HEIGHT = 72, VIEWS = 3 };
#define SMALL "-q", "--size", "96x72", "--reference", "64"

static double number_in(const rig *r, const char *report, const char *key)
{
    json_t *o = program_json(r, report);
    const double x = json_number_of(o, key);
    json_decref(o);
    return x;
}

/* ---- screenshots ---- */

static cairo_surface_t *open_shot(const rig *r, const char *name, int width, int height)
{
    cairo_surface_t *s = cairo_image_surface_create_from_png(vkt_temp_dir_file(&r->dir, name));
    assert_int_equal(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    assert_int_equal(cairo_image_surface_get_width(s), width);
    assert_int_equal(cairo_image_surface_get_height(s), height);
    return s;
}

/* Returns the mean absolute difference, from 0 to 255, of neighbouring pixels in the middle of view `view`. The
 * screenshot `s` has the views side by side. The difference is larger if the view has noise. */
static double roughness(cairo_surface_t *s, int view)
{
    const unsigned char *data = cairo_image_surface_get_data(s);
    const int stride = cairo_image_surface_get_stride(s);
    double sum = 0;
    int n = 0;
    for (int y = HEIGHT / 4; y < 3 * HEIGHT / 4; y++)
        for (int x = view * WIDTH + WIDTH / 4; x < view * WIDTH + 3 * WIDTH / 4; x++)
            for (int c = 0; c < 3; c++, n++)
                sum += abs(data[y * stride + 4 * x + c] - data[y * stride + 4 * (x + 1) + c]);
    return sum / n;
}

/* ---- without a screen ---- */

/* The PSNR of the network's image must be more than 13 dB above the PSNR of an image with one path per pixel. 40 frames
 * are enough for 96 x 72 pixels. */
static void light_is_learned_from_noise(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", SMALL, "--headless", "40", "--screenshot", "shot.png", "--json", "report");
    const double noisy = number_in(r, "report", "psnr_one_path"), learned = number_in(r, "report", "psnr_network");
    print_message("one path a pixel %.2f dB, network %.2f dB\n", noisy, learned);
    assert_true(noisy > 10 && learned > noisy + 13);
    assert_true(number_in(r, "report", "difference") <= 1);
    assert_true(number_in(r, "report", "steps") == 320);
    cairo_surface_t *s = open_shot(r, "shot.png", VIEWS * WIDTH, HEIGHT);
    assert_true(roughness(s, 0) > 4 * roughness(s, 1)); /* view 0: one path per pixel; view 1: the network */
    assert_true(roughness(s, 0) > 4 * roughness(s, 2)); /* view 2: the reference */
    cairo_surface_destroy(s);
}

static void an_untrained_network_is_not_good(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", SMALL, "--headless", "1", "--json", "report");
    assert_true(number_in(r, "report", "psnr_network") < 20);
    assert_true(number_in(r, "report", "difference") <= 1);
}

static void the_same_seed_gives_the_same_image(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", SMALL, "--headless", "5", "--screenshot", "a.png");
    EXPECT(r, 0, "", SMALL, "--headless", "5", "--screenshot", "b.png");
    EXPECT(r, 0, "", SMALL, "--headless", "5", "--screenshot", "c.png", "--seed", "2");
    char *const a = strdup(vkt_temp_dir_file(&r->dir, "a.png"));
    rig_same_file(a, vkt_temp_dir_file(&r->dir, "b.png"));
    free(a);
    cairo_surface_t *s = open_shot(r, "a.png", VIEWS * WIDTH, HEIGHT),
                    *t = open_shot(r, "c.png", VIEWS * WIDTH, HEIGHT);
    assert_memory_not_equal(cairo_image_surface_get_data(s), cairo_image_surface_get_data(t), (size_t)4 * WIDTH);
    cairo_surface_destroy(s);
    cairo_surface_destroy(t);
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "--screenshot needs", "--screenshot", "x.png");
    EXPECT(r, 2, "WIDTHxHEIGHT", "--size", "96");
    EXPECT(r, 2, "WIDTHxHEIGHT", "--size", "8x72");
    EXPECT(r, 2, "WIDTHxHEIGHT", "--size", "96x72x3");
    EXPECT(r, 2, "--reference", "--reference", "1");
    EXPECT(r, 1, "no such card", "--headless", "1", "--device", "no such card");
    EXPECT(r, 1, "none/x.png", SMALL, "--headless", "1", "--screenshot", "none/x.png");
    EXPECT(r, 1, "memory", SMALL, "--headless", "1", "--memory-limit", "100K");
}

/* ---- in a window ---- */

static void light_is_learned_in_a_window(void **state)
{
    rig *r = rig_of(state);
    screen server;
    if (!screen_start(&server)) {
        puts("SKIPPED: vkt-nrc in a window: Xvfb is not installed");
        skip();
    }
    const char *const env[] = { server.display, "WAYLAND_DISPLAY", NULL };
    for (int library = 0; library < 2; library++) {
        const char *const args[] = { SMALL,      "--frames",
                                     "60",       "--budget",
                                     "1000",     "--screenshot",
                                     "shot.png", "--json",
                                     "report",   library ? "--library" : NULL,
                                     NULL };
        run done = program_finish(r, program_start(r, VKT_NRC_PROGRAM, env, args));
        if (done.status != 0) print_error("%s", done.err);
        assert_int_equal(done.status, 0);
        run_forget(r, &done);
        assert_true(number_in(r, "report", "frames") == 60);
        print_message("%.0f steps\n", number_in(r, "report", "steps"));
        cairo_surface_t *s = open_shot(r, "shot.png", 2 * WIDTH, HEIGHT);
        assert_true(roughness(s, 0) > 2 * roughness(s, 1));
        cairo_surface_destroy(s);
    }
    screen_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(light_is_learned_from_noise),        rig_test(an_untrained_network_is_not_good),
        rig_test(the_same_seed_gives_the_same_image), rig_test(errors_are_explained),
        rig_test(light_is_learned_in_a_window),
    };
    return cmocka_run_group_tests_name("vkt-nrc", tests, NULL, NULL);
}
#endif
