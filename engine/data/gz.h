/* data/gz.h - reads files that may be compressed with gzip. The first bytes of a file, not its name, show whether it is
 * compressed. A file may have several gzip members. Other bytes behind the last member are ignored; the program gzip
 * ignores them, too.
 *
 * zlib allocates its buffers (about 64 KiB for each open file) without the host's allocator. */
#ifndef VKT_GZ_H
#define VKT_GZ_H

#include "base/file.h"

/* The largest expansion of a deflate stream (zlib's technical notes). */
#define VKT_DEFLATE_MAX_RATIO 1032
/* A compressed file may expand to VKT_GZ_ALWAYS_BYTES plus VKT_GZ_DEFAULT_RATIO times its compressed size. The
 * environment variable VKT_MAX_UNPACKED (vktrain/data.h) may allow more. */
#define VKT_GZ_DEFAULT_RATIO 32
#define VKT_GZ_ALWAYS_BYTES (UINT64_C(64) << 20)

typedef struct vkt_gz {
    const vkt_host *h;
    vkt_file file;
    void *gz;       /* zlib's gzFile, which reads `file`, compressed or not; NULL in a build without zlib */
    uint64_t total; /* bytes read so far, after decompression */
} vkt_gz;

/* Opens a file. Errors are those of vkt_file_open; VKT_E_UNSUPPORTED: the file is compressed, and the library was built
 * without zlib. On failure there is nothing to close. */
vkt_result vkt_gz_open(const vkt_host *h, const char *path, vkt_gz *g);
void vkt_gz_close(vkt_gz *g);
bool vkt_gz_is_plain(const vkt_gz *g);
/* Checks that the file may expand to `bytes` bytes. VKT_E_FORMAT: the file is compressed, and `bytes` is above the
 * limit that is described at VKT_GZ_DEFAULT_RATIO. */
vkt_result vkt_gz_check_size(const vkt_gz *g, uint64_t bytes);
/* Reads n bytes; fewer (*got < n) only at the end of the data. At the end of a truncated gzip file, this function does
 * not fail: only vkt_gz_check_end detects the truncation. VKT_E_IO; VKT_E_NOMEM; VKT_E_FORMAT for data that zlib
 * rejects. */
vkt_result vkt_gz_read(vkt_gz *g, void *dst, size_t n, size_t *got);
/* Call this function when all data are read. VKT_E_FORMAT: the gzip file is truncated. */
vkt_result vkt_gz_check_end(vkt_gz *g);

/* Reads a file like vkt_file_read, but the file may be compressed, and max_bytes limits the uncompressed bytes.
 * Returns also the errors of vkt_gz_open, vkt_gz_read, vkt_gz_check_size and vkt_gz_check_end. */
vkt_result vkt_gz_read_file(const vkt_host *h, const char *path, uint64_t max_bytes, void **bytes, size_t *n);

#endif
