/* train/card.c - data cards; see vktrain/card.h. */
#include "vktrain/card.h"

#include <math.h>
#include <stdio.h>

#include "train/json.h"
#include "train/trainer.h"

#define ATTACHMENT "data"
#define MOST_AREA ((uint64_t)1 << 40) /* largest product of height and width */
enum { MOST_CLASSES = 1 << 24 };

/* A card with its private members. The public card is the first member, so it has the address of the struct. */
typedef struct owned {
    vkt_card c;
    vkt_host h;
    json_t *root;
} owned;

/* ---- writing ---- */

static json_t *class_names(const vkt_dataset *d)
{
    const uint32_t n = vkt_dataset_classes(d);
    if (n == 0 || !vkt_dataset_class_name(d, 0)) return json_null();
    json_t *list = json_array();
    for (uint32_t k = 0; k < n; k++) {
        json_t *name = json_string(vkt_dataset_class_name(d, k)); /* NULL if the name is not UTF-8 */
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

static json_t *card_of(const vkt_dataset *d, const char *program, const uint32_t chw[3])
{
    json_t *card = json_pack("{s:s, s:[I,I,I], s:o, s:o, s:I, s:o}", "program", program, "sample", (json_int_t)chw[0],
                             (json_int_t)chw[1], (json_int_t)chw[2], "mean", numbers(vkt_dataset_mean(d), chw[0]),
                             "deviation", numbers(vkt_dataset_std(d), chw[0]), "classes",
                             (json_int_t)vkt_dataset_classes(d), "names", class_names(d));
    if (vkt_dataset_sample_rank(d) == 1) json_object_set_new(card, "vector", json_true());
    return card;
}

vkt_result vkt_trainer_attach_card(vkt_trainer *t, const char *program, const char *more)
{
    VKT_WANT(NULL, t);
    const vkt_host *h = &t->host;
    VKT_WANT(h, program);
    uint32_t chw[3];
    vkt_dataset_sample_shape(t->params.train, chw);
    if (chw[0] > VKT_CARD_CHANNELS)
        return vkt_fail(h, VKT_E_SHAPE, "card: want data of at most %d channels, got %u", VKT_CARD_CHANNELS, chw[0]);
    json_t *added = more ? json_loads(more, 0, NULL) : NULL;
    if (more && !json_is_object(added)) {
        json_decref(added);
        return vkt_fail(h, VKT_E_ARG, "card: want a JSON object to add, got '%.80s'", more);
    }
    json_t *root = card_of(t->params.train, program, chw);
    if (root && added) json_object_update(root, added);
    json_decref(added);
    char *text;
    VKT_TRY(vkt_json_give(h, root, JSON_COMPACT, &text));
    const vkt_result r = vkt_trainer_attach(t, ATTACHMENT, text);
    vkt_text_release(&text);
    return r;
}

/* ---- reading ---- */

static bool read_numbers(const vkt_card *c, const char *key, double least, double *out)
{
    if (vkt_card_numbers(c, key, c->chw[0], out) != c->chw[0]) return false;
    for (uint32_t i = 0; i < c->chw[0]; i++)
        if (!isfinite(out[i]) || out[i] <= least) return false;
    return true;
}

/* Reads the fields "sample" (the shape of a sample), "classes", "mean" and "deviation". Returns false if one of these
 * fields is missing or beyond its limits. Also returns false if "names" is a list whose length is not the number of
 * classes. */
static bool parse(owned *o)
{
    vkt_card *c = &o->c;
    const json_t *sample = json_object_get(o->root, "sample"), *names = json_object_get(o->root, "names"),
                 *classes = json_object_get(o->root, "classes");
    for (uint32_t i = 0; i < 3; i++) {
        const json_int_t side = json_integer_value(json_array_get(sample, i));
        if (side < 1 || side > (i ? UINT32_MAX : VKT_CARD_CHANNELS)) return false;
        c->chw[i] = (uint32_t)side;
    }
    if ((uint64_t)c->chw[1] * c->chw[2] > MOST_AREA) return false;
    const json_int_t n = json_integer_value(classes);
    if (!json_is_integer(classes) || n < 0 || n > MOST_CLASSES) return false;
    c->classes = (uint32_t)n;
    return (!json_is_array(names) || json_array_size(names) == c->classes) &&
           read_numbers(c, "mean", -INFINITY, c->mean) && read_numbers(c, "deviation", 0, c->std);
}

vkt_result vkt_card_from_text(const vkt_host *host, const char *name, const char *text, vkt_card **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    owned *o = vkt_alloc(&h, sizeof *o);
    if (!o) return vkt_fail_nomem(&h, "a card", sizeof *o);
    o->h = h;
    o->root = json_loads(text, 0, NULL);
    *out = &o->c;
    if (parse(o)) return VKT_OK;
    vkt_card_destroy(out);
    return vkt_fail(&h, VKT_E_FORMAT, "%s: its metadata of the data are damaged", name);
}

vkt_result vkt_card_read(const vkt_host *host, const char *path, const char *program, vkt_card **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, path);
    VKT_WANT(host, program);
    const vkt_host h = vkt_host_resolve(host);
    vkt_host silent = h; /* logs nothing: the messages of vkt_read_attachment do not say what to do */
    silent.log_level = VKT_LOG_NONE;
    char *text;
    vkt_result r = vkt_read_attachment(&silent, path, ATTACHMENT, &text);
    if (r == VKT_E_NOT_FOUND || r == VKT_E_NOMEM) return r;
    if (r != VKT_OK)
        return vkt_fail(&h, r, "%s: want a weights file (safetensors) of %s: %s", path, program, vkt_result_text(r));
    r = vkt_card_from_text(&h, path, text, out);
    vkt_text_release(&text);
    const char *of = r == VKT_OK ? vkt_card_text(*out, "program") : program;
    if (of && strcmp(of, program) == 0) return r;
    r = vkt_fail(&h, VKT_E_FORMAT, "%s: want weights of %s, got those of %.40s", path, program, of ? of : "none");
    vkt_card_destroy(out);
    return r;
}

void vkt_card_destroy(vkt_card **c)
{
    if (!c || !*c) return;
    owned *o = (owned *)*c;
    const vkt_host h = o->h;
    json_decref(o->root);
    vkt_free(&h, o);
    *c = NULL;
}

/* ---- members ---- */

static const json_t *member(const vkt_card *c, const char *key)
{
    return c && key ? json_object_get(((const owned *)c)->root, key) : NULL;
}

const char *vkt_card_class(const vkt_card *c, uint32_t k, char room[16])
{
    const char *name = json_string_value(json_array_get(member(c, "names"), k));
    if (!name && room) snprintf(room, 16, "%u", k);
    return name ? name : room;
}

const char *vkt_card_text(const vkt_card *c, const char *key)
{
    return json_string_value(member(c, key));
}

uint32_t vkt_card_numbers(const vkt_card *c, const char *key, uint32_t most, double *out)
{
    const json_t *v = member(c, key);
    const bool list = json_is_array(v);
    const size_t n = list ? json_array_size(v) : 1;
    if (n >= UINT32_MAX) return UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = list ? json_array_get(v, i) : v;
        if (!json_is_number(x)) return UINT32_MAX;
        if (i < most && out) out[i] = json_number_value(x);
    }
    return (uint32_t)n;
}

vkt_result vkt_card_dataset(const vkt_card *c, vkt_row_type type, const void *rows, uint32_t n, vkt_dataset **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, c);
    const bool normal = type == VKT_ROW_U8 || type == VKT_ROW_F32, vector = json_is_true(member(c, "vector"));
    const vkt_dataset_params p = { .rows = n,
                                   .channels = vector ? 0 : c->chw[0],
                                   .height = vector ? 0 : c->chw[1],
                                   .width = c->chw[2],
                                   .type = type,
                                   .mean = normal ? c->mean : NULL,
                                   .std = normal ? c->std : NULL,
                                   .borrow = true };
    return vkt_dataset_from_arrays(&((const owned *)c)->h, &p, rows, out);
}
