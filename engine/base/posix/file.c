/* base/posix/file.c - reads files: see base/file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f)
{
    *f = (vkt_file){ .h = h, .fd = -1 };
    if (!path) return vkt_fail_null(h, "opening a file", "path");
    /* With O_NONBLOCK, opening a FIFO does not wait for a writer. Regular files are not affected. */
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

int vkt_file_duplicate(const vkt_file *f)
{
    return fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
}

void vkt_file_close_duplicate(int fd)
{
    if (fd >= 0) close(fd);
}

vkt_result vkt_file_map(const vkt_file *f, const void **bytes)
{
    *bytes = NULL;
    if (f->size == 0) return VKT_OK;
    if (f->size > SIZE_MAX) return vkt_fail_nomem(f->h, f->path, SIZE_MAX);
    void *map = mmap(NULL, (size_t)f->size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (map == MAP_FAILED && errno == ENOMEM) return vkt_fail_nomem(f->h, f->path, (size_t)f->size);
    if (map == MAP_FAILED) return vkt_file_fail(f->h, "map", f->path, errno);
    *bytes = map;
    return VKT_OK;
}

void vkt_file_unmap(const void *bytes, uint64_t size)
{
    if (bytes) munmap((void *)(uintptr_t)bytes, (size_t)size);
}

void vkt_file_close(vkt_file *f)
{
    if (!f->path) return;
    close(f->fd);
    vkt_free(f->h, f->path);
    *f = (vkt_file){ .fd = -1 };
}
