/* base/file.h - whole-file and positioned reading, and writing that never leaves half a file behind.
 *
 * Writing is atomic: bytes go to a temporary file in the same directory, of a random name that nothing had before
 * ("<name>.<16 hexadecimal digits>.vkttmp"), which is flushed to the disk (fsync) and renamed over `path` by commit;
 * then the directory is flushed too. A reader, also after a crash, a kill -9 or a full disk, finds either the whole old
 * file or the whole new one. A temporary that a killed process left behind is removed by the same user's next writer of
 * that path: a writer holds a lock on its own, where the file system has locks.
 *
 * A symbolic link as `path` stays, and what it leads to is written. What exists and is no regular file (a device, a
 * FIFO, /dev/stdout whatever it is) is written to where it is, and never replaced; that is not atomic.
 *
 * Every message names the path and the system's error text. Calls that a signal interrupts are repeated. Threads:
 * different objects, any thread; one object, one call at a time. Several threads and processes may write the same path:
 * the last commit wins, whole. */
#ifndef VKT_FILE_H
#define VKT_FILE_H

#include "base/base.h"

/* One read or write call moves at most this much: Linux itself stops at 2 GiB - 4 KiB. */
#define VKT_FILE_STEP ((size_t)1 << 30)

/* "cannot <verb> "<path>": <the system's text>", logged; VKT_E_NOT_FOUND for ENOENT, else VKT_E_IO. */
vkt_result vkt_file_fail(const vkt_host *h, const char *verb, const char *path, int error);

/* ---- reading ---- */

typedef struct vkt_file {
    const vkt_host *h; /* lent */
    char *path;        /* owned; for messages */
    int fd;
    uint64_t size; /* when it was opened */
} vkt_file;

/* Opens a regular file for reading. VKT_E_NOT_FOUND where there is none, VKT_E_IO, VKT_E_NOMEM; *f is then closed. */
vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f);
/* Exactly n bytes from `offset` on; VKT_E_IO also where the file ends before. */
vkt_result vkt_file_read_at(const vkt_file *f, uint64_t offset, void *dst, size_t n);
/* Safe on a zeroed and on a closed one. */
void vkt_file_close(vkt_file *f);

/* The whole file. *bytes is the caller's (vkt_free) and has a NUL behind its n bytes, so text can be used as a string.
 * VKT_E_FORMAT when the file is larger than max_bytes; else as vkt_file_open. On failure *bytes = NULL, *n = 0. */
vkt_result vkt_file_read(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n);

/* ---- writing ---- */

typedef struct vkt_file_writer {
    const vkt_host *h; /* lent; must outlive the writer */
    char *path;        /* owned; for messages; NULL when the writer is closed */
    char *target;      /* owned; what path leads to behind all links */
    char *temp;        /* owned; name of the temporary, inside the target's directory; NULL: written in place */
    int fd, dir_fd;
} vkt_file_writer;

/* Starts a new version of `path`. Permissions of an existing file are kept, and its owner where this process may.
 * VKT_E_IO (a directory, no permission, ...) or VKT_E_NOMEM on failure; *w is then closed. A FIFO is waited for until
 * it has a reader. */
vkt_result vkt_file_writer_begin(const vkt_host *h, const char *path, vkt_file_writer *w);
/* Appends. A failure (VKT_E_IO: disk full, quota, ...) has already aborted the writer. */
vkt_result vkt_file_writer_write(vkt_file_writer *w, const void *bytes, size_t n);
/* Makes the new version visible under `path` and closes the writer, whatever it returns. On failure the old file
 * stands, with one exception: when only the last step, flushing the directory, fails, the new one stands. VKT_E_STATE
 * when an earlier write failed. */
vkt_result vkt_file_writer_commit(vkt_file_writer *w);
/* Drops what was written; the old file is untouched (what was written in place stays). Safe on a zeroed and on a closed
 * writer. */
void vkt_file_writer_abort(vkt_file_writer *w);

/* begin + write + commit. */
vkt_result vkt_file_write(const vkt_host *h, const char *path, const void *bytes, size_t n);

#endif
