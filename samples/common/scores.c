/* common/scores.c - see scores.h. */
#include "common/scores.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/report.h"
#include "vktrain/metrics.h"

enum { TOP = 5, MAX_IN_JSON = 1000 };

/* All predictions of a set, and the counts and scores of them. */
typedef struct scores {
    const vkt_dataset *d;
    uint32_t classes, *predicted;
    const char **names; /* NULL: the classes have no names */
    float *outputs;
    uint64_t *counts;
    vkt_class_score *each;
    vkt_class_means means;
    double top; /* top-5 accuracy */
} scores;

static void scores_free(scores *x)
{
    free(x->predicted);
    free(x->names);
    free(x->outputs);
    free(x->counts);
    free(x->each);
}

/* ---- as JSON ---- */

static json_t *json_means(const vkt_class_score *m)
{
    return json_pack("{s:o, s:o, s:o}", "precision", real_or_null(m->precision), "recall", real_or_null(m->recall),
                     "f1", real_or_null(m->f1));
}

static json_t *json_classes(const scores *x)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < x->classes; k++) {
        json_t *one = json_means(&x->each[k]);
        json_t *name = x->names ? json_string(x->names[k]) : NULL;
        json_object_set_new(one, "name", name ? name : json_null());
        json_object_set_new(one, "rows", json_integer((json_int_t)x->each[k].support));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_matrix(const scores *x)
{
    if (x->classes > MAX_IN_JSON) return json_null();
    json_t *rows = json_array();
    for (uint32_t k = 0; k < x->classes; k++) {
        json_t *row = json_array();
        for (uint32_t i = 0; i < x->classes; i++)
            json_array_append_new(row, json_integer((json_int_t)x->counts[(size_t)k * x->classes + i]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static void add_json(session *s, const scores *x, const char *set)
{
    if (!s->more) s->more = json_object();
    json_object_set_new(s->more, "scores",
                        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "set", set, "rows",
                                  (json_int_t)vkt_dataset_rows(x->d), "accuracy", real_or_null(x->means.accuracy),
                                  "top5_accuracy", real_or_null(x->top), "macro", json_means(&x->means.macro),
                                  "weighted", json_means(&x->means.weighted), "classes", json_classes(x), "confusion",
                                  json_matrix(x)));
}

/* ---- --report and --confusion ---- */

static vkt_result print_table(const vkt_host *host, const scores *x, const char *set)
{
    char *text;
    const vkt_result r = vkt_class_scores_text(host, x->counts, x->classes, x->names, &text);
    if (r != VKT_OK) return r;
    printf("\n%s set, %u rows\n%s", set, vkt_dataset_rows(x->d), text);
    if (x->classes > TOP) printf("top-5 accuracy %.4f: the correct class is among the five likeliest\n", x->top);
    vkt_text_release(&text);
    return VKT_OK;
}

static vkt_result measure(const vkt_host *host, vkt_trainer *t, scores *x)
{
    const uint32_t rows = vkt_dataset_rows(x->d), classes = x->classes;
    x->predicted = calloc(rows, sizeof *x->predicted);
    x->outputs = calloc((size_t)rows * classes, sizeof *x->outputs);
    x->counts = calloc((size_t)classes * classes, sizeof *x->counts);
    x->each = calloc(classes, sizeof *x->each);
    if (vkt_dataset_class_name(x->d, 0)) x->names = calloc(classes, sizeof *x->names);
    if (!x->predicted || !x->outputs || !x->counts || !x->each) {
        complain("no memory for the scores of %u rows and %u classes", rows, classes);
        return VKT_E_NOMEM;
    }
    for (uint32_t k = 0; x->names && k < classes; k++) x->names[k] = vkt_dataset_class_name(x->d, k);
    vkt_result r = vkt_trainer_predict(t, x->d, 0, rows, x->predicted, x->outputs);
    if (r == VKT_OK) r = vkt_confusion_add(host, vkt_dataset_labels(x->d), x->predicted, rows, classes, x->counts);
    if (r == VKT_OK) r = vkt_class_scores(host, x->counts, classes, 0, x->each, &x->means);
    x->top = vkt_top_k_accuracy(x->outputs, vkt_dataset_labels(x->d), rows, classes, TOP);
    return r;
}

vkt_result scores_write(session *s, vkt_trainer *t, const vkt_dataset *d, const char *set)
{
    if (!d || (!s->o.report && !s->o.confusion)) return VKT_OK;
    scores x = { .d = d, .classes = vkt_dataset_classes(d) };
    char title[64];
    snprintf(title, sizeof title, "Confusion matrix, %s set", set);
    vkt_result r = measure(&s->host, t, &x);
    if (r == VKT_OK) add_json(s, &x, set);
    if (r == VKT_OK && s->o.report) r = print_table(&s->host, &x, set);
    if (r == VKT_OK && s->o.confusion)
        r = vkt_confusion_write(&s->host, x.counts, x.classes, x.names, title, s->o.confusion);
    scores_free(&x);
    return r;
}

/* ---- --class-weights ---- */

/* Reads numbers with blanks or commas between them. *n is their number, at most `most` + 1. Returns false if the text
 * has anything else. */
static bool read_numbers(const char *text, uint32_t most, float *out, uint32_t *n)
{
    *n = 0;
    for (const char *p = text;;) {
        while (isspace((unsigned char)*p) || *p == ',') p++;
        if (!*p) return true;
        char *end;
        const float x = strtof(p, &end);
        if (end == p || (*end && *end != ',' && !isspace((unsigned char)*end))) return false;
        if (*n == most) {
            ++*n;
            return true;
        }
        out[(*n)++] = x;
        p = end;
    }
}

static char *file_text(const char *path)
{
    enum { ROOM = 1 << 22 };
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(ROOM, 1) : NULL;
    const bool whole = text && fread(text, 1, ROOM - 1, f) < ROOM - 1 && !ferror(f);
    if (!whole) complain("--class-weights: %s cannot be read: %s", path, strerror(errno));
    if (f) fclose(f);
    if (whole) return text;
    free(text);
    return NULL;
}

vkt_result class_weights_of(const char *text, const vkt_dataset *d, float **out)
{
    const uint32_t classes = vkt_dataset_classes(d);
    uint32_t n = 0;
    *out = NULL;
    if (!classes || !vkt_dataset_labels(d)) {
        complain("--class-weights: the data have no classes");
        return VKT_E_ARG;
    }
    float *weights = calloc(classes, sizeof *weights);
    if (!weights) {
        complain("--class-weights: no memory for %u classes", classes);
        return VKT_E_NOMEM;
    }
    vkt_result r = VKT_OK;
    if (strcmp(text, "balanced") == 0) {
        r = vkt_dataset_balanced_weights(d, weights);
        n = classes;
    } else if (!read_numbers(text, classes, weights, &n)) {
        char *file = file_text(text);
        r = file ? VKT_OK : VKT_E_IO;
        if (file && !read_numbers(file, classes, weights, &n)) n = UINT32_MAX;
        free(file);
    }
    if (r == VKT_OK && n != classes) {
        complain("--class-weights: want %u numbers, one for each class, got %s", classes,
                 n == UINT32_MAX ? "something else"
                 : n < classes   ? "fewer"
                                 : "more");
        r = VKT_E_ARG;
    }
    if (r == VKT_OK)
        *out = weights;
    else
        free(weights);
    return r;
}
