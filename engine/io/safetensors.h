/* io/safetensors.h - reads and writes the safetensors format, in which PyTorch users exchange weights.
 *
 *   u64 little-endian n | n bytes of JSON | data
 *   JSON: { "__metadata__": {"key": "text", ...},
 *           "name": {"dtype": "F32", "shape": [64,32], "data_offsets": [b, e]}, ... }
 *
 * The tensor has the bytes [b, e) of the data. Together the tensors cover the data without hole or overlap. Source:
 * https://github.com/huggingface/safetensors, section "Format" of its README.
 *
 * The reader checks the whole header. After a successful open, every tensor is inside the file. The tensor's size is
 * the one that shape and dtype imply, except if the dtype is UNKNOWN. For a malformed file, the open logs the reason
 * and returns VKT_E_FORMAT. The data are read on demand (pread). An open reader allocates a few times the size of the
 * header from the host's allocator. jansson uses malloc, but parses only one key or value at a time. A file in which
 * the description of a tensor has more than 64 KiB is malformed. */
#ifndef VKT_SAFETENSORS_H
#define VKT_SAFETENSORS_H

#include "base/base.h"
#include "base/file.h"

#define VKT_ST_MAX_RANK 8
#define VKT_ST_MAX_HEADER_BYTES 100000000u /* the limit of the reference implementation */

/* Element types and their sizes in bytes. A tensor of any other type is listed as UNKNOWN and can be read raw. */
/* clang-format off */
#define VKT_ST_DTYPES(X)                                                                                               \
    X(F32, 4) X(F16, 2) X(BF16, 2) X(F64, 8)                                                                           \
    X(BOOL, 1) X(U8, 1) X(I8, 1) X(U16, 2) X(I16, 2) X(U32, 4) X(I32, 4) X(U64, 8) X(I64, 8)                           \
    X(F8_E4M3, 1) X(F8_E5M2, 1) X(F8_E8M0, 1) X(C64, 8)
/* clang-format on */

typedef enum vkt_st_dtype {
    VKT_ST_UNKNOWN = 0,
#define VKT_ST_ENUM(name, bytes) VKT_ST_##name,
    VKT_ST_DTYPES(VKT_ST_ENUM)
#undef VKT_ST_ENUM
} vkt_st_dtype;

/* Returns the name, for instance "F32", as a static string; "?" for UNKNOWN. */
const char *vkt_st_dtype_name(vkt_st_dtype dtype);
/* Returns how many bytes one element has; 0 for UNKNOWN. */
uint32_t vkt_st_dtype_bytes(vkt_st_dtype dtype);

/* ---- reading ---- */

typedef struct vkt_safetensors vkt_safetensors;

typedef struct vkt_st_entry {
    const char *name;       /* owned by the reader, like dtype_name */
    const char *dtype_name; /* the text in the file, also if `dtype` is UNKNOWN */
    vkt_st_dtype dtype;
    uint32_t rank; /* 0: a scalar, one element */
    uint64_t dims[VKT_ST_MAX_RANK];
    uint64_t elements; /* product of dims; 0 when a dim is 0 */
    uint64_t bytes;
    uint64_t offset; /* first byte in the file */
} vkt_st_entry;

/* Opens and checks a file. Errors: VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_FORMAT, VKT_E_UNSUPPORTED (a rank above
 * VKT_ST_MAX_RANK), VKT_E_ARG (`path` is NULL) and VKT_E_NOMEM. After an error, *out is NULL. `h` is copied. The caller
 * owns *out. Any number of threads may read at once. */
vkt_result vkt_safetensors_open(const vkt_host *h, const char *path, vkt_safetensors **out);
void vkt_safetensors_close(vkt_safetensors **st);

size_t vkt_safetensors_count(const vkt_safetensors *st);
/* Returns entry i < vkt_safetensors_count(st), in the order of the data. Valid until close. */
const vkt_st_entry *vkt_safetensors_entry(const vkt_safetensors *st, size_t i);
/* Finds a tensor by name. NULL if there is none; nothing is logged. */
const vkt_st_entry *vkt_safetensors_find(const vkt_safetensors *st, const char *name);
/* Returns the text of a metadata key; NULL if the file does not have the key. Valid until close. */
const char *vkt_safetensors_meta(const vkt_safetensors *st, const char *key);
/* Returns the metadata key after `key` in the file; if `key` is NULL, the first key. Returns NULL if `key` is the last
 * key, or if the file does not have `key`. Valid until close. */
const char *vkt_safetensors_next_meta(const vkt_safetensors *st, const char *key);
/* Returns the file of the reader. checkpoint.c reads it for the checksum. */
const vkt_file *vkt_safetensors_file(const vkt_safetensors *st);

/* Reads all elements as float: F32 as they are, F16 and BF16 exactly, F64 rounded to nearest. `count` must be
 * entry->elements (VKT_E_SHAPE). Other dtypes are VKT_E_DTYPE. After VKT_E_IO, a part of dst may be written. */
vkt_result vkt_safetensors_read_f32(const vkt_safetensors *st, const vkt_st_entry *entry, float *dst, uint64_t count);
/* Reads the bytes as stored. `bytes` must be entry->bytes (VKT_E_SHAPE). VKT_E_IO. */
vkt_result vkt_safetensors_read_raw(const vkt_safetensors *st, const vkt_st_entry *entry, void *dst, uint64_t bytes);

/* ---- writing ---- */

/* A tensor to write. It is read during the call only. */
typedef struct vkt_blob {
    const char *name; /* UTF-8, unique, not "__metadata__" */
    vkt_st_dtype dtype;
    uint32_t rank;
    uint64_t dims[VKT_ST_MAX_RANK];
    const void *data; /* may be NULL when a dim is 0 */
} vkt_blob;

typedef struct vkt_meta {
    const char *key, *value; /* UTF-8; keys are unique */
} vkt_meta;

/* Checks whether a file can hold this metadata. VKT_E_ARG if key or value is not UTF-8, or if jansson has no memory. */
vkt_result vkt_meta_check(const vkt_host *h, const vkt_meta *m);
/* Writes a file atomically (base/file.h). The same arguments give the same bytes. Tensors and metadata keep their
 * order. The data begin at a multiple of 8 bytes. If tensors with wider elements come first, every tensor is aligned
 * for its elements. VKT_E_ARG for a bad name, key, value, dtype, rank or size, or for missing data. VKT_E_NOMEM,
 * VKT_E_IO. After an error an old file is as before, with the two exceptions of vkt_file_writer_commit. */
vkt_result vkt_safetensors_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                 const vkt_meta *meta, size_t n_meta);

/* The two steps of vkt_safetensors_write, for a caller that changes the header before it writes the file. The header
 * is everything before the data, including the u64 n. The caller owns *header (vkt_free). After an error, *header
 * is NULL. */
vkt_result vkt_safetensors_make_header(const vkt_host *h, const vkt_blob *blobs, size_t n_blobs, const vkt_meta *meta,
                                       size_t n_meta, char **header, size_t *header_bytes);
vkt_result vkt_safetensors_write_file(const vkt_host *h, const char *path, const char *header, size_t header_bytes,
                                      const vkt_blob *blobs, size_t n_blobs);
/* Returns the number of bytes of the blob's data. Only for blobs that vkt_safetensors_make_header has accepted. */
uint64_t vkt_blob_bytes(const vkt_blob *blob);

#endif
