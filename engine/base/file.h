/* base/file.h - whole-file and positioned reading, and writing that never leaves half a file behind.
 *
 * Writing is atomic. Bytes go to a temporary file in the directory of the file, with a new random name ("<name>.<16
 * hexadecimal digits>.vkttmp"). Commit flushes this file to the disk (fsync), renames it to `path`, and, on POSIX,
 * flushes the directory. A reader, also after a crash, a kill -9 or a full disk, finds either the whole old file or the
 * whole new one. A killed process may leave a temporary behind. Each writer holds a lock on its temporary. The next
 * writer of the same user and path removes all temporaries of this path that no writer has locked. (On a file system
 * without locks, nothing removes them.)
 *
 * If `path` is a symbolic link, the link stays and its target is written. A file that is not regular (a device, a FIFO)
 * is written in place and never replaced. On POSIX, /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N are always
 * written in place. Writing in place is not atomic.
 *
 * A message about a file has its path, and the system's error text if there is one. System calls that a signal
 * interrupts are repeated. Threads: any; one call at a time per object. Several threads and processes may write the
 * same path: the file has all bytes of the last commit. */
#ifndef VKT_FILE_H
#define VKT_FILE_H

#include "base/base.h"

/* The largest number of bytes of one read or write call. A call of Linux moves at most 2 GiB - 4 KiB. */
#define VKT_FILE_STEP ((size_t)1 << 30)

/* Logs "cannot <verb> "<path>": <the system's text>". Returns VKT_E_NOT_FOUND for ENOENT, else VKT_E_IO. */
vkt_result vkt_file_fail(const vkt_host *h, const char *verb, const char *path, int error);

/* ---- reading ---- */

typedef struct vkt_file {
    const vkt_host *h; /* not owned */
    char *path;        /* owned; for messages */
    int fd;
    uint64_t size; /* in bytes, when the file was opened */
} vkt_file;

/* Opens a regular file for reading. VKT_E_NOT_FOUND if there is no file; VKT_E_IO; VKT_E_NOMEM; VKT_E_ARG if `path` is
 * NULL. After an error *f is closed. */
vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f);
/* Reads exactly n bytes from `offset` on. VKT_E_IO, also if the file ends too early; VKT_E_ARG if offset + n is 2^63 or
 * more. */
vkt_result vkt_file_read_at(const vkt_file *f, uint64_t offset, void *dst, size_t n);
/* Returns another descriptor of the file, for a library that reads and closes a descriptor itself. All descriptors of a
 * file share one position. vkt_file_read_at does not depend on this position, but moves it on Windows. -1: there are
 * too many descriptors. */
int vkt_file_duplicate(const vkt_file *f);
/* Closes a descriptor of vkt_file_duplicate that no library will close; -1 is allowed. */
void vkt_file_close_duplicate(int fd);
/* Maps the whole file for reading. *bytes is NULL if the file is empty. The map stays when the file is closed; end it
 * with vkt_file_unmap. On POSIX, if another process shortens the file, a process that reads the missing bytes may be
 * ended by SIGBUS. Windows refuses to shorten a mapped file. VKT_E_IO; VKT_E_NOMEM: the address space is too small. */
vkt_result vkt_file_map(const vkt_file *f, const void **bytes);
/* Ends a map of vkt_file_map. `size` is the size of the file when it was opened; `bytes` may be NULL. */
void vkt_file_unmap(const void *bytes, uint64_t size);
/* Closes a file. *f may be zeroed, or closed already. */
void vkt_file_close(vkt_file *f);

/* Reads a whole file. The caller owns *bytes (vkt_free); it has a NUL after its n bytes, so text can be used as a
 * string. VKT_E_FORMAT when the file is larger than max_bytes; VKT_E_NOMEM; or an error of vkt_file_open or
 * vkt_file_read_at. On failure *bytes = NULL, *n = 0. */
vkt_result vkt_file_read(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n);

/* ---- writing ---- */

typedef struct vkt_file_writer {
    const vkt_host *h; /* not owned; must outlive the writer */
    char *path;        /* owned; NULL when the writer is closed */
    char *target;      /* owned; the path to which the links of `path` lead */
    char *temp;        /* owned; name (POSIX) or path (Windows) of the temporary; NULL: the file is written in place */
    int fd, dir_fd;
} vkt_file_writer;

/* Starts a new version of `path`. On POSIX the new version keeps the permissions of an existing file, and the
 * file's owner if this process may set the owner. VKT_E_IO (a directory, no permission, ...) or VKT_E_NOMEM on
 * failure; *w is then closed. Opening a FIFO waits for a reader. */
vkt_result vkt_file_writer_begin(const vkt_host *h, const char *path, vkt_file_writer *w);
/* Appends bytes. A failure (VKT_E_IO: disk full, quota, ...) aborts the writer. VKT_E_STATE: the writer is closed. */
vkt_result vkt_file_writer_write(vkt_file_writer *w, const void *bytes, size_t n);
/* Makes the new version visible at `path`. Closes the writer, also after a failure. VKT_E_STATE: the writer is closed,
 * for example because an earlier write failed. VKT_E_IO: the old file stays, with two exceptions. If only the last
 * action, the flush of the directory, failed, the new file is at `path`. Bytes that were written in place stay written.
 */
vkt_result vkt_file_writer_commit(vkt_file_writer *w);
/* Drops the written bytes. The old file is untouched (bytes written in place stay). The writer may be zeroed or closed.
 */
void vkt_file_writer_abort(vkt_file_writer *w);

/* Writes a whole file: begin, write and commit. */
vkt_result vkt_file_write(const vkt_host *h, const char *path, const void *bytes, size_t n);

#endif
