/* Tests the history of a run: its best epoch, its CSV, its figure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairo.h>
#include <locale.h>
#include <math.h>

#include "base/file.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "train/plot.h"

static const vkt_epoch_record run[] = {
    { 1, .4812, .8461, .1102, .9648, .01, 19.25 }, { 2, .1371, .9587, .0781, .9755, .01, 19 },
    { 3, .1012, .9690, .0598, .9812, .01, 18.5 },  { 4, .0866, .9733, .0622, .9812, .001, 18 },
    { 5, .0789, .9757, NAN, NAN, .001, 18 },
};

static void the_best_epoch_follows_what_was_measured(void **state)
{
    (void)state;
    assert_int_equal(vkt_history_best(run, VKT_COUNT(run)), 2); /* the first of two equal accuracies */
    vkt_epoch_record r[3] = { { 1, 3, NAN, 1, NAN, 0, 0 }, { 2, 2, NAN, .5, NAN, 0, 0 }, { 3, 1, NAN, .7, NAN, 0, 0 } };
    assert_int_equal(vkt_history_best(r, 3), 1); /* the lowest val_loss */
    for (int i = 0; i < 3; i++) r[i].val_loss = i ? NAN : INFINITY;
    /* Epoch 1 has a val_loss (infinity), so only an epoch with a finite val_loss may be the best. There is none, so the
     * result is 3, the number of epochs. */
    assert_int_equal(vkt_history_best(r, 3), 3);
    for (int i = 0; i < 3; i++) r[i].val_loss = NAN;
    assert_int_equal(vkt_history_best(r, 3), 2); /* the lowest train_loss */
    for (int i = 0; i < 3; i++) r[i].train_loss = NAN;
    assert_int_equal(vkt_history_best(r, 3), 3);
    assert_int_equal(vkt_history_best(NULL, 0), 0);
}

static void csv_has_points_in_every_locale_and_empty_fields_for_nan(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "history.csv");
    static const char *const comma_locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "C" };
    size_t chosen = 0;
    while (!setlocale(LC_NUMERIC, comma_locales[chosen])) chosen++;
    if (chosen + 1 == VKT_COUNT(comma_locales)) print_message("no locale with a decimal comma is installed\n");
    const vkt_result r = vkt_history_write_csv(&h, run, VKT_COUNT(run), path);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(r, VKT_OK);
    void *text;
    size_t n;
    assert_int_equal(vkt_file_read(&h, path, 4096, &text, &n), VKT_OK);
    assert_string_equal(text, "epoch,train_loss,train_acc,val_loss,val_acc,lr,seconds\n"
                              "1,0.4812,0.8461,0.1102,0.9648,0.01,19.25\n"
                              "2,0.1371,0.9587,0.0781,0.9755,0.01,19\n"
                              "3,0.1012,0.969,0.0598,0.9812,0.01,18.5\n"
                              "4,0.0866,0.9733,0.0622,0.9812,0.001,18\n"
                              "5,0.0789,0.9757,,,0.001,18\n");
    vkt_free(&h, text);
    vkt_temp_dir_remove(&dir);
}

static void a_history_grows(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_history history = { .h = &h };
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(vkt_history_add(&history, &(vkt_epoch_record){ .epoch = i, .lr = i }), VKT_OK);
    }
    assert_int_equal(history.n, 100);
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(history.records[i].epoch, i);
    vkt_history_free(&history);
    assert_int_equal(history.n, 0);
    vkt_history_free(&history);
}

/* ---- the figure ---- */

/* Colours of plot.c as cairo stores them. */
enum { WHITE = 0xffffff, TRAIN = 0x0072b2, VAL = 0xd55e00 };

typedef struct ink {
    unsigned train[2], val[2]; /* number of pixels in the colour of the series. The legend is not counted.
                                * [0]: left panel; [1]: right panel */
    unsigned border;           /* number of pixels near the edge of the page that are not white; must be 0 */
} ink;

static ink look_at(const char *path)
{
    ink found = { 0 };
    cairo_surface_t *s = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    const int width = cairo_image_surface_get_width(s), height = cairo_image_surface_get_height(s);
    const int stride = cairo_image_surface_get_stride(s);
    const unsigned char *data = cairo_image_surface_get_data(s);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            uint32_t pixel;
            memcpy(&pixel, data + y * stride + x * 4, sizeof pixel);
            pixel &= 0xffffff;
            found.border += (x < 8 || y < 8 || x >= width - 8 || y >= height - 8) && pixel != WHITE;
            found.train[x >= width / 2] += y > height / 4 && pixel == TRAIN;
            found.val[x >= width / 2] += y > height / 4 && pixel == VAL;
        }
    }
    cairo_surface_destroy(s);
    return found;
}

/* Draws the history. Checks that a panel shows a series if and only if the series has a value that is no gap. Gaps are
 * NaN, infinite values and magnitudes above 1e30. */
static void check_image(const vkt_epoch_record *records, size_t n, const char *title)
{
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "plot.png");
    bool want[4] = { false };
    for (size_t i = 0; i < n; i++) {
        const double v[4] = { records[i].train_loss, records[i].val_loss, records[i].train_acc, records[i].val_acc };
        for (int k = 0; k < 4; k++) want[k] = want[k] || fabs(v[k]) <= 1e30 /* larger numbers are gaps */;
    }
    assert_int_equal(vkt_history_plot(&h, records, n, vkt_history_best(records, n), title, path), VKT_OK);
    const ink seen = look_at(path);
    for (int right = 0; right < 2; right++) {
        assert_int_equal(seen.train[right] > 8, want[2 * right]);
        assert_int_equal(seen.val[right] > 8, want[2 * right + 1]);
    }
    assert_int_equal(seen.border, 0);
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

static void every_kind_of_history_is_drawn(void **state)
{
    (void)state;
    check_image(run, VKT_COUNT(run), "a run");
    check_image(run, 1, NULL);
    check_image(run, 2, "");
    check_image(run + 4, 1, "no validation");
    char title[600];
    memset(title, 'W', sizeof title - 1);
    title[150] = 0;
    check_image(run, VKT_COUNT(run), title);

    static const double odd[] = { 0, 1, -1, 1e-300, 1e-9, 12345.678, 1e12, -3e29, 1e300, INFINITY, NAN };
    vkt_epoch_record r[40];
    /* In each image, all epochs have the same loss and accuracy: one number of `odd`. Only the training or only the
     * validation has this number, because equal lines would hide each other. */
    for (size_t k = 0; k < 2 * VKT_COUNT(odd); k++) {
        const double v = odd[k / 2], train = k % 2 ? NAN : v, val = k % 2 ? v : NAN;
        for (uint32_t i = 0; i < 40; i++) r[i] = (vkt_epoch_record){ i, train, train, val, val, 0, 0 };
        check_image(r, 40, "constant");
    }
    for (uint32_t i = 0; i < 40; i++) { /* all series except train_acc have a gap at every second epoch */
        const double v = i % 2 ? NAN : i * 1e28;
        r[i] = (vkt_epoch_record){ UINT32_MAX - 40 + i, v, 1 - 1e-14 * i, -v, i % 2 ? INFINITY : 1e-300 * i, 0, 0 };
    }
    check_image(r, 40, "gaps");
}

static void both_formats_are_what_their_names_say(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    static const struct {
        const char *name, *begins;
    } files[] = {
        { "a.png", "\x89PNG\r\n\x1a\n" }, { "a.PNG", "\x89PNG" }, { "a.b.svg", "<?xml" }, { "a.Svg", "<?xml" }
    };
    for (size_t i = 0; i < VKT_COUNT(files); i++) {
        void *first, *second;
        size_t n, n2;
        const char *path = vkt_temp_dir_file(&dir, files[i].name);
        assert_int_equal(vkt_history_plot(&h, run, VKT_COUNT(run), 2, "x < y & z", path), VKT_OK);
        assert_int_equal(vkt_file_read(&h, path, 1 << 22, &first, &n), VKT_OK);
        assert_memory_equal(first, files[i].begins, strlen(files[i].begins));
        if (i >= 2) assert_non_null(strstr(first, "</svg>"));
        assert_int_equal(vkt_history_plot(&h, run, VKT_COUNT(run), 2, "x < y & z", path), VKT_OK);
        assert_int_equal(vkt_file_read(&h, path, 1 << 22, &second, &n2), VKT_OK);
        assert_int_equal(n, n2); /* cairo gives surfaces new ids in each SVG, so only the file sizes must be equal */
        vkt_free(&h, first);
        vkt_free(&h, second);
    }
    vkt_temp_dir_remove(&dir);
}

/* An SVG has its text as text elements, not as glyphs, so that a reader can search and copy the text. */
static void text_of_an_svg_stays_text(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.svg");
    static const char *const says[] = { ">x &lt; y &amp; z\xc3\xbc ?</text>",
                                        ">best epoch 3:  validation accuracy 0.9812,",
                                        ">Loss</text>",
                                        ">Accuracy</text>",
                                        ">epoch</text>",
                                        ">train</text>",
                                        ">validation</text>",
                                        ">best</text>",
                                        ">0.90</text>",
                                        "font-family=\"sans-serif\"" };
    void *text;
    size_t n;
    assert_int_equal(vkt_history_plot(&h, run, VKT_COUNT(run), 2, "x < y & z\xc3\xbc\n?", path), VKT_OK);
    assert_int_equal(vkt_file_read(&h, path, 1 << 22, &text, &n), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(says); i++)
        if (!strstr(text, says[i])) fail_msg("the image does not say %s", says[i]);
    assert_null(strstr(text, "glyph"));
    assert_string_equal((char *)text + n - 12, "</g>\n</svg>\n");
    vkt_free(&h, text);
    for (unsigned k = 1;; k++) {
        vkt_test_fail_allocation(k);
        const vkt_result r = vkt_history_plot(&h, run, VKT_COUNT(run), 2, "x", path);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_test_fail_allocation(0);
    vkt_temp_dir_remove(&dir);
}

static void failures_leave_the_old_image(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.png");
    assert_int_equal(vkt_file_write(&h, path, "old", 3), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_history_plot(&h, run, 1, 0, "\xff\xfe", path), VKT_E_ARG);
    vkt_test_error_contains(path);
    assert_int_equal(vkt_history_plot(&h, run, 0, 0, "none", path), VKT_E_ARG);
    assert_int_equal(vkt_history_plot(&h, run, 1, 0, "x", vkt_temp_dir_file(&dir, "a.jpg")), VKT_E_ARG);
    vkt_test_error_contains(".svg or .png");
    assert_int_equal(vkt_history_plot(&h, run, 1, 0, "x", vkt_temp_dir_file(&dir, "png")), VKT_E_ARG);
    assert_int_equal(vkt_history_plot(&h, run, 1, 0, "x", vkt_temp_dir_file(&dir, "none/a.png")), VKT_E_IO);
    unsigned failures = 0;
    for (unsigned n = 1;; n++, failures++) {
        void *bytes;
        size_t size;
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_history_plot(&h, run, 1, 0, "x", path);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
        vkt_test_fail_allocation(0);
        assert_int_equal(vkt_file_read(&h, path, 100, &bytes, &size), VKT_OK);
        assert_string_equal(bytes, "old");
        vkt_free(&h, bytes);
    }
    assert_true(failures >= 3);
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_history_write_csv(&h, run, VKT_COUNT(run), path);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        assert_int_equal(vkt_test_live_blocks(), 0);
        if (!failed) break;
    }
    vkt_test_fail_allocation(0);
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_best_epoch_follows_what_was_measured),
        TEST(csv_has_points_in_every_locale_and_empty_fields_for_nan),
        TEST(a_history_grows),
        TEST(every_kind_of_history_is_drawn),
        TEST(both_formats_are_what_their_names_say),
        TEST(text_of_an_svg_stays_text),
        TEST(failures_leave_the_old_image),
    };
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
