/* Tests the program vkt-ntc as its users run it: it packs small textures, unpacks them and shows them. */
#include "samples/program.h"

#include <cairo.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "io/safetensors.h"
#include "samples/screen.h"

#ifndef VKT_NTC_PROGRAM
static void it_is_there(void **state)
{
    (void)state;
    puts("SKIPPED: vkt-ntc: GLFW was not found when this was built");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_there) };
    return cmocka_run_group_tests_name("vkt-ntc", tests, NULL, NULL);
}
#else

enum { WIDTH = 39, HEIGHT = 35, FILES = 2 }; /* odd sides: the last blocks of 2 x 2 texels reach beyond the images */
#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_NTC_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
/* The hidden layers of 8 numbers and the small tiles keep the test short. The side of a tile, 32, does not divide the
 * sides of the images. */
#define SMALL "-q", "--hidden", "8", "--tile", "32", "--grids", "2:4:4,4:2:3:corners"
#define FOUR_BITS "--hidden", "8", "--tile", "32", "--grids", "2:3:4,8:2:4", "--steps", "400"
#define IMAGES "colour.png", "gray.png"

/* ---- the textures ---- */

/* Returns channel c of a pixel: smooth waves. Texture 1 is gray. */
static uint8_t wave(uint32_t texture, uint32_t x, uint32_t y, uint32_t c)
{
    const double phase = texture ? 0.2 : 0.1 + 0.08 * c;
    return (uint8_t)(127.5 + 110 * sin(phase * x + 0.15 * y) * cos(0.1 * y + texture));
}

static void draw_textures(const rig *r)
{
    static const char *const names[FILES] = { IMAGES };
    for (uint32_t i = 0; i < FILES; i++) {
        cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, HEIGHT);
        uint32_t *rows = (uint32_t *)(void *)cairo_image_surface_get_data(s);
        const size_t pitch = (size_t)cairo_image_surface_get_stride(s) / 4;
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < WIDTH; x++)
                rows[y * pitch + x] = (uint32_t)wave(i, x, y, 0) << 16 | (uint32_t)wave(i, x, y, i ? 0 : 1) << 8 |
                                      wave(i, x, y, i ? 0 : 2);
        cairo_surface_mark_dirty(s);
        assert_int_equal(cairo_surface_write_to_png(s, vkt_temp_dir_file(&r->dir, names[i])), CAIRO_STATUS_SUCCESS);
        cairo_surface_destroy(s);
    }
}

/* Returns the PSNR of an image file, compared with a texture. */
static double psnr_of(const rig *r, const char *file, uint32_t texture)
{
    cairo_surface_t *s = cairo_image_surface_create_from_png(vkt_temp_dir_file(&r->dir, file));
    assert_int_equal(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    assert_int_equal(cairo_image_surface_get_width(s), WIDTH);
    assert_int_equal(cairo_image_surface_get_height(s), HEIGHT);
    double sum = 0;
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const uint8_t *p =
                    cairo_image_surface_get_data(s) + y * (uint32_t)cairo_image_surface_get_stride(s) + 4 * x;
                const double d = (p[2 - c] - wave(texture, x, y, texture ? 0 : c)) / 255.0;
                sum += d * d;
            }
    cairo_surface_destroy(s);
    return -10 * log10(sum / (3.0 * WIDTH * HEIGHT));
}

static double member(const json_t *o, const char *key)
{
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

/* Returns a 32-bit word of a file, and the file's size in *bytes. */
static uint32_t word_of(const rig *r, const char *file, size_t word, size_t *bytes)
{
    static uint8_t all[1 << 16];
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, file), "rb");
    assert_non_null(f);
    *bytes = fread(all, 1, sizeof all, f);
    fclose(f);
    assert_true(4 * word + 4 <= *bytes);
    const uint8_t *p = all + 4 * word;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- tests ---- */

/* With --dds, unpack writes the latents as BC4 blocks. The latents of grid 0 have two bits. BC4 does not change them,
 * because `unpack` rounds each decoded number to one of four levels, and gets the same level as before. The latents of
 * grid 1 have four bits, and change a little. */
static void latents_are_written_as_blocks(void **state)
{
    rig *r = rig_of(state);
    size_t bytes;
    draw_textures(r);
    EXPECT(r, 0, "", "pack", "-q", IMAGES, "-o", "a.vtc", "--hidden", "8", "--grids", "2:3:2,8:2:4", "--steps", "600");
    EXPECT(r, 0, "", "unpack", "a.vtc", "-o", "plain");
    EXPECT(r, 0, "", "unpack", "a.vtc", "-o", "blocks", "--dds");
    const double plain = psnr_of(r, "plain/colour.png", 0), blocks = psnr_of(r, "blocks/colour.png", 0);
    print_message("%.2f dB, with BC4 %.2f dB\n", plain, blocks);
    assert_true(plain > 15 && blocks > plain - 3);
    assert_int_equal(word_of(r, "blocks/grid0.dds", 0, &bytes), 0x20534444);
    assert_int_equal(bytes, 148 + 3 * 5 * 5 * 8); /* 20 x 18 cells */
    assert_int_equal(word_of(r, "blocks/grid0.dds", 3, &bytes), (HEIGHT + 1) / 2);
    assert_int_equal(word_of(r, "blocks/grid0.dds", 4, &bytes), (WIDTH + 1) / 2);
    assert_int_equal(word_of(r, "blocks/grid1.dds", 35, &bytes), 2);
    assert_int_equal(bytes, 148 + 2 * 2 * 2 * 8); /* 5 x 5 cells */
}

/* Reads a whole file. Returns its size. */
static size_t bytes_of(const rig *r, const char *file, uint8_t *all, size_t room)
{
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, file), "rb");
    assert_non_null(f);
    const size_t n = fread(all, 1, room, f);
    fclose(f);
    assert_true(n < room);
    return n;
}

/* Returns, for a checkpoint, the share of grid 0's latents that are multiples of 1/8925, as all BC4 values are. */
static double share_of_blocks(const rig *r, const char *file)
{
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, file), &st), VKT_OK);
    const vkt_st_entry *e = vkt_safetensors_find(st, "latents.0");
    assert_non_null(e);
    float *x = test_malloc(e->elements * sizeof *x);
    assert_int_equal(vkt_safetensors_read_f32(st, e, x, e->elements), VKT_OK);
    double n = 0;
    for (uint64_t i = 0; i < e->elements; i++) {
        const double units = 8925 * (double)x[i];
        n += units > -1e-3 && units < 8925.001 && fabs(units - nearbyint(units)) < 1e-3;
    }
    n /= (double)e->elements;
    test_free(x);
    vkt_safetensors_close(&st);
    return n;
}

/* With --bc4, all latents have values of BC4 blocks after the last step, and the packed file ends with the blocks of
 * both grids. The DDS files of unpack --dds have the same blocks behind their headers. So unpack writes the same images
 * with and without --dds, byte for byte. The PSNR of these images is at most half a decibel below the PSNR with latents
 * of four bits. */
static void trained_blocks_lose_nothing(void **state)
{
    enum { ROOM = 1 << 16, HEADER = 148 };
    static uint8_t file[ROOM], grid[ROOM];
    static const char *const grids[] = { "blocks/grid0.dds", "blocks/grid1.dds" };
    static const char *const images[FILES] = { "colour.png", "gray.png" };
    rig *r = rig_of(state);
    draw_textures(r);
    EXPECT(r, 0, "", "pack", "-q", IMAGES, "-o", "a.vtc", FOUR_BITS, "--bc4", "--json", "report", "--checkpoint",
           "state");
    EXPECT(r, 0, "", "pack", "-q", IMAGES, "-o", "four.vtc", FOUR_BITS, "--checkpoint", "state4");
    assert_true(share_of_blocks(r, "state") == 1 && share_of_blocks(r, "state4") < 0.5);
    EXPECT(r, 0, "", "unpack", "a.vtc", "-o", "plain");
    EXPECT(r, 0, "", "unpack", "a.vtc", "-o", "blocks", "--dds");
    EXPECT(r, 0, "", "unpack", "four.vtc", "-o", "four");
    size_t at = bytes_of(r, "a.vtc", file, ROOM);
    json_t *o = program_json(r, "report");
    assert_int_equal((size_t)member(o, "bytes"), at);
    json_decref(o);
    for (int i = 1; i >= 0; i--) {
        const size_t n = bytes_of(r, grids[i], grid, ROOM) - HEADER;
        assert_int_equal(n, i ? 2 * 2 * 2 * 8 : 3 * 5 * 5 * 8); /* grid 1: 5 x 5 cells; grid 0: 20 x 18 cells */
        at -= n;
        assert_memory_equal(file + at, grid + HEADER, n);
    }
    for (uint32_t i = 0; i < FILES; i++) {
        char plain[32], blocks[32], four[32];
        snprintf(plain, sizeof plain, "plain/%s", images[i]);
        snprintf(blocks, sizeof blocks, "blocks/%s", images[i]);
        snprintf(four, sizeof four, "four/%s", images[i]);
        const size_t n = bytes_of(r, plain, file, ROOM);
        assert_int_equal(bytes_of(r, blocks, grid, ROOM), n);
        assert_memory_equal(file, grid, n);
        print_message("%s: %.2f dB, with four bits %.2f dB\n", images[i], psnr_of(r, plain, i), psnr_of(r, four, i));
        assert_true(psnr_of(r, plain, i) > fmax(15, psnr_of(r, four, i) - 0.5));
    }
    EXPECT(r, 0, "", "view", "-q", "a.vtc", "--headless", "1", "--json", "file");
    o = program_json(r, "file");
    assert_true(member(o, "difference_decoder") <= 1);
    json_decref(o);
}

static void textures_come_back_as_the_report_says(void **state)
{
    rig *r = rig_of(state);
    draw_textures(r);
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "a.vtc", SMALL, "--steps", "600", "--json", "report");
    EXPECT(r, 0, "", "unpack", "a.vtc", "-o", "decoded");
    json_t *o = program_json(r, "report");
    const json_t *textures = json_object_get(o, "textures");
    static const char *const files[FILES] = { "decoded/colour.png", "decoded/gray.png" };
    assert_int_equal(json_array_size(textures), FILES);
    for (uint32_t i = 0; i < FILES; i++) {
        const json_t *t = json_array_get(textures, i);
        const double psnr = psnr_of(r, files[i], i);
        print_message("%s: %.2f dB\n", files[i], psnr);
        assert_true(fabs(psnr - member(t, "psnr")) < 1e-6);
        assert_true(psnr > 15);
        assert_true(member(t, "channels") == (i ? 1 : 3));
    }
    json_decref(o);
}

/* Kills a run after its first checkpoint, and resumes it. The resumed run must write the same file as a run that is not
 * killed. `every`: the number for --checkpoint-every. `more`: one more option, or NULL. */
static void check_a_kill(rig *r, const char *every, const char *more)
{
    draw_textures(r);
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "a.vtc", SMALL, "--steps", "400", more);
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "b.vtc", SMALL, "--steps", "400", more);
    char *const first = strdup(vkt_temp_dir_file(&r->dir, "a.vtc"));
    rig_same_file(first, vkt_temp_dir_file(&r->dir, "b.vtc"));
    const char *const args[] = {
        "pack", IMAGES, "-o", "c.vtc", SMALL, "--steps", "400", "--checkpoint", "state", "--checkpoint-every",
        every,  more,   NULL
    };
    const pid_t child = program_start(r, VKT_NTC_PROGRAM, NULL, args);
    while (!program_wrote(r, "state")) { /* waits for the first checkpoint, or for the end after an error */
        const struct timespec pause = { 0, 5000000 };
        siginfo_t ended = { .si_pid = 0 };
        assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        if (ended.si_pid) break;
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    run done = program_finish(r, child);
    if (done.status == 0) puts("SKIPPED: the run had ended before it was killed");
    run_forget(r, &done);
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "c.vtc", SMALL, "--steps", "400", "--resume", "state", more);
    rig_same_file(first, vkt_temp_dir_file(&r->dir, "c.vtc"));
    free(first);
    EXPECT(r, 1, "do not fit this run", "pack", IMAGES, "-o", "c.vtc", SMALL, "--steps", "400", "--seed", "3",
           "--resume", "state");
}

static void the_same_run_gives_the_same_file_also_after_a_kill(void **state)
{
    rig *r = rig_of(state);
    check_a_kill(r, "7", NULL);
}

/* The latents become values of BC4 blocks at step 380 of 400. The first killed run has its first checkpoint at
 * step 7, before this change. The second killed run has its first checkpoint at step 385, after this change. */
static void so_do_blocks(void **state)
{
    rig *r = rig_of(state);
    check_a_kill(r, "7", "--bc4");
    assert_int_equal(remove(vkt_temp_dir_file(&r->dir, "state")), 0);
    check_a_kill(r, "385", "--bc4");
}

static void shader_library_and_decoder_agree(void **state)
{
    rig *r = rig_of(state);
    draw_textures(r);
    EXPECT(r, 0, "", "view", IMAGES, SMALL, "--steps", "300", "--headless", "300", "--screenshot", "shot.png", "--json",
           "report");
    json_t *o = program_json(r, "report");
    print_message("%.2f dB\n", member(o, "psnr"));
    assert_true(member(o, "psnr") > 14);
    assert_true(member(o, "difference_decoder") <= 1 && member(o, "difference_library") <= 1);
    json_decref(o);
    assert_true(program_wrote(r, "shot.png"));
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "a.vtc", SMALL, "--steps", "50");
    EXPECT(r, 0, "", "view", "-q", "a.vtc", "--headless", "1", "--json", "file");
    o = program_json(r, "file");
    assert_true(member(o, "difference_decoder") <= 1);
    json_decref(o);
}

/* Writes the first n bytes of a file to damaged.vtc. Changes byte `at`; if at >= n, changes no byte. */
static void damage(const rig *r, const char *from, size_t n, size_t at)
{
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, from), "rb");
    assert_non_null(f);
    uint8_t *bytes = malloc(n + 1);
    assert_int_equal(fread(bytes, 1, n, f), n);
    fclose(f);
    if (at < n) bytes[at] ^= 0x41;
    f = fopen(vkt_temp_dir_file(&r->dir, "damaged.vtc"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

static void damaged_files_are_refused(void **state)
{
    rig *r = rig_of(state);
    draw_textures(r);
    EXPECT(r, 0, "", "pack", IMAGES, "-o", "a.vtc", SMALL, "--steps", "3", "--json", "report");
    json_t *o = program_json(r, "report");
    const size_t n = (size_t)member(o, "bytes");
    json_decref(o);
    damage(r, "a.vtc", n, n);
    EXPECT(r, 0, "", "unpack", "damaged.vtc", "-o", "decoded");
    const size_t lengths[] = { 0, 3, 11, 12, 40, n / 2, n - 1 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        damage(r, "a.vtc", lengths[i], n);
        EXPECT(r, 1, "damaged.vtc: ", "unpack", "damaged.vtc", "-o", "decoded");
    }
    const size_t places[] = { 0, 5, 9, 12, 17, 21, 26, 30, 34, 70, 110, n / 2, n - 1 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        damage(r, "a.vtc", n, places[i]);
        EXPECT(r, 1, "damaged.vtc: ", "unpack", "damaged.vtc", "-o", "decoded");
    }
    EXPECT(r, 1, "damaged.vtc: ", "view", "damaged.vtc", "--headless", "1");
    EXPECT(r, 1, "none.vtc", "unpack", "none.vtc", "-o", "decoded");
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    draw_textures(r);
    EXPECT(r, 2, "want a command", "-q");
    EXPECT(r, 2, "want a command", "squeeze", "colour.png");
    EXPECT(r, 2, "want an output", "pack", "colour.png");
    EXPECT(r, 2, "want 1 to 1 files", "unpack", IMAGES, "-o", "decoded");
    EXPECT(r, 2, "--screenshot needs", "view", "colour.png", "--screenshot", "x.png");
    EXPECT(r, 2, "--bc4 is an option of pack", "unpack", "a.vtc", "-o", "decoded", "--bc4");
    EXPECT(r, 2, "--bc4 is an option of pack", "view", "colour.png", "--bc4");
    EXPECT(r, 2, "--json is an option of pack and view", "unpack", "a.vtc", "-o", "decoded", "--json", "report");
    EXPECT(r, 2, "--resume is an option of pack and view", "unpack", "a.vtc", "-o", "decoded", "--resume", "c");
    EXPECT(r, 2, "--checkpoint is an option of pack", "view", "colour.png", "--checkpoint", "c");
    EXPECT(r, 2, "--output is an option of pack and unpack", "view", "colour.png", "-o", "a.vtc");
    EXPECT(r, 2, "--dds is an option of unpack", "pack", "colour.png", "-o", "a.vtc", "--dds");
    EXPECT(r, 2, "--headless is an option of view", "pack", "colour.png", "-o", "a.vtc", "--headless", "1");
    EXPECT(r, 1, "--grids: want", "pack", "colour.png", "-o", "a.vtc", "--grids", "2:4");
    EXPECT(r, 1, "--grids: want", "pack", "colour.png", "-o", "a.vtc", "--grids", "2:4:0");
    EXPECT(r, 1, "1 to 8 bits", "pack", "colour.png", "-o", "a.vtc", "--grids", "2:4:9");
    EXPECT(r, 1, "an even number", "pack", "colour.png", "-o", "a.vtc", "--grids", "3:4:4");
    EXPECT(r, 1, "at most 128 inputs", "pack", "colour.png", "-o", "a.vtc", "--grids", "2:40:4:corners");
    EXPECT(r, 1, "too few", "pack", "colour.png", "-o", "a.vtc", "--bppc", "0.1");
    EXPECT(r, 1, "two images have the name", "pack", "colour.png", "./colour.png", "-o", "a.vtc");
    EXPECT(r, 1, "cannot open", "pack", "none.png", "-o", "a.vtc");
    EXPECT(r, 1, "nowhere/a.vtc", "pack", "colour.png", "-o", "nowhere/a.vtc");
    EXPECT(r, 1, "444.jpg", "pack", "colour.png", VKT_TEST_DIR "/golden/images/444.jpg", "-o", "a.vtc");
    assert_false(program_wrote(r, "a.vtc"));
}

static void a_window_shows_textures_while_they_are_trained(void **state)
{
    rig *r = rig_of(state);
    screen server;
    if (!screen_start(&server)) {
        puts("SKIPPED: vkt-ntc in a window: Xvfb is not installed");
        skip();
    }
    draw_textures(r);
    const char *const env[] = { server.display, "WAYLAND_DISPLAY", NULL };
    const char *const args[] = { "view",     IMAGES, SMALL,    "--steps", "100000",       "--budget", "50",
                                 "--frames", "40",   "--json", "report",  "--screenshot", "shot.png", NULL };
    run done = program_finish(r, program_start(r, VKT_NTC_PROGRAM, env, args));
    screen_stop(&server);
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    run_forget(r, &done);
    json_t *o = program_json(r, "report");
    assert_true(member(o, "frames") == 40 && member(o, "steps") > 0);
    json_decref(o);
    assert_true(program_wrote(r, "shot.png"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(textures_come_back_as_the_report_says),
        rig_test(the_same_run_gives_the_same_file_also_after_a_kill),
        rig_test(so_do_blocks),
        rig_test(latents_are_written_as_blocks),
        rig_test(trained_blocks_lose_nothing),
        rig_test(shader_library_and_decoder_agree),
        rig_test(damaged_files_are_refused),
        rig_test(errors_are_explained),
        rig_test(a_window_shows_textures_while_they_are_trained),
    };
    return cmocka_run_group_tests_name("vkt-ntc", tests, NULL, NULL);
}
#endif
