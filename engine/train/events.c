/* train/events.c - event files for TensorBoard; see vktrain/events.h. An event file has protocol buffer messages, which
 * are encoded here without a library. A field of a message is a key (field number << 3 | wire type) and a value.
 * Wire types: 0 = varint; 1 = 8 bytes; 2 = a length n, then n bytes; 5 = 4 bytes. */
#include "vktrain/events.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"
#include "base/system.h"
#include "data/png_encode.h"
#include "train/events.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct vkt_events {
    vkt_host h;
    FILE *file;
    char *path;
    bool broken; /* a write failed. The file may end with a part of a record, so readers would not find later records */
};

/* An array of bytes that grows. If an allocation fails, `failed` is set, and later appends do nothing. */
typedef struct bytes {
    const vkt_host *h;
    uint8_t *p;
    size_t n, cap;
    bool failed;
} bytes;

static void put(bytes *b, const void *from, size_t n)
{
    if (b->failed || n == 0) return;
    if (b->n + n > b->cap) {
        const size_t cap = VKT_MAX(2 * b->cap, b->n + n + 64);
        uint8_t *p = vkt_realloc(b->h, b->p, cap);
        b->failed = !p;
        if (!p) return;
        b->p = p;
        b->cap = cap;
    }
    memcpy(b->p + b->n, from, n);
    b->n += n;
}

/* Appends the n lowest bytes of x, the lowest one first. */
static void put_little_endian(bytes *b, uint64_t x, size_t n)
{
    uint8_t out[8];
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(x >> (8 * i));
    put(b, out, n);
}

static void put_varint(bytes *b, uint64_t x)
{
    uint8_t out[10];
    size_t n = 0;
    for (; x >= 0x80; x >>= 7) out[n++] = (uint8_t)(x | 0x80);
    out[n++] = (uint8_t)x;
    put(b, out, n);
}

static void put_integer(bytes *b, unsigned field, uint64_t x)
{
    put_varint(b, field << 3 | VARINT);
    put_varint(b, x);
}

static void put_double(bytes *b, unsigned field, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_varint(b, field << 3 | FIXED64);
    put_little_endian(b, bits, 8);
}

static void put_float(bytes *b, unsigned field, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_varint(b, field << 3 | FIXED32);
    put_little_endian(b, bits, 4);
}

static void put_bytes(bytes *b, unsigned field, const void *p, size_t n)
{
    put_varint(b, field << 3 | BYTES);
    put_varint(b, n);
    put(b, p, n);
}

/* Appends a field that is a message. Frees the bytes of the message. */
static void put_message(bytes *b, unsigned field, bytes *message)
{
    put_bytes(b, field, message->p, message->n);
    b->failed |= message->failed;
    vkt_free(message->h, message->p);
    message->p = NULL;
}

/* ---- records ---- */

uint32_t vkt_crc32c(const void *p, size_t n)
{
    const uint8_t *byte = p;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Returns the form in which a record stores a checksum: rotated, plus a constant (TensorFlow's record_writer.h). */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static vkt_result write_failed(vkt_events *e)
{
    e->broken = true;
    return vkt_fail(&e->h, VKT_E_IO, "%s: cannot be written: %s", e->path, strerror(errno));
}

/* Appends one record to the file: length, checksum of the length, message, checksum of the message. Frees the bytes of
 * the message. */
static vkt_result write_record(vkt_events *e, bytes *event)
{
    bytes all = { .h = &e->h };
    put_little_endian(&all, event->n, 8);
    put_little_endian(&all, masked(all.failed ? 0 : vkt_crc32c(all.p, 8)), 4);
    put(&all, event->p, event->n);
    put_little_endian(&all, masked(vkt_crc32c(event->p, event->n)), 4);
    vkt_result r = VKT_OK;
    if (all.failed || event->failed)
        r = vkt_fail_nomem(&e->h, "an event", event->n);
    else if (e->broken)
        r = VKT_E_IO; /* the failure is already logged */
    else if (fwrite(all.p, 1, all.n, e->file) != all.n)
        r = write_failed(e);
    vkt_free(&e->h, all.p);
    vkt_free(&e->h, event->p);
    return r;
}

/* Begins an Event: field 1 is wall_time, and field 2 is step. */
static bytes begin_event(const vkt_events *e, uint64_t step)
{
    bytes event = { .h = &e->h };
    put_double(&event, 1, (double)vkt_wall_ns() * 1e-9);
    put_integer(&event, 2, step);
    return event;
}

/* Writes an Event whose field 5 is a summary. Field 1 of the summary is the value. Frees the bytes of the value. */
static vkt_result write_value(vkt_events *e, uint64_t step, bytes *value)
{
    bytes event = begin_event(e, step), summary = { .h = &e->h };
    put_message(&summary, 1, value);
    put_message(&event, 5, &summary);
    return write_record(e, &event);
}

/* ---- the file ---- */

/* Creates a new file. A number in the file name makes the name unique. */
static vkt_result open_new(vkt_events *e, const char *folder)
{
    static atomic_uint files; /* number of file names that this process has tried */
    char host[65], text[128];
    int error = EEXIST;
    vkt_host_name(host);
    for (int i = 0; i < 1000 && error == EEXIST; i++) {
        vkt_text name = { .h = &e->h };
        vkt_text_add(&name, "%s/events.out.tfevents.%llu.%s.%lld.%u", folder,
                     (unsigned long long)(vkt_wall_ns() / 1000000000u), host, (long long)vkt_process_id(),
                     atomic_fetch_add(&files, 1));
        if (name.failed) return vkt_fail_nomem(&e->h, "a file name", strlen(folder));
        vkt_free(&e->h, e->path);
        e->path = name.s;
        error = vkt_file_create(e->path, &e->file);
        if (!error) return VKT_OK;
    }
    return vkt_fail(&e->h, VKT_E_IO, "%s: cannot be made: %s", e->path, vkt_error_text(error, text));
}

/* Writes an Event whose field 3 is file_version. If the run continues an earlier run (first_step is not 0), writes a
 * second Event. Field 7 of the second Event is a session_log. Field 1 of the session_log is the status START (1). The
 * second Event makes readers drop the events of earlier files from first_step on. */
static vkt_result write_head(vkt_events *e, uint64_t first_step)
{
    static const char version[] = "brain.Event:2";
    bytes event = begin_event(e, 0);
    put_bytes(&event, 3, version, sizeof version - 1);
    VKT_TRY(write_record(e, &event));
    if (first_step == 0) return VKT_OK;
    bytes started = begin_event(e, first_step), session = { .h = &e->h };
    put_integer(&session, 1, 1);
    put_message(&started, 7, &session);
    return write_record(e, &started);
}

vkt_result vkt_events_create(const vkt_host *host, const char *folder, uint64_t first_step, vkt_events **out)
{
    const vkt_host h = vkt_host_resolve(host);
    VKT_WANT(&h, out);
    *out = NULL;
    if (!folder || !*folder) return vkt_fail(&h, VKT_E_ARG, "vkt_events_create: want a folder, got none");
    vkt_events *e = vkt_alloc(&h, sizeof *e);
    if (!e) return vkt_fail_nomem(&h, "an event file", sizeof *e);
    e->h = h;
    vkt_result r = open_new(e, folder);
    if (r == VKT_OK) r = write_head(e, first_step);
    if (r == VKT_OK) r = vkt_events_flush(e);
    if (r != VKT_OK) vkt_events_destroy(&e);
    *out = e;
    return r;
}

void vkt_events_destroy(vkt_events **ee)
{
    if (!ee || !*ee) return;
    vkt_events *e = *ee;
    const vkt_host h = e->h;
    if (e->file && fclose(e->file) != 0 && !e->broken)
        vkt_log_line(&h, VKT_LOG_ERROR, "%s: the last events cannot be written: %s", e->path, strerror(errno));
    vkt_free(&h, e->path);
    vkt_free(&h, e);
    *ee = NULL;
}

vkt_result vkt_events_flush(vkt_events *e)
{
    VKT_WANT(NULL, e);
    if (e->broken) return VKT_E_IO;
    return fflush(e->file) == 0 ? VKT_OK : write_failed(e);
}

/* ---- values ---- */

/* Begins a Summary.Value: field 1 is the tag. */
static vkt_result begin_value(vkt_events *e, const char *tag, bytes *value)
{
    if (!tag || !*tag) return vkt_fail(&e->h, VKT_E_ARG, "events: want a tag, got none");
    *value = (bytes){ .h = &e->h };
    put_bytes(value, 1, tag, strlen(tag));
    return VKT_OK;
}

/* Appends field 9 of a Summary.Value, the metadata. Field 1 of the metadata is plugin_data, and field 1 of plugin_data
 * is plugin_name. */
static void put_plugin(bytes *value, const char *name)
{
    bytes plugin = { .h = value->h }, metadata = { .h = value->h };
    put_bytes(&plugin, 1, name, strlen(name));
    put_message(&metadata, 1, &plugin);
    put_message(value, 9, &metadata);
}

/* Writes a Summary.Value whose field 2 is simple_value. */
vkt_result vkt_events_scalar(vkt_events *e, const char *tag, uint64_t step, double x)
{
    VKT_WANT(NULL, e);
    bytes value;
    VKT_TRY(begin_value(e, tag, &value));
    put_float(&value, 2, (float)x);
    put_plugin(&value, "scalars");
    return write_value(e, step, &value);
}

vkt_result vkt_events_epoch(vkt_events *e, const vkt_epoch_record *r)
{
    VKT_WANT(NULL, e);
    VKT_WANT(&e->h, r);
    if (r->n_metrics > VKT_MAX_METRICS)
        return vkt_fail(&e->h, VKT_E_ARG, "vkt_events_epoch: want at most %d metrics, got %u", VKT_MAX_METRICS,
                        r->n_metrics);
    const struct {
        const char *tag;
        double value;
    } scalars[] = { { "loss/training", r->train_loss },    { "loss/validation", r->val_loss },
                    { "accuracy/training", r->train_acc }, { "accuracy/validation", r->val_acc },
                    { "run/learning rate", r->lr },        { "run/seconds an epoch", r->seconds } };
    for (size_t i = 0; i < VKT_COUNT(scalars); i++)
        if (!isnan(scalars[i].value)) VKT_TRY(vkt_events_scalar(e, scalars[i].tag, r->epoch, scalars[i].value));
    for (uint32_t i = 0; i < r->n_metrics; i++) {
        char tag[64];
        snprintf(tag, sizeof tag, "metric/%s", r->metrics[i].name ? r->metrics[i].name : "");
        if (!isnan(r->metrics[i].value)) VKT_TRY(vkt_events_scalar(e, tag, r->epoch, r->metrics[i].value));
    }
    return vkt_events_flush(e);
}

/* Writes a Summary.Value whose field 8 is a tensor. Fields of the tensor: 1 = dtype (DT_STRING is 7); 2 = tensor_shape
 * (empty: one text); 8 = string_val. */
vkt_result vkt_events_text(vkt_events *e, const char *tag, uint64_t step, const char *text)
{
    VKT_WANT(NULL, e);
    bytes value;
    VKT_TRY(begin_value(e, tag, &value));
    bytes tensor = { .h = &e->h };
    if (!text) text = "";
    put_integer(&tensor, 1, 7);
    put_bytes(&tensor, 2, "", 0);
    put_bytes(&tensor, 8, text, strlen(text));
    put_message(&value, 8, &tensor);
    put_plugin(&value, "text");
    return write_value(e, step, &value);
}

/* Writes a Summary.Value whose field 4 is an image. Fields of the image: 1 = height; 2 = width; 3 = colorspace (the
 * number of channels); 4 = encoded_image_string. */
vkt_result vkt_events_image(vkt_events *e, const char *tag, uint64_t step, const uint8_t *pixels, uint32_t height,
                            uint32_t width, uint32_t channels)
{
    VKT_WANT(NULL, e);
    if (!pixels || height == 0 || width == 0 || (channels != 1 && channels != 3 && channels != 4))
        return vkt_fail(&e->h, VKT_E_ARG, "vkt_events_image: want pixels of 1, 3 or 4 channels, got %ux%ux%u%s",
                        channels, height, width, pixels ? "" : " and no pixels");
    void *png;
    size_t n = 0;
    bytes value;
    VKT_TRY(begin_value(e, tag, &value));
    const vkt_result r = vkt_png_encode(&e->h, pixels, height, width, channels, &png, &n);
    if (r != VKT_OK) {
        vkt_free(&e->h, value.p);
        return r;
    }
    bytes image = { .h = &e->h };
    put_integer(&image, 1, height);
    put_integer(&image, 2, width);
    put_integer(&image, 3, channels);
    put_bytes(&image, 4, png, n);
    vkt_free(&e->h, png);
    put_message(&value, 4, &image);
    put_plugin(&value, "images");
    return write_value(e, step, &value);
}
