/* io/gguf_bytes.h - makes GGUF files byte by byte, also malformed files. */
#ifndef VKT_TEST_GGUF_BYTES_H
#define VKT_TEST_GGUF_BYTES_H

#include "base/base.h"
#include "vktrain/gguf.h"

typedef struct gguf_bytes {
    uint8_t bytes[4096];
    size_t n;
} gguf_bytes;

void gguf_put(gguf_bytes *b, const void *bytes, size_t n);
void gguf_put_u32(gguf_bytes *b, uint32_t x);
void gguf_put_u64(gguf_bytes *b, uint64_t x);
void gguf_put_text(gguf_bytes *b, const char *text);
/* Starts a new file: removes all bytes, and puts magic, version, n_tensors and n_meta. */
void gguf_put_start(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_meta);
/* Puts an entry of metadata with a U32. */
void gguf_put_meta_u32(gguf_bytes *b, const char *key, uint32_t x);
/* Puts the header's entry of a tensor: a matrix, or a vector if `rows` is 0. */
void gguf_put_tensor(gguf_bytes *b, const char *name, uint32_t type, uint64_t columns, uint64_t rows, uint64_t offset);
/* Puts zeros up to a multiple of 32, and then n more. */
void gguf_put_data(gguf_bytes *b, size_t n);
/* Opens a copy of the bytes. The copy is a memory block of exactly n bytes, so that a sanitizer finds a read just
 * behind the copy. (If n is 0, the memory block has 1 byte.) Returns the status; *g is NULL after an error. The caller
 * frees *copy with free(), after vkt_gguf_destroy. */
vkt_result gguf_open_copy(const vkt_host *h, const uint8_t *bytes, size_t n, uint8_t **copy, vkt_gguf **g);

#endif
