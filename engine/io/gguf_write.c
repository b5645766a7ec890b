/* io/gguf_write.c - writes GGUF files. The header is made in memory; the data are written as they are. */
#include <stdlib.h>

#include "base/file.h"
#include "io/gguf.h"

/* The header. If `bytes` is NULL, only the size `n` is counted. */
typedef struct header {
    uint8_t *bytes;
    uint64_t n;
} header;

static void put(header *out, const void *bytes, size_t n)
{
    if (out->bytes && n > 0) memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

static void put_u32(header *out, uint32_t x)
{
    put(out, &x, sizeof x);
}

static void put_u64(header *out, uint64_t x)
{
    put(out, &x, sizeof x);
}

static void put_text(header *out, const char *text, size_t n)
{
    put_u64(out, n);
    put(out, text, n);
}

static size_t count_of(const vkt_gguf_meta *m)
{
    return m->is_array ? m->count : 1;
}

static void put_meta(header *out, const vkt_gguf_meta *m)
{
    const vkt_gguf_string *texts = m->values;
    put_text(out, m->key, strlen(m->key));
    if (m->is_array) put_u32(out, VKT_GGUF_ARRAY);
    put_u32(out, (uint32_t)m->kind);
    if (m->is_array) put_u64(out, m->count);
    if (m->kind != VKT_GGUF_KIND_TEXT)
        put(out, m->values, count_of(m) * vkt_gguf_kind_bytes(m->kind));
    else
        for (size_t i = 0; i < count_of(m); i++) put_text(out, texts[i].text, texts[i].bytes);
}

/* ---- checks ---- */

static vkt_result check_meta(const vkt_host *h, const vkt_gguf_meta *m, uint64_t *alignment)
{
    const size_t size = vkt_gguf_kind_bytes(m->kind);
    const vkt_gguf_string *texts = m->values;
    if (!m->key || !*m->key || strlen(m->key) > VKT_GGUF_MAX_KEY)
        return vkt_fail(h, VKT_E_ARG, "gguf: \"%.80s\" is no key: want 1 to %d bytes", m->key ? m->key : "(null)",
                        VKT_GGUF_MAX_KEY);
    if (size == 0)
        return vkt_fail(h, VKT_E_ARG, "gguf: metadata \"%.80s\" has kind %d, which does not exist", m->key,
                        (int)m->kind);
    if (count_of(m) > PTRDIFF_MAX / size)
        return vkt_fail(h, VKT_E_ARG, "gguf: metadata \"%.80s\" has too many elements: %zu", m->key, m->count);
    if (count_of(m) > 0 && !m->values) return vkt_fail(h, VKT_E_ARG, "gguf: metadata \"%.80s\" has no values", m->key);
    for (size_t i = 0; m->kind == VKT_GGUF_KIND_TEXT && i < count_of(m); i++)
        if ((!texts[i].text && texts[i].bytes > 0) || texts[i].bytes > PTRDIFF_MAX)
            return vkt_fail(h, VKT_E_ARG, "gguf: text %zu of metadata \"%.80s\" is NULL or too long", i, m->key);
    if (strcmp(m->key, "general.alignment") != 0) return VKT_OK;
    *alignment = m->kind == VKT_GGUF_KIND_U32 && !m->is_array ? *(const uint32_t *)m->values : 0;
    if (*alignment >= 8 && *alignment <= 65536 && (*alignment & (*alignment - 1)) == 0) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG, "gguf: general.alignment: want a U32, a power of two from 8 to 65536");
}

static vkt_result check_tensor(const vkt_host *h, vkt_gguf_tensor *t, bool filled)
{
    if (!t->name || !*t->name || strlen(t->name) > VKT_GGUF_MAX_NAME)
        return vkt_fail(h, VKT_E_ARG, "gguf: \"%.80s\" is no name of a tensor: want 1 to %d bytes",
                        t->name ? t->name : "(null)", VKT_GGUF_MAX_NAME);
    const char *wrong = vkt_gguf_measure(t);
    if (wrong) return vkt_fail(h, VKT_E_ARG, "gguf: tensor \"%.80s\" has %s", t->name, wrong);
    if (t->bytes > 0 && !t->data && !filled)
        return vkt_fail(h, VKT_E_ARG, "gguf: tensor \"%.80s\" has no data", t->name);
    return VKT_OK;
}

static int by_text(const void *pa, const void *pb)
{
    return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

/* Sorts a list of keys or names. VKT_E_ARG if two of them are equal. */
static vkt_result check_names(const vkt_host *h, const char **names, size_t n)
{
    if (n > 0) qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return vkt_fail(h, VKT_E_ARG, "gguf: \"%.80s\" is given twice", names[i]);
    return VKT_OK;
}

/* ---- a file ---- */

/* A file that is written. `tensors` is a copy of the caller's list. In this copy, `check` sets the sizes of the
 * tensors, and their offsets, which count from the start of the data. */
typedef struct file {
    const vkt_host *h;
    const vkt_gguf_meta *meta;
    size_t n_meta;
    vkt_gguf_tensor *tensors;
    size_t n_tensors;
    const char **names; /* memory to sort the keys, then the names of tensors */
    uint64_t alignment;
    vkt_gguf_fill fill; /* NULL: every tensor has its data */
    void *user;
} file;

static vkt_result check(file *f)
{
    for (size_t i = 0; i < f->n_meta; i++) VKT_TRY(check_meta(f->h, &f->meta[i], &f->alignment));
    for (size_t i = 0; i < f->n_meta; i++) f->names[i] = f->meta[i].key;
    VKT_TRY(check_names(f->h, f->names, f->n_meta));
    uint64_t end = 0;
    for (size_t i = 0; i < f->n_tensors; i++) {
        vkt_gguf_tensor *t = &f->tensors[i];
        VKT_TRY(check_tensor(f->h, t, f->fill != NULL));
        t->offset = vkt_round_up(end, f->alignment); /* no overflow: `end` is below 2^63 */
        end = t->offset + t->bytes;
        if (end > INT64_MAX) return vkt_fail(f->h, VKT_E_ARG, "gguf: 2^63 bytes or more in one file");
        f->names[i] = t->name;
    }
    return check_names(f->h, f->names, f->n_tensors);
}

static void put_header(const file *f, header *out)
{
    put_u32(out, VKT_GGUF_MAGIC);
    put_u32(out, VKT_GGUF_VERSION);
    put_u64(out, f->n_tensors);
    put_u64(out, f->n_meta);
    for (size_t i = 0; i < f->n_meta; i++) put_meta(out, &f->meta[i]);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const vkt_gguf_tensor *t = &f->tensors[i];
        put_text(out, t->name, strlen(t->name));
        put_u32(out, t->rank);
        put(out, t->dims, t->rank * sizeof *t->dims);
        put_u32(out, (uint32_t)t->type);
        put_u64(out, t->offset);
    }
}

static vkt_result put_padding(vkt_file_writer *w, uint64_t n)
{
    static const uint8_t zeros[4096];
    for (uint64_t part; n > 0; n -= part) {
        part = VKT_MIN(n, sizeof zeros);
        VKT_TRY(vkt_file_writer_write(w, zeros, (size_t)part));
    }
    return VKT_OK;
}

static vkt_result write_file(const file *f, const char *path, const header *head)
{
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(f->h, path, &w));
    VKT_TRY(vkt_file_writer_write(&w, head->bytes, (size_t)head->n)); /* a failed write aborts the writer */
    VKT_TRY(put_padding(&w, vkt_round_up(head->n, f->alignment) - head->n));
    for (size_t i = 0; i < f->n_tensors; i++) {
        const uint64_t bytes = f->tensors[i].bytes;
        const void *data = f->tensors[i].data;
        const vkt_result r = bytes > 0 && !data ? f->fill(f->user, i, &data) : VKT_OK;
        if (r != VKT_OK) {
            vkt_file_writer_abort(&w);
            return r;
        }
        if (bytes > 0) VKT_TRY(vkt_file_writer_write(&w, data, (size_t)bytes));
        VKT_TRY(
            put_padding(&w, vkt_round_up(bytes, f->alignment) - bytes)); /* also behind the last tensor, as ggml does */
    }
    return vkt_file_writer_commit(&w);
}

static vkt_result write_checked(file *f, const char *path)
{
    header head = { .bytes = NULL };
    VKT_TRY(check(f));
    put_header(f, &head);
    head.bytes = head.n < PTRDIFF_MAX ? vkt_alloc(f->h, (size_t)head.n) : NULL;
    if (!head.bytes) return vkt_fail_nomem(f->h, "the header of a GGUF file", (size_t)head.n);
    head.n = 0;
    put_header(f, &head);
    const vkt_result r = write_file(f, path, &head);
    vkt_free(f->h, head.bytes);
    return r;
}

vkt_result vkt_gguf_write_with(const vkt_host *h, const char *path, const vkt_gguf_meta *meta, size_t n_meta,
                               const vkt_gguf_tensor *tensors, size_t n_tensors, vkt_gguf_fill fill, void *user)
{
    const size_t n_names = VKT_MAX(n_meta, n_tensors);
    file f = { .h = h, .meta = meta, .n_meta = n_meta, .n_tensors = n_tensors, .alignment = VKT_GGUF_ALIGNMENT };
    f.fill = fill;
    f.user = user;
    f.tensors = vkt_alloc_array(h, n_tensors, sizeof *f.tensors);
    f.names = vkt_alloc_array(h, n_names, sizeof *f.names);
    vkt_result r = VKT_OK;
    if ((n_tensors > 0 && !f.tensors) || (n_names > 0 && !f.names)) r = vkt_fail_nomem(h, "tensors", n_tensors);
    if (r == VKT_OK && n_tensors > 0) memcpy(f.tensors, tensors, n_tensors * sizeof *tensors);
    if (r == VKT_OK) r = write_checked(&f, path);
    vkt_free(h, f.tensors);
    vkt_free(h, f.names);
    return r;
}

vkt_result vkt_gguf_write(const vkt_host *host, const char *path, const vkt_gguf_meta *meta, size_t n_meta,
                          const vkt_gguf_tensor *tensors, size_t n_tensors)
{
    VKT_WANT(host, path);
    if (n_meta > 0) VKT_WANT(host, meta);
    if (n_tensors > 0) VKT_WANT(host, tensors);
    const vkt_host h = vkt_host_resolve(host);
    return vkt_gguf_write_with(&h, path, meta, n_meta, tensors, n_tensors, NULL, NULL);
}
