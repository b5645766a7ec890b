/* data/gz_file.c - see gz.h. Reads a file by zlib. */
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
