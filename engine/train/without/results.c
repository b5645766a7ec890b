/* train/without/results.c - replaces results.c, scores_json.c, card.c and columns_json.c in a build without jansson. In
 * such a build, no function creates a data card. */
#include <stdio.h>

#include "train/trainer.h"
#include "vktrain/card.h"
#include "vktrain/columns.h"

static vkt_result without(const vkt_host *host, const char *what)
{
    const vkt_host h = vkt_host_resolve(host);
    return vkt_fail_without(&h, what, "jansson", "JANSSON");
}

vkt_result vkt_trainer_settings(const vkt_trainer *t, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, json);
    return without(&t->host, "settings");
}

vkt_result vkt_trainer_results(const vkt_trainer *t, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, json);
    return without(&t->host, "results");
}

vkt_result vkt_scores_json(const vkt_scores *s, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, s);
    VKT_WANT(vkt_scores_host(s), json);
    return without(vkt_scores_host(s), "scores");
}

/* ---- cards ---- */

vkt_result vkt_trainer_attach_card(vkt_trainer *t, const char *program, const char *more)
{
    (void)more;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, program);
    return without(&t->host, "card");
}

vkt_result vkt_card_from_text(const vkt_host *host, const char *name, const char *text, vkt_card **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    return without(host, name);
}

vkt_result vkt_card_read(const vkt_host *host, const char *path, const char *program, vkt_card **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, path);
    VKT_WANT(host, program);
    return without(host, path);
}

void vkt_card_destroy(vkt_card **c)
{
    if (c) *c = NULL;
}

const char *vkt_card_class(const vkt_card *c, uint32_t k, char room[16])
{
    (void)c;
    if (room) snprintf(room, 16, "%u", k);
    return room;
}

const char *vkt_card_text(const vkt_card *c, const char *key)
{
    (void)c, (void)key;
    return NULL;
}

uint32_t vkt_card_numbers(const vkt_card *c, const char *key, uint32_t most, double *out)
{
    (void)c, (void)key, (void)most, (void)out;
    return UINT32_MAX;
}

vkt_result vkt_card_dataset(const vkt_card *c, vkt_row_type type, const void *rows, uint32_t n, vkt_dataset **out)
{
    (void)type, (void)rows, (void)n;
    if (out) *out = NULL;
    VKT_WANT(NULL, c);
    return without(NULL, "card");
}

/* ---- columns of a table ---- */

vkt_result vkt_columns_to_text(const vkt_columns *c, char **text)
{
    if (text) *text = NULL;
    VKT_WANT(NULL, c);
    VKT_WANT(NULL, text);
    return without(NULL, "columns");
}

vkt_result vkt_columns_from_text(const vkt_host *host, const char *name, const char *text, vkt_columns **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    return without(host, name);
}
