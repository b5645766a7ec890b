/* data/idx.h - reads IDX, the file format of MNIST (Y. LeCun, "The MNIST database of handwritten digits"):
 *
 *     byte 0, 1   0
 *     byte 2      element type: 0x08 (u8); other types are rejected here
 *     byte 3      rank, 1 to 4 here
 *     then        the size of each dimension, u32 big-endian
 *     then        the elements, row-major, to the end of the file
 *
 * Files may be compressed with gzip (data/gz.h). */
#ifndef VKT_IDX_H
#define VKT_IDX_H

#include "base/base.h"

/* The largest array that a data set reads from an IDX file. A damaged header must not request all memory. */
#define VKT_IDX_MAX_BYTES (UINT64_C(16) << 30)

typedef struct vkt_idx {
    uint32_t rank, dim[4]; /* each dim is above 0; dim[rank] .. dim[3] are 1 */
    uint8_t *data;         /* dim[0] * .. * dim[3] bytes; the caller of vkt_idx_read frees them with vkt_free */
    size_t bytes;
} vkt_idx;

/* Reads a whole file. The file must have exactly one u8 array of at most max_bytes, and vkt_gz_check_size must allow
 * the unpacked size of the file; otherwise VKT_E_FORMAT. VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_NOMEM. VKT_E_UNSUPPORTED: see
 * vkt_gz_open. The message has the path. If header and file disagree about the size, the message has both sizes. On
 * failure *out is zeroed. */
vkt_result vkt_idx_read(const vkt_host *h, const char *path, uint64_t max_bytes, vkt_idx *out);

#endif
