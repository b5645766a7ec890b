/* train/metrics.c - see vktrain/metrics.h: the scores. */
#include "vktrain/metrics.h"

#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/numbers.h"

/* ---- the confusion matrix ---- */

vkt_result vkt_confusion_add(const vkt_host *host, const uint32_t *labels, const uint32_t *predicted, uint64_t n,
                             uint32_t classes, uint64_t *counts)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!counts || !classes || (n && (!labels || !predicted)))
        return vkt_fail(&h, VKT_E_ARG, "confusion: want labels, predictions, classes and counts, got %s",
                        classes ? "NULL" : "0 classes");
    for (uint64_t i = 0; i < n; i++)
        if (labels[i] >= classes || predicted[i] >= classes)
            return vkt_fail(&h, VKT_E_ARG, "confusion: want classes below %u, row %llu has label %u and prediction %u",
                            classes, (unsigned long long)i, labels[i], predicted[i]);
    for (uint64_t i = 0; i < n; i++) counts[(size_t)labels[i] * classes + predicted[i]]++;
    return VKT_OK;
}

/* ---- scores ---- */

/* The counts of one class. right: samples of this class that are predicted as this class. predicted: all samples that
 * are predicted as this class. support: all samples of this class. */
typedef struct tally {
    uint64_t right, predicted, support;
} tally;

static tally tally_of(const uint64_t *counts, uint32_t classes, uint32_t k)
{
    tally t = { .right = counts[(size_t)k * classes + k] };
    for (uint32_t i = 0; i < classes; i++) {
        t.predicted += counts[(size_t)i * classes + k];
        t.support += counts[(size_t)k * classes + i];
    }
    return t;
}

static double part(uint64_t of, uint64_t all, double zero_division)
{
    return all ? (double)of / (double)all : zero_division;
}

/* Returns the scores of a class. F1 is 2 * right / (predicted + support). So F1 is zero_division only if the divisors
 * of precision and recall are both 0. If only one divisor is 0, F1 is 0. */
static vkt_class_score score_of(const tally *t, double zero_division)
{
    return (vkt_class_score){ .precision = part(t->right, t->predicted, zero_division),
                              .recall = part(t->right, t->support, zero_division),
                              .f1 = part(2 * t->right, t->predicted + t->support, zero_division),
                              .support = t->support };
}

static void add(vkt_class_score *sum, const vkt_class_score *s, double weight)
{
    if (weight == 0) return; /* the product of 0 and NaN would be NaN */
    sum->precision += weight * s->precision;
    sum->recall += weight * s->recall;
    sum->f1 += weight * s->f1;
}

vkt_result vkt_class_scores(const vkt_host *host, const uint64_t *counts, uint32_t classes, double zero_division,
                            vkt_class_score *each, vkt_class_means *means)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!counts || !classes)
        return vkt_fail(&h, VKT_E_ARG, "class scores: want counts, got %s", counts ? "0 classes" : "NULL");
    if (zero_division != 0 && zero_division != 1 && !isnan(zero_division))
        return vkt_fail(&h, VKT_E_ARG, "class scores: want zero_division 0, 1 or NaN, got %g", zero_division);
    vkt_class_means m = { 0 };
    uint64_t rows = 0, right = 0;
    for (size_t i = 0; i < (size_t)classes * classes; i++) rows += counts[i];
    for (uint32_t k = 0; k < classes; k++) {
        const tally t = tally_of(counts, classes, k);
        const vkt_class_score s = score_of(&t, zero_division);
        if (each) each[k] = s;
        add(&m.macro, &s, 1.0 / classes);
        add(&m.weighted, &s, rows ? (double)t.support / (double)rows : 0);
        right += t.right;
    }
    m.macro.support = m.weighted.support = rows;
    m.accuracy = part(right, rows, NAN);
    if (!rows) m.weighted.precision = m.weighted.recall = m.weighted.f1 = zero_division;
    if (means) *means = m;
    return VKT_OK;
}

/* ---- the table of the scores ---- */

enum { MAX_WIDE = 32, NAME_ROOM = 4 * MAX_WIDE + 1 };

/* Writes the name of class k, or the number k if the class has no name, but at most MAX_WIDE characters. Control
 * characters become '?'. *letters gets the number of characters written. */
static void plain_name(const char *const *names, uint32_t k, char out[NAME_ROOM], uint32_t *letters)
{
    char number[16];
    snprintf(number, sizeof number, "%u", k);
    const char *s = names && names[k] ? names[k] : number;
    size_t n = 0;
    *letters = 0;
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if ((c & 0xc0) != 0x80 && ++*letters > MAX_WIDE) {
            --*letters;
            break;
        }
        if (n + 1 < NAME_ROOM) out[n++] = c < 32 || c == 127 ? '?' : *s;
    }
    out[n] = 0;
}

static void add_line(vkt_text *t, const char *name, uint32_t pad, const vkt_class_score *s)
{
    vkt_text_add(t, "%s%*s  %9.4f  %9.4f  %9.4f  %9llu\n", name, (int)pad, "", s->precision, s->recall, s->f1,
                 (unsigned long long)s->support);
}

static void add_table(vkt_text *t, uint32_t classes, const char *const *names, const vkt_class_score *each,
                      const vkt_class_means *m)
{
    char name[NAME_ROOM];
    uint32_t letters, widest = 8; /* the width of "weighted" */
    for (uint32_t k = 0; k < classes; k++) {
        plain_name(names, k, name, &letters);
        widest = VKT_MAX(widest, letters);
    }
    vkt_text_add(t, "%*s  precision     recall         F1       rows\n", (int)widest, "");
    for (uint32_t k = 0; k < classes; k++) {
        plain_name(names, k, name, &letters);
        add_line(t, name, widest - letters, &each[k]);
    }
    vkt_text_add(t, "\n%-*s  %9.4f  %20s  %9llu\n", (int)widest, "accuracy", m->accuracy, "",
                 (unsigned long long)m->macro.support);
    add_line(t, "macro", widest - 5, &m->macro);
    add_line(t, "weighted", widest - 8, &m->weighted);
}

vkt_result vkt_class_scores_text(const vkt_host *host, const uint64_t *counts, uint32_t classes,
                                 const char *const *names, char **text)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!text) return vkt_fail(&h, VKT_E_ARG, "class scores: want a pointer for the text, got NULL");
    *text = NULL;
    vkt_class_score *each = vkt_alloc_array(&h, VKT_MAX(classes, 1u), sizeof *each);
    if (!each) return vkt_fail_nomem(&h, "class scores", classes * sizeof *each);
    vkt_class_means means;
    vkt_text t = { .h = &h };
    vkt_result r = vkt_class_scores(&h, counts, classes, 0, each, &means);
    if (r == VKT_OK) {
        const vkt_numbers locale = vkt_numbers_begin();
        add_table(&t, classes, names, each, &means);
        vkt_numbers_end(locale);
        r = vkt_text_detach(&t, text);
    }
    vkt_free(&h, each);
    return r;
}

/* ---- outputs ---- */

/* a and b are the scores of two classes, and the class of b has the lower index. Returns whether vkt_top_k puts the
 * class of a first. If the scores are equal, the class of b comes first. NaN is the largest score. */
static bool is_larger(float a, float b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top)
{
    uint32_t found = 0;
    for (uint32_t i = 0; scores && top && k && i < n; i++) {
        uint32_t at = found;
        while (at > 0 && is_larger(scores[i], scores[top[at - 1]])) at--;
        if (at == k) continue;
        if (found < k) found++;
        for (uint32_t j = found - 1; j > at; j--) top[j] = top[j - 1];
        top[at] = i;
    }
    return found;
}

uint32_t vkt_likeliest(const float *logits, uint32_t n, uint32_t k, uint32_t *top, double *probabilities)
{
    const uint32_t found = probabilities ? vkt_top_k(logits, n, k, top) : 0;
    double sum = 0;
    for (uint32_t i = 0; found && i < n; i++) sum += exp((double)logits[i] - (double)logits[top[0]]);
    for (uint32_t i = 0; i < found; i++) probabilities[i] = exp((double)logits[top[i]] - (double)logits[top[0]]) / sum;
    return found;
}

double vkt_top_k_accuracy(const float *outputs, const uint32_t *labels, uint64_t n, uint32_t classes, uint32_t k)
{
    uint64_t right = 0;
    if (!outputs || !labels || n == 0) return NAN;
    for (uint64_t i = 0; i < n; i++, outputs += classes) {
        const uint32_t label = labels[i];
        if (label >= classes) return NAN;
        uint32_t before = 0; /* number of classes that vkt_top_k puts before the label */
        for (uint32_t j = 0; j < classes; j++)
            before += j < label ? !is_larger(outputs[label], outputs[j]) : is_larger(outputs[j], outputs[label]);
        right += before < k;
    }
    return (double)right / (double)n;
}
