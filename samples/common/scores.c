/* common/scores.c - see scores.h. */
#include "common/scores.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/read_file.h"
#include "vktrain/metrics.h"

/* ---- --report and --confusion ---- */

/* Adds the member "scores" to the results of --json. */
static vkt_result add_json(session *s, const vkt_scores *x, const char *set)
{
    char *text = NULL;
    const vkt_result r = vkt_scores_json(x, &text);
    json_t *scores = r == VKT_OK ? json_loads(text, 0, NULL) : NULL;
    vkt_text_release(&text);
    json_object_set_new(scores, "set", json_string(set));
    if (!s->more) s->more = json_object();
    json_object_set_new(s->more, "scores", scores);
    return r;
}

static vkt_result print_table(const vkt_host *host, const vkt_scores *x, const char *set)
{
    char *text;
    const vkt_result r = vkt_class_scores_text(host, x->counts, x->classes, x->names, &text);
    if (r != VKT_OK) return r;
    printf("\n%s set, %u rows\n%s", set, x->rows, text);
    if (x->classes > 5) printf("top-5 accuracy %.4f: the correct class is among the five likeliest\n", x->top5);
    vkt_text_release(&text);
    return VKT_OK;
}

vkt_result scores_write(session *s, vkt_trainer *t, const vkt_dataset *d, const char *set)
{
    vkt_scores *x;
    char title[64];
    if (!d || (!s->o.report && !s->o.confusion)) return VKT_OK;
    vkt_result r = vkt_trainer_scores(t, d, &x);
    if (r != VKT_OK) return r;
    snprintf(title, sizeof title, "Confusion matrix, %s set", set);
    r = add_json(s, x, set);
    if (r == VKT_OK && s->o.report) r = print_table(&s->host, x, set);
    if (r == VKT_OK && s->o.confusion)
        r = vkt_confusion_write(&s->host, x->counts, x->classes, x->names, title, s->o.confusion);
    vkt_scores_destroy(&x);
    return r;
}

/* ---- --class-weights ---- */

enum { MOST_BYTES = 1 << 22 };

/* Reads numbers with blanks or commas between them. *n becomes the count of numbers. If the text has more than `most`
 * numbers, stops after the first `most` + 1 numbers. Returns false if it reads a part that is not a number. */
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
        char why[READ_WHY];
        size_t bytes;
        char *file = read_file(text, MOST_BYTES, &bytes, why);
        r = file ? VKT_OK : VKT_E_IO;
        if (!file) complain("--class-weights: %s cannot be read: %s", text, why);
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
