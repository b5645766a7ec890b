/* io/gguf.h - what the files of io/ share about GGUF. The format and the public functions are in vktrain/gguf.h. */
#ifndef VKT_IO_GGUF_H
#define VKT_IO_GGUF_H

#include "base/base.h"
#include "vktrain/gguf.h"

/* The kinds of metadata values: X(name, number that stands for the kind in a file, type in memory). */
#define VKT_GGUF_KINDS(X)       \
    X(U8, 0, uint8_t)           \
    X(I8, 1, int8_t)            \
    X(U16, 2, uint16_t)         \
    X(I16, 3, int16_t)          \
    X(U32, 4, uint32_t)         \
    X(I32, 5, int32_t)          \
    X(F32, 6, float)            \
    X(BOOL, 7, bool)            \
    X(TEXT, 8, vkt_gguf_string) \
    X(U64, 10, uint64_t)        \
    X(I64, 11, int64_t)         \
    X(F64, 12, double)

/* Constants of the format. */
enum {
    VKT_GGUF_MAGIC = 0x46554747, /* "GGUF" */
    VKT_GGUF_VERSION = 3,
    VKT_GGUF_ARRAY = 9, /* the kind of an array; the kind of its elements follows */
    VKT_GGUF_MAX_KEY = 65535,
    VKT_GGUF_MAX_NAME = 63, /* the largest length of a tensor's name that ggml reads, in bytes */
    VKT_GGUF_ALIGNMENT = 32 /* the alignment if the file does not give one */
};

struct vkt_gguf {
    vkt_host host;
    char *path;
    const uint8_t *bytes; /* the whole file */
    uint64_t size;
    const void *map; /* from vkt_file_map; NULL: the caller owns `bytes` */
    uint32_t version, alignment;
    vkt_gguf_meta *meta; /* (n_meta), in the order of the file. An element owns one memory block with values and key */
    size_t n_meta;
    vkt_gguf_tensor *tensors; /* (n_tensors), in the order of the file. Each element owns its name */
    size_t n_tensors;
    const vkt_gguf_meta **meta_at;     /* sorted by key */
    const vkt_gguf_tensor **tensor_at; /* sorted by name */
};

/* Returns the name of a kind, for instance "U32"; "?" for a number that is no kind. */
const char *vkt_gguf_kind_name(vkt_gguf_kind kind);
/* Returns the size of a value in memory, in bytes; 0 for a number that is no kind. A value has the same size in the
 * file, unless it is a text. */
size_t vkt_gguf_kind_bytes(vkt_gguf_kind kind);
/* Computes t->elements and t->bytes from type, rank and dims. Sets dims[rank] .. dims[3] to 1. Returns what is wrong
 * with type, rank or dims; NULL: nothing is wrong. */
const char *vkt_gguf_measure(vkt_gguf_tensor *t);

/* Provides the bytes of tensor i while a file is written. The bytes must stay valid until the next call, or until
 * vkt_gguf_write_with returns. */
typedef vkt_result (*vkt_gguf_fill)(void *user, size_t i, const void **data);
/* Does what vkt_gguf_write does, but does not check `path`, `meta` and `tensors` for NULL. If the data of a tensor are
 * NULL, `fill` provides them. `fill` is called for one tensor after the other. If `fill` fails, no file is written, and
 * the result of `fill` is returned. */
vkt_result vkt_gguf_write_with(const vkt_host *h, const char *path, const vkt_gguf_meta *meta, size_t n_meta,
                               const vkt_gguf_tensor *tensors, size_t n_tensors, vkt_gguf_fill fill, void *user);

#endif
