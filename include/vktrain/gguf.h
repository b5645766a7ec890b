/* vktrain/gguf.h - reads and writes GGUF files, in which quantized language models are exchanged.
 *
 *     vkt_gguf *g;
 *     vkt_gguf_open(NULL, "model.gguf", &g);
 *     vkt_gguf_get_u64(g, "llama.block_count", VKT_GGUF_ONE, &blocks);
 *     const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, "token_embd.weight");
 *     vkt_gguf_read_f32(g, t->name, 0, t->elements, values);
 *     vkt_gguf_destroy(&g);
 *
 * A file has metadata and tensors. Metadata are values and arrays, each with a key. vkt_gguf_open maps the file into
 * memory, so the bytes of a tensor are read from the disk when they are used. vkt_gguf_open checks the whole header: if
 * it returns VKT_OK, every tensor is inside the file, and no two tensors overlap.
 *
 * The library reads versions 2 and 3, little-endian, and writes version 3. Formats: https://github.com/ggml-org/ggml,
 * docs/gguf.md (the file) and src/ggml-common.h, src/ggml-quants.c (the blocks of quantized types).
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Pointers into a vkt_gguf are valid until vkt_gguf_destroy. */
#ifndef VKTRAIN_GGUF_H
#define VKTRAIN_GGUF_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types of tensors ---- */

/* The type of a tensor's elements. The values of the enum are the codes of the types in GGUF files. vkt_gguf_dequantize
 * reads the types that are listed here. A file may also have types that are not listed; their tensors can only be used
 * as bytes. */
typedef enum vkt_gguf_type {
    VKT_GGUF_F32 = 0,   /* float32 */
    VKT_GGUF_F16 = 1,   /* float16 */
    VKT_GGUF_Q4_0 = 2,  /* 4 bits an element; a block has 32 elements, which share a scale */
    VKT_GGUF_Q4_1 = 3,  /* 4 bits an element; a block has 32 elements, which share a scale and an offset */
    VKT_GGUF_Q8_0 = 8,  /* 8 bits an element; a block has 32 elements, which share a scale */
    VKT_GGUF_Q4_K = 12, /* 4 bits an element; a block has 256 elements; 32 neighbours share a scale and an offset */
    VKT_GGUF_Q5_K = 13, /* 5 bits an element; otherwise like Q4_K */
    VKT_GGUF_Q6_K = 14, /* 6 bits an element; a block has 256 elements; 16 neighbours share a scale */
    VKT_GGUF_BF16 = 30  /* bfloat16 */
} vkt_gguf_type;

/* Returns the name of a type, for instance "Q4_K". Types of ggml that are not listed have names, too. Returns "?" for a
 * type that ggml does not have. Static strings; any thread. */
VKT_API const char *vkt_gguf_type_name(vkt_gguf_type type);
/* Returns the number of elements of one block; 0 for a type that ggml does not have. Any thread. */
VKT_API uint32_t vkt_gguf_block_elements(vkt_gguf_type type);
/* Returns the size of one block in bytes; 0 for a type that ggml does not have. Any thread. */
VKT_API uint32_t vkt_gguf_block_bytes(vkt_gguf_type type);
/* Returns whether vkt_gguf_dequantize reads the type. Any thread. */
VKT_API bool vkt_gguf_can_read(vkt_gguf_type type);

/* Converts `n_blocks` blocks to float. `blocks` needs no alignment; `out` has n_blocks * vkt_gguf_block_elements(type)
 * elements. F32, F16 and BF16 are converted exactly. In the other types each element has an integer q, and its value is
 *     Q8_0: d q    Q4_0: d (q - 8)    Q4_1: d q + m    Q6_K: d s (q - 32)    Q4_K, Q5_K: d s q - m t
 * d and m are float16, one of each for a block. s and t are integers that 16 or 32 elements share. The products d q,
 * d s q and m t are exact in float32, so a result is the exact value, rounded once. VKT_E_UNSUPPORTED: a type that
 * vkt_gguf_can_read refuses. VKT_E_ARG: `blocks` or `out` is NULL. Any thread. */
VKT_API vkt_result vkt_gguf_dequantize(const vkt_host *host, vkt_gguf_type type, const void *blocks, size_t n_blocks,
                                       float *out);

/* ---- metadata and tensors ---- */

/* A text. In a text from a file, a NUL follows the last byte. */
typedef struct vkt_gguf_string {
    const char *text; /* UTF-8; the library does not check this */
    size_t bytes;     /* length, without the NUL at the end. The text itself may contain NULs */
} vkt_gguf_string;

/* The kind of a metadata value, or of an array's elements. The values of the enum are the codes of the kinds in GGUF
 * files. */
typedef enum vkt_gguf_kind {
    VKT_GGUF_KIND_U8 = 0,   /* uint8_t */
    VKT_GGUF_KIND_I8 = 1,   /* int8_t */
    VKT_GGUF_KIND_U16 = 2,  /* uint16_t */
    VKT_GGUF_KIND_I16 = 3,  /* int16_t */
    VKT_GGUF_KIND_U32 = 4,  /* uint32_t */
    VKT_GGUF_KIND_I32 = 5,  /* int32_t */
    VKT_GGUF_KIND_F32 = 6,  /* float */
    VKT_GGUF_KIND_BOOL = 7, /* bool */
    VKT_GGUF_KIND_TEXT = 8, /* vkt_gguf_string */
    VKT_GGUF_KIND_U64 = 10, /* uint64_t */
    VKT_GGUF_KIND_I64 = 11, /* int64_t */
    VKT_GGUF_KIND_F64 = 12  /* double */
} vkt_gguf_kind;

/* An entry of the metadata: a value or an array. Either it is from an open file, or vkt_gguf_write will write it. */
typedef struct vkt_gguf_meta {
    const char *key;    /* for instance "general.architecture" */
    vkt_gguf_kind kind; /* kind of the value, or of each element of the array */
    bool is_array;      /* false: one value */
    size_t count;       /* elements of the array; 1 for a value that is no array */
    const void *values; /* `count` elements of the C type that vkt_gguf_kind names, aligned for this type */
} vkt_gguf_meta;

/* The largest number of dimensions of a tensor. */
#define VKT_GGUF_MAX_RANK 4

/* A tensor. Either it is from an open file, or vkt_gguf_write will write it. */
typedef struct vkt_gguf_tensor {
    const char *name;                 /* for instance "blk.0.attn_q.weight" */
    vkt_gguf_type type;               /* type of the elements */
    uint32_t rank;                    /* 0 to VKT_GGUF_MAX_RANK */
    uint64_t dims[VKT_GGUF_MAX_RANK]; /* the fastest first: a matrix of 3 rows and 5 columns has { 5, 3 }. dims[0] is a
                                       * multiple of vkt_gguf_block_elements(type). In a tensor from a file, dims
                                       * beyond the rank are 1 */
    const void *data;                 /* `bytes` bytes, in the form of the file; NULL if `bytes` is 0 */
    uint64_t elements, bytes;         /* number of elements, and size in bytes, of the whole tensor. vkt_gguf_write
                                       * ignores both members, and computes them itself */
    uint64_t offset;                  /* offset of `data` in the file, in bytes. vkt_gguf_write ignores this member */
} vkt_gguf_tensor;

/* ---- reading ---- */

/* An open file. */
typedef struct vkt_gguf vkt_gguf;

/* vkt_gguf_open maps a file. As long as the file is open, no program may shorten or change it: the system ends a
 * process that reads missing bytes. (vkt_gguf_write replaces the file, which is harmless.) vkt_gguf_from_memory reads
 * `n_bytes` bytes at `bytes`, which must stay valid until vkt_gguf_destroy. Messages call this memory `name`. Both
 * functions return VKT_OK and set *out, which the caller owns, or return an error and set *out = NULL:
 *     VKT_E_NOT_FOUND, VKT_E_IO     the file cannot be read
 *     VKT_E_FORMAT                  truncated, damaged, or no GGUF file
 *     VKT_E_UNSUPPORTED             another version, big-endian, arrays of arrays, a type that ggml does not have
 *     VKT_E_NOMEM, VKT_E_ARG
 * Metadata are copied. They need up to four times their bytes in the file, in addition to the map. */
VKT_API vkt_result vkt_gguf_open(const vkt_host *host, const char *path, vkt_gguf **out);
VKT_API vkt_result vkt_gguf_from_memory(const vkt_host *host, const char *name, const void *bytes, size_t n_bytes,
                                        vkt_gguf **out);
VKT_API void vkt_gguf_destroy(vkt_gguf **g);

VKT_API uint32_t vkt_gguf_version(const vkt_gguf *g);   /* 2 or 3 */
VKT_API uint32_t vkt_gguf_alignment(const vkt_gguf *g); /* tensors begin at multiples of this many bytes */
VKT_API const char *vkt_gguf_path(const vkt_gguf *g);   /* the path, or the `name` that vkt_gguf_from_memory got */
/* A function with n_ in its name returns the number of entries. A function with _at returns entry i, in the order of
 * the file. A function with find_ returns the entry with this key or name. NULL: there is no such entry. Nothing is
 * logged. */
VKT_API size_t vkt_gguf_n_meta(const vkt_gguf *g);
VKT_API const vkt_gguf_meta *vkt_gguf_meta_at(const vkt_gguf *g, size_t i);
VKT_API const vkt_gguf_meta *vkt_gguf_find_meta(const vkt_gguf *g, const char *key);
VKT_API size_t vkt_gguf_n_tensors(const vkt_gguf *g);
VKT_API const vkt_gguf_tensor *vkt_gguf_tensor_at(const vkt_gguf *g, size_t i);
VKT_API const vkt_gguf_tensor *vkt_gguf_find_tensor(const vkt_gguf *g, const char *name);

/* The index `at` for a value that is no array. */
#define VKT_GGUF_ONE SIZE_MAX

/* Get the value of a key. `at` is the index in an array, or VKT_GGUF_ONE. A conversion never changes a value. Each
 * function reads these kinds of values:
 *     u64, i64    integers of all kinds, if uint64_t or int64_t can hold the number
 *     f64         F32, F64, and integers up to 2^53 in magnitude
 *     bool        BOOL
 *     text        TEXT
 * VKT_E_NOT_FOUND: there is no such key or index. VKT_E_FORMAT: a value of another kind, an array instead of a value, a
 * value instead of an array, or a number out of range. After an error *out is unchanged, and a message is logged. If a
 * key may be absent, call vkt_gguf_find_meta before. */
VKT_API vkt_result vkt_gguf_get_u64(const vkt_gguf *g, const char *key, size_t at, uint64_t *out);
VKT_API vkt_result vkt_gguf_get_i64(const vkt_gguf *g, const char *key, size_t at, int64_t *out);
VKT_API vkt_result vkt_gguf_get_f64(const vkt_gguf *g, const char *key, size_t at, double *out);
VKT_API vkt_result vkt_gguf_get_bool(const vkt_gguf *g, const char *key, size_t at, bool *out);
VKT_API vkt_result vkt_gguf_get_text(const vkt_gguf *g, const char *key, size_t at, vkt_gguf_string *out);

/* Reads `count` elements of a tensor as float, from element `first` on, in the order of the file: the first dimension
 * is the fastest. `first` and `count` are multiples of vkt_gguf_block_elements. VKT_E_NOT_FOUND: there is no such
 * tensor. VKT_E_UNSUPPORTED: a type that vkt_gguf_can_read refuses; the message names tensor and type. VKT_E_SHAPE:
 * elements that do not exist, or parts of blocks. */
VKT_API vkt_result vkt_gguf_read_f32(const vkt_gguf *g, const char *name, uint64_t first, uint64_t count, float *out);

/* ---- writing ---- */

/* Writes a file of version 3. As in vkt_write_file, an old file is replaced when the new file is complete. The same
 * arguments give the same bytes. Tensors begin at multiples of 32 bytes. If the metadata have "general.alignment" (a
 * U32, a power of two from 8 to 65536), tensors begin at multiples of this number instead. Everything is read during
 * the call only. Metadata and tensors of an open vkt_gguf may be passed. But Windows does not replace an open file:
 * there, `path` must not be the file of this vkt_gguf. VKT_E_ARG: a NULL; a key or name that is empty or given twice; a
 * key longer than 65535 bytes; the name of a tensor longer than 63 bytes (ggml's limit); a kind or type that does not
 * exist; a bad alignment; a rank above VKT_GGUF_MAX_RANK; a dims[0] that is no multiple of vkt_gguf_block_elements; a
 * file of 2^63 bytes or more. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_gguf_write(const vkt_host *host, const char *path, const vkt_gguf_meta *meta, size_t n_meta,
                                  const vkt_gguf_tensor *tensors, size_t n_tensors);

#ifdef __cplusplus
}
#endif
#endif
