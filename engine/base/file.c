/* base/file.c - functions of file.h that need nothing of the system. posix/, win32/ and file_fail.c have the others. */
#include "base/file.h"

vkt_result vkt_file_read(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n)
{
    *bytes = NULL;
    *n = 0;
    vkt_file f;
    VKT_TRY(vkt_file_open(h, path, &f));
    vkt_result r;
    char *p = NULL;
    if (f.size > max_bytes || f.size >= SIZE_MAX) {
        r = vkt_fail(h, VKT_E_FORMAT, "\"%s\" has %llu bytes: want at most %llu", path, (unsigned long long)f.size,
                     (unsigned long long)max_bytes);
    } else if (!(p = vkt_alloc(h, (size_t)f.size + 1))) {
        r = vkt_fail_nomem(h, path, (size_t)f.size + 1);
    } else {
        r = vkt_file_read_at(&f, 0, p, (size_t)f.size);
    }
    if (r == VKT_OK) {
        *bytes = p;
        *n = (size_t)f.size;
    } else {
        vkt_free(h, p);
    }
    vkt_file_close(&f);
    return r;
}

vkt_result vkt_file_write(const vkt_host *h, const char *path, const void *bytes, size_t n)
{
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(h, path, &w));
    VKT_TRY(vkt_file_writer_write(&w, bytes, n));
    return vkt_file_writer_commit(&w);
}

/* ---- for applications ---- */

vkt_result vkt_write_file(const vkt_host *host, const char *path, const void *bytes, size_t n_bytes)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!path || (!bytes && n_bytes > 0))
        return vkt_fail(&h, VKT_E_ARG, "write a file: want a path and its bytes, got NULL");
    return vkt_file_write(&h, path, bytes, n_bytes);
}
