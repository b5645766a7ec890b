/* data/gz.c - see gz.h. Checks the unpacked size of a file against its limit, and reads whole files. */
#include "data/gz.h"

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
                    g->file.path, (unsigned long long)n,
                    (unsigned long long)VKT_MAX(standard, (uint64_t)VKT_MAX(allowed, 0)));
}

/* Reads the rest of the file into *bytes. The caller frees *bytes, also after a failure. */
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
