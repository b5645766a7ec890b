/* data/gz.c - see gz.h. */
#include "data/gz.h"

#include <zlib.h>

vkt_result vkt_gz_open(const vkt_host *h, const char *path, vkt_gz *g)
{
    *g = (vkt_gz){ .h = h };
    VKT_TRY(vkt_file_open(h, path, &g->file));
    const int fd = vkt_file_duplicate(&g->file); /* gzclose closes it */
    g->gz = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (g->gz) return VKT_OK;
    vkt_file_close_duplicate(fd);
    vkt_file_close(&g->file);
    return fd < 0 ? vkt_fail(h, VKT_E_IO, "cannot read \"%s\": no file descriptor for zlib", path)
                  : vkt_fail(h, VKT_E_NOMEM, "cannot read \"%s\": no memory for zlib", path);
}

void vkt_gz_close(vkt_gz *g)
{
    gzclose(g->gz);
    vkt_file_close(&g->file);
}

bool vkt_gz_is_plain(const vkt_gz *g)
{
    return gzdirect(g->gz);
}

vkt_result vkt_gz_check_size(const vkt_gz *g, uint64_t bytes)
{
    if (bytes <= VKT_GZ_ALWAYS_BYTES || vkt_gz_is_plain(g)) return VKT_OK;
    const uint64_t n = g->file.size,
                   standard = VKT_GZ_ALWAYS_BYTES + VKT_GZ_DEFAULT_RATIO * VKT_MIN(n, UINT64_MAX >> 8);
    const int64_t allowed = vkt_env_int("VKT_MAX_UNPACKED", 0);
    if (bytes <= standard || (allowed > 0 && bytes <= (uint64_t)allowed)) return VKT_OK;
    return vkt_fail(g->h, VKT_E_FORMAT,
                    "\"%s\": its %llu bytes unpack to more than %llu: unpack it with gunzip, or set "
                    "VKT_MAX_UNPACKED=BYTES in the environment",
                    g->file.path, (unsigned long long)n, (unsigned long long)VKT_MAX(standard, (uint64_t)allowed));
}

/* Returns the result for an error code of zlib. */
static vkt_result status_of(int code)
{
    return code == Z_ERRNO ? VKT_E_IO : code == Z_MEM_ERROR ? VKT_E_NOMEM : VKT_E_FORMAT;
}

vkt_result vkt_gz_read(vkt_gz *g, void *dst, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        const int k = gzread(g->gz, (char *)dst + *got, (unsigned)VKT_MIN(n - *got, (size_t)1 << 30));
        if (k < 0) {
            int code;
            const char *why = gzerror(g->gz, &code);
            return vkt_fail(g->h, status_of(code), "cannot read \"%s\": %s after %llu bytes", g->file.path, why,
                            (unsigned long long)g->total);
        }
        if (k == 0) break;
        *got += (size_t)k;
        g->total += (uint64_t)k;
    }
    return VKT_OK;
}

vkt_result vkt_gz_check_end(vkt_gz *g)
{
    int code;
    const char *why = gzerror(g->gz, &code);
    if (code == Z_OK || code == Z_STREAM_END) return VKT_OK;
    return vkt_fail(g->h, VKT_E_FORMAT, "\"%s\": the gzip data ends without its checksum: %s", g->file.path, why);
}

/* Reads to the end into *bytes, which the caller frees, also after a failure. */
static vkt_result read_rest(vkt_gz *g, uint64_t max_bytes, char **bytes, size_t *n)
{
    size_t room = (size_t)VKT_MIN(g->file.size, max_bytes) + 2, got = 0; /* one byte for a NUL, one to detect the end */
    for (*n = 0;; *n += got) {
        if (*n + 1 >= room) room += *n / 2 + 4096;
        char *more = vkt_realloc(g->h, *bytes, room);
        if (!more) return vkt_fail_nomem(g->h, g->file.path, room);
        *bytes = more;
        VKT_TRY(vkt_gz_read(g, *bytes + *n, room - 1 - *n, &got));
        if (got == 0) break;
        VKT_TRY(vkt_gz_check_size(g, *n + got));
        if (*n + got > max_bytes)
            return vkt_fail(g->h, VKT_E_FORMAT, "\"%s\" has more than the %llu bytes that are allowed", g->file.path,
                            (unsigned long long)max_bytes);
    }
    (*bytes)[*n] = 0;
    return vkt_gz_check_end(g);
}

vkt_result vkt_gz_read_file(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n)
{
    *bytes = NULL;
    *n = 0;
    vkt_gz g;
    VKT_TRY(vkt_gz_open(h, path, &g));
    char *text = NULL;
    const vkt_result r = read_rest(&g, max_bytes, &text, n);
    vkt_gz_close(&g);
    if (r == VKT_OK) {
        *bytes = text;
    } else {
        vkt_free(h, text);
        *n = 0;
    }
    return r;
}
