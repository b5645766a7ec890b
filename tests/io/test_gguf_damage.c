/* Tests damaged GGUF files. A malformed file is refused with the reason. A truncated or randomly damaged file gives an
 * error status or sound entries. gguf_open_copy puts the bytes of a file in a memory block of their own, so that a
 * sanitizer finds a read just behind the end of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/philox.h"
#include "io/gguf_bytes.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "vktrain/gguf_model.h"

/* ---- malformed files ---- */

/* Opens the bytes, and checks the status and the message. */
static void refused(const gguf_bytes *b, vkt_result want, const char *reason)
{
    const vkt_host h = vkt_test_host();
    vkt_gguf *g;
    uint8_t *copy;
    assert_int_equal(gguf_open_copy(&h, b->bytes, b->n, &copy, &g), want);
    assert_null(g);
    vkt_test_error_contains("\"copy\"");
    vkt_test_error_contains(reason);
    free(copy);
}

static void other_files_and_versions_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    gguf_bytes b = { .n = 0 };
    vkt_gguf *g;
    uint8_t *copy;
    vkt_test_expect_errors(true);
    gguf_put(&b, "ggml0123456789", 14);
    refused(&b, VKT_E_FORMAT, "a file of another kind");
    gguf_put_start(&b, 1, 0, 0);
    refused(&b, VKT_E_UNSUPPORTED, "version 1: want 2 or 3");
    gguf_put_start(&b, 4, 0, 0);
    refused(&b, VKT_E_UNSUPPORTED, "version 4: want 2 or 3");
    gguf_put_start(&b, 3u << 24, 0, 0);
    refused(&b, VKT_E_UNSUPPORTED, "(big-endian)");
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_put_start(&b, version, 1, 1);
        gguf_put_meta_u32(&b, "a", 7);
        gguf_put_tensor(&b, "t", VKT_GGUF_F32, 8, 0, 0);
        gguf_put_data(&b, 32);
        assert_int_equal(gguf_open_copy(&h, b.bytes, b.n, &copy, &g), VKT_OK);
        assert_int_equal(vkt_gguf_version(g), version);
        assert_int_equal(vkt_gguf_find_tensor(g, "t")->elements, 8);
        vkt_gguf_destroy(&g);
        free(copy);
    }
}

static void malformed_metadata_are_refused(void **state)
{
    (void)state;
    gguf_bytes b;
    vkt_test_expect_errors(true);
    gguf_put_start(&b, 3, 0, UINT64_MAX);
    refused(&b, VKT_E_FORMAT, "truncated");
    gguf_put_start(&b, 3, 0, 2);
    gguf_put_meta_u32(&b, "a", 1);
    gguf_put_meta_u32(&b, "a", 2);
    refused(&b, VKT_E_FORMAT, "a duplicate of the key \"a\"");
    gguf_put_start(&b, 3, 0, 1);
    gguf_put_meta_u32(&b, "", 1);
    refused(&b, VKT_E_FORMAT, "a key of 0 bytes");
    gguf_put_start(&b, 3, 0, 1);
    gguf_put_u64(&b, 3);
    gguf_put(&b, "a\0b\4\0\0\0\1\0\0\0", 11);
    refused(&b, VKT_E_FORMAT, "with a NUL in it");
    gguf_put_start(&b, 3, 0, 1);
    gguf_put_text(&b, "k");
    gguf_put_u32(&b, 13);
    gguf_put_u64(&b, 0);
    refused(&b, VKT_E_FORMAT, "metadata \"k\" has kind 13");
    gguf_put_start(&b, 3, 0, 1);
    gguf_put_text(&b, "k");
    gguf_put_u32(&b, VKT_GGUF_KIND_BOOL);
    gguf_put(&b, "\2\0\0\0\0\0", 6);
    refused(&b, VKT_E_FORMAT, "metadata \"k\" has a bool of 2");
    gguf_put_start(&b, 3, 0, 1);
    gguf_put_text(&b, "k");
    gguf_put_u32(&b, 9); /* array */
    gguf_put_u32(&b, 9);
    gguf_put_u64(&b, 1);
    refused(&b, VKT_E_UNSUPPORTED, "metadata \"k\" is an array of arrays");
    static const uint32_t kinds[] = { VKT_GGUF_KIND_U8, VKT_GGUF_KIND_U64, VKT_GGUF_KIND_TEXT };
    static const uint64_t counts[] = { 17, UINT64_MAX, 1ull << 61, (1ull << 61) + 1 };
    for (size_t i = 0; i < VKT_COUNT(kinds); i++) {
        for (size_t k = 0; k < VKT_COUNT(counts); k++) {
            gguf_put_start(&b, 3, 0, 1);
            gguf_put_text(&b, "k");
            gguf_put_u32(&b, 9);
            gguf_put_u32(&b, kinds[i]);
            gguf_put_u64(&b, counts[k]);
            gguf_put(&b, "0123456789abcdef", 16);
            refused(&b, VKT_E_FORMAT, "truncated");
        }
    }
    static const uint32_t alignments[] = { 0, 3, 33, UINT32_MAX };
    for (size_t i = 0; i < VKT_COUNT(alignments); i++) {
        gguf_put_start(&b, 3, 0, 1);
        gguf_put_meta_u32(&b, "general.alignment", alignments[i]);
        refused(&b, VKT_E_FORMAT, "want a power of two");
    }
}

/* One of the two tensors in the file that put_two makes. If `rows` is 0, the tensor is a vector. */
typedef struct two {
    const char *name;
    uint32_t type;
    uint64_t columns, rows, offset;
} two;

static void put_two(gguf_bytes *b, two t, two u)
{
    gguf_put_start(b, 3, 2, 1);
    gguf_put_meta_u32(b, "k", 1);
    gguf_put_tensor(b, t.name, t.type, t.columns, t.rows, t.offset);
    gguf_put_tensor(b, u.name, u.type, u.columns, u.rows, u.offset);
    gguf_put_data(b, 96);
}

static void malformed_tensors_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    static const two good = { "t", VKT_GGUF_F32, 8, 0, 32 };
    static const struct {
        two u;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { { "t", VKT_GGUF_F32, 8, 0, 0 }, VKT_E_FORMAT, "a duplicate of the tensor \"t\"" },
        { { "u", VKT_GGUF_F32, 8, 0, 16 }, VKT_E_FORMAT, "begins at data byte 16, which is no multiple of 32" },
        { { "u", VKT_GGUF_F32, 9, 0, 0 }, VKT_E_FORMAT, "tensors \"u\" and \"t\" overlap" },
        { { "u", VKT_GGUF_F32, 8, 0, 32 }, VKT_E_FORMAT, "overlap" },
        { { "u", VKT_GGUF_F32, 9, 0, 64 }, VKT_E_FORMAT, "has 36 bytes from data byte 64 on, but there are only 96" },
        { { "u", VKT_GGUF_F32, 8, 0, 96 }, VKT_E_FORMAT, "truncated" },
        { { "u", VKT_GGUF_F32, 8, 0, UINT64_MAX - 31 }, VKT_E_FORMAT, "truncated" },
        { { "u", VKT_GGUF_F32, 1u << 30, 1ull << 32, 0 }, VKT_E_FORMAT, "2^63 bytes or more" },
        { { "u", VKT_GGUF_F32, 1ull << 32, 1ull << 32, 0 }, VKT_E_FORMAT, "more than 2^64 elements" },
        { { "u", VKT_GGUF_Q4_0, 33, 0, 0 }, VKT_E_FORMAT, "tensor \"u\" (Q4_0) has a first dimension that is no" },
        { { "u", VKT_GGUF_Q6_K, 32, 8, 0 }, VKT_E_FORMAT, "tensor \"u\" (Q6_K) has a first dimension that is no" },
        { { "u", 4, 32, 0, 0 }, VKT_E_UNSUPPORTED, "tensor \"u\" has type number 4, which is not known" },
        { { "u", UINT32_MAX, 32, 0, 0 }, VKT_E_UNSUPPORTED, "tensor \"u\" has type number 4294967295" },
    };
    gguf_bytes b;
    vkt_gguf *g;
    uint8_t *copy;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        put_two(&b, good, bad[i].u);
        refused(&b, bad[i].status, bad[i].reason);
    }
    put_two(&b, good, (two){ "u", VKT_GGUF_F32, 8, 0, 0 });
    assert_int_equal(gguf_open_copy(&h, b.bytes, b.n, &copy, &g), VKT_OK);
    vkt_gguf_destroy(&g);
    free(copy);
    put_two(&b, good, (two){ "u", VKT_GGUF_Q4_0, 0, 5, 32 }); /* no overlap: "u" has no bytes */
    assert_int_equal(gguf_open_copy(&h, b.bytes, b.n, &copy, &g), VKT_OK);
    assert_null(vkt_gguf_find_tensor(g, "u")->data);
    vkt_gguf_destroy(&g);
    free(copy);
    gguf_put_start(&b, 3, 1, 0);
    gguf_put_text(&b, "t");
    gguf_put_u32(&b, 5);
    for (int i = 0; i < 8; i++) gguf_put_u64(&b, 1);
    refused(&b, VKT_E_FORMAT, "tensor \"t\" has 5 dimensions");
    gguf_put_start(&b, 3, UINT64_MAX, 0);
    refused(&b, VKT_E_FORMAT, "truncated");
}

static void a_file_that_cannot_be_mapped_is_an_error(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *empty = vkt_temp_dir_file(&dir, "empty");
    vkt_gguf *g;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_gguf_open(&h, vkt_temp_dir_file(&dir, "none"), &g), VKT_E_NOT_FOUND);
    assert_null(g);
    assert_int_equal(vkt_gguf_open(&h, dir.path, &g), VKT_E_IO);
    assert_int_equal(vkt_file_write(&h, empty, "", 0), VKT_OK);
    assert_int_equal(vkt_gguf_open(&h, empty, &g), VKT_E_FORMAT);
    vkt_test_error_contains("it ends after 0 bytes");
    assert_int_equal(vkt_gguf_open(&h, NULL, &g), VKT_E_ARG);
    assert_int_equal(vkt_gguf_open(&h, empty, NULL), VKT_E_ARG);
    assert_int_equal(vkt_gguf_from_memory(&h, NULL, "x", 1, &g), VKT_E_ARG);
    assert_int_equal(vkt_gguf_from_memory(&h, "x", NULL, 1, &g), VKT_E_ARG);
    assert_null(g);
    vkt_temp_dir_remove(&dir);
}

/* ---- truncations and damage ---- */

/* Reads everything of an open file. Each entry must be sound. `n` is the size of the file in bytes. */
static void read_everything(const vkt_gguf *g, size_t n)
{
    for (size_t i = 0; i < vkt_gguf_n_meta(g); i++) {
        const vkt_gguf_meta *m = vkt_gguf_meta_at(g, i);
        assert_true(m->count <= n && vkt_gguf_find_meta(g, m->key) == m);
        const vkt_gguf_string *s = m->values;
        for (size_t k = 0; m->kind == VKT_GGUF_KIND_TEXT && k < m->count; k++)
            assert_true(s[k].bytes <= n && s[k].text[s[k].bytes] == 0);
    }
    for (size_t i = 0; i < vkt_gguf_n_tensors(g); i++) {
        const vkt_gguf_tensor *t = vkt_gguf_tensor_at(g, i);
        assert_true(vkt_gguf_find_tensor(g, t->name) == t);
        assert_true(t->bytes == 0 || (t->offset <= n && t->bytes <= n - t->offset));
        if (!vkt_gguf_can_read(t->type) || t->elements == 0) continue;
        float *values = malloc((size_t)t->elements * sizeof *values);
        assert_int_equal(vkt_gguf_read_f32(g, t->name, 0, t->elements, values), VKT_OK);
        free(values);
    }
    vkt_gguf_model m;
    const vkt_result r = vkt_gguf_read_model(g, &m);
    assert_true(r == VKT_OK || r == VKT_E_FORMAT || r == VKT_E_UNSUPPORTED || r == VKT_E_NOT_FOUND || r == VKT_E_SHAPE);
    if (r == VKT_OK) assert_true(m.heads % m.kv_heads == 0 && m.rope_width <= m.head_width && m.rms_epsilon > 0);
}

static vkt_result open_and_read(const uint8_t *bytes, size_t n)
{
    const vkt_host h = vkt_test_host();
    vkt_gguf *g;
    uint8_t *copy;
    const vkt_result r = gguf_open_copy(&h, bytes, n, &copy, &g);
    assert_true((r == VKT_OK) == (g != NULL));
    if (g) read_everything(g, n);
    vkt_gguf_destroy(&g);
    free(copy);
    assert_int_equal(vkt_test_live_blocks(), 0);
    return r;
}

static const char *const files[] = { VKT_TEST_DIR "/golden/gguf/types.gguf", VKT_TEST_DIR "/golden/gguf/llama.gguf",
                                     VKT_TEST_DIR "/golden/gguf/qwen2.gguf" };

/* Reads a file. The caller frees the bytes with free(). */
static uint8_t *load(const char *path, size_t *n)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, n), VKT_OK);
    uint8_t *copy = malloc(*n);
    memcpy(copy, bytes, *n);
    vkt_free(&h, bytes);
    return copy;
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t f = 0; f < VKT_COUNT(files); f++) {
        size_t n, data;
        uint8_t *bytes = load(files[f], &n);
        const vkt_host h = vkt_test_host();
        vkt_gguf *g;
        assert_int_equal(vkt_gguf_from_memory(&h, "whole", bytes, n, &g), VKT_OK);
        uint64_t end = 0; /* end of the last tensor; only padding follows */
        for (size_t i = 0; i < vkt_gguf_n_tensors(g); i++) {
            const vkt_gguf_tensor *t = vkt_gguf_tensor_at(g, i);
            end = VKT_MAX(end, t->offset + t->bytes);
        }
        data = (size_t)vkt_gguf_tensor_at(g, 0)->offset;
        vkt_gguf_destroy(&g);
        for (size_t i = 0; i<n; i += i> data && f > 0 ? 97 : 1)
            assert_int_equal(open_and_read(bytes, i), i < end ? VKT_E_FORMAT : VKT_OK);
        free(bytes);
    }
}

/* Makes one to four random changes in a copy of a file. A change flips a bit, or replaces one byte or eight bytes. In
 * seven of eight copies, only the first 1,500 bytes are changed, where the header is. */
static void random_damage_gives_a_status_or_sound_entries(void **state)
{
    (void)state;
    enum { TRIES = 6000 };
    unsigned opened = 0;
    vkt_test_expect_errors(true);
    for (size_t f = 0; f < VKT_COUNT(files); f++) {
        size_t n;
        uint8_t *bytes = load(files[f], &n), *damaged = malloc(n);
        vkt_rng r = vkt_rng_make((uint32_t)f, VKT_STREAM_TEST, 0, 0);
        for (int i = 0; i < TRIES / (int)VKT_COUNT(files); i++) {
            memcpy(damaged, bytes, n);
            const uint32_t last = (uint32_t)(i % 8 ? VKT_MIN(n, 1500) : n) - 9;
            for (uint32_t k = vkt_rng_range(&r, 1, 4); k > 0; k--) {
                const uint32_t at = vkt_rng_range(&r, 0, last), kind = vkt_rng_range(&r, 0, 3);
                const uint64_t word = kind == 2 ? UINT64_MAX >> vkt_rng_range(&r, 0, 63) : vkt_rng_u32(&r) % 100;
                if (kind == 0)
                    damaged[at] = (uint8_t)vkt_rng_u32(&r);
                else if (kind == 1)
                    damaged[at] ^= (uint8_t)(1u << vkt_rng_range(&r, 0, 7));
                else
                    memcpy(damaged + at, &word, sizeof word);
            }
            opened += open_and_read(damaged, n) == VKT_OK;
        }
        free(bytes);
        free(damaged);
    }
    assert_true(opened > TRIES / 50 && opened < TRIES - TRIES / 50); /* both outcomes are tested */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(other_files_and_versions_are_refused), TEST(malformed_metadata_are_refused),
        TEST(malformed_tensors_are_refused),        TEST(a_file_that_cannot_be_mapped_is_an_error),
        TEST(every_truncation_is_refused),          TEST(random_damage_gives_a_status_or_sound_entries),
    };
    return cmocka_run_group_tests_name("gguf_damage", tests, NULL, NULL);
}
