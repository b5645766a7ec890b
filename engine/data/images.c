/* data/images.c - data sets of images (vktrain/data.h). Worker threads decode the images, once or for every batch.
 *
 * The base of a sample is the decoded, upright and resized image. The base is the same in every pass. If the bases of
 * all samples fit into cache_bytes, they stay in memory. Without random crop, only the middle of each base is stored.
 * Each pass makes the sample from the base: it may crop the base at another position, and may mirror it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/file.h"
#include "base/philox.h"
#include "base/system.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/image_list.h"

#define DEFAULT_CACHE_BYTES (UINT64_C(1) << 30)
#define MAX_LOAD_WORKERS 16
/* At most this many broken files are logged by name. The others are only counted. */
#define MAX_NAMED 20

/* The planes of an image, width x height bytes each, one after the other. */
typedef struct base {
    uint32_t width, height;
    uint8_t *planes;
} base;

/* The memory of one worker. vkt_data_source.fetch gets the number of the worker. */
typedef struct worker {
    vkt_image_scratch image;
    vkt_byte_buffer file, planes;
    char why[256]; /* message of the last error */
} worker;

typedef struct images {
    vkt_host host;
    vkt_image_params p; /* the caller's params, but all pointers are NULL, and cache_bytes is never 0 */
    uint32_t channels;
    vkt_image_list list;
    base *bases; /* list.n of them; NULL: images are decoded for every batch */
    worker workers[VKT_DATA_MAX_WORKERS];
} images;

/* Stores the log line of an error in the worker, because workers must not log. */
static void keep_line(void *user, vkt_log_level level, const char *line)
{
    worker *w = user;
    if (level == VKT_LOG_ERROR) snprintf(w->why, sizeof w->why, "%s", line);
}

/* Returns a host that stores errors in w->why. */
static vkt_host quiet_host(const images *s, worker *w)
{
    vkt_host h = s->host;
    h.log = keep_line;
    h.log_user = w;
    h.log_level = VKT_LOG_ERROR;
    return h;
}

static bool varies(const images *s)
{
    return s->p.random_crop || s->p.random_flip;
}

/* ---- samples ---- */

static vkt_result read_file(const vkt_host *h, const char *path, worker *w, size_t *n)
{
    vkt_file f;
    VKT_TRY(vkt_file_open(h, path, &f));
    vkt_result r = f.size <= VKT_IMAGE_MAX_FILE_BYTES ? vkt_byte_buffer_reserve(h, &w->file, (size_t)f.size + 1)
                                                      : vkt_fail(h, VKT_E_FORMAT, "\"%s\" is larger than 1 GiB", path);
    if (r == VKT_OK) r = vkt_file_read_at(&f, 0, w->file.p, (size_t)f.size);
    *n = (size_t)f.size;
    vkt_file_close(&f);
    return r;
}

/* Computes the size to which an image is resized. */
static vkt_result target_size(const vkt_host *h, const images *s, const vkt_image *image, const char *path, size_t n,
                              base *b)
{
    const vkt_image_params *p = &s->p;
    *b = (base){ .width = p->width, .height = p->height };
    if (!p->resize) return VKT_OK;
    const uint64_t w = image->width, ht = image->height, shorter = VKT_MIN(w, ht);
    const uint64_t width = w * p->resize / shorter, height = ht * p->resize / shorter;
    /* A narrow image may become too long. A limit that is meant for small files must not refuse what they become: an
     * image of up to 4 to 1 has at most 4 resize^2 pixels. */
    const uint64_t square = (uint64_t)p->resize * p->resize;
    const uint64_t most = p->max_pixels ? VKT_MAX(p->max_pixels, 4 * square) : 0;
    VKT_TRY(vkt_image_check_size(h, path, width, height, n, most));
    b->width = (uint32_t)width;
    b->height = (uint32_t)height;
    return VKT_OK;
}

/* Decodes and resizes the image in `bytes` into w->planes. Errors are logged by `h`. */
static vkt_result decode_bytes(const vkt_host *h, const images *s, const char *name, const uint8_t *bytes, size_t n,
                               worker *w, base *out)
{
    const vkt_image *image;
    VKT_TRY(vkt_image_decode(h, name, bytes, n, s->p.max_pixels, s->channels, &w->image, &image));
    VKT_TRY(target_size(h, s, image, name, n, out));
    VKT_TRY(vkt_byte_buffer_reserve(h, &w->planes, (size_t)out->width * out->height * s->channels));
    VKT_TRY(vkt_image_resize(h, image, out->width, out->height, &w->image, w->planes.p));
    out->planes = w->planes.p;
    return VKT_OK;
}

/* Decodes and resizes image `row` from its file into w->planes. */
static vkt_result decode(const vkt_host *h, const images *s, uint32_t row, worker *w, base *out)
{
    const char *path = s->list.paths[row];
    size_t n;
    VKT_TRY(read_file(h, path, w, &n));
    return decode_bytes(h, s, path, w->file.p, n, w, out);
}

/* Writes a sample: H x W pixels of `b`, from (top, left) on, mirrored left to right if `mirror`. Pixels outside `b` are
 * 0. */
static void crop(const images *s, const base *b, int64_t top, int64_t left, bool mirror, uint8_t *dst)
{
    const int64_t W = s->p.width, H = s->p.height, bw = b->width, bh = b->height;
    /* Before mirroring, the columns x of the sample with from <= x < to are inside `b`. */
    const int64_t from = VKT_MAX(0, VKT_MIN(-left, W)), to = VKT_MAX(from, VKT_MIN(bw - left, W));
    for (uint32_t c = 0; c < s->channels; c++)
        for (int64_t y = 0; y < H; y++, dst += W) {
            if (y + top < 0 || y + top >= bh) {
                memset(dst, 0, (size_t)W);
                continue;
            }
            const uint8_t *in = b->planes + (c * bh + y + top) * bw;
            if (mirror) {
                for (int64_t x = W - 1; x >= 0; x--) dst[W - 1 - x] = x >= from && x < to ? in[left + x] : 0;
            } else {
                memset(dst, 0, (size_t)from);
                if (from < to) memcpy(dst + from, in + left + from, (size_t)(to - from));
                memset(dst + to, 0, (size_t)(W - to));
            }
        }
}

/* Returns (have - want) / 2, rounded to nearest, ties to even. `have` must not be below `want`. torchvision's
 * CenterCrop begins at this offset. */
static int64_t middle(uint32_t have, uint32_t want)
{
    const int64_t over = (int64_t)have - want, half = over / 2;
    return half + (over % 2 && half % 2);
}

static void write_row(const images *s, const base *b, uint32_t row, vkt_pass pass, uint8_t *dst)
{
    int64_t top = middle(b->height, s->p.height), left = middle(b->width, s->p.width);
    bool mirror = false;
    if (pass.epoch && varies(s)) {
        vkt_rng rng = vkt_rng_make(pass.seed, VKT_STREAM_AUGMENT, pass.epoch, row);
        const uint32_t pad = s->p.random_crop ? s->p.crop_padding : 0;
        if (s->p.random_crop) {
            top = (int64_t)vkt_rng_range(&rng, 0, b->height + 2 * pad - s->p.height) - pad;
            left = (int64_t)vkt_rng_range(&rng, 0, b->width + 2 * pad - s->p.width) - pad;
        }
        if (s->p.random_flip) mirror = vkt_rng_range(&rng, 0, 1);
    }
    crop(s, b, top, left, mirror, dst);
}

static vkt_result fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker_number)
{
    images *s = self;
    worker *w = &s->workers[worker_number];
    base b;
    if (s->bases) {
        b = s->bases[row];
    } else {
        const vkt_host h = quiet_host(s, w);
        VKT_TRY(decode(&h, s, row, w, &b));
    }
    write_row(s, &b, row, pass, dst);
    return VKT_OK;
}

static const char *why(void *self, uint32_t worker_number)
{
    const images *s = self;
    return s->workers[worker_number].why;
}

static void free_workers(images *s)
{
    for (uint32_t i = 0; i < VKT_COUNT(s->workers); i++) {
        worker *w = &s->workers[i];
        vkt_image_scratch_free(&s->host, &w->image);
        vkt_free(&s->host, w->file.p);
        vkt_free(&s->host, w->planes.p);
        *w = (worker){ .why = "" };
    }
}

static void free_bases(images *s)
{
    for (uint32_t i = 0; s->bases && i < s->list.n; i++) vkt_free(&s->host, s->bases[i].planes);
    vkt_free(&s->host, s->bases);
    s->bases = NULL;
}

static void destroy(void *self)
{
    images *s = self;
    const vkt_host h = s->host;
    free_workers(s);
    free_bases(s);
    vkt_image_list_free(&s->list);
    vkt_free(&h, s);
}

/* ---- loading: every image is checked once ---- */

typedef struct load {
    images *s;
    atomic_uint next;     /* next image to check */
    atomic_ullong cached; /* bytes of the bases so far, also of bases that did not fit into the cache */
    atomic_bool full;     /* the cache has no more space */
    vkt_result *status;   /* (list.n) */
    char **why;           /* (list.n) messages; NULL: no error, or no memory for the message */
} load;

/* Keeps the base of image `row` if the cache has space for it. */
static vkt_result keep(load *l, const vkt_host *h, uint32_t row, const base *b)
{
    images *s = l->s;
    base kept = s->p.random_crop ? *b : (base){ .width = s->p.width, .height = s->p.height };
    const size_t bytes = (size_t)kept.width * kept.height * s->channels;
    if (atomic_fetch_add(&l->cached, bytes) + bytes > s->p.cache_bytes) {
        atomic_store(&l->full, true);
        return VKT_OK;
    }
    kept.planes = vkt_realloc(h, NULL, bytes);
    if (!kept.planes) return vkt_fail_nomem(h, "an image", bytes);
    if (s->p.random_crop)
        memcpy(kept.planes, b->planes, bytes);
    else
        write_row(s, b, row, (vkt_pass){ 0 }, kept.planes);
    s->bases[row] = kept;
    return VKT_OK;
}

/* Checks that the file exists and begins like a JPEG or PNG file. */
static vkt_result glance(const vkt_host *h, const images *s, uint32_t row)
{
    vkt_file f;
    uint8_t head[3] = { 0 };
    VKT_TRY(vkt_file_open(h, s->list.paths[row], &f));
    vkt_result r = f.size < sizeof head ? VKT_OK : vkt_file_read_at(&f, 0, head, sizeof head);
    if (f.size == 0)
        r = vkt_fail(h, VKT_E_FORMAT, "\"%s\" is empty: want a JPEG or PNG file", s->list.paths[row]);
    else if (r == VKT_OK && memcmp(head, "\xff\xd8\xff", 3) != 0 && memcmp(head, "\x89PN", 3) != 0)
        r = vkt_fail(h, VKT_E_FORMAT, "\"%s\" is neither JPEG nor PNG", s->list.paths[row]);
    vkt_file_close(&f);
    return r;
}

static vkt_result look_at(load *l, const vkt_host *h, uint32_t row, worker *w)
{
    const images *s = l->s;
    const bool caching = s->bases && !atomic_load(&l->full);
    if (!caching && !s->p.skip_broken) return glance(h, s, row); /* fetches of samples find all other errors */
    base b;
    VKT_TRY(decode(h, s, row, w, &b));
    return caching ? keep(l, h, row, &b) : VKT_OK;
}

typedef struct load_worker {
    load *l;
    pthread_t thread;
    uint32_t number;
} load_worker;

static void *run_load(void *arg)
{
    const load_worker *me = arg;
    load *l = me->l;
    worker *w = &l->s->workers[me->number];
    const vkt_host h = quiet_host(l->s, w);
    for (uint32_t row; (row = atomic_fetch_add(&l->next, 1)) < l->s->list.n;) {
        l->status[row] = look_at(l, &h, row, w);
        if (l->status[row] != VKT_OK) l->why[row] = vkt_strdup(&h, w->why);
    }
    return NULL;
}

/* Runs the workers; the calling thread is one of them. If a thread does not start, loading only takes longer. */
static void run_all(load *l)
{
    load_worker workers[MAX_LOAD_WORKERS];
    const uint32_t asked = l->s->p.workers ? l->s->p.workers : vkt_cpu_count();
    const uint32_t most = VKT_MIN(VKT_MIN(asked, MAX_LOAD_WORKERS), l->s->list.n);
    uint32_t n = 1;
    workers[0] = (load_worker){ .l = l };
    for (; n < most; n++) {
        workers[n] = (load_worker){ .l = l, .number = n };
        if (pthread_create(&workers[n].thread, NULL, run_load, &workers[n]) != 0) break;
    }
    run_load(&workers[0]);
    while (--n > 0) pthread_join(workers[n].thread, NULL);
}

/* Logs the first MAX_NAMED broken files. *left_out gets the number of all broken files; left_out may be NULL. With
 * skip_broken, removes the broken files from the list, and returns VKT_E_FORMAT only if all files are broken. Without
 * skip_broken, returns VKT_E_FORMAT if a file is broken. Returns VKT_E_NOMEM at the first file for which a worker got
 * no memory. */
static vkt_result settle(load *l, uint32_t *left_out)
{
    images *s = l->s;
    vkt_image_list *list = &s->list;
    const vkt_log_level level = s->p.skip_broken ? VKT_LOG_WARN : VKT_LOG_ERROR;
    uint32_t kept = 0, broken = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if (l->status[i] == VKT_E_NOMEM)
            return vkt_fail(&s->host, VKT_E_NOMEM, "\"%s\": out of host memory", list->paths[i]);
        if (l->status[i] == VKT_OK) {
            char *const path = list->paths[i]; /* swapped, not moved, so that the list still owns all paths */
            list->paths[i] = list->paths[kept];
            list->paths[kept] = path;
            if (list->labels) list->labels[kept] = list->labels[i];
            if (s->bases) s->bases[kept] = s->bases[i];
            if (s->bases && kept != i) s->bases[i] = (base){ 0 };
            kept++;
        } else if (broken++ < MAX_NAMED) {
            vkt_log_line(&s->host, level, "%s", l->why[i] ? l->why[i] : vkt_result_text(l->status[i]));
        }
    }
    if (left_out) *left_out = broken;
    if (broken == 0) return VKT_OK;
    if (!s->p.skip_broken || kept == 0)
        return vkt_fail(&s->host, VKT_E_FORMAT, "images: %u of %u are broken or missing%s", broken, list->n,
                        kept ? "; skip_broken would leave them out" : "");
    vkt_log_line(&s->host, VKT_LOG_WARN, "images: %u of %u are broken or missing, they are left out", broken, list->n);
    for (uint32_t i = kept; i < list->n; i++) vkt_free(&s->host, list->paths[i]);
    list->n = kept;
    return VKT_OK;
}

static vkt_result load_all(images *s, uint32_t *left_out)
{
    const vkt_host *h = &s->host;
    const uint32_t n = s->list.n;
    const uint64_t row = (uint64_t)s->p.width * s->p.height * s->channels; /* < 2^32 (see resolve): row * n fits */
    load l = { .s = s, .status = vkt_alloc_array(h, n, sizeof *l.status), .why = vkt_alloc_array(h, n, sizeof *l.why) };
    vkt_result r = l.status && l.why ? VKT_OK : vkt_fail_nomem(h, "images", n * sizeof *l.why);
    if (r == VKT_OK && row * n <= s->p.cache_bytes) { /* all bases together have row * n bytes or more */
        s->bases = vkt_alloc_array(h, n, sizeof *s->bases);
        if (!s->bases) r = vkt_fail_nomem(h, "images", n * sizeof *s->bases);
    }
    if (r == VKT_OK) {
        run_all(&l);
        if (atomic_load(&l.full)) free_bases(s);
        if (s->bases) free_workers(s); /* nothing is decoded later */
        r = settle(&l, left_out);
    }
    for (uint32_t i = 0; l.why && i < n; i++) vkt_free(h, l.why[i]);
    vkt_free(h, l.why);
    vkt_free(h, l.status);
    return r;
}

/* ---- creation ---- */

static vkt_result resolve(const vkt_host *h, const vkt_image_params *p, images *s)
{
    if (!p || !p->width || !p->height)
        return vkt_fail(h, VKT_E_ARG, "images: want a width and a height, got %s", p ? "0" : "no params");
    if ((uint64_t)p->width * p->height > UINT32_MAX / 3)
        return vkt_fail(h, VKT_E_ARG, "images: want rows below 4 GiB, got %u x %u pixels", p->width, p->height);
    if (p->resize && p->resize < VKT_MAX(p->width, p->height))
        return vkt_fail(h, VKT_E_ARG, "images: resize: want 0 or %u or more, the longer side of the crop, got %u",
                        VKT_MAX(p->width, p->height), p->resize);
    if (p->crop_padding > UINT16_MAX)
        return vkt_fail(h, VKT_E_ARG, "images: crop_padding: want %u at most, got %u", UINT16_MAX, p->crop_padding);
    s->host = *h;
    s->p = *p;
    s->p.path_column = s->p.label_column = NULL;
    s->p.classes_like = NULL;
    s->p.left_out = NULL;
    if (!s->p.cache_bytes) s->p.cache_bytes = DEFAULT_CACHE_BYTES;
    s->channels = p->gray ? 1 : 3;
    return VKT_OK;
}

static vkt_result make(images *s, const vkt_image_params *p, vkt_dataset **out)
{
    VKT_TRY(load_all(s, p->left_out));
    const vkt_dataset_params dp = { .rows = s->list.n,
                                    .channels = s->channels,
                                    .height = s->p.height,
                                    .width = s->p.width,
                                    .labels = s->list.labels,
                                    .classes = s->list.classes,
                                    .class_names = (const char *const *)s->list.names };
    const vkt_data_source source = { .fetch = fetch, .destroy = destroy, .self = s, .why = why, .varies = varies(s) };
    return vkt_dataset_from_source(&s->host, &dp, &source, out);
}

typedef vkt_result (*list_fn)(const vkt_host *h, const char *where, const vkt_image_params *p, vkt_image_list *out);

static vkt_result open_images(const vkt_host *host, list_fn list, const char *where, const vkt_image_params *p,
                              vkt_dataset **out)
{
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!where) return vkt_fail(&h, VKT_E_ARG, "images: the path is NULL");
    images *s = vkt_alloc(&h, sizeof *s);
    if (!s) return vkt_fail_nomem(&h, "a data set", sizeof *s);
    s->host = h;
    vkt_result r = resolve(&h, p, s);
    if (r == VKT_OK) r = list(&s->host, where, p, &s->list);
    if (r == VKT_OK) r = make(s, p, out);
    if (r != VKT_OK) destroy(s);
    return r;
}

vkt_result vkt_dataset_from_image_table(const vkt_host *host, const char *csv_path, const vkt_image_params *params,
                                        vkt_dataset **out)
{
    VKT_WANT(host, out);
    return open_images(host, vkt_image_list_from_table, csv_path, params, out);
}

vkt_result vkt_dataset_from_image_folders(const vkt_host *host, const char *folder, const vkt_image_params *params,
                                          vkt_dataset **out)
{
    VKT_WANT(host, out);
    return open_images(host, vkt_image_list_from_folders, folder, params, out);
}

vkt_result vkt_image_row(const vkt_host *host, const vkt_image_params *params, const char *name, const void *bytes,
                         size_t n, uint8_t *row)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!name || !bytes || !row) return vkt_fail(&h, VKT_E_ARG, "image row: want name, bytes and row, got NULL");
    images *s = vkt_alloc(&h, sizeof *s);
    if (!s) return vkt_fail_nomem(&h, "an image", sizeof *s);
    s->host = h;
    base b;
    vkt_result r = resolve(&h, params, s);
    if (r == VKT_OK) r = decode_bytes(&h, s, name, bytes, n, &s->workers[0], &b);
    if (r == VKT_OK) write_row(s, &b, 0, (vkt_pass){ 0 }, row);
    destroy(s);
    return r;
}
