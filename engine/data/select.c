/* data/select.c - data sets of chosen samples of another data set (vktrain/data.h). */
#include "data/dataset.h"

#include <math.h>

/* The params of the new data set, and the arrays that `forget` frees. */
typedef struct description {
    vkt_dataset_params p;
    uint32_t *labels;
    float *targets;
    uint32_t *terms;
    const char **names;
} description;

static void forget(const vkt_host *h, description *d)
{
    vkt_free(h, d->labels);
    vkt_free(h, d->targets);
    vkt_free(h, d->terms);
    vkt_free(h, d->names);
}

/* Describes a data set of samples rows[0] .. rows[n-1] of `ds` (rows NULL: 0 .. n-1), without its features. */
static vkt_result describe(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, description *d)
{
    const vkt_host *h = vkt_dataset_host(ds);
    const uint32_t *labels = vkt_dataset_labels(ds), *terms = vkt_dataset_terms(ds);
    const uint32_t width = vkt_dataset_target_width(ds);
    const float *targets = vkt_dataset_targets(ds);
    const bool named = vkt_dataset_class_name(ds, 0), sequence = vkt_is_sequence(vkt_dataset_type(ds));
    const bool vector = vkt_dataset_sample_rank(ds) == 1;
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    *d = (description){ .p = { .rows = n,
                               .channels = vector ? 0 : chw[0],
                               .height = vector ? 0 : chw[1],
                               .width = chw[2],
                               .type = vkt_dataset_type(ds),
                               .classes = vkt_dataset_classes(ds),
                               .target_width = width,
                               .mean = sequence ? NULL : vkt_dataset_mean(ds),
                               .std = sequence ? NULL : vkt_dataset_std(ds) } };
    if (labels) d->labels = vkt_alloc_array(h, n, sizeof *labels);
    if (targets) d->targets = vkt_alloc_array(h, (size_t)n * width, sizeof *targets);
    if (terms) d->terms = vkt_alloc_array(h, n, sizeof *terms);
    if (named) d->names = vkt_alloc_array(h, d->p.classes, sizeof *d->names);
    if ((labels && !d->labels) || (targets && !d->targets) || (terms && !d->terms) || (named && !d->names)) {
        forget(h, d);
        return vkt_fail_nomem(h, "labels, targets and terms",
                              (size_t)n * (2 * sizeof *labels + width * sizeof *targets));
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = rows ? rows[i] : i;
        if (labels) d->labels[i] = labels[row];
        if (terms) d->terms[i] = terms[row];
        if (targets) memcpy(d->targets + (size_t)i * width, targets + (size_t)row * width, width * sizeof *targets);
    }
    for (uint32_t i = 0; named && i < d->p.classes; i++) d->names[i] = vkt_dataset_class_name(ds, i);
    d->p.labels = d->labels;
    d->p.targets = d->targets;
    d->p.terms = d->terms;
    d->p.class_names = d->names;
    return VKT_OK;
}

vkt_result vkt_dataset_derive(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, void *features,
                              vkt_dataset **out)
{
    const vkt_host *h = vkt_dataset_host(ds);
    description d;
    *out = NULL;
    VKT_TRY(describe(ds, rows, n, &d));
    const vkt_result r = vkt_dataset_adopt(h, &d.p, features, out);
    if (r == VKT_OK) d.labels = NULL, d.targets = NULL; /* the data set owns these arrays now */
    forget(h, &d);
    return r;
}

/* ---- samples of a source ---- */

typedef struct chosen {
    vkt_host host;
    vkt_dataset *base; /* the data set from which samples are chosen; owned */
    uint32_t *rows;
    vkt_result last[VKT_DATA_MAX_WORKERS]; /* result of each worker's last fetch */
} chosen;

static vkt_result chosen_fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    chosen *c = self;
    c->last[worker] = vkt_dataset_fetch_as(c->base, c->rows[row], pass, dst, worker);
    return c->last[worker];
}

static const char *chosen_why(void *self, uint32_t worker)
{
    const chosen *c = self;
    return vkt_dataset_why(c->base, worker, c->last[worker]);
}

static void chosen_destroy(void *self)
{
    chosen *c = self;
    const vkt_host h = c->host;
    vkt_dataset_destroy(&c->base);
    vkt_free(&h, c->rows);
    vkt_free(&h, c);
}

static vkt_result select_from_source(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, vkt_dataset **out)
{
    const vkt_host *h = vkt_dataset_host(ds);
    description d;
    VKT_TRY(describe(ds, rows, n, &d));
    chosen *c = vkt_alloc(h, sizeof *c);
    vkt_result r = c ? VKT_OK : vkt_fail_nomem(h, "chosen rows", sizeof *c);
    if (r == VKT_OK) {
        c->host = *h;
        c->rows = vkt_alloc_array(h, n, sizeof *rows);
        r = c->rows ? vkt_dataset_slice(ds, 0, vkt_dataset_rows(ds), &c->base)
                    : vkt_fail_nomem(h, "chosen rows", n * sizeof *rows);
    }
    if (r == VKT_OK) {
        memcpy(c->rows, rows, n * sizeof *rows);
        const vkt_data_source source = { chosen_fetch, chosen_destroy, c, chosen_why, vkt_dataset_varies(ds) };
        r = vkt_dataset_from_source(h, &d.p, &source, out);
    }
    if (r != VKT_OK && c) chosen_destroy(c);
    forget(h, &d);
    return r;
}

vkt_result vkt_dataset_select(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, vkt_dataset **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, ds);
    const vkt_host *h = vkt_dataset_host(ds);
    *out = NULL;
    if (!rows || n == 0) return vkt_fail(h, VKT_E_ARG, "select: want 1 row or more, got %u", rows ? n : 0);
    for (uint32_t i = 0; i < n; i++)
        if (rows[i] >= vkt_dataset_rows(ds))
            return vkt_fail(h, VKT_E_ARG, "select: rows[%u]: want a row below %u, got %u", i, vkt_dataset_rows(ds),
                            rows[i]);
    const uint8_t *features = vkt_dataset_features(ds);
    if (!features) return select_from_source(ds, rows, n, out);
    const size_t row_bytes = vkt_dataset_row_bytes(ds);
    uint8_t *copy = vkt_alloc_array(h, n, row_bytes);
    if (!copy) return vkt_fail_nomem(h, "chosen rows", n * row_bytes);
    for (uint32_t i = 0; i < n; i++) memcpy(copy + i * row_bytes, features + rows[i] * row_bytes, row_bytes);
    const vkt_result r = vkt_dataset_derive(ds, rows, n, copy, out);
    if (r != VKT_OK) vkt_free(h, copy);
    return r;
}

vkt_result vkt_dataset_split(const vkt_dataset *ds, double test_share, uint64_t seed, vkt_dataset **train,
                             vkt_dataset **test)
{
    if (train) *train = NULL;
    if (test) *test = NULL;
    VKT_WANT(NULL, train);
    VKT_WANT(NULL, test);
    VKT_WANT(NULL, ds);
    const vkt_host *h = vkt_dataset_host(ds);
    const uint32_t n = vkt_dataset_rows(ds);
    const double tests = ceil(test_share * n);
    *train = *test = NULL;
    if (!(tests >= 1 && tests < n))
        return vkt_fail(h, VKT_E_ARG,
                        "split: want a share of test rows that leaves both parts at least one row of %u, got %g", n,
                        test_share);
    uint32_t *order = vkt_alloc_array(h, n, sizeof *order);
    if (!order) return vkt_fail_nomem(h, "an order of rows", n * sizeof *order);
    vkt_shuffle(order, n, seed, 0);
    vkt_result r = vkt_dataset_select(ds, order, (uint32_t)tests, test);
    if (r == VKT_OK) r = vkt_dataset_select(ds, order + (uint32_t)tests, n - (uint32_t)tests, train);
    if (r != VKT_OK) vkt_dataset_destroy(test);
    vkt_free(h, order);
    return r;
}
