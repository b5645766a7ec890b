/* base/posix/file_write.c - writes files by a temporary file and a rename. Devices, FIFOs and descriptors are written
 * in place. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"

/* A temporary is "<name>.<16 hexadecimal digits>.vkttmp". Only the first MAX_NAME_BYTES bytes of a long name are used,
 * because a file name may have at most 255 bytes. */
#define TEMP_END ".vkttmp"
enum {
    MAX_NAME_BYTES = 200,
    DIGITS = 16,
    TEMP_ROOM = MAX_NAME_BYTES + 1 + DIGITS + sizeof TEMP_END,
    TRIES = 100,
    LINKS = 40,
    LOOKS = 64
};

/* Logs a failed write and returns VKT_E_IO, also if the directory is missing. */
static vkt_result fail_write(const vkt_host *h, const char *verb, const char *path, int error)
{
    vkt_file_fail(h, verb, path, error);
    return VKT_E_IO;
}

static void close_writer(vkt_file_writer *w)
{
    if (w->fd >= 0) close(w->fd); /* releases the lock */
    if (w->dir_fd >= 0) close(w->dir_fd);
    vkt_free(w->h, w->temp);
    vkt_free(w->h, w->target);
    vkt_free(w->h, w->path);
    *w = (vkt_file_writer){ .fd = -1, .dir_fd = -1 };
}

/* ---- the target of a path ---- */

/* Returns the descriptor that a path stands for: 1 for /dev/stdout, 2 for /dev/stderr, N for /dev/fd/N and
 * /proc/self/fd/N. -1: none. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < VKT_COUNT(folders); i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) != 0 || *digits < '0' || *digits > '9') continue;
        char *end;
        const long n = strtol(digits, &end, 10);
        if (*end == 0 && n <= INT_MAX) return (int)n;
    }
    return -1;
}

/* Replaces w->target, which is a symbolic link with the text `link`, by the path to which it leads. */
static vkt_result follow_one(vkt_file_writer *w, const char *link)
{
    const size_t dir = *link == '/' ? 0 : (size_t)(vkt_path_name(w->target) - w->target), n = dir + strlen(link) + 1;
    char *next = vkt_alloc(w->h, n);
    if (!next) return vkt_fail_nomem(w->h, "a file name", n);
    memcpy(next, w->target, dir);
    memcpy(next + dir, link, n - dir);
    vkt_free(w->h, w->target);
    w->target = next;
    return VKT_OK;
}

/* Follows the symbolic links at the end of w->target, until w->target names a descriptor or is no link. If the last
 * link leads to a path where nothing exists, the file is made at that path. */
static vkt_result follow_links(vkt_file_writer *w)
{
    for (int i = 0; i < LINKS && descriptor_of(w->target) < 0; i++) {
        char link[PATH_MAX];
        const ssize_t n = readlink(w->target, link, sizeof link);
        if (n < 0) return VKT_OK;
        if (n == 0 || (size_t)n == sizeof link) return fail_write(w->h, "follow the link", w->path, ENAMETOOLONG);
        link[n] = 0;
        VKT_TRY(follow_one(w, link));
    }
    return descriptor_of(w->target) >= 0 ? VKT_OK : fail_write(w->h, "follow the link", w->path, ELOOP);
}

typedef struct destination {
    struct stat old; /* state of the existing file */
    bool exists;
    bool in_place;  /* the path names a descriptor or a file that is not regular: it is written to and never replaced */
    int descriptor; /* the descriptor that the path names; -1: none */
} destination;

/* Finds the target of `path`. First calls stat, which follows the links too. stat fails if the system forbids this
 * process to follow one of the links (protected_symlinks). readlink, which follow_links uses, does not check this. */
static vkt_result locate(vkt_file_writer *w, const vkt_host *h, const char *path, destination *p)
{
    *w = (vkt_file_writer){ .h = h, .fd = -1, .dir_fd = -1 };
    *p = (destination){ .descriptor = -1 };
    if (*vkt_path_name(path) == 0) return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it names no file", path);
    p->exists = stat(path, &p->old) == 0;
    if (!p->exists && errno != ENOENT) return fail_write(h, "write", path, errno);
    if (p->exists && S_ISDIR(p->old.st_mode))
        return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it is a directory, not a regular file", path);
    w->path = vkt_strdup(h, path);
    w->target = vkt_strdup(h, path);
    if (!w->path || !w->target) return vkt_fail_nomem(h, "a file name", strlen(path) + 1);
    VKT_TRY(follow_links(w));
    p->descriptor = descriptor_of(w->target);
    p->in_place = p->descriptor >= 0 || (p->exists && !S_ISREG(p->old.st_mode));
    if (p->in_place || !p->exists || strcmp(w->target, path) == 0) return VKT_OK;
    for (int i = 0; i < LOOKS; i++) { /* repeated: a writer may replace the file between the two calls of stat */
        struct stat now;
        if (stat(path, &p->old) != 0 || stat(w->target, &now) != 0) break;
        if (now.st_ino == p->old.st_ino && now.st_dev == p->old.st_dev) return VKT_OK;
    }
    return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it leads to a file without a name", path);
}

static vkt_result open_in_place(vkt_file_writer *w, const destination *p)
{
    do {
        w->fd = p->descriptor >= 0 ? fcntl(p->descriptor, F_DUPFD_CLOEXEC, 3)
                                   : open(w->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } while (w->fd < 0 && errno == EINTR);
    return w->fd < 0 ? fail_write(w->h, "write", w->path, errno) : VKT_OK;
}

/* ---- temporaries ---- */

static vkt_result open_directory(vkt_file_writer *w)
{
    const size_t n =
        (size_t)(vkt_path_name(w->target) - w->target); /* bytes up to the last slash; 0: current directory */
    char *dir = vkt_alloc(w->h, n + 2);
    if (!dir) return vkt_fail_nomem(w->h, "a file name", n + 2);
    memcpy(dir, n ? w->target : ".", n ? n : 1);
    do w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (w->dir_fd < 0 && errno == EINTR);
    const int error = errno;
    vkt_free(w->h, dir);
    return w->dir_fd < 0 ? fail_write(w->h, "open the directory of", w->path, error) : VKT_OK;
}

/* Checks whether `name` still refers to the file of `fd`. Returns 0; ESTALE if it does not; or another errno. */
static int check_name(int dir_fd, const char *name, int fd)
{
    struct stat by_fd, by_name;
    if (fstat(fd, &by_fd) != 0) return errno;
    if (fstatat(dir_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? ESTALE : errno;
    return by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev ? 0 : ESTALE;
}

/* Locks a file. Returns 0, EWOULDBLOCK if another writer holds the lock, or another errno. */
static int lock(int fd)
{
    int r;
    do r = flock(fd, LOCK_EX | LOCK_NB);
    while (r != 0 && errno == EINTR);
    return r == 0 ? 0 : errno;
}

/* Returns whether the error means that the file system has no flock. Some network file systems have none. On these,
 * files are written without a lock. This is safe, because the lock only shows that a temporary is in use. */
static bool is_unsupported(int error)
{
    return error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP;
}

static int open_at(int dir_fd, const char *name, int flags, mode_t mode)
{
    int fd;
    do fd = openat(dir_fd, name, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static bool is_temp_of(const char *name, const char *target)
{
    const size_t n = strnlen(target, MAX_NAME_BYTES);
    return strncmp(name, target, n) == 0 && name[n] == '.' && strspn(name + n + 1, "0123456789abcdef") == DIGITS &&
           strcmp(name + n + 1 + DIGITS, TEMP_END) == 0;
}

/* Removes a temporary that a killed process left. The temporary stays if another user owns it, or if this process
 * cannot lock it. */
static void drop_if_left(int dir_fd, const char *name)
{
    struct stat s;
    if (fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid()) return;
    const int fd = open_at(dir_fd, name, O_NONBLOCK, 0);
    if (fd < 0) return;
    if (lock(fd) == 0 && check_name(dir_fd, name, fd) == 0) unlinkat(dir_fd, name, 0);
    close(fd);
}

/* Removes the temporary files of this target that a killed process left. Failures are ignored, because they do not
 * concern the file that is to be written. */
static void drop_left_temporaries(const vkt_file_writer *w)
{
    const int fd = openat(w->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir) close(fd);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (is_temp_of(e->d_name, vkt_path_name(w->target))) drop_if_left(w->dir_fd, e->d_name);
    if (dir) closedir(dir);
}

/* Makes a new file and locks it. Between these two steps another writer may mistake the file for a temporary of a
 * killed process, and remove it. In that case a new name is tried. Returns 0 or an errno. */
static int make_temp(vkt_file_writer *w, mode_t mode)
{
    int error = EEXIST;
    for (int i = 0; i < TRIES; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return errno;
        snprintf(w->temp, TEMP_ROOM, "%.*s.%016llx" TEMP_END, MAX_NAME_BYTES, vkt_path_name(w->target),
                 (unsigned long long)number);
        const int fd = open_at(w->dir_fd, w->temp, O_CREAT | O_EXCL, mode);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return errno;
        error = lock(fd);
        if (is_unsupported(error)) error = 0;
        if (error == 0) error = check_name(w->dir_fd, w->temp, fd);
        if (error == 0) {
            w->fd = fd;
            return 0;
        }
        close(fd);
        if (error != ESTALE && error != EWOULDBLOCK) {
            unlinkat(w->dir_fd, w->temp, 0);
            return error;
        }
    }
    return error;
}

static vkt_result fail_temp(const vkt_file_writer *w, int error)
{
    if (error != EEXIST) return fail_write(w->h, "create a temporary file beside", w->path, error);
    return vkt_fail(w->h, VKT_E_IO, "cannot write \"%s\": a temporary \"%s\" is there already", w->path, w->temp);
}

/* Copies the old file's permissions, and its owner if this process may set the owner. So a file keeps its owner if the
 * user root replaces it. */
static vkt_result keep_permissions(const vkt_file_writer *w, const struct stat *old)
{
    struct stat now;
    if (fstat(w->fd, &now) != 0) return fail_write(w->h, "inspect", w->path, errno);
    if ((now.st_uid != old->st_uid || now.st_gid != old->st_gid) && fchown(w->fd, old->st_uid, old->st_gid) != 0 &&
        errno != EPERM && errno != EINVAL)
        return fail_write(w->h, "set the owner of", w->path, errno);
    return fchmod(w->fd, old->st_mode & 0777) == 0 ? VKT_OK
                                                   : fail_write(w->h, "set the permissions of", w->path, errno);
}

static vkt_result open_temp(vkt_file_writer *w, const destination *p)
{
    VKT_TRY(open_directory(w));
    w->temp = vkt_alloc(w->h, TEMP_ROOM);
    if (!w->temp) return vkt_fail_nomem(w->h, "a file name", TEMP_ROOM);
    drop_left_temporaries(w);
    const int error = make_temp(w, p->exists ? 0600 : 0666);
    if (error != 0) return fail_temp(w, error);
    return p->exists ? keep_permissions(w, &p->old) : VKT_OK;
}

/* ---- writing a file ---- */

vkt_result vkt_file_writer_begin(const vkt_host *h, const char *path, vkt_file_writer *w)
{
    destination p;
    vkt_result r = locate(w, h, path, &p);
    if (r == VKT_OK) r = p.in_place ? open_in_place(w, &p) : open_temp(w, &p);
    if (r != VKT_OK) vkt_file_writer_abort(w);
    return r;
}

vkt_result vkt_file_writer_write(vkt_file_writer *w, const void *bytes, size_t n)
{
    if (!w->path) return VKT_E_STATE; /* the writer is closed; if an earlier call failed, that call logged its error */
    const char *p = bytes;
    while (n > 0) {
        const ssize_t put = write(w->fd, p, VKT_MIN(n, VKT_FILE_STEP));
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

/* Flushes a file. Returns 0 or an errno. Without `must`, EINVAL, EROFS and ENOTSUP are no errors: pipes, terminals and
 * some directories cannot be flushed. */
static int flush(int fd, bool must)
{
    int r;
    do r = fsync(fd);
    while (r != 0 && errno == EINTR);
    if (r == 0 || (!must && (errno == EINVAL || errno == EROFS || errno == ENOTSUP))) return 0;
    return errno;
}

vkt_result vkt_file_writer_commit(vkt_file_writer *w)
{
    if (!w->path) return VKT_E_STATE;
    vkt_result r = VKT_OK;
    int error = flush(w->fd, w->temp != NULL);
    if (error != 0)
        r = fail_write(w->h, "flush", w->path, error);
    else if (w->temp && renameat(w->dir_fd, w->temp, w->dir_fd, vkt_path_name(w->target)) != 0) {
        r = fail_write(w->h, "replace", w->path, errno);
    }
    if (r != VKT_OK) {
        vkt_file_writer_abort(w);
        return r;
    }
    error = w->temp ? flush(w->dir_fd, false) : 0;
    if (error != 0) r = fail_write(w->h, "flush the directory of", w->path, error);
    close_writer(w);
    return r;
}

void vkt_file_writer_abort(vkt_file_writer *w)
{
    if (!w->h) return;
    if (w->fd >= 0 && w->temp) unlinkat(w->dir_fd, w->temp, 0); /* this writer made the temporary */
    close_writer(w);
}

/* Checks a path that will be written in place. Does not open the path, because opening would wait for a FIFO's reader,
 * and closing would end the reader's input. */
static vkt_result try_in_place(const vkt_host *h, const char *path, const destination *p)
{
    const int flags = p->descriptor >= 0 ? fcntl(p->descriptor, F_GETFL) : O_WRONLY;
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return fail_write(h, "write", path, EBADF);
    if (p->descriptor >= 0 || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) return VKT_OK;
    return fail_write(h, "write", path, errno);
}

vkt_result vkt_try_output(const vkt_host *host, const char *path)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_file_writer w;
    destination p;
    if (!path) return vkt_fail(&h, VKT_E_ARG, "try an output: want a path, got NULL");
    vkt_result r = locate(&w, &h, path, &p);
    if (r == VKT_OK) r = p.in_place ? try_in_place(&h, path, &p) : open_temp(&w, &p);
    vkt_file_writer_abort(&w);
    return r;
}
