/* common/card.c - see card.h. */
#include "common/card.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/message.h"

#define ATTACHMENT "data"
enum { MAX_SIDE = 1 << 20, MAX_CLASSES = 1 << 24 };

/* ---- writing ---- */

static json_t *class_names(const vkt_dataset *d)
{
    const uint32_t n = vkt_dataset_classes(d);
    if (n == 0 || !vkt_dataset_class_name(d, 0)) return json_null();
    json_t *list = json_array();
    for (uint32_t k = 0; k < n; k++) {
        json_t *name = json_string(vkt_dataset_class_name(d, k)); /* NULL: the name is not UTF-8 */
        json_array_append_new(list, name ? name : json_null());
    }
    return list;
}

static json_t *numbers(const double *v, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, json_real(v[i]));
    return list;
}

vkt_result card_attach(vkt_trainer *t, const char *program, const vkt_dataset *train, json_t *more)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(train, chw);
    json_t *root =
        chw[0] > CARD_CHANNELS
            ? NULL
            : json_pack("{s:s, s:[I,I,I], s:o, s:o, s:I, s:o}", "program", program, "sample", (json_int_t)chw[0],
                        (json_int_t)chw[1], (json_int_t)chw[2], "mean", numbers(vkt_dataset_mean(train), chw[0]),
                        "deviation", numbers(vkt_dataset_std(train), chw[0]), "classes",
                        (json_int_t)vkt_dataset_classes(train), "names", class_names(train));
    if (root && more) json_object_update(root, more);
    json_decref(more);
    if (chw[0] > CARD_CHANNELS)
        complain("want data of at most %d channels, got %u: --predict could not read the weights", CARD_CHANNELS,
                 chw[0]);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    vkt_result r = chw[0] > CARD_CHANNELS ? VKT_E_SHAPE : VKT_E_NOMEM;
    if (!text && r == VKT_E_NOMEM) complain("no memory for the description of the data");
    if (text) r = vkt_trainer_attach(t, ATTACHMENT, text);
    if (text) {
        void *(*allocate)(size_t);
        void (*release)(void *);
        json_get_alloc_funcs(&allocate, &release);
        release(text);
    }
    json_decref(root);
    return r;
}

/* ---- reading ---- */

static bool read_numbers(const json_t *list, uint32_t n, double least, double *out)
{
    if (json_array_size(list) != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = json_number_value(json_array_get(list, i));
        if (!json_is_number(json_array_get(list, i)) || !isfinite(out[i]) || out[i] <= least) return false;
    }
    return true;
}

/* Reads the members of the card. Returns false if one is missing or beyond its limits. */
static bool parse(data_card *c)
{
    const json_t *sample = json_object_get(c->root, "sample"), *names = json_object_get(c->root, "names");
    for (uint32_t i = 0; i < 3; i++) {
        const json_int_t side = json_integer_value(json_array_get(sample, i));
        if (side < 1 || side > (i ? MAX_SIDE : CARD_CHANNELS)) return false;
        c->chw[i] = (uint32_t)side;
    }
    c->classes = card_integer(c, "classes", MAX_CLASSES, UINT32_MAX);
    return c->classes != UINT32_MAX && (!json_is_array(names) || json_array_size(names) == c->classes) &&
           read_numbers(json_object_get(c->root, "mean"), c->chw[0], -INFINITY, c->mean) &&
           read_numbers(json_object_get(c->root, "deviation"), c->chw[0], 0, c->deviation);
}

/* Drops a message of the library: its text "has no text" does not say what to do. */
static void say_nothing(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

vkt_result card_read(const char *path, const char *program, bool quiet, data_card *out)
{
    const vkt_host silent = { .log = say_nothing };
    char *text;
    *out = (data_card){ 0 };
    vkt_result r = vkt_read_attachment(&silent, path, ATTACHMENT, &text);
    if (r == VKT_E_NOT_FOUND && !quiet)
        complain("%s: want weights that %s --save has written, with what its data were like: there is no such "
                 "file, or it has no such metadata",
                 path, program);
    else if (r != VKT_OK && r != VKT_E_NOT_FOUND)
        complain("%s: want a weights file (safetensors) that %s --save has written", path, program);
    if (r != VKT_OK) return r;
    out->root = json_loads(text, 0, NULL);
    vkt_text_release(&text);
    const char *of = card_text(out, "program", "");
    if (strcmp(of, program) == 0 && parse(out)) return VKT_OK;
    if (*of && strcmp(of, program) != 0)
        complain("%s: want weights of %s, got those of %.40s", path, program, of);
    else
        complain("%s: its metadata of the data are damaged", path);
    card_close(out);
    return VKT_E_FORMAT;
}

void card_close(data_card *c)
{
    json_decref(c->root);
    c->root = NULL;
}

const char *card_class(const data_card *c, uint32_t k, char room[16])
{
    const char *name = json_string_value(json_array_get(json_object_get(c->root, "names"), k));
    snprintf(room, 16, "%u", k);
    return name ? name : room;
}

uint32_t card_integer(const data_card *c, const char *key, uint32_t most, uint32_t fallback)
{
    const json_t *v = json_object_get(c->root, key);
    const json_int_t n = json_integer_value(v);
    return json_is_integer(v) && n >= 0 && n <= most ? (uint32_t)n : fallback;
}

double card_number(const data_card *c, const char *key, double fallback)
{
    const json_t *v = json_object_get(c->root, key);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

const char *card_text(const data_card *c, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(c->root, key));
    return text ? text : fallback;
}
