/* common/predict.c - see predict.h. */
#include "common/predict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/read_file.h"
#include "common/report.h"
#include "vktrain/metrics.h"

enum { TOP = 5, MOST_FILE_BYTES = 1 << 29 };

typedef struct origin {
    const char *path, *note;
    uint32_t index; /* index of the sample within the file */
    bool several;   /* the file has more than one sample */
} origin;

struct predict_list {
    vkt_host host;
    char why[512]; /* the error in the file that is being read */
    const char *path;
    size_t row_bytes, cap; /* cap: the capacity, in samples */
    uint32_t n, first;     /* n: number of samples; first: index of the first sample of the file that is being read */
    unsigned char *rows;
    origin *origins;
    json_t *failed;
};

/* ---- reading ---- */

static void keep_line(void *user, vkt_log_level level, const char *line)
{
    predict_list *l = user;
    if (level == VKT_LOG_ERROR) snprintf(l->why, sizeof l->why, "%s", line);
}

const vkt_host *predict_host(const predict_list *l)
{
    return &l->host;
}

vkt_result predict_fail(predict_list *l, vkt_result why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    return why;
}

static bool grow(predict_list *l)
{
    const size_t cap = l->cap ? 2 * l->cap : 16;
    unsigned char *rows = realloc(l->rows, cap * l->row_bytes);
    if (rows) l->rows = rows;
    origin *origins = realloc(l->origins, cap * sizeof *origins);
    if (origins) l->origins = origins;
    if (rows && origins) l->cap = cap;
    return rows && origins;
}

vkt_result predict_add(predict_list *l, const void *row, const char *note)
{
    if (l->n == UINT32_MAX || (l->n == l->cap && !grow(l)))
        return predict_fail(l, VKT_E_NOMEM, "there is no memory for its rows");
    memcpy(l->rows + l->n * l->row_bytes, row, l->row_bytes);
    l->origins[l->n] = (origin){ .path = l->path, .note = note, .index = l->n - l->first };
    l->n++;
    return VKT_OK;
}

vkt_result predict_bytes(predict_list *l, const char *path, char **bytes, size_t *n)
{
    char why[READ_WHY];
    *bytes = read_file(path, MOST_FILE_BYTES, n, why);
    return *bytes ? VKT_OK : predict_fail(l, VKT_E_IO, "%s", why);
}

/* ---- messages without control characters ---- */

/* Prints a text, with '?' instead of control characters (those of ASCII, and U+0080 to U+009F). */
static void put_plain(FILE *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        const bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
        fputc(*p < 32 || *p == 127 || c1 ? '?' : *p, out);
        if (c1) p++;
    }
}

static void complain_plainly(const char *path, const char *why)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    if (f) {
        put_plain(f, path);
        fputs(" is left out: ", f);
        put_plain(f, why);
    }
    if (f && fclose(f) == 0) complain("%s", text);
    free(text);
}

static const char *shown(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static json_t *json_plain(const char *text)
{
    json_t *s = json_string(text);
    return s ? s : json_string("(its name is not UTF-8)");
}

/* ---- one file ---- */

static bool add_file(const predict_kind *k, predict_list *l, const char *path)
{
    l->path = path;
    l->first = l->n;
    l->why[0] = 0;
    const vkt_result r = k->read(k->reader, l, path);
    if (r == VKT_OK && l->n > l->first) {
        for (uint32_t i = l->first; i < l->n; i++) l->origins[i].several = l->n - l->first > 1;
        return true;
    }
    if (r == VKT_OK || !*l->why) predict_fail(l, r, "there is nothing in it to predict");
    l->n = l->first;
    complain_plainly(shown(path), l->why);
    json_array_append_new(l->failed, json_pack("{s:o, s:o}", "file", json_plain(path), "why", json_plain(l->why)));
    return false;
}

/* ---- predictions ---- */

typedef struct answer {
    uint32_t n, top[TOP];
    double probability[TOP];
} answer;

/* Returns the likeliest classes with their probabilities, the softmax of the logits. z has one logit for each class. */
static answer answer_of(const float *z, uint32_t classes)
{
    answer a;
    a.n = vkt_likeliest(z, classes, TOP, a.top, a.probability);
    return a;
}

static void print_class(const vkt_card *card, const answer *a, uint32_t i)
{
    char room[16];
    put_plain(stdout, vkt_card_class(card, a->top[i], room));
    printf(" %.1f %%", 100 * a->probability[i]);
}

static void print_row(const vkt_card *card, const origin *o, const float *y, uint64_t width)
{
    put_plain(stdout, shown(o->path));
    if (o->several) printf("[%u]", o->index);
    fputs(": ", stdout);
    if (card->classes) {
        const answer a = answer_of(y, card->classes);
        for (uint32_t i = 0; i < a.n; i++) {
            fputs(i == 0 ? "" : i == 1 ? "; then " : ", ", stdout);
            print_class(card, &a, i);
        }
    }
    for (uint64_t i = 0; !card->classes && i < width; i++) printf("%s%.6g", i ? ", " : "", (double)y[i]);
    if (o->note) printf(" (%s)", o->note);
    putchar('\n');
}

static json_t *json_row(const vkt_card *card, const origin *o, const float *y, uint64_t width)
{
    json_t *row = json_pack("{s:o, s:I, s:o}", "file", json_plain(o->path), "index", (json_int_t)o->index, "note",
                            o->note ? json_string(o->note) : json_null());
    json_t *list = json_array();
    const answer a = card->classes ? answer_of(y, card->classes) : (answer){ 0 };
    for (uint32_t i = 0; i < a.n; i++) {
        char room[16];
        json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "class", (json_int_t)a.top[i], "name",
                                              json_plain(vkt_card_class(card, a.top[i], room)), "probability",
                                              real_or_null(a.probability[i])));
    }
    for (uint64_t i = 0; !card->classes && i < width; i++) json_array_append_new(list, real_or_null((double)y[i]));
    json_object_set_new(row, card->classes ? "top" : "outputs", list);
    return row;
}

static vkt_result write_json(const session *s, const predict_kind *k, const vkt_card *card, const predict_list *l,
                             const float *y, uint64_t width)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < l->n; i++)
        json_array_append_new(rows, json_row(card, &l->origins[i], y + i * width, width));
    json_t *all = json_pack("{s:s, s:s, s:o, s:I, s:o, s:O}", "schema", "vktrain-predict-1", "program", k->program,
                            "weights", json_plain(s->o.load), "classes", (json_int_t)card->classes, "predictions", rows,
                            "failed", l->failed);
    return write_results(s, all) ? VKT_OK : VKT_E_IO;
}

/* ---- the run ---- */

static vkt_result compute(const session *s, const predict_kind *k, const vkt_card *card, const predict_list *l,
                          float **outputs, uint64_t *width)
{
    vkt_dataset *rows = NULL;
    vkt_predictor *p = NULL;
    vkt_result r = vkt_card_dataset(card, k->type, l->rows, l->n, &rows);
    const vkt_predictor_params pp = { .model = { .forward = k->forward, .user = k->model },
                                      .data = rows,
                                      .weights = s->o.load,
                                      .batch = s->o.batch,
                                      .stream = s->o.stream,
                                      .precision = s->o.precision };
    if (r == VKT_OK) r = vkt_predictor_create(s->ctx, &pp, &p);
    *width = vkt_predictor_width(p);
    if (r == VKT_OK && card->classes && *width < card->classes) {
        complain("%s: want a network of %u classes, got one of %llu outputs: the weights do not fit their data",
                 s->o.load, card->classes, (unsigned long long)*width);
        r = VKT_E_SHAPE;
    }
    if (r == VKT_OK) *outputs = calloc(l->n, *width * sizeof **outputs);
    if (r == VKT_OK && !*outputs) complain("no memory for the answers of %u rows", l->n);
    if (r == VKT_OK) r = *outputs ? vkt_predictor_run(p, 0, l->n, NULL, *outputs) : VKT_E_NOMEM;
    vkt_predictor_destroy(&p);
    vkt_dataset_destroy(&rows);
    return r;
}

static vkt_result answer_all(session *s, const predict_kind *k, const vkt_card *card, const predict_list *l)
{
    float *outputs = NULL;
    uint64_t width = 0;
    vkt_result r = l->n ? compute(s, k, card, l, &outputs, &width) : VKT_OK;
    for (uint64_t i = 0; r == VKT_OK && !card->classes && k->deviation > 0 && i < l->n * width; i++)
        outputs[i] = (float)(k->deviation * (double)outputs[i] + k->mean);
    for (uint32_t i = 0; r == VKT_OK && !s->o.quiet && i < l->n; i++)
        print_row(card, &l->origins[i], outputs + i * width, width);
    if (r == VKT_OK && s->o.json) r = write_json(s, k, card, l, outputs, width);
    free(outputs);
    return r;
}

static size_t row_bytes(const predict_kind *k, const vkt_card *card)
{
    static const size_t sizes[] = { [VKT_ROW_U8] = 1, [VKT_ROW_F32] = 4, [VKT_ROW_U16] = 2, [VKT_ROW_U32] = 4 };
    return sizes[k->type] * card->chw[0] * card->chw[1] * card->chw[2];
}

vkt_result predict_card(const session *s, const char *program, vkt_card **out)
{
    const vkt_result r = vkt_card_read(&s->host, s->o.load, program, out);
    if (r == VKT_E_NOT_FOUND)
        complain("%s: want weights that %s --save has written, with a description of their data: there is no such "
                 "file, or it has no description",
                 s->o.load, program);
    return r;
}

vkt_result predict_files(session *s, const predict_kind *k, const vkt_card *card)
{
    if (k->type >= VKT_ROW_U16 && (card->chw[0] != 1 || card->chw[1] != 1)) {
        complain("%s: want rows that are sequences, got %ux%ux%u", s->o.load, card->chw[0], card->chw[1], card->chw[2]);
        return VKT_E_SHAPE;
    }
    predict_list l = { .row_bytes = row_bytes(k, card), .failed = json_array() };
    l.host = (vkt_host){ .log = keep_line, .log_user = &l, .log_level = VKT_LOG_ERROR };
    uint32_t failed = 0;
    for (uint32_t i = 0; i < s->o.n_files; i++) failed += !add_file(k, &l, s->o.files[i]);
    vkt_result r = answer_all(s, k, card, &l);
    if (failed && s->o.n_files > 1) complain("%u of %u files were left out", failed, s->o.n_files);
    if (r == VKT_OK && failed) r = VKT_E_FORMAT;
    json_decref(l.failed);
    free(l.rows);
    free(l.origins);
    return r;
}
