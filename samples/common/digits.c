/* common/digits.c - see digits.h. A Braille letter has 2 x 4 dots. Its code is U+2800 plus one bit per dot (Unicode,
 * block "Braille Patterns"). */
#include "common/digits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/classes.h"
#include "common/terminal.h"

enum { COLUMNS = 14, LINES = 7, DOTS_WIDE = 2 * COLUMNS, DOTS_HIGH = 4 * LINES, GAP = 2, CAPTION_LINES = 3 };

/* Returns the pixel under a dot. The image is sampled, not filtered. */
static float pixel(const text_image *p, uint32_t dot_y, uint32_t dot_x)
{
    const uint32_t y = (2 * dot_y + 1) * p->height / (2 * DOTS_HIGH), x = (2 * dot_x + 1) * p->width / (2 * DOTS_WIDE);
    return p->pixels[y * p->width + x];
}

static float middle(const text_image *p)
{
    float low = p->pixels[0], high = low;
    for (uint32_t i = 1; i < p->height * p->width; i++) {
        if (p->pixels[i] < low) low = p->pixels[i];
        if (p->pixels[i] > high) high = p->pixels[i];
    }
    return low + (high - low) * 0.4f;
}

/* Prints one character for 2 x 4 dots. A dot is set if its pixel is above `threshold`. If `unicode` is true, the
 * character is a Braille letter. Otherwise it is an ASCII character, which is denser if more dots are set. */
static void print_cell(FILE *out, const text_image *p, float threshold, uint32_t line, uint32_t column, bool unicode)
{
    static const char darker[] = " .:-=+*#@";
    static const unsigned char bits[4][2] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
    unsigned dots = 0, count = 0;
    for (uint32_t y = 0; y < 4; y++)
        for (uint32_t x = 0; x < 2; x++)
            if (pixel(p, 4 * line + y, 2 * column + x) > threshold) {
                dots |= bits[y][x];
                count++;
            }
    if (!unicode) {
        fputc(darker[count], out);
        return;
    }
    fprintf(out, "\xe2%c%c", 0xa0 | (int)(dots >> 6), 0x80 | (int)(dots & 0x3f)); /* UTF-8 of U+2800 + dots */
}

/* ---- captions ---- */

/* Returns how many bytes of `text` fit into COLUMNS characters. If at least one whole word fits, stops at the end of a
 * word. *columns is the number of characters in these bytes. */
static int line_bytes(const char *text, int *columns)
{
    int n = 0, blank = 0, blank_columns = 0;
    for (*columns = 0; text[n] && *columns < COLUMNS; (*columns)++) {
        if (text[n] == ' ') blank = n, blank_columns = *columns;
        for (n++; ((unsigned char)text[n] & 0xc0) == 0x80;) n++;
    }
    if (!text[n] || text[n] == ' ' || !blank) return n;
    *columns = blank_columns;
    return blank;
}

/* Prints the next line of each caption, side by side. Moves at[i] to the rest of caption i. */
static void print_caption_line(FILE *out, const char **at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int columns;
        const int bytes = line_bytes(at[i], &columns);
        fprintf(out, "%.*s%*s", bytes, at[i], COLUMNS - columns + (i + 1 < n ? GAP : 0), "");
        at[i] += bytes;
        while (*at[i] == ' ') at[i]++;
    }
    fputc('\n', out);
}

static void print_captions(FILE *out, const text_image *images, uint32_t n)
{
    enum { MOST = 16 };
    const char *at[MOST];
    if (n > MOST) n = MOST;
    for (uint32_t i = 0; i < n; i++) at[i] = images[i].caption;
    for (int line = 0; line < CAPTION_LINES; line++) {
        bool more = line == 0;
        for (uint32_t i = 0; i < n; i++) more = more || *at[i];
        if (more) print_caption_line(out, at, n);
    }
}

static void print_row(FILE *out, const text_image *images, uint32_t n)
{
    const bool unicode = terminal_unicode();
    for (uint32_t line = 0; line < LINES; line++) {
        for (uint32_t i = 0; i < n; i++) {
            const float threshold = middle(&images[i]);
            for (uint32_t column = 0; column < COLUMNS; column++)
                print_cell(out, &images[i], threshold, line, column, unicode);
            fprintf(out, "%*s", i + 1 < n ? GAP : 0, "");
        }
        fputc('\n', out);
    }
    print_captions(out, images, n);
}

void print_images(FILE *out, const text_image *images, uint32_t n)
{
    const uint32_t columns = terminal_columns(out), fit = (columns + GAP) / (COLUMNS + GAP);
    const uint32_t a_row = columns == 0 ? n : fit ? fit : 1;
    for (uint32_t i = 0; i < n; i += a_row) print_row(out, images + i, n - i < a_row ? n - i : a_row);
}

/* ---- predictions ---- */

enum { SHOWN = 5, SEARCHED = 1000 };

/* Loads channel 0 of sample `row` as floats; zeros if the sample cannot be fetched. The caption names the sample's
 * class, and also the class `guess` if the two differ. `raw` has room for the sample as it is stored. */
static void load_image(const vkt_dataset *d, uint32_t row, uint32_t guess, void *raw, float *pixels, text_image *out)
{
    uint32_t chw[3];
    char a[CLASS_NAME_ROOM], b[CLASS_NAME_ROOM];
    vkt_dataset_sample_shape(d, chw);
    *out = (text_image){ .pixels = pixels, .height = chw[1], .width = chw[2] };
    if (vkt_dataset_fetch(d, row, raw) != VKT_OK) memset(raw, 0, vkt_dataset_row_bytes(d));
    for (uint32_t i = 0; i < chw[1] * chw[2]; i++)
        pixels[i] = vkt_dataset_type(d) == VKT_ROW_U8 ? ((const unsigned char *)raw)[i] : ((const float *)raw)[i];
    const uint32_t truth = vkt_dataset_labels(d)[row];
    if (guess == truth)
        snprintf(out->caption, sizeof out->caption, "%s", class_name(d, truth, a));
    else
        snprintf(out->caption, sizeof out->caption, "%s read as %s", class_name(d, truth, a), class_name(d, guess, b));
}

/* Searches the first n samples. Prints up to SHOWN samples with a right prediction if `right` is true, otherwise up to
 * SHOWN samples with a wrong prediction. Returns false if there is no memory. */
static bool print_some(const vkt_dataset *d, const uint32_t *guesses, uint32_t n, bool right, const char *title)
{
    uint32_t chw[3], shown = 0;
    vkt_dataset_sample_shape(d, chw);
    const size_t area = (size_t)chw[1] * chw[2];
    void *raw = malloc(vkt_dataset_row_bytes(d));
    float *pixels = malloc(SHOWN * area * sizeof *pixels);
    text_image images[SHOWN];
    for (uint32_t i = 0; raw && pixels && i < n && shown < SHOWN; i++)
        if ((guesses[i] == vkt_dataset_labels(d)[i]) == right) {
            load_image(d, i, guesses[i], raw, pixels + shown * area, &images[shown]);
            shown++;
        }
    if (shown) {
        printf("\n%s\n", title);
        print_images(stdout, images, shown);
    }
    const bool ok = raw && pixels;
    free(raw);
    free(pixels);
    return ok;
}

vkt_result print_predictions(vkt_trainer *t, const vkt_dataset *d)
{
    static uint32_t guesses[SEARCHED];
    const uint32_t n = vkt_dataset_rows(d) < SEARCHED ? vkt_dataset_rows(d) : SEARCHED;
    const vkt_result r = vkt_trainer_predict(t, d, 0, n, guesses, NULL);
    if (r != VKT_OK) return r;
    char title[64];
    snprintf(title, sizeof title, "wrong among the first %u", n);
    return print_some(d, guesses, n, true, "correct") && print_some(d, guesses, n, false, title) ? VKT_OK : VKT_E_NOMEM;
}
