/* io/gguf_bytes.c - see gguf_bytes.h. */
#include "io/gguf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

void gguf_put(gguf_bytes *b, const void *bytes, size_t n)
{
    assert_true(n <= sizeof b->bytes - b->n);
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

void gguf_put_u32(gguf_bytes *b, uint32_t x)
{
    gguf_put(b, &x, sizeof x);
}

void gguf_put_u64(gguf_bytes *b, uint64_t x)
{
    gguf_put(b, &x, sizeof x);
}

void gguf_put_text(gguf_bytes *b, const char *text)
{
    gguf_put_u64(b, strlen(text));
    gguf_put(b, text, strlen(text));
}

void gguf_put_start(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_meta)
{
    b->n = 0;
    gguf_put(b, "GGUF", 4);
    gguf_put_u32(b, version);
    gguf_put_u64(b, n_tensors);
    gguf_put_u64(b, n_meta);
}

void gguf_put_meta_u32(gguf_bytes *b, const char *key, uint32_t x)
{
    gguf_put_text(b, key);
    gguf_put_u32(b, VKT_GGUF_KIND_U32);
    gguf_put_u32(b, x);
}

void gguf_put_tensor(gguf_bytes *b, const char *name, uint32_t type, uint64_t columns, uint64_t rows, uint64_t offset)
{
    gguf_put_text(b, name);
    gguf_put_u32(b, rows ? 2 : 1);
    gguf_put_u64(b, columns);
    if (rows) gguf_put_u64(b, rows);
    gguf_put_u32(b, type);
    gguf_put_u64(b, offset);
}

void gguf_put_data(gguf_bytes *b, size_t n)
{
    static const uint8_t zeros[4096];
    gguf_put(b, zeros, (32 - b->n % 32) % 32 + n);
}

vkt_result gguf_open_copy(const vkt_host *h, const uint8_t *bytes, size_t n, uint8_t **copy, vkt_gguf **g)
{
    *copy = malloc(n ? n : 1);
    assert_non_null(*copy);
    if (n > 0) memcpy(*copy, bytes, n);
    return vkt_gguf_from_memory(h, "copy", *copy, n, g);
}
