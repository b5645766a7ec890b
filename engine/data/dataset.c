/* data/dataset.c - makes, slices and reads data sets (vktrain/data.h). */
#include "data/dataset.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* The part that a data set and its slices share. The table is freed when the last of these data sets is destroyed. */
typedef struct table {
    atomic_uint handles;
    vkt_host host;
    vkt_data_source source;
    uint32_t rows, shape[3], classes; /* shape: C, H, W */
    bool vector;                      /* a sample is (W), not (C,H,W) */
    vkt_row_type type;
    size_t row_bytes;
    const uint8_t *features; /* samples in memory; NULL: only the source has them */
    const uint32_t *labels;
    const float *targets; /* (rows, target_width) */
    uint32_t target_width;
    uint32_t *terms; /* see vkt_dataset_params.terms; NULL: 1 for each sample. Owned */
    double *norm;    /* the means of the C channels, then their C standard deviations */
    char **names;    /* (classes): the names of the classes, or NULL */
    bool own_features, own_labels, own_targets;
    pthread_mutex_t lock; /* guards `busy` */
    pthread_cond_t given; /* signalled when a worker number is free again */
    uint64_t busy;        /* bit i: worker number i is in use */
} table;

_Static_assert(VKT_DATA_MAX_WORKERS == 64, "a worker number is a bit of table.busy");

struct vkt_dataset {
    table *t;
    uint32_t first, rows;
};

static vkt_result fetch_from_memory(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    (void)pass;
    (void)worker;
    const table *t = self;
    memcpy(dst, t->features + (size_t)row * t->row_bytes, t->row_bytes);
    return VKT_OK;
}

static void table_free(table *t)
{
    const vkt_host h = t->host;
    if (t->source.destroy) t->source.destroy(t->source.self);
    if (t->own_features) vkt_free(&h, (void *)(uintptr_t)t->features);
    if (t->own_labels) vkt_free(&h, (void *)(uintptr_t)t->labels);
    if (t->own_targets) vkt_free(&h, (void *)(uintptr_t)t->targets);
    for (uint32_t i = 0; t->names && i < t->classes; i++) vkt_free(&h, t->names[i]);
    vkt_free(&h, t->names);
    vkt_free(&h, t->terms);
    vkt_free(&h, t->norm);
    pthread_cond_destroy(&t->given);
    pthread_mutex_destroy(&t->lock);
    vkt_free(&h, t);
}

/* Sets rows, shape, vector, type and row_bytes. Checks that the size of the table fits into memory addresses. */
static vkt_result set_shape(table *t, const vkt_dataset_params *p)
{
    const vkt_host *h = &t->host;
    if (p->rows == 0) return vkt_fail(h, VKT_E_ARG, "data set: want 1 row or more, got 0");
    static const uint32_t element_bytes[] = {
        [VKT_ROW_U8] = 1, [VKT_ROW_F32] = 4, [VKT_ROW_U16] = 2, [VKT_ROW_U32] = 4
    };
    if ((unsigned)p->type >= VKT_COUNT(element_bytes))
        return vkt_fail(h, VKT_E_ARG, "data set: want type u8 (0), f32 (1), u16 (2) or u32 (3), got %d", (int)p->type);
    t->rows = p->rows;
    t->type = p->type;
    t->vector = !p->channels && !p->height;
    t->shape[0] = VKT_MAX(p->channels, 1u);
    t->shape[1] = VKT_MAX(p->height, 1u);
    t->shape[2] = VKT_MAX(p->width, 1u);
    if (vkt_is_sequence(p->type) && (t->shape[0] > 1 || t->shape[1] > 1 || p->mean || p->std))
        return vkt_fail(h, VKT_E_ARG,
                        "data set: rows of u16 or u32 have a width, and neither channels, height nor mean "
                        "and std; got (%u,%u,%u)",
                        t->shape[0], t->shape[1], t->shape[2]);
    uint64_t bytes = element_bytes[p->type], all;
    for (int i = 0; i < 3; i++)
        if (!vkt_mul_u64(bytes, t->shape[i], &bytes)) bytes = UINT64_MAX;
    if (!vkt_mul_u64(bytes, p->rows, &all) || all > PTRDIFF_MAX)
        return vkt_fail(h, VKT_E_ARG, "data set: %u rows of (%u,%u,%u) do not fit into memory addresses", p->rows,
                        t->shape[0], t->shape[1], t->shape[2]);
    t->row_bytes = (size_t)bytes;
    return VKT_OK;
}

static vkt_result set_classes(table *t, const vkt_dataset_params *p)
{
    const vkt_host *h = &t->host;
    const uint32_t limit = p->classes ? p->classes : UINT32_MAX;
    t->classes = p->classes;
    for (uint32_t i = 0; p->labels && i < p->rows; i++) {
        if (p->labels[i] >= limit)
            return vkt_fail(h, VKT_E_ARG, "data set: row %u: want a label below %u, got %u", i, limit, p->labels[i]);
        t->classes = VKT_MAX(t->classes, p->labels[i] + 1);
    }
    t->labels = p->labels;
    if (!p->class_names) return VKT_OK;
    if (p->classes == 0) return vkt_fail(h, VKT_E_ARG, "data set: class_names without the number of classes");
    t->names = vkt_alloc_array(h, p->classes, sizeof *t->names);
    if (!t->names) return vkt_fail_nomem(h, "class names", p->classes * sizeof *t->names);
    for (uint32_t i = 0; i < p->classes; i++) {
        if (!p->class_names[i]) return vkt_fail(h, VKT_E_ARG, "data set: class name %u is NULL", i);
        t->names[i] = vkt_strdup(h, p->class_names[i]);
        if (!t->names[i]) return vkt_fail_nomem(h, "a class name", strlen(p->class_names[i]) + 1);
    }
    return VKT_OK;
}

static vkt_result set_targets(table *t, const vkt_dataset_params *p)
{
    if (!p->targets) return VKT_OK;
    t->targets = p->targets;
    t->target_width = VKT_MAX(p->target_width, 1u);
    uint64_t bytes;
    if (!vkt_mul_u64((uint64_t)t->target_width * sizeof(float), t->rows, &bytes) || bytes > PTRDIFF_MAX)
        return vkt_fail(&t->host, VKT_E_ARG, "data set: %u rows of %u targets do not fit into memory addresses",
                        t->rows, t->target_width);
    return VKT_OK;
}

static vkt_result set_terms(table *t, const vkt_dataset_params *p)
{
    if (!p->terms) return VKT_OK;
    const vkt_host *h = &t->host;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->rows; i++) {
        sum += p->terms[i];
        if (p->terms[i] == 0) return vkt_fail(h, VKT_E_ARG, "data set: row %u: want 1 term or more, got 0", i);
    }
    if (sum > UINT32_MAX)
        return vkt_fail(h, VKT_E_ARG, "data set: want fewer than 2^32 terms in all rows, got %llu",
                        (unsigned long long)sum);
    t->terms = vkt_alloc_array(h, p->rows, sizeof *t->terms);
    if (!t->terms) return vkt_fail_nomem(h, "terms of rows", p->rows * sizeof *t->terms);
    memcpy(t->terms, p->terms, p->rows * sizeof *t->terms);
    return VKT_OK;
}

/* Sets the mean and the standard deviation of each of the C channels. `mean` NULL: 0. `std` NULL: 1. Nothing changes on
 * failure. */
static vkt_result set_norm(table *t, const double *mean, const double *std)
{
    const uint32_t C = t->shape[0];
    for (uint32_t c = 0; c < C; c++) {
        if (mean && !isfinite(mean[c]))
            return vkt_fail(&t->host, VKT_E_ARG, "data set: mean[%u]: want a finite number, got %g", c, mean[c]);
        if (std && !(isfinite(std[c]) && std[c] > 0))
            return vkt_fail(&t->host, VKT_E_ARG, "data set: std[%u]: want a finite number above 0, got %g", c, std[c]);
    }
    for (uint32_t c = 0; c < C; c++) {
        t->norm[c] = mean ? mean[c] : 0;
        t->norm[C + c] = std ? std[c] : 1;
    }
    return VKT_OK;
}

/* Creates a data set with shape, classes and normalisation. The data set borrows p->labels and p->targets, and has no
 * samples yet. */
static vkt_result make(const vkt_host *h, const vkt_dataset_params *p, vkt_dataset **out)
{
    if (!p) return vkt_fail(h, VKT_E_ARG, "data set: params is NULL");
    vkt_dataset *ds = vkt_alloc(h, sizeof *ds);
    if (!ds) return vkt_fail_nomem(h, "a data set", sizeof *ds);
    table *t = ds->t = vkt_alloc(h, sizeof *t);
    if (!t) {
        vkt_free(h, ds);
        return vkt_fail_nomem(h, "a data set", sizeof *t);
    }
    atomic_init(&t->handles, 1);
    pthread_mutex_init(&t->lock, NULL); /* the two init calls cannot fail with default attributes on Linux */
    pthread_cond_init(&t->given, NULL);
    t->host = *h;
    ds->rows = p->rows;
    vkt_result r = set_shape(t, p);
    if (r == VKT_OK) r = set_classes(t, p);
    if (r == VKT_OK) r = set_targets(t, p);
    if (r == VKT_OK) r = set_terms(t, p);
    if (r == VKT_OK) {
        t->norm = vkt_alloc_array(h, t->shape[0], 2 * sizeof *t->norm);
        r = t->norm ? set_norm(t, p->mean, p->std)
                    : vkt_fail_nomem(h, "normalisation", t->shape[0] * 2 * sizeof *t->norm);
    }
    if (r != VKT_OK) {
        vkt_dataset_destroy(&ds);
        return r;
    }
    *out = ds;
    return VKT_OK;
}

static void *copy(const vkt_host *h, const void *from, size_t bytes)
{
    void *to = vkt_alloc(h, bytes);
    if (to) memcpy(to, from, bytes);
    return to;
}

static vkt_result own_labels(table *t)
{
    if (!t->labels) return VKT_OK;
    const size_t bytes = (size_t)t->rows * sizeof *t->labels;
    const uint32_t *labels = copy(&t->host, t->labels, bytes);
    if (!labels) return vkt_fail_nomem(&t->host, "labels", bytes);
    t->labels = labels;
    t->own_labels = true;
    return VKT_OK;
}

static vkt_result own_targets(table *t)
{
    if (!t->targets) return VKT_OK;
    const size_t bytes = (size_t)t->rows * t->target_width * sizeof *t->targets;
    const float *targets = copy(&t->host, t->targets, bytes);
    if (!targets) return vkt_fail_nomem(&t->host, "targets", bytes);
    t->targets = targets;
    t->own_targets = true;
    return VKT_OK;
}

static vkt_result own_features(table *t)
{
    const size_t bytes = (size_t)t->rows * t->row_bytes;
    const uint8_t *features = copy(&t->host, t->features, bytes);
    if (!features) return vkt_fail_nomem(&t->host, "features", bytes);
    t->features = features;
    t->own_features = true;
    return VKT_OK;
}

static void serve_from_memory(table *t, const void *features)
{
    t->features = features;
    t->source = (vkt_data_source){ .fetch = fetch_from_memory, .self = t };
}

vkt_result vkt_dataset_adopt(const vkt_host *h, const vkt_dataset_params *p, void *features, vkt_dataset **out)
{
    VKT_TRY(make(h, p, out));
    serve_from_memory((*out)->t, features);
    (*out)->t->own_features = true;
    (*out)->t->own_labels = p->labels != NULL;
    (*out)->t->own_targets = p->targets != NULL;
    return VKT_OK;
}

vkt_result vkt_dataset_from_arrays(const vkt_host *host, const vkt_dataset_params *params, const void *features,
                                   vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!features) return vkt_fail(&h, VKT_E_ARG, "data set: features is NULL");
    VKT_TRY(make(&h, params, out));
    table *t = (*out)->t;
    serve_from_memory(t, features);
    vkt_result r = params->borrow ? VKT_OK : own_features(t);
    if (r == VKT_OK && !params->borrow) r = own_labels(t);
    if (r == VKT_OK && !params->borrow) r = own_targets(t);
    if (r != VKT_OK) vkt_dataset_destroy(out);
    return r;
}

vkt_result vkt_dataset_from_source(const vkt_host *host, const vkt_dataset_params *params,
                                   const vkt_data_source *source, vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!source || !source->fetch) return vkt_fail(&h, VKT_E_ARG, "data set: a source without fetch");
    VKT_TRY(make(&h, params, out));
    vkt_result r = params->borrow ? VKT_OK : own_labels((*out)->t);
    if (r == VKT_OK && !params->borrow) r = own_targets((*out)->t);
    if (r == VKT_OK)
        (*out)->t->source = *source; /* comes last: a failure must not destroy the caller's source */
    else
        vkt_dataset_destroy(out);
    return r;
}

vkt_result vkt_dataset_slice(const vkt_dataset *ds, uint32_t first, uint32_t count, vkt_dataset **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, ds);
    const vkt_host *h = &ds->t->host;
    *out = NULL;
    if (count == 0 || first >= ds->rows || count > ds->rows - first)
        return vkt_fail(h, VKT_E_ARG, "slice: want 1 row or more within [0, %u), got %u from %u", ds->rows, count,
                        first);
    vkt_dataset *view = vkt_alloc(h, sizeof *view);
    if (!view) return vkt_fail_nomem(h, "a slice", sizeof *view);
    *view = (vkt_dataset){ .t = ds->t, .first = ds->first + first, .rows = count };
    atomic_fetch_add(&ds->t->handles, 1);
    *out = view;
    return VKT_OK;
}

void vkt_dataset_destroy(vkt_dataset **ds)
{
    if (!ds || !*ds) return;
    table *t = (*ds)->t;
    vkt_free(&t->host, *ds);
    *ds = NULL;
    if (atomic_fetch_sub(&t->handles, 1) == 1) table_free(t);
}

const vkt_host *vkt_dataset_host(const vkt_dataset *ds)
{
    return &ds->t->host;
}

uint32_t vkt_dataset_rows(const vkt_dataset *ds)
{
    if (!ds) return 0;
    return ds->rows;
}

void vkt_dataset_sample_shape(const vkt_dataset *ds, uint32_t chw[3])
{
    if (!ds || !chw) return;
    memcpy(chw, ds->t->shape, sizeof ds->t->shape);
}

uint32_t vkt_dataset_sample_rank(const vkt_dataset *ds)
{
    if (!ds) return 0;
    return ds->t->vector ? 1 : 3;
}

vkt_row_type vkt_dataset_type(const vkt_dataset *ds)
{
    if (!ds) return (vkt_row_type){ 0 };
    return ds->t->type;
}

size_t vkt_dataset_row_bytes(const vkt_dataset *ds)
{
    if (!ds) return 0;
    return ds->t->row_bytes;
}

uint32_t vkt_dataset_classes(const vkt_dataset *ds)
{
    if (!ds) return 0;
    return ds->t->classes;
}

const char *vkt_dataset_class_name(const vkt_dataset *ds, uint32_t number)
{
    if (!ds) return NULL;
    return ds->t->names && number < ds->t->classes ? ds->t->names[number] : NULL;
}

vkt_result vkt_dataset_balanced_weights(const vkt_dataset *ds, float *weights)
{
    VKT_WANT(NULL, ds);
    const vkt_host *h = &ds->t->host;
    VKT_WANT(h, weights);
    const uint32_t classes = ds->t->classes, *labels = vkt_dataset_labels(ds);
    if (!labels) return vkt_fail(h, VKT_E_ARG, "balanced weights: want a data set with labels, got one without");
    uint32_t *rows = vkt_alloc_array(h, classes, sizeof *rows);
    if (!rows) return vkt_fail_nomem(h, "the number of rows of each class", classes * sizeof *rows);
    for (uint32_t i = 0; i < ds->rows; i++) rows[labels[i]]++;
    for (uint32_t k = 0; k < classes; k++)
        weights[k] = rows[k] ? (float)((double)ds->rows / ((double)classes * (double)rows[k])) : 0;
    vkt_free(h, rows);
    return VKT_OK;
}

const void *vkt_dataset_features(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->features ? ds->t->features + (size_t)ds->first * ds->t->row_bytes : NULL;
}

const uint32_t *vkt_dataset_labels(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->labels ? ds->t->labels + ds->first : NULL;
}

const float *vkt_dataset_targets(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->targets ? ds->t->targets + (size_t)ds->first * ds->t->target_width : NULL;
}

const uint32_t *vkt_dataset_terms(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->terms ? ds->t->terms + ds->first : NULL;
}

uint32_t vkt_dataset_target_width(const vkt_dataset *ds)
{
    if (!ds) return 0;
    return ds->t->target_width;
}

const double *vkt_dataset_mean(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->norm;
}

const double *vkt_dataset_std(const vkt_dataset *ds)
{
    if (!ds) return NULL;
    return ds->t->norm + ds->t->shape[0];
}

bool vkt_dataset_varies(const vkt_dataset *ds)
{
    if (!ds) return false;
    return ds->t->source.varies;
}

vkt_result vkt_dataset_fetch_as(const vkt_dataset *ds, uint32_t row, vkt_pass pass, void *out, uint32_t worker)
{
    return ds->t->source.fetch(ds->t->source.self, ds->first + row, pass, out, worker);
}

const char *vkt_dataset_why(const vkt_dataset *ds, uint32_t worker, vkt_result r)
{
    const vkt_data_source *s = &ds->t->source;
    const char *why = s->why ? s->why(s->self, worker) : NULL;
    return why ? why : vkt_result_text(r);
}

uint32_t vkt_dataset_take_worker(const vkt_dataset *ds, uint32_t first, uint32_t last)
{
    table *t = ds->t;
    pthread_mutex_lock(&t->lock);
    uint32_t number = first;
    while (t->busy >> number & 1) {
        if (number++ < last) continue;
        number = first;
        pthread_cond_wait(&t->given, &t->lock);
    }
    t->busy |= 1ull << number;
    pthread_mutex_unlock(&t->lock);
    return number;
}

void vkt_dataset_give_worker(const vkt_dataset *ds, uint32_t number)
{
    table *t = ds->t;
    pthread_mutex_lock(&t->lock);
    t->busy &= ~(1ull << number);
    pthread_cond_broadcast(&t->given);
    pthread_mutex_unlock(&t->lock);
}

vkt_result vkt_dataset_fetch(const vkt_dataset *ds, uint32_t row, void *out)
{
    VKT_WANT(NULL, ds);
    VKT_WANT(vkt_dataset_host(ds), out);
    if (row >= ds->rows) return vkt_fail(&ds->t->host, VKT_E_ARG, "fetch: want a row below %u, got %u", ds->rows, row);
    const uint32_t worker = vkt_dataset_take_worker(ds, 0, 0);
    vkt_result r = vkt_dataset_fetch_as(ds, row, (vkt_pass){ 0 }, out, worker);
    if (r != VKT_OK)
        r = vkt_fail(&ds->t->host, r, "row %u could not be fetched: %s", row, vkt_dataset_why(ds, worker, r));
    vkt_dataset_give_worker(ds, worker);
    return r;
}

vkt_result vkt_dataset_normalize(vkt_dataset *ds, const double *mean, const double *std)
{
    VKT_WANT(NULL, ds);
    if (!mean || !std) return vkt_fail(&ds->t->host, VKT_E_ARG, "normalize: mean or std is NULL");
    if (vkt_is_sequence(ds->t->type))
        return vkt_fail(&ds->t->host, VKT_E_ARG, "normalize: whole numbers stay as they are");
    return set_norm(ds->t, mean, std);
}
