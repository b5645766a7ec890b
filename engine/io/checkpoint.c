/* io/checkpoint.c - adds a checksum, a kind and a version to a safetensors file, and checks them. */
#include "io/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define KIND "training-state"

/* The text with which the JSON of every checkpoint begins. The digits of the checksum follow this text. */
static const char opening[] = "{\"__metadata__\":{\"vktrain.crc32\":\"";

enum {
    DIGITS = 8,
    DIGITS_AT = sizeof(uint64_t) + sizeof opening - 1, /* offset in the file */
    BODY_AT = DIGITS_AT + DIGITS,
    CHUNK = 1 << 18
};

/* ---- writing ---- */

static void insert_checksum(char *header, size_t header_bytes, const vkt_blob *blobs, size_t n_blobs)
{
    uLong crc = crc32_z(0, (const Bytef *)header, DIGITS_AT);
    crc = crc32_z(crc, (const Bytef *)header + BODY_AT, header_bytes - BODY_AT);
    for (size_t i = 0; i < n_blobs; i++) {
        const uint64_t bytes = vkt_blob_bytes(&blobs[i]);
        /* A tensor without elements may have NULL data. With NULL, crc32_z would return 0 instead of crc. */
        if (bytes) crc = crc32_z(crc, blobs[i].data, (size_t)bytes);
    }
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%08lx", crc);
    memcpy(header + DIGITS_AT, digits, DIGITS);
}

vkt_result vkt_checkpoint_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                const vkt_meta *meta, size_t n_meta)
{
    char version[16];
    snprintf(version, sizeof version, "%d", VKT_CHECKPOINT_VERSION);
    const vkt_meta own[] = { { "vktrain.crc32", "00000000" },
                             { "vktrain.kind", KIND },
                             { "vktrain.version", version } };
    vkt_meta *all = vkt_alloc_array(h, VKT_COUNT(own) + n_meta, sizeof *all);
    if (!all) return vkt_fail_nomem(h, "checkpoint metadata", n_meta * sizeof *all);
    memcpy(all, own, sizeof own);
    if (n_meta) memcpy(all + VKT_COUNT(own), meta, n_meta * sizeof *meta);

    char *header;
    size_t header_bytes;
    vkt_result r = vkt_safetensors_make_header(h, blobs, n_blobs, all, VKT_COUNT(own) + n_meta, &header, &header_bytes);
    if (r == VKT_OK) {
        insert_checksum(header, header_bytes, blobs, n_blobs);
        r = vkt_safetensors_write_file(h, path, header, header_bytes, blobs, n_blobs);
    }
    vkt_free(h, header);
    vkt_free(h, all);
    return r;
}

/* ---- reading ---- */

static vkt_result add_range(const vkt_host *h, const vkt_file *f, uint64_t begin, uint64_t end, uLong *crc)
{
    Bytef *chunk = vkt_alloc(h, CHUNK);
    if (!chunk) return vkt_fail_nomem(h, "verifying a checkpoint", CHUNK);
    vkt_result r = VKT_OK;
    while (r == VKT_OK && begin < end) {
        const size_t n = (size_t)VKT_MIN(end - begin, (uint64_t)CHUNK);
        r = vkt_file_read_at(f, begin, chunk, n);
        if (r == VKT_OK) *crc = crc32_z(*crc, chunk, n);
        begin += n;
    }
    vkt_free(h, chunk);
    return r;
}

static vkt_result verify(const vkt_host *h, const vkt_safetensors *st)
{
    const vkt_file *f = vkt_safetensors_file(st);
    char start[BODY_AT], want[DIGITS + 1];
    if (f->size >= BODY_AT) VKT_TRY(vkt_file_read_at(f, 0, start, BODY_AT));
    if (f->size < BODY_AT || memcmp(start + sizeof(uint64_t), opening, sizeof opening - 1) != 0) {
        return vkt_fail(
            h, VKT_E_FORMAT,
            "\"%s\" is a safetensors file, but not a vktrain checkpoint: vkt_trainer_load (--load) takes weights",
            f->path);
    }
    uLong crc = crc32_z(0, (const Bytef *)start, DIGITS_AT);
    VKT_TRY(add_range(h, f, BODY_AT, f->size, &crc));
    snprintf(want, sizeof want, "%08lx", crc);
    if (memcmp(start + DIGITS_AT, want, DIGITS) != 0) {
        return vkt_fail(h, VKT_E_FORMAT, "checkpoint \"%s\" is damaged: its checksum says %.8s, its bytes give %s",
                        f->path, start + DIGITS_AT, want);
    }
    const char *kind = vkt_safetensors_meta(st, "vktrain.kind"), *version = vkt_safetensors_meta(st, "vktrain.version");
    if (!kind || strcmp(kind, KIND) != 0 || !version) {
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" holds \"%.40s\": want \"%s\"", f->path, kind ? kind : "?", KIND);
    }
    if (strtol(version, NULL, 10) != VKT_CHECKPOINT_VERSION) {
        return vkt_fail(h, VKT_E_UNSUPPORTED,
                        "checkpoint \"%s\" has version %.20s: this library knows version %d; the weights in it can be "
                        "loaded, the run cannot go on",
                        f->path, version, VKT_CHECKPOINT_VERSION);
    }
    return VKT_OK;
}

vkt_result vkt_checkpoint_open(const vkt_host *h, const char *path, vkt_safetensors **out)
{
    VKT_TRY(vkt_safetensors_open(h, path, out));
    const vkt_result r = verify(h, *out);
    if (r != VKT_OK) vkt_safetensors_close(out);
    return r;
}
