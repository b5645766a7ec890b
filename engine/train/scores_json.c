/* train/scores_json.c - vkt_scores_json (vktrain/metrics.h). */
#include "train/json.h"
#include "train/trainer.h"
#include "vktrain/metrics.h"

enum { MOST_IN_JSON = 1000 };

static json_t *json_means(const vkt_class_score *m)
{
    return json_pack("{s:o, s:o, s:o}", "precision", vkt_json_real(m->precision), "recall", vkt_json_real(m->recall),
                     "f1", vkt_json_real(m->f1));
}

static json_t *json_classes(const vkt_scores *s)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < s->classes; k++) {
        json_t *one = json_means(&s->each[k]), *name = s->names && s->names[k] ? json_string(s->names[k]) : NULL;
        json_object_set_new(one, "name", name ? name : json_null()); /* a name that is not UTF-8 is null as well */
        json_object_set_new(one, "rows", json_integer((json_int_t)s->each[k].support));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_matrix(const vkt_scores *s)
{
    if (s->classes > MOST_IN_JSON) return json_null();
    json_t *rows = json_array();
    for (uint32_t k = 0; k < s->classes; k++) {
        json_t *row = json_array();
        for (uint32_t i = 0; i < s->classes; i++)
            json_array_append_new(row, json_integer((json_int_t)s->counts[(size_t)k * s->classes + i]));
        json_array_append_new(rows, row);
    }
    return rows;
}

vkt_result vkt_scores_json(const vkt_scores *s, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, s);
    const vkt_host *h = vkt_scores_host(s);
    VKT_WANT(h, json);
    return vkt_json_give(h,
                         json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "rows", (json_int_t)s->rows, "accuracy",
                                   vkt_json_real(s->means.accuracy), "top5_accuracy", vkt_json_real(s->top5), "macro",
                                   json_means(&s->means.macro), "weighted", json_means(&s->means.weighted), "classes",
                                   json_classes(s), "confusion", json_matrix(s)),
                         JSON_INDENT(2), json);
}
