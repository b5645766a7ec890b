/* common/image_data.c - see image_data.h. */
#include "common/image_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/find_data.h"
#include "common/message.h"
#include "common/random.h"
#include "common/terminal.h"

enum { DRAWN_TRAIN = 2000, DRAWN_CHECK = 400, MAX_DRAWN_BYTES = 1 << 26 };
static const double CHECK_SHARE = 0.2;

const char image_data_help[] = "folder with train.csv (and valid.csv, test.csv) of path,label, or with folders of "
                               "images, one per class, or with folders train (and valid, test) of such";

/* ---- files ---- */

static bool exists(const char *folder, const char *name, const char *end, char path[DATA_PATH])
{
    struct stat s;
    return (size_t)snprintf(path, DATA_PATH, "%s/%s%s", folder, name, end) < DATA_PATH && stat(path, &s) == 0;
}

/* Opens <name>.csv, or the class folders in <name>. Returns VKT_OK and no data set if neither exists. */
static vkt_result open_part(const vkt_host *host, const char *folder, const char *name, const vkt_image_params *p,
                            vkt_dataset **out)
{
    char path[DATA_PATH];
    if (exists(folder, name, ".csv", path)) return vkt_dataset_from_image_table(host, path, p, out);
    if (exists(folder, name, "", path)) return vkt_dataset_from_image_folders(host, path, p, out);
    *out = NULL;
    return VKT_OK;
}

/* Splits the training samples: CHECK_SHARE of them become the validation set. */
static vkt_result part(image_data *d)
{
    vkt_dataset *all = d->train;
    const vkt_result r = vkt_dataset_split(all, CHECK_SHARE, 1, &d->train, &d->check);
    if (r == VKT_OK)
        vkt_dataset_destroy(&all);
    else
        d->train = all;
    return r;
}

/* The state of hold(), the log function of the data set that open_classes opens. `holds` is true while open_classes
 * opens the folder: then hold() keeps the last error in `line` and does not log it. Later, hold() passes all messages
 * on to the log function of `to`. The data set calls hold() also after open_classes has returned, so the state is
 * static. */
static struct held {
    vkt_host to;
    bool holds;
    char line[512];
} held;

static void hold(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (held.holds && level == VKT_LOG_ERROR)
        snprintf(held.line, sizeof held.line, "%s", line);
    else
        held.to.log(held.to.log_user, level, line);
}

/* Opens a folder that has one folder per class. If there are no images, prints one message that lists all possible
 * contents of the folder. */
static vkt_result open_classes(const vkt_host *host, const char *folder, const vkt_image_params *p, vkt_dataset **out)
{
    struct stat st;
    held = (struct held){ .to = *host, .holds = true };
    if (!held.to.log) held.to.log = message_log;
    vkt_host holding = *host;
    holding.log = hold;
    const vkt_result r = vkt_dataset_from_image_folders(&holding, folder, p, out);
    held.holds = false;
    if (r == VKT_E_NOT_FOUND)
        complain("--data: %s %s: want train.csv (and valid.csv, test.csv) with lines path,label, or folders train (and "
                 "valid, test) of a folder per class, or a folder per class",
                 folder, stat(folder, &st) == 0 ? "has no images" : "does not exist");
    else if (r != VKT_OK)
        held.to.log(held.to.log_user, VKT_LOG_ERROR, held.line);
    return r;
}

static vkt_result open_folder(const vkt_host *host, const char *folder, const image_data_params *with, image_data *d)
{
    vkt_image_params p = with->images;
    bool untested = true; /* false: there is no `train`, so the test samples are the training samples */
    snprintf(d->source, sizeof d->source, "%s", folder);
    vkt_result r = open_part(host, folder, "train", &p, &d->train);
    if (r == VKT_OK && !d->train) {
        r = open_part(host, folder, "test", &p, &d->train);
        untested = !d->train;
    }
    if (r == VKT_OK && !d->train) r = open_classes(host, folder, &p, &d->train);
    p.classes_like = d->train;
    p.random_crop = p.random_flip = false;
    p.crop_padding = 0;
    if (r == VKT_OK) r = open_part(host, folder, "valid", &p, &d->check);
    if (r == VKT_OK && untested) r = open_part(host, folder, "test", &p, &d->test);
    if (r == VKT_OK && !d->check) r = part(d);
    return r;
}

static bool has_tables(const char *folder)
{
    char path[DATA_PATH];
    return exists(folder, "train", ".csv", path) || exists(folder, "test", ".csv", path);
}

/* ---- generated images ---- */

static const char *const drawn_classes[] = { "warm disc",   "cold disc",   "warm ring",  "cold ring",
                                             "warm square", "cold square", "warm cross", "cold cross" };
enum { DRAWN_CLASSES = sizeof drawn_classes / sizeof *drawn_classes };

/* Returns whether a point is inside a form. The coordinates of all forms are between -1 and 1. */
static bool inside(uint32_t form, float x, float y)
{
    const float square = x * x + y * y, wide = fmaxf(fabsf(x), fabsf(y)), narrow = fminf(fabsf(x), fabsf(y));
    switch (form) {
    case 0: return square < 1;
    case 1: return square < 1 && square > 0.4f;
    case 2: return wide < 0.9f;
    default: return wide < 1 && narrow < 0.3f;
    }
}

/* Draws a form at a random position on a gray background. `pixels` has (3, side, side) bytes. */
static void draw(uint32_t label, uint64_t *state, uint32_t side, unsigned char *pixels)
{
    const float x0 = 0.3f + 0.4f * random_unit(state), y0 = 0.3f + 0.4f * random_unit(state);
    const float radius = 0.16f + 0.12f * random_unit(state), ground = 60 + 100 * random_unit(state);
    float colour[3];
    for (int c = 0; c < 3; c++)
        colour[c] = (c == 0) == (label % 2 == 0) ? 180 + 60 * random_unit(state) : 80 * random_unit(state);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t i = 0; i < side * side; i++) {
            const float x = (float)(i % side) / (float)side - x0, y = (float)(i / side) / (float)side - y0;
            const float clean = inside(label / 2, x / radius, y / radius) ? colour[c] : ground;
            pixels[c * side * side + i] = (unsigned char)fminf(clean + 30 * random_unit(state), 255);
        }
}

static vkt_result draw_part(const vkt_host *host, uint32_t rows, uint64_t seed, uint32_t side, vkt_dataset **out)
{
    const size_t row_bytes = (size_t)3 * side * side;
    unsigned char *pixels = malloc(rows * row_bytes);
    uint32_t *labels = malloc(rows * sizeof *labels);
    for (uint32_t i = 0; pixels && labels && i < rows; i++) {
        labels[i] = i % DRAWN_CLASSES;
        draw(labels[i], &seed, side, pixels + i * row_bytes);
    }
    const vkt_dataset_params p = { .rows = rows,
                                   .channels = 3,
                                   .height = side,
                                   .width = side,
                                   .labels = labels,
                                   .classes = DRAWN_CLASSES,
                                   .class_names = drawn_classes };
    const vkt_result r = pixels && labels ? vkt_dataset_from_arrays(host, &p, pixels, out) : VKT_E_NOMEM;
    free(pixels);
    free(labels);
    return r;
}

/* Generates the three data sets. Says so on stderr, also under --quiet, because the results say nothing about
 * photographs. */
static vkt_result draw_all(const vkt_host *host, uint32_t side, image_data *d)
{
    const uint32_t most = MAX_DRAWN_BYTES / (3 * side * side), train = most < DRAWN_TRAIN ? most : DRAWN_TRAIN;
    const uint32_t check = train * DRAWN_CHECK / DRAWN_TRAIN;
    remark("no images found (--data FOLDER: your own): training on generated ones");
    d->made_up = true;
    snprintf(d->source, sizeof d->source, "generated forms");
    vkt_result r = draw_part(host, train, 1, side, &d->train);
    if (r == VKT_OK) r = draw_part(host, check, 2, side, &d->check);
    if (r == VKT_OK) r = draw_part(host, check, 3, side, &d->test);
    return r;
}

/* ---- open and close ---- */

vkt_result image_data_open(const vkt_host *host, const image_data_params *p, image_data *out)
{
    char room[DATA_PATH];
    *out = (image_data){ 0 };
    const char *folder = p->folder ? p->folder : find_data(p->name, has_tables, room);
    vkt_result r = folder ? open_folder(host, folder, p, out) : draw_all(host, p->images.height, out);
    vkt_dataset *const parts[] = { out->train, out->check, out->test };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (r == VKT_OK && parts[i]) r = vkt_dataset_normalize(parts[i], p->mean, p->deviation);
    if (r != VKT_OK) image_data_close(out);
    return r;
}

void image_data_close(image_data *d)
{
    vkt_dataset_destroy(&d->train);
    vkt_dataset_destroy(&d->check);
    vkt_dataset_destroy(&d->test);
}
