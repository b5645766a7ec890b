/* train/feed.c - see feed.h. */
#include "train/feed.h"

#include "ir/attrs.h"

#include <stdio.h>

static uint32_t pitch_of(const vkt_dataset *d)
{
    return (uint32_t)vkt_round_up(vkt_dataset_row_bytes(d), 4);
}

static vkt_shape table_shape(const vkt_feed *f)
{
    const uint32_t rows = f->streams ? VKT_FEED_SLOTS * f->batch : f->n;
    return vkt_shape2(rows, vkt_dataset_type(f->data) == VKT_ROW_U8 ? pitch_of(f->data) : pitch_of(f->data) / 4);
}

static vkt_dtype table_type(const vkt_feed *f)
{
    return vkt_dataset_type(f->data) == VKT_ROW_U8 ? VKT_U8 : VKT_F32;
}

static vkt_result make_array(vkt_feed *f, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data,
                             vkt_array **out)
{
    const vkt_array_params p = {
        .dtype = dtype, .shape = shape, .data = data, .host_visible = f->streams, .name = name
    };
    return vkt_array_create(f->ctx, &p, out);
}

/* Rows whose bytes are no multiple of 4, or that are made on demand, go to the device a chunk at a time. */
static vkt_result upload_rows(vkt_feed *f)
{
    const uint32_t pitch = pitch_of(f->data), chunk = VKT_MAX(1u, (4u << 20) / pitch);
    char *rows = vkt_alloc_array(f->h, chunk, pitch);
    if (!rows) return vkt_fail_nomem(f->h, "rows of the data set", (size_t)chunk * pitch);
    vkt_result r = VKT_OK;
    for (uint32_t first = 0; first < f->n && r == VKT_OK; first += chunk) {
        const uint32_t n = VKT_MIN(chunk, f->n - first);
        for (uint32_t i = 0; i < n && r == VKT_OK; i++)
            r = vkt_dataset_fetch(f->data, first + i, rows + (size_t)i * pitch);
        if (r == VKT_OK) r = vkt_array_write(f->features, (uint64_t)first * pitch, rows, (uint64_t)n * pitch);
    }
    vkt_free(f->h, rows);
    return r;
}

static vkt_result make_resident(vkt_feed *f)
{
    const bool as_is = vkt_dataset_features(f->data) && vkt_dataset_row_bytes(f->data) % 4 == 0;
    VKT_TRY(make_array(f, "data.features", table_type(f), table_shape(f), as_is ? vkt_dataset_features(f->data) : NULL,
                       &f->features));
    if (!as_is) VKT_TRY(upload_rows(f));
    VKT_TRY(make_array(f, "data.labels", VKT_U32, vkt_shape1(f->n), vkt_dataset_labels(f->data), &f->labels));
    return make_array(f, "data.order", VKT_U32, vkt_shape1(f->n), f->host_order, &f->order);
}

static vkt_result make_ring(vkt_feed *f, uint32_t workers)
{
    const uint32_t rows = VKT_FEED_SLOTS * f->batch;
    VKT_TRY(make_array(f, "data.features", table_type(f), table_shape(f), NULL, &f->features));
    VKT_TRY(make_array(f, "data.labels", VKT_U32, vkt_shape1(rows), NULL, &f->labels));
    VKT_TRY(make_array(f, "data.order", VKT_U32, vkt_shape1(rows), NULL, &f->order));
    uint32_t *order = vkt_array_map(f->order);
    for (uint32_t i = 0; i < rows; i++) order[i] = i;
    vkt_loader_slot slots[VKT_FEED_SLOTS];
    for (uint32_t i = 0; i < VKT_FEED_SLOTS; i++)
        slots[i] = (vkt_loader_slot){ (char *)vkt_array_map(f->features) + (size_t)i * f->batch * pitch_of(f->data),
                                      (uint32_t *)vkt_array_map(f->labels) + (size_t)i * f->batch };
    const vkt_loader_params p = { .dataset = f->data,
                                  .batch = f->batch,
                                  .slots = slots,
                                  .n_slots = VKT_FEED_SLOTS,
                                  .workers = workers,
                                  .row_pitch = pitch_of(f->data) };
    return vkt_loader_create(f->h, &p, &f->loader);
}

/* Half of what is left below the cap is for the data; the rest is the program's. */
static bool fits(vkt_ctx *ctx, const vkt_dataset *d)
{
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    const uint64_t bytes = (uint64_t)pitch_of(d) * vkt_dataset_rows(d);
    return bytes <= vkt_array_max_bytes(ctx) && bytes <= (m.cap_bytes - m.used_total_bytes) / 2;
}

vkt_result vkt_feed_create(vkt_ctx *ctx, const vkt_host *h, const vkt_dataset *data, uint32_t batch, bool stream,
                           uint32_t workers, vkt_feed *out)
{
    *out = (vkt_feed){ .ctx = ctx, .h = h, .data = data, .batch = batch, .n = vkt_dataset_rows(data) };
    uint32_t chw[3];
    vkt_dataset_sample_shape(data, chw);
    if (batch > UINT32_MAX / VKT_FEED_SLOTS || vkt_dataset_row_bytes(data) > UINT32_MAX / 4)
        return vkt_fail(h, VKT_E_ARG, "data set: want batches below 2^30 and rows below 1 GiB, got %u and %zu bytes",
                        batch, vkt_dataset_row_bytes(data));
    if (chw[0] > VKT_GATHER_CHANNELS)
        return vkt_fail(h, VKT_E_SHAPE, "data set: want %d channels at most, got %u", VKT_GATHER_CHANNELS, chw[0]);
    out->streams = stream || !fits(ctx, data);
    if (out->streams && !stream) vkt_say(h, VKT_LOG_INFO, "the data set does not fit on the device: it is streamed");
    out->host_order = vkt_alloc_array(h, out->n, sizeof *out->host_order);
    vkt_result r = out->host_order ? VKT_OK : vkt_fail_nomem(h, "an order of rows", out->n * sizeof *out->host_order);
    if (r == VKT_OK) vkt_order_identity(out->host_order, out->n);
    if (r == VKT_OK) r = out->streams ? make_ring(out, workers) : make_resident(out);
    if (r != VKT_OK) vkt_feed_destroy(out);
    return r;
}

void vkt_feed_destroy(vkt_feed *f)
{
    vkt_loader_destroy(&f->loader);
    vkt_array_destroy(&f->features);
    vkt_array_destroy(&f->labels);
    vkt_array_destroy(&f->order);
    vkt_free(f->h, f->host_order);
    f->host_order = NULL;
}

vkt_feed_values vkt_feed_declare(vkt_graph *g, const vkt_feed *f)
{
    const uint32_t rows = f->streams ? VKT_FEED_SLOTS * f->batch : f->n;
    return (vkt_feed_values){ vkt_external(g, "data.features", table_type(f), table_shape(f)),
                              vkt_external(g, "data.labels", VKT_U32, vkt_shape1(rows)),
                              vkt_external(g, "data.order", VKT_U32, vkt_shape1(rows)) };
}

void vkt_feed_bind(const vkt_feed *f, vkt_feed_values v, vkt_binding out[3])
{
    out[0] = (vkt_binding){ v.features, f->features };
    out[1] = (vkt_binding){ v.labels, f->labels };
    out[2] = (vkt_binding){ v.order, f->order };
}

void vkt_feed_gather(vkt_graph *g, const vkt_feed *f, vkt_feed_values v, vkt_tensor *x, vkt_tensor *t)
{
    uint32_t chw[3];
    double scale[VKT_GATHER_CHANNELS], shift[VKT_GATHER_CHANNELS];
    vkt_dataset_sample_shape(f->data, chw);
    const double *mean = vkt_dataset_mean(f->data), *std = vkt_dataset_std(f->data);
    const double unit = vkt_dataset_type(f->data) == VKT_ROW_U8 ? 255.0 : 1.0;
    for (uint32_t c = 0; c < chw[0]; c++) {
        scale[c] = 1 / (unit * std[c]);
        shift[c] = -mean[c] / std[c];
    }
    *x = vkt_gather_rows(g, v.features, v.order, f->batch, vkt_shape3(chw[0], chw[1], chw[2]), scale, shift);
    *t = vkt_gather_labels(g, v.labels, v.order, f->batch);
}

static vkt_result take_back_slots(vkt_feed *f)
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

vkt_result vkt_feed_start(vkt_feed *f, uint32_t skip)
{
    f->at = (uint32_t)VKT_MIN((uint64_t)skip * f->batch, f->n);
    VKT_TRY(take_back_slots(f));
    if (!f->streams) return vkt_array_write(f->order, 0, f->host_order, (uint64_t)f->n * 4);
    if (f->at == f->n) return VKT_OK;
    return vkt_loader_start_epoch(f->loader, f->host_order + f->at, f->n - f->at);
}

/* Gives back the slots of finished runs; if none is free, waits for the oldest. */
static vkt_result free_slots(vkt_feed *f, vkt_program *p)
{
    uint32_t busy = 0, oldest = 0;
    for (uint32_t i = 0; i < VKT_FEED_SLOTS; i++) {
        if (f->busy[i] && vkt_program_done(p, f->run[i])) {
            VKT_TRY(vkt_loader_release(f->loader, i));
            f->busy[i] = false;
        }
        if (f->busy[i] && (busy++ == 0 || f->run[i] < f->run[oldest])) oldest = i;
    }
    if (busy < VKT_FEED_SLOTS) return VKT_OK;
    VKT_TRY(vkt_program_wait_run(p, f->run[oldest]));
    f->busy[oldest] = false;
    return vkt_loader_release(f->loader, oldest);
}

vkt_result vkt_feed_next(vkt_feed *f, vkt_program *p, vkt_batch *out)
{
    *out = (vkt_batch){ .rows = VKT_MIN(f->batch, f->n - f->at), .first = f->at };
    if (out->rows == 0) return VKT_OK;
    if (f->streams) {
        VKT_TRY(free_slots(f, p));
        VKT_TRY(vkt_loader_next(f->loader, &f->slot, &out->rows));
        out->first = f->slot * f->batch;
        f->busy[f->slot] = true;
        f->run[f->slot] = UINT64_MAX;
    }
    f->at += out->rows;
    return VKT_OK;
}

void vkt_feed_used(vkt_feed *f, uint64_t run_index)
{
    if (f->streams) f->run[f->slot] = run_index;
}
