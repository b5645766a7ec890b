/* data/texts.c - reads tables of labelled texts, and makes data sets from them with a vocabulary (vktrain/text.h). */
#include "data/class_names.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/vocab.h"
#include "data/words.h"
#include "vktrain/text.h"

struct vkt_texts {
    vkt_host host;
    vkt_csv file;   /* owns the texts */
    vkt_words seen; /* class names; the label of a class is the index of its name in this list */
    char **texts;
    uint32_t *labels;
    const char **names; /* (seen.n), pointers into `seen` */
    size_t rows, cap_texts, cap_labels;
};

static vkt_result copy_class_names(vkt_texts *t, const vkt_tsv_params *p)
{
    if (p->classes_path && p->class_names)
        return vkt_fail(&t->host, VKT_E_ARG, "texts: want classes_path or class_names, got both");
    if (p->classes_path) return vkt_class_names_read(p->classes_path, &t->seen);
    for (uint32_t i = 0; p->class_names && i < p->classes; i++) {
        uint32_t number = 0;
        if (!p->class_names[i]) return vkt_fail(&t->host, VKT_E_ARG, "texts: class name %u is NULL", i);
        VKT_TRY(vkt_words_add(&t->seen, p->class_names[i], strlen(p->class_names[i]), 1, &number));
        if (number != i) return vkt_fail(&t->host, VKT_E_ARG, "texts: class names %u and %u are the same", number, i);
    }
    return VKT_OK;
}

/* Adds the line that was read last. `fixed`: a new class is an error. */
static vkt_result add_row(vkt_texts *t, bool fixed)
{
    const vkt_csv *c = &t->file;
    if (c->n_fields != 2) return vkt_csv_fail(c, "want a label, a tab and a text, got %zu fields", c->n_fields);
    if (t->rows == UINT32_MAX) return vkt_csv_fail(c, "want fewer than 2^32 lines");
    const char *name = c->fields[0];
    uint32_t label = fixed ? vkt_words_find(&t->seen, name, strlen(name)) : 0;
    if (label == VKT_NO_WORD) return vkt_csv_fail(c, "label \"%.100s\" is none of the %zu classes", name, t->seen.n);
    if (!fixed) VKT_TRY(vkt_words_add(&t->seen, name, strlen(name), 1, &label));
    VKT_TRY(vkt_grow(&t->host, &t->texts, t->rows, &t->cap_texts, sizeof *t->texts));
    VKT_TRY(vkt_grow(&t->host, &t->labels, t->rows, &t->cap_labels, sizeof *t->labels));
    t->texts[t->rows] = c->fields[1];
    t->labels[t->rows++] = label;
    return VKT_OK;
}

typedef struct source {
    const char *name; /* name of the file, or the name of `text` in messages */
    const char *text; /* NULL: the file `name` is read */
} source;

static vkt_result read_rows(vkt_texts *t, const source *from, bool fixed)
{
    const vkt_csv_format tsv = { .separator = '\t', .no_quotes = true };
    if (from->text)
        VKT_TRY(vkt_csv_open_memory(&t->host, from->name, from->text, strlen(from->text), &tsv, &t->file));
    else
        VKT_TRY(vkt_csv_open(&t->host, from->name, &tsv, &t->file));
    for (bool more = true;;) {
        VKT_TRY(vkt_csv_next(&t->file, &more));
        if (!more) break;
        VKT_TRY(add_row(t, fixed));
    }
    return t->rows ? VKT_OK
                   : vkt_fail(&t->host, VKT_E_FORMAT, "\"%s\": want lines label<TAB>text, found none", from->name);
}

static vkt_result read_table(const vkt_host *host, const source *from, const vkt_tsv_params *params, vkt_texts **out)
{
    const vkt_host h = vkt_host_resolve(host);
    const vkt_tsv_params none = { 0 };
    *out = NULL;
    if (!params) params = &none;
    if (!from->name) return vkt_fail(&h, VKT_E_ARG, "texts: path or name is NULL");
    vkt_texts *t = vkt_alloc(&h, sizeof *t);
    if (!t) return vkt_fail_nomem(&h, "a table of texts", sizeof *t);
    t->host = h;
    t->seen.h = &t->host;
    vkt_result r = copy_class_names(t, params);
    if (r == VKT_OK) r = read_rows(t, from, params->classes_path || params->class_names);
    if (r == VKT_OK) {
        t->names = vkt_alloc_array(&h, t->seen.n, sizeof *t->names);
        if (!t->names) r = vkt_fail_nomem(&h, "class names", t->seen.n * sizeof *t->names);
    }
    for (uint32_t i = 0; r == VKT_OK && i < t->seen.n; i++) t->names[i] = vkt_words_text(&t->seen, i);
    if (r == VKT_OK)
        *out = t;
    else
        vkt_texts_destroy(&t);
    return r;
}

vkt_result vkt_texts_from_tsv(const vkt_host *host, const char *path, const vkt_tsv_params *params, vkt_texts **out)
{
    VKT_WANT(host, out);
    return read_table(host, &(source){ path, NULL }, params, out);
}

vkt_result vkt_texts_from_tsv_text(const vkt_host *host, const char *name, const char *text,
                                   const vkt_tsv_params *params, vkt_texts **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!text) return vkt_fail(&h, VKT_E_ARG, "texts: text is NULL");
    return read_table(host, &(source){ name, text }, params, out);
}

void vkt_texts_destroy(vkt_texts **pt)
{
    vkt_texts *t = pt ? *pt : NULL;
    if (!t) return;
    const vkt_host h = t->host;
    vkt_csv_close(&t->file);
    vkt_words_free(&t->seen);
    vkt_free(&h, t->texts);
    vkt_free(&h, t->labels);
    vkt_free(&h, t->names);
    vkt_free(&h, t);
    *pt = NULL;
}

uint32_t vkt_texts_rows(const vkt_texts *t)
{
    if (!t) return 0;
    return (uint32_t)t->rows;
}

const char *const *vkt_texts_all(const vkt_texts *t)
{
    if (!t) return NULL;
    return (const char *const *)t->texts;
}

const uint32_t *vkt_texts_labels(const vkt_texts *t)
{
    if (!t) return NULL;
    return t->labels;
}

uint32_t vkt_texts_classes(const vkt_texts *t)
{
    if (!t) return 0;
    return (uint32_t)t->seen.n;
}

const char *const *vkt_texts_class_names(const vkt_texts *t)
{
    if (!t) return NULL;
    return t->names;
}

/* ---- data sets ---- */

/* The ids of a text. The next text reuses the memory. */
typedef struct encoder {
    const vkt_host *h;
    const vkt_texts *t; /* the table of texts; NULL: a single text is encoded */
    const vkt_vocab *v;
    bool start;
    uint32_t *ids;
    uint32_t n, cap;
} encoder;

static vkt_result encode(encoder *e, const char *text)
{
    const uint32_t skip = e->start;
    for (;;) {
        VKT_TRY(vkt_vocab_encode(e->v, text, e->ids + skip, e->cap - skip, &e->n));
        e->n += skip;
        if (e->n <= e->cap) break;
        uint32_t *ids = vkt_realloc(e->h, e->ids, (size_t)e->n * sizeof *ids);
        if (!ids) return vkt_fail_nomem(e->h, "a text's ids", (size_t)e->n * sizeof *ids);
        e->ids = ids;
        e->cap = e->n;
    }
    if (skip) e->ids[0] = VKT_ID_START;
    return VKT_OK;
}

/* Fills `out` with the ids of all texts: (rows, maxlen), u16 if `narrow`, else u32. */
static vkt_result fill(encoder *e, const vkt_sequence_params *p, bool narrow, void *out)
{
    uint32_t *row = vkt_alloc_array(&e->t->host, p->maxlen, sizeof *row);
    if (!row) return vkt_fail_nomem(&e->t->host, "a sequence", p->maxlen * sizeof *row);
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < e->t->rows && r == VKT_OK; i++) {
        const size_t at = (size_t)i * p->maxlen;
        r = encode(e, e->t->texts[i]);
        if (r != VKT_OK) break;
        vkt_pad_sequence(p, e->ids, e->n, row);
        if (!narrow) memcpy((uint32_t *)out + at, row, p->maxlen * sizeof *row);
        for (uint32_t k = 0; narrow && k < p->maxlen; k++) ((uint16_t *)out)[at + k] = (uint16_t)row[k];
    }
    vkt_free(&e->t->host, row);
    return r;
}

/* Finds the length of the longest sequence, at least 1. */
static vkt_result measure(encoder *e, uint32_t *longest)
{
    *longest = 1;
    for (uint32_t i = 0; i < e->t->rows; i++) {
        VKT_TRY(encode(e, e->t->texts[i]));
        *longest = VKT_MAX(*longest, e->n);
    }
    return VKT_OK;
}

static vkt_result make(encoder *e, const vkt_sequence_params *p, vkt_dataset **out)
{
    const vkt_host *h = &e->t->host;
    const bool narrow = vkt_vocab_size(e->v) <= 65536 && p->value < 65536;
    const uint32_t rows = vkt_texts_rows(e->t);
    vkt_dataset_params d = { .rows = rows,
                             .width = p->maxlen,
                             .type = narrow ? VKT_ROW_U16 : VKT_ROW_U32,
                             .classes = vkt_texts_classes(e->t),
                             .class_names = e->t->names };
    uint64_t bytes;
    if (!vkt_mul_u64((uint64_t)rows * p->maxlen, narrow ? 2 : 4, &bytes) || bytes > PTRDIFF_MAX)
        return vkt_fail(h, VKT_E_ARG, "texts: %u sequences of %u do not fit into memory addresses", rows, p->maxlen);
    void *ids = vkt_alloc(h, (size_t)bytes);
    uint32_t *labels = vkt_alloc_array(h, rows, sizeof *labels);
    vkt_result r = ids && labels ? VKT_OK : vkt_fail_nomem(h, "sequences", (size_t)bytes);
    if (r == VKT_OK) r = fill(e, p, narrow, ids);
    if (r == VKT_OK) memcpy(labels, e->t->labels, rows * sizeof *labels);
    d.labels = labels;
    if (r == VKT_OK) r = vkt_dataset_adopt(h, &d, ids, out);
    if (r != VKT_OK) {
        vkt_free(h, ids);
        vkt_free(h, labels);
    }
    return r;
}

vkt_result vkt_dataset_from_texts(const vkt_texts *t, const vkt_vocab *v, const vkt_sequence_params *params,
                                  vkt_dataset **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, v);
    vkt_sequence_params p = params ? *params : (vkt_sequence_params){ 0 };
    *out = NULL;
    encoder e = { .h = &t->host, .t = t, .v = v, .start = !p.no_start, .cap = 1024 };
    e.ids = vkt_alloc_array(&t->host, e.cap, sizeof *e.ids);
    vkt_result r = e.ids ? VKT_OK : vkt_fail_nomem(&t->host, "a text's ids", e.cap * sizeof *e.ids);
    if (r == VKT_OK && !p.maxlen) r = measure(&e, &p.maxlen);
    if (r == VKT_OK) r = make(&e, &p, out);
    vkt_free(&t->host, e.ids);
    return r;
}

vkt_result vkt_vocab_row(const vkt_vocab *v, const vkt_sequence_params *params, const char *text, uint32_t *row,
                         uint32_t *words, uint32_t *unknown)
{
    VKT_WANT(NULL, v);
    const vkt_host *h = &v->host;
    VKT_WANT(h, params);
    VKT_WANT(h, text);
    VKT_WANT(h, row);
    if (!params->maxlen) return vkt_fail(h, VKT_E_ARG, "sequence: want a maxlen of 1 or more, got 0");
    const uint32_t skip = !params->no_start;
    encoder e = { .h = h, .v = v, .start = skip, .cap = 1024 };
    e.ids = vkt_alloc_array(h, e.cap, sizeof *e.ids);
    const vkt_result r = e.ids ? encode(&e, text) : vkt_fail_nomem(h, "a text's ids", e.cap * sizeof *e.ids);
    uint32_t lacks = 0;
    for (uint32_t i = skip; r == VKT_OK && i < e.n; i++) lacks += e.ids[i] == VKT_ID_UNKNOWN;
    if (r == VKT_OK) vkt_pad_sequence(params, e.ids, e.n, row);
    if (r == VKT_OK && words) *words = e.n - skip;
    if (r == VKT_OK && unknown) *unknown = lacks;
    vkt_free(h, e.ids);
    return r;
}
