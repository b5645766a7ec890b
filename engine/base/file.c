/* base/file.c - reads files: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

vkt_result vkt_file_fail(const vkt_host *h, const char *verb, const char *path, int error)
{
    char text[128];
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    return vkt_fail(h, error == ENOENT ? VKT_E_NOT_FOUND : VKT_E_IO, "cannot %s \"%s\": %s", verb, path, text);
}

/* ---- reading ---- */

vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f)
{
    *f = (vkt_file){ .h = h, .fd = -1 };
    if (!path) return vkt_fail_null(h, "opening a file", "path");
    /* With O_NONBLOCK opening a FIFO does not wait for a writer. Regular files are not affected. */
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return vkt_file_fail(h, "open", path, errno);
    struct stat st;
    vkt_result r = VKT_OK;
    if (fstat(fd, &st) != 0)
        r = vkt_file_fail(h, "inspect", path, errno);
    else if (!S_ISREG(st.st_mode))
        r = vkt_fail(h, VKT_E_IO, "cannot read \"%s\": not a regular file", path);
    else if (!(f->path = vkt_strdup(h, path)))
        r = vkt_fail_nomem(h, "a file name", strlen(path) + 1);
    if (r != VKT_OK) {
        close(fd);
        return r;
    }
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    return VKT_OK;
}

vkt_result vkt_file_read_at(const vkt_file *f, uint64_t offset, void *dst, size_t n)
{
    char *p = dst;
    if (offset > INT64_MAX - n) return vkt_fail(f->h, VKT_E_ARG, "read of \"%s\": offset out of range", f->path);
    while (n > 0) {
        const ssize_t got = pread(f->fd, p, VKT_MIN(n, VKT_FILE_STEP), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return vkt_file_fail(f->h, "read", f->path, errno);
        if (got == 0) {
            return vkt_fail(f->h, VKT_E_IO, "cannot read \"%s\": it ends %zu bytes too early, at byte %llu", f->path, n,
                            (unsigned long long)offset);
        }
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return VKT_OK;
}

void vkt_file_close(vkt_file *f)
{
    if (!f->path) return;
    close(f->fd);
    vkt_free(f->h, f->path);
    *f = (vkt_file){ .fd = -1 };
}

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
