/* train/feed.c - see feed.h. */
#include "train/feed.h"

#include "ir/attrs.h"

#include <stdio.h>

static uint32_t pitch_of(const vkt_dataset *d)
{
    return (uint32_t)vkt_round_up(vkt_dataset_row_bytes(d), 4);
}

/* Returns the number of samples for which the tables on the device have space. */
static uint32_t table_rows(const vkt_feed *f)
{
    return f->streams ? VKT_FEED_SLOTS * f->batch : f->room ? f->room : f->n;
}

static vkt_shape table_shape(const vkt_feed *f)
{
    return vkt_shape2(table_rows(f),
                      vkt_dataset_type(f->data) == VKT_ROW_U8 ? pitch_of(f->data) : pitch_of(f->data) / 4);
}

static vkt_shape target_shape(const vkt_feed *f)
{
    return vkt_shape2(table_rows(f), vkt_dataset_target_width(f->data));
}

static vkt_dtype table_type(const vkt_feed *f)
{
    static const vkt_dtype types[] = {
        [VKT_ROW_U8] = VKT_U8, [VKT_ROW_F32] = VKT_F32, [VKT_ROW_U16] = VKT_U32, [VKT_ROW_U32] = VKT_U32
    };
    return types[vkt_dataset_type(f->data)];
}

static vkt_result make_array(vkt_feed *f, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data,
                             vkt_array **out)
{
    const vkt_array_params p = {
        .dtype = dtype, .shape = shape, .data = data, .host_visible = f->streams, .name = name
    };
    return vkt_array_create(f->ctx, &p, out);
}

/* Runs one epoch of the loader, and copies its batches to the device. The epoch has n_samples samples. `order` has
 * their indices in the data set (NULL: 0, 1, 2, ..). */
static vkt_result upload_batches(vkt_feed *f, vkt_loader *l, const vkt_loader_slot *slots, const uint32_t *order,
                                 uint32_t n_samples)
{
    const uint64_t pitch = pitch_of(f->data), target_bytes = 4ull * vkt_dataset_target_width(f->data);
    VKT_TRY(vkt_loader_start_epoch(l, order, n_samples, (vkt_pass){ 0 }));
    for (uint64_t first = 0;;) {
        uint32_t slot, n;
        VKT_TRY(vkt_loader_next(l, &slot, &n));
        if (n == 0) return VKT_OK;
        VKT_TRY(vkt_array_write(f->features, first * pitch, slots[slot].features, n * pitch));
        if (slots[slot].labels) VKT_TRY(vkt_array_write(f->labels, first * 4, slots[slot].labels, n * 4ull));
        if (slots[slot].targets)
            VKT_TRY(vkt_array_write(f->targets, first * target_bytes, slots[slot].targets, n * target_bytes));
        VKT_TRY(vkt_loader_release(l, slot));
        first += n;
    }
}

/* Uploads n samples, some at a time. `order` has their indices in the data set (NULL: 0, 1, 2, ..). This is needed in
 * three cases: the size of a sample in bytes is no multiple of 4; worker threads make the samples; the tables have the
 * samples of one epoch only. If `all` is set, uploads labels and targets as well. */
static vkt_result upload_samples(vkt_feed *f, const uint32_t *order, uint32_t n, bool all)
{
    const uint32_t pitch = pitch_of(f->data), width = vkt_dataset_target_width(f->data);
    const size_t sample = pitch + (all ? 4 + 4 * (size_t)width : 0);
    const uint32_t chunk = (uint32_t)VKT_MAX((size_t)1, (4u << 20) / sample);
    char *room = vkt_alloc_array(f->h, 2 * (size_t)chunk, sample);
    if (!room) return vkt_fail_nomem(f->h, "rows of the data set", 2 * (size_t)chunk * sample);
    vkt_loader_slot slots[2] = { { room, NULL }, { room + (size_t)chunk * pitch, NULL } };
    uint32_t *labels = (uint32_t *)(void *)(room + 2 * (size_t)chunk * pitch);
    float *targets = (float *)(void *)(labels + 2 * (size_t)chunk);
    for (uint32_t i = 0; all && i < 2; i++) {
        slots[i].labels = labels + (size_t)i * chunk;
        slots[i].targets = width ? targets + (size_t)i * chunk * width : NULL;
    }
    const vkt_loader_params p = {
        .dataset = f->data, .batch = chunk, .slots = slots, .n_slots = 2, .workers = f->workers, .row_pitch = pitch
    };
    vkt_loader *l;
    vkt_result r = vkt_loader_create(f->h, &p, &l);
    if (r == VKT_OK) r = upload_batches(f, l, slots, order, n);
    vkt_loader_destroy(&l);
    vkt_free(f->h, room);
    return r;
}

/* Makes tables on the device that have room for the samples of one epoch. */
static vkt_result make_room(vkt_feed *f)
{
    VKT_TRY(make_array(f, "data.features", table_type(f), table_shape(f), NULL, &f->features));
    VKT_TRY(make_array(f, "data.labels", VKT_U32, vkt_shape1(f->room), NULL, &f->labels));
    if (vkt_dataset_target_width(f->data))
        VKT_TRY(make_array(f, "data.targets", VKT_F32, target_shape(f), NULL, &f->targets));
    return make_array(f, "data.order", VKT_U32, vkt_shape1(f->room), f->host_order, &f->order); /* 0, 1, 2, .. */
}

/* Fills the tables with the samples of the epoch that begins, unless the tables have these samples already. */
static vkt_result fill_room(vkt_feed *f)
{
    const uint64_t hash = vkt_hash(VKT_HASH_START, f->host_order, f->length * sizeof *f->host_order) | 1;
    if (f->in_room == hash || f->length == 0) return VKT_OK;
    f->in_room = 0;
    VKT_TRY(upload_samples(f, f->host_order, f->length, true));
    f->in_room = hash;
    return VKT_OK;
}

static vkt_result make_resident(vkt_feed *f)
{
    if (f->room) return make_room(f);
    const bool as_is = vkt_dataset_features(f->data) && vkt_dataset_row_bytes(f->data) % 4 == 0;
    VKT_TRY(make_array(f, "data.features", table_type(f), table_shape(f), as_is ? vkt_dataset_features(f->data) : NULL,
                       &f->features));
    if (!as_is) VKT_TRY(upload_samples(f, NULL, f->n, false));
    VKT_TRY(make_array(f, "data.labels", VKT_U32, vkt_shape1(f->n), vkt_dataset_labels(f->data), &f->labels));
    const float *targets = vkt_dataset_targets(f->data);
    if (targets) VKT_TRY(make_array(f, "data.targets", VKT_F32, target_shape(f), targets, &f->targets));
    return make_array(f, "data.order", VKT_U32, vkt_shape1(f->n), f->host_order, &f->order);
}

static vkt_result make_ring(vkt_feed *f)
{
    const uint32_t rows = table_rows(f), target_width = vkt_dataset_target_width(f->data);
    VKT_TRY(make_array(f, "data.features", table_type(f), table_shape(f), NULL, &f->features));
    VKT_TRY(make_array(f, "data.labels", VKT_U32, vkt_shape1(rows), NULL, &f->labels));
    VKT_TRY(make_array(f, "data.order", VKT_U32, vkt_shape1(rows), NULL, &f->order));
    if (target_width) VKT_TRY(make_array(f, "data.targets", VKT_F32, target_shape(f), NULL, &f->targets));
    float *targets = target_width ? vkt_array_map(f->targets) : NULL;
    uint32_t *order = vkt_array_map(f->order);
    for (uint32_t i = 0; i < rows; i++) order[i] = i;
    vkt_loader_slot slots[VKT_FEED_SLOTS];
    for (uint32_t i = 0; i < VKT_FEED_SLOTS; i++)
        slots[i] = (vkt_loader_slot){ (char *)vkt_array_map(f->features) + (size_t)i * f->batch * pitch_of(f->data),
                                      (uint32_t *)vkt_array_map(f->labels) + (size_t)i * f->batch,
                                      targets ? targets + (size_t)i * f->batch * target_width : NULL };
    const vkt_loader_params p = { .dataset = f->data,
                                  .batch = f->batch,
                                  .slots = slots,
                                  .n_slots = VKT_FEED_SLOTS,
                                  .workers = f->workers,
                                  .row_pitch = pitch_of(f->data) };
    return vkt_loader_create(f->h, &p, &f->loader);
}

/* Returns whether the device has space for the tables of `rows` samples. The features must fit into one array, and so
 * must the targets. Together they may use half of the memory that is left below the cap (vkt_memory_stats). The other
 * half is for the program. */
static bool fits(vkt_ctx *ctx, const vkt_dataset *d, uint32_t rows)
{
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    const uint64_t bytes = (uint64_t)pitch_of(d) * rows, target_bytes = 4ull * vkt_dataset_target_width(d) * rows,
                   max = vkt_array_max_bytes(ctx);
    return bytes <= max && target_bytes <= max && bytes + target_bytes <= (m.cap_bytes - m.used_total_bytes) / 2;
}

uint64_t vkt_feed_bytes(const vkt_feed *f)
{
    const uint64_t row = pitch_of(f->data) + 4ull * vkt_dataset_target_width(f->data) + 8; /* 8: bytes of a label and
                                                                                            * of an index in `order` */
    return row * table_rows(f);
}

vkt_result vkt_feed_create(vkt_ctx *ctx, const vkt_host *h, const vkt_dataset *data, const vkt_feed_params *p,
                           vkt_feed *out)
{
    const uint32_t batch = p->batch;
    *out = (vkt_feed){ .ctx = ctx,
                       .h = h,
                       .data = data,
                       .batch = batch,
                       .n = vkt_dataset_rows(data),
                       .length = vkt_dataset_rows(data),
                       .room = p->room,
                       .workers = p->workers };
    uint32_t chw[3];
    vkt_dataset_sample_shape(data, chw);
    const uint64_t target_bytes = 4ull * vkt_dataset_target_width(data);
    if (batch > UINT32_MAX / VKT_FEED_SLOTS || vkt_dataset_row_bytes(data) > UINT32_MAX / 4 ||
        target_bytes > UINT32_MAX / 4)
        return vkt_fail(h, VKT_E_ARG,
                        "data set: want batches below 2^30, rows and targets below 1 GiB, got %u, %zu and %llu bytes",
                        batch, vkt_dataset_row_bytes(data), (unsigned long long)target_bytes);
    if (chw[0] > VKT_GATHER_CHANNELS)
        return vkt_fail(h, VKT_E_SHAPE, "data set: want %d channels at most, got %u", VKT_GATHER_CHANNELS, chw[0]);
    out->streams = p->stream || !fits(ctx, data, p->room ? p->room : out->n);
    if (out->streams && !p->stream)
        vkt_log_line(h, VKT_LOG_INFO, "the data set does not fit on the device: it is streamed");
    out->host_order = vkt_alloc_array(h, out->n, sizeof *out->host_order);
    vkt_result r = out->host_order ? VKT_OK : vkt_fail_nomem(h, "an order of rows", out->n * sizeof *out->host_order);
    if (r == VKT_OK) vkt_order_identity(out->host_order, out->n);
    if (r == VKT_OK) r = out->streams ? make_ring(out) : make_resident(out);
    if (r != VKT_OK) vkt_feed_destroy(out);
    return r;
}

void vkt_feed_destroy(vkt_feed *f)
{
    vkt_loader_destroy(&f->loader);
    vkt_array_destroy(&f->features);
    vkt_array_destroy(&f->labels);
    vkt_array_destroy(&f->targets);
    vkt_array_destroy(&f->order);
    vkt_free(f->h, f->host_order);
    f->host_order = NULL;
}

vkt_feed_values vkt_feed_declare(vkt_graph *g, const vkt_feed *f)
{
    const uint32_t rows = table_rows(f);
    vkt_feed_values v = { .features = vkt_external(g, "data.features", table_type(f), table_shape(f)),
                          .labels = vkt_external(g, "data.labels", VKT_U32, vkt_shape1(rows)),
                          .order = vkt_external(g, "data.order", VKT_U32, vkt_shape1(rows)) };
    if (vkt_dataset_target_width(f->data)) v.targets = vkt_external(g, "data.targets", VKT_F32, target_shape(f));
    return v;
}

uint32_t vkt_feed_bind(const vkt_feed *f, vkt_feed_values v, vkt_binding out[VKT_FEED_BINDINGS])
{
    out[0] = (vkt_binding){ v.features, f->features };
    out[1] = (vkt_binding){ v.labels, f->labels };
    out[2] = (vkt_binding){ v.order, f->order };
    out[3] = (vkt_binding){ v.targets, f->targets };
    return f->targets ? 4 : 3;
}

/* Returns the batch, normalised with the data set's mean and deviation. */
static vkt_tensor gather_numbers(vkt_graph *g, const vkt_feed *f, vkt_feed_values v, const uint32_t chw[3])
{
    double scale[VKT_GATHER_CHANNELS], shift[VKT_GATHER_CHANNELS];
    const double *mean = vkt_dataset_mean(f->data), *std = vkt_dataset_std(f->data);
    const double unit = vkt_dataset_type(f->data) == VKT_ROW_U8 ? 255.0 : 1.0;
    for (uint32_t c = 0; c < chw[0]; c++) {
        scale[c] = 1 / (unit * std[c]);
        shift[c] = -mean[c] / std[c];
    }
    const vkt_shape sample =
        vkt_dataset_sample_rank(f->data) == 1 ? vkt_shape1(chw[2]) : vkt_shape3(chw[0], chw[1], chw[2]);
    return vkt_gather_rows(g, v.features, v.order, f->batch, sample, scale, shift);
}

void vkt_feed_gather(vkt_graph *g, const vkt_feed *f, vkt_feed_values v, vkt_tensor *x, vkt_tensor *t)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(f->data, chw);
    const vkt_row_type type = vkt_dataset_type(f->data);
    *x = type == VKT_ROW_U16 || type == VKT_ROW_U32
             ? vkt_gather_ids(g, v.features, v.order, f->batch, chw[2], type == VKT_ROW_U16)
             : gather_numbers(g, f, v, chw);
    *t = vkt_gather_labels(g, v.labels, v.order, f->batch);
}

vkt_tensor vkt_feed_gather_targets(vkt_graph *g, const vkt_feed *f, vkt_feed_values v)
{
    if (!vkt_dataset_target_width(f->data)) return (vkt_tensor){ 0 };
    return vkt_gather_rows(g, v.targets, v.order, f->batch, vkt_shape1(vkt_dataset_target_width(f->data)), NULL, NULL);
}

static vkt_result reclaim_slots(vkt_feed *f)
{
    bool waited = false;
    for (uint32_t i = 0; i < VKT_FEED_SLOTS; i++) {
        if (!f->busy[i]) continue;
        if (!waited) VKT_TRY(vkt_ctx_wait_idle(f->ctx));
        waited = true;
        VKT_TRY(vkt_loader_release(f->loader, i));
        f->busy[i] = false;
    }
    return VKT_OK;
}

vkt_result vkt_feed_start(vkt_feed *f, uint32_t skip, vkt_pass pass)
{
    f->at = (uint32_t)VKT_MIN((uint64_t)skip * f->batch, f->length);
    VKT_TRY(reclaim_slots(f));
    if (!f->streams && f->room) return fill_room(f);
    if (!f->streams) return vkt_array_write(f->order, 0, f->host_order, (uint64_t)f->length * 4);
    if (f->at == f->length) return VKT_OK;
    return vkt_loader_start_epoch(f->loader, f->host_order + f->at, f->length - f->at, pass);
}

/* Frees the slots of finished runs. If no slot is free, waits for the oldest run. The loader fills the slots in the
 * order of the runs. So a slot is freed only after the slots of all older runs, even if its own run is done. */
static vkt_result free_slots(vkt_feed *f, vkt_program *p)
{
    for (;;) {
        uint32_t busy = 0, oldest = 0;
        for (uint32_t i = 0; i < VKT_FEED_SLOTS; i++)
            if (f->busy[i] && (busy++ == 0 || f->run[i] < f->run[oldest])) oldest = i;
        if (busy == 0 || (busy < VKT_FEED_SLOTS && !vkt_program_done(p, f->run[oldest]))) return VKT_OK;
        VKT_TRY(vkt_program_wait_run(p, f->run[oldest]));
        f->busy[oldest] = false;
        VKT_TRY(vkt_loader_release(f->loader, oldest));
    }
}

uint32_t vkt_feed_terms(const vkt_feed *f, uint64_t first, uint32_t n)
{
    const uint32_t *terms = vkt_dataset_terms(f->data);
    uint32_t sum = 0;
    for (uint32_t i = 0; terms && i < n; i++) sum += terms[f->host_order[first + i]];
    return sum;
}

vkt_result vkt_feed_next(vkt_feed *f, vkt_program *p, vkt_batch *out)
{
    *out = (vkt_batch){ .rows = VKT_MIN(f->batch, f->length - f->at), .first = f->at };
    if (out->rows == 0) return VKT_OK;
    if (f->streams) {
        VKT_TRY(free_slots(f, p));
        VKT_TRY(vkt_loader_next(f->loader, &f->slot, &out->rows));
        out->first = f->slot * f->batch;
        f->busy[f->slot] = true;
        f->run[f->slot] = UINT64_MAX;
    }
    out->terms = vkt_feed_terms(f, f->at, out->rows);
    f->at += out->rows;
    return VKT_OK;
}

void vkt_feed_stop(vkt_feed *f)
{
    if (f->loader) vkt_loader_stop(f->loader);
}

uint64_t vkt_feed_waited_ns(const vkt_feed *f)
{
    return f->loader ? vkt_loader_waited_ns(f->loader) : 0;
}

void vkt_feed_used(vkt_feed *f, uint64_t run_index)
{
    if (f->streams) f->run[f->slot] = run_index;
}
