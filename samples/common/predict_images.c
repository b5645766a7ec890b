/* common/predict_images.c - see predict_images.h. */
#include "common/predict_images.h"

#include <math.h>
#include <stdlib.h>

enum { LOOKED_AT = 256, LARGEST = 8192 };

const char image_predict_help[] =
    "print the class of each FILE, a PNG or JPEG of any size (- is standard input), with the "
    "weights of --load";

/* Returns the mean of the outermost pixels of a gray image, 0 to 1. */
static double border_of(const unsigned char *pixels, uint32_t height, uint32_t width)
{
    double sum = 0;
    uint64_t n = 0;
    for (uint32_t y = 0; y < height; y++) {
        const bool edge = y == 0 || y + 1 == height;
        for (uint32_t x = 0; x < width; x += edge || width == 1 ? 1 : width - 1, n++) sum += pixels[y * width + x];
    }
    return sum / (double)n / 255;
}

double image_ground(const vkt_dataset *d)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(d, chw);
    if (vkt_dataset_type(d) != VKT_ROW_U8 || chw[0] != 1) return NAN;
    const uint32_t n = vkt_dataset_rows(d) < LOOKED_AT ? vkt_dataset_rows(d) : LOOKED_AT;
    unsigned char *row = malloc(vkt_dataset_row_bytes(d));
    double sum = row ? 0 : NAN;
    for (uint32_t i = 0; row && i < n; i++)
        sum += vkt_dataset_fetch(d, i, row) == VKT_OK ? border_of(row, chw[1], chw[2]) : NAN;
    free(row);
    return sum / n;
}

/* The inputs of read_images. `card` has the shape of a sample. `images` describes how an image becomes a sample. */
typedef struct image_reader {
    const vkt_card *card;
    vkt_image_params images;
    double ground; /* see predict_images; NaN: no image is inverted */
} image_reader;

/* ---- IDX ---- */

static vkt_result read_idx(const image_reader *reader, predict_list *list, const char *path)
{
    vkt_dataset *d;
    uint32_t chw[3];
    vkt_result r = vkt_dataset_from_idx(predict_host(list), path, NULL, 0, &d);
    if (r != VKT_OK) return r;
    vkt_dataset_sample_shape(d, chw);
    if (chw[0] != reader->card->chw[0] || chw[1] != reader->card->chw[1] || chw[2] != reader->card->chw[2])
        r = predict_fail(list, VKT_E_SHAPE, "want images of %ux%ux%u, got %ux%ux%u", reader->card->chw[0],
                         reader->card->chw[1], reader->card->chw[2], chw[0], chw[1], chw[2]);
    const size_t row_bytes = vkt_dataset_row_bytes(d);
    const unsigned char *rows = vkt_dataset_features(d);
    for (uint32_t i = 0; r == VKT_OK && i < vkt_dataset_rows(d); i++) r = predict_add(list, rows + i * row_bytes, NULL);
    vkt_dataset_destroy(&d);
    return r;
}

/* Returns whether the bytes begin like an IDX array of u8, or like gzip. */
static bool is_idx(const char *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    return n >= 4 && ((p[0] == 0 && p[1] == 0 && p[2] == 8) || (p[0] == 0x1f && p[1] == 0x8b));
}

/* ---- PNG and JPEG ---- */

static vkt_result read_image(const image_reader *reader, predict_list *list, const char *path, const char *bytes,
                             size_t n)
{
    const size_t row_bytes = (size_t)reader->card->chw[0] * reader->card->chw[1] * reader->card->chw[2];
    unsigned char *row = malloc(row_bytes);
    if (!row) return predict_fail(list, VKT_E_NOMEM, "there is no memory for a row of %zu bytes", row_bytes);
    vkt_result r = vkt_image_row(predict_host(list), &reader->images, path, bytes, n, row);
    const char *note = NULL;
    if (r == VKT_OK && !isnan(reader->ground) && reader->card->chw[0] == 1) {
        const bool light = border_of(row, reader->card->chw[1], reader->card->chw[2]) > 0.5;
        if (light != (reader->ground > 0.5)) {
            for (size_t i = 0; i < row_bytes; i++) row[i] = (unsigned char)(255 - row[i]);
            note = light ? "dark on light: inverted" : "light on dark: inverted";
        }
    }
    if (r == VKT_OK) r = predict_add(list, row, note);
    free(row);
    return r;
}

static vkt_result read_images(void *user, predict_list *list, const char *path)
{
    const image_reader *reader = user;
    char *bytes;
    size_t n;
    vkt_result r = predict_bytes(list, path, &bytes, &n);
    if (r != VKT_OK) return r;
    if (is_idx(bytes, n) && !(path[0] == '-' && !path[1]))
        r = read_idx(reader, list, path);
    else if (reader->card->chw[0] != 1 && reader->card->chw[0] != 3)
        r = predict_fail(list, VKT_E_SHAPE, "the network wants %u channels, images have 1 or 3", reader->card->chw[0]);
    else
        r = read_image(reader, list, path, bytes, n);
    free(bytes);
    return r;
}

vkt_result predict_images(session *s, const char *program, vkt_forward_fn forward, void *model, const vkt_card *card,
                          uint64_t max_pixels)
{
    double resize;
    image_reader reader = {
        .card = card,
        .images = { .height = card->chw[1], .width = card->chw[2], .gray = card->chw[0] == 1, .max_pixels = max_pixels }
    };
    if (vkt_card_numbers(card, "ground", 1, &reader.ground) != 1) reader.ground = NAN;
    if (vkt_card_numbers(card, "resize", 1, &resize) == 1 && resize >= 1 && resize <= LARGEST)
        reader.images.resize = (uint32_t)resize;
    const predict_kind kind = {
        .program = program, .forward = forward, .model = model, .read = read_images, .reader = &reader
    };
    return predict_files(s, &kind, card);
}
