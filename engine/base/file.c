/* base/file.c - reading with limits, writing by temporary file and rename. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read or write call moves at most this much: Linux itself stops at 2 GiB - 4 KiB. */
#define IO_STEP ((size_t)1 << 30)

static vkt_result fail_errno(const vkt_host *h, const char *verb, const char *path, int error)
{
    char text[128];
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    return vkt_fail(h, error == ENOENT ? VKT_E_NOT_FOUND : VKT_E_IO, "cannot %s \"%s\": %s", verb, path, text);
}

/* A missing directory is no "file not found" to somebody who writes. */
static vkt_result fail_write(const vkt_host *h, const char *verb, const char *path, int error)
{
    fail_errno(h, verb, path, error);
    return VKT_E_IO;
}

/* ---- reading ---- */

vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f)
{
    *f = (vkt_file){ .h = h, .fd = -1 };
    if (!path) return vkt_fail_null(h, "opening a file", "path");
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; it changes nothing for regular files. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno(h, "open", path, errno);
    struct stat st;
    vkt_result r = VKT_OK;
    if (fstat(fd, &st) != 0)
        r = fail_errno(h, "inspect", path, errno);
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
        const ssize_t got = pread(f->fd, p, VKT_MIN(n, IO_STEP), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(f->h, "read", f->path, errno);
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

/* ---- writing ---- */

static void close_writer(vkt_file_writer *w)
{
    if (w->fd >= 0) close(w->fd); /* releases the lock */
    if (w->dir_fd >= 0) close(w->dir_fd);
    vkt_free(w->h, w->temp);
    vkt_free(w->h, w->path);
    *w = (vkt_file_writer){ .fd = -1, .dir_fd = -1 };
}

/* The part of a path behind its last '/'. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static vkt_result open_directory(vkt_file_writer *w)
{
    const size_t n = (size_t)(base_name(w->path) - w->path); /* with its last slash: "" is the current directory */
    char *dir = vkt_alloc(w->h, n + 2);
    if (!dir) return vkt_fail_nomem(w->h, "a file name", n + 2);
    memcpy(dir, n ? w->path : ".", n ? n : 1);
    w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    vkt_free(w->h, dir);
    return w->dir_fd < 0 ? fail_write(w->h, "open the directory of", w->path, error) : VKT_OK;
}

/* Is `fd` still what `name` leads to? 0, ESTALE when not, or another errno. */
static int check_name(int dir_fd, const char *name, int fd)
{
    struct stat by_fd, by_name;
    if (fstat(fd, &by_fd) != 0) return errno;
    if (fstatat(dir_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? ESTALE : errno;
    return by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev ? 0 : ESTALE;
}

/* Opens and locks w->temp. A temporary belongs to whoever holds its flock and sees it still under its name: the lock of
 * a killed process is gone, so its file is taken over; one that was committed in the meantime has left its name
 * (ESTALE: try again). Returns 0, EWOULDBLOCK when somebody else is writing it, or another errno. */
static int claim_temp(vkt_file_writer *w)
{
    for (;;) {
        const int fd = openat(w->dir_fd, w->temp, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0) return errno;
        int error = flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno : check_name(w->dir_fd, w->temp, fd);
        if (error == 0 && ftruncate(fd, 0) != 0) error = errno;
        if (error == 0) {
            w->fd = fd;
            return 0;
        }
        close(fd);
        if (error != ESTALE) return error;
    }
}

vkt_result vkt_file_writer_begin(const vkt_host *h, const char *path, vkt_file_writer *w)
{
    *w = (vkt_file_writer){ .h = h, .fd = -1, .dir_fd = -1 };
    if (*base_name(path) == 0) return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it names no file", path);
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it exists and is not a regular file", path);
    }
    const size_t temp_size = strlen(path) + sizeof ".tmp15";
    w->path = vkt_strdup(h, path);
    w->temp = vkt_alloc(h, temp_size);
    vkt_result r = w->path && w->temp ? open_directory(w) : vkt_fail_nomem(h, "a file name", temp_size);
    int error = EWOULDBLOCK;
    for (int i = 0; r == VKT_OK && error == EWOULDBLOCK && i < 16; i++) { /* 16 writers of one path at once */
        if (i == 0)
            snprintf(w->temp, temp_size, "%s.tmp", base_name(path));
        else
            snprintf(w->temp, temp_size, "%s.tmp%d", base_name(path), i);
        error = claim_temp(w);
    }
    if (r == VKT_OK && error != 0) r = fail_write(h, "create a temporary file beside", path, error);
    if (r == VKT_OK && exists && fchmod(w->fd, old.st_mode & 0777) != 0) {
        r = fail_write(h, "set the permissions of", path, errno);
    }
    if (r != VKT_OK) vkt_file_writer_abort(w);
    return r;
}

vkt_result vkt_file_writer_write(vkt_file_writer *w, const void *bytes, size_t n)
{
    if (!w->path) return VKT_E_STATE; /* the first failure was logged */
    const char *p = bytes;
    while (n > 0) {
        const ssize_t put = write(w->fd, p, VKT_MIN(n, IO_STEP));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            const vkt_result r = fail_write(w->h, "write", w->path, put < 0 ? errno : ENOSPC);
            vkt_file_writer_abort(w);
            return r;
        }
        p += put;
        n -= (size_t)put;
    }
    return VKT_OK;
}

vkt_result vkt_file_writer_commit(vkt_file_writer *w)
{
    if (!w->path) return VKT_E_STATE;
    vkt_result r = VKT_OK;
    if (fsync(w->fd) != 0)
        r = fail_write(w->h, "flush", w->path, errno);
    else if (renameat(w->dir_fd, w->temp, w->dir_fd, base_name(w->path)) != 0) {
        r = fail_write(w->h, "replace", w->path, errno);
    }
    if (r != VKT_OK) {
        vkt_file_writer_abort(w);
        return r;
    }
    /* EINVAL: some file systems cannot flush directories and need not. */
    if (fsync(w->dir_fd) != 0 && errno != EINVAL) r = fail_write(w->h, "flush the directory of", w->path, errno);
    close_writer(w);
    return r;
}

void vkt_file_writer_abort(vkt_file_writer *w)
{
    if (!w->path && !w->temp) return;
    if (w->fd >= 0) unlinkat(w->dir_fd, w->temp, 0); /* ours: we hold its lock */
    close_writer(w);
}

vkt_result vkt_file_write(const vkt_host *h, const char *path, const void *bytes, size_t n)
{
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(h, path, &w));
    VKT_TRY(vkt_file_writer_write(&w, bytes, n));
    return vkt_file_writer_commit(&w);
}
