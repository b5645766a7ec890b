/* data/gz.h - reading of files that may be compressed with gzip, which is told from their first bytes, not from their
 * name. Bytes behind the last gzip member that begin no other one are ignored, as gzip ignores them.
 *
 * zlib's buffers (about 100 KiB while a file is open) do not come from the host's allocator. */
#ifndef VKT_GZ_H
#define VKT_GZ_H

#include "base/file.h"

/* No deflate stream expands to more than this many times its size (zlib's technical notes). */
#define VKT_DEFLATE_MAX_RATIO 1032
/* The most that files of data may expand to, unless VKT_MAX_UNPACKED (vktrain/data.h) allows more. */
#define VKT_GZ_USUAL_RATIO 32
#define VKT_GZ_ALWAYS_BYTES (UINT64_C(64) << 20)

typedef struct vkt_gz {
    const vkt_host *h;
    vkt_file file;
    void *gz;       /* zlib's gzFile: reads `file`, also when it is not compressed */
    uint64_t total; /* bytes read so far, after decompression */
} vkt_gz;

/* As vkt_file_open; on failure there is nothing to close. */
vkt_result vkt_gz_open(const vkt_host *h, const char *path, vkt_gz *g);
void vkt_gz_close(vkt_gz *g);
bool vkt_gz_is_plain(const vkt_gz *g);
/* Whether `bytes` may come out of it. VKT_E_FORMAT for a compressed file that would expand to more than is usual. */
vkt_result vkt_gz_check_size(const vkt_gz *g, uint64_t bytes);
/* Reads n bytes; *got < n only at the end of the data. A gzip file that stops too early is an end like any other.
 * VKT_E_IO, VKT_E_FORMAT for what zlib refuses. */
vkt_result vkt_gz_read(vkt_gz *g, void *dst, size_t n, size_t *got);
/* At the end of the data: VKT_E_FORMAT where a gzip member stopped too early. */
vkt_result vkt_gz_check_end(vkt_gz *g);

/* vkt_file_read of a file that may be compressed; max_bytes counts what comes out. */
vkt_result vkt_gz_read_file(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n);

#endif
