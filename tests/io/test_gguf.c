/* Tests GGUF files. From a file that the Python package gguf has written, the library reads the values that the package
 * was given. Files that the library writes are read back without a change. Wrong arguments and failed allocations cause
 * an error, and no crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/gguf_blocks.h"
#include "base/philox.h"
#include "io/gguf.h"
#include "io/gguf_bytes.h"
#include "support/host.h"
#include "support/temp_dir.h"

#define GOLDEN(name) VKT_TEST_DIR "/golden/gguf/" name

/* ---- files of the Python package ---- */

static vkt_gguf *open_golden(const char *path)
{
    const vkt_host h = vkt_test_host();
    vkt_gguf *g;
    assert_int_equal(vkt_gguf_open(&h, path, &g), VKT_OK);
    assert_string_equal(vkt_gguf_path(g), path);
    return g;
}

static void integers_of_each_kind_are_read(void **state)
{
    (void)state;
    vkt_gguf *g = open_golden(GOLDEN("types.gguf"));
    static const struct {
        const char *key;
        uint64_t u;
        int64_t i;
        bool is_u, is_i, is_f;
    } want[] = { { "kind.u8", 255, 255, true, true, true },
                 { "kind.i8", 0, -128, false, true, true },
                 { "kind.u16", 65535, 65535, true, true, true },
                 { "kind.i16", 0, -32768, false, true, true },
                 { "kind.u32", UINT32_MAX, UINT32_MAX, true, true, true },
                 { "kind.i32", 0, INT32_MIN, false, true, true },
                 { "kind.u64", UINT64_MAX, 0, true, false, false },
                 { "kind.i64", 0, INT64_MIN, false, true, false },
                 { "kind.f32", 0, 0, false, false, true },
                 { "kind.bool", 0, 0, false, false, false },
                 { "kind.text", 0, 0, false, false, false } };
    vkt_test_expect_errors(true);
    for (size_t k = 0; k < VKT_COUNT(want); k++) {
        uint64_t u = 99;
        int64_t i = 99;
        double f = 99;
        assert_int_equal(vkt_gguf_get_u64(g, want[k].key, VKT_GGUF_ONE, &u), want[k].is_u ? VKT_OK : VKT_E_FORMAT);
        assert_int_equal(vkt_gguf_get_i64(g, want[k].key, VKT_GGUF_ONE, &i), want[k].is_i ? VKT_OK : VKT_E_FORMAT);
        assert_int_equal(vkt_gguf_get_f64(g, want[k].key, VKT_GGUF_ONE, &f), want[k].is_f ? VKT_OK : VKT_E_FORMAT);
        assert_true(u == (want[k].is_u ? want[k].u : 99));
        assert_true(i == (want[k].is_i ? want[k].i : 99));
        if (want[k].is_i && want[k].is_f) assert_true(f == (double)want[k].i);
        if (!want[k].is_f) assert_true(f == 99);
    }
    vkt_gguf_destroy(&g);
    assert_null(g);
}

static void other_values_and_arrays_are_read(void **state)
{
    (void)state;
    vkt_gguf *g = open_golden(GOLDEN("types.gguf"));
    double f;
    bool is;
    int64_t i;
    vkt_gguf_string s;
    assert_int_equal(vkt_gguf_version(g), 3);
    assert_int_equal(vkt_gguf_alignment(g), 64);
    assert_int_equal(vkt_gguf_get_f64(g, "kind.f32", VKT_GGUF_ONE, &f), VKT_OK);
    assert_true(f == (double)0.1f);
    assert_int_equal(vkt_gguf_get_f64(g, "kind.f64", VKT_GGUF_ONE, &f), VKT_OK);
    assert_true(f == 0.1);
    assert_int_equal(vkt_gguf_get_bool(g, "kind.bool", VKT_GGUF_ONE, &is), VKT_OK);
    assert_true(is);
    assert_int_equal(vkt_gguf_get_text(g, "kind.text", VKT_GGUF_ONE, &s), VKT_OK);
    assert_string_equal(s.text, "t\xc3\xa4glich\n");
    assert_int_equal(s.bytes, 9);
    static const int64_t integers[] = { 1, -2, 3 };
    static const char *const texts[] = { "a", "", "\xc4\xa0the", "\xc3\xa9" };
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(vkt_gguf_get_i64(g, "array.i32", k, &i), VKT_OK);
        assert_true(i == integers[k]);
        assert_int_equal(vkt_gguf_get_bool(g, "array.bool", k, &is), VKT_OK);
        assert_true(is == (k != 1));
    }
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(vkt_gguf_get_text(g, "array.text", k, &s), VKT_OK);
        assert_string_equal(s.text, texts[k]);
        assert_int_equal(s.bytes, strlen(texts[k]));
    }
    assert_int_equal(vkt_gguf_get_f64(g, "array.f32", 1, &f), VKT_OK);
    assert_true(f == -0.25);
    const vkt_gguf_meta *m = vkt_gguf_find_meta(g, "array.f32");
    assert_true(m && m->is_array && m->kind == VKT_GGUF_KIND_F32 && m->count == 2);
    assert_true(((const float *)m->values)[0] == 0.5f);
    vkt_gguf_destroy(&g);
}

static void wrong_questions_are_answered_with_errors(void **state)
{
    (void)state;
    vkt_gguf *g = open_golden(GOLDEN("types.gguf"));
    uint64_t u;
    bool is;
    vkt_gguf_string s;
    float x[32];
    vkt_test_expect_errors(true);
    assert_null(vkt_gguf_find_meta(g, "kind"));
    assert_null(vkt_gguf_meta_at(g, vkt_gguf_n_meta(g)));
    assert_null(vkt_gguf_find_tensor(g, "absent"));
    assert_null(vkt_gguf_tensor_at(g, vkt_gguf_n_tensors(g)));
    assert_int_equal(vkt_gguf_get_u64(g, "absent", VKT_GGUF_ONE, &u), VKT_E_NOT_FOUND);
    vkt_test_error_contains("no metadata \"absent\"");
    assert_int_equal(vkt_gguf_get_u64(g, "kind.u8", 0, &u), VKT_E_FORMAT);
    vkt_test_error_contains("want an array, got one value");
    assert_int_equal(vkt_gguf_get_u64(g, "array.i32", VKT_GGUF_ONE, &u), VKT_E_FORMAT);
    vkt_test_error_contains("want one value, got an array");
    assert_int_equal(vkt_gguf_get_u64(g, "array.i32", 1, &u), VKT_E_FORMAT);
    vkt_test_error_contains("want an integer >= 0, got -2");
    assert_int_equal(vkt_gguf_get_u64(g, "array.i32", 3, &u), VKT_E_NOT_FOUND);
    vkt_test_error_contains("has 3 elements");
    assert_int_equal(vkt_gguf_get_bool(g, "kind.u8", VKT_GGUF_ONE, &is), VKT_E_FORMAT);
    assert_int_equal(vkt_gguf_get_text(g, "kind.bool", VKT_GGUF_ONE, &s), VKT_E_FORMAT);
    vkt_test_error_contains("want a text, got a value of kind BOOL");
    assert_int_equal(vkt_gguf_read_f32(g, "absent", 0, 1, x), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_gguf_read_f32(g, "Q5_0", 0, 32, x), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("tensor \"Q5_0\" has type Q5_0, which is not read");
    assert_int_equal(vkt_gguf_read_f32(g, "I32", 0, 2, x), VKT_E_UNSUPPORTED);
    assert_int_equal(vkt_gguf_read_f32(g, "Q4_0", 16, 32, x), VKT_E_SHAPE);
    assert_int_equal(vkt_gguf_read_f32(g, "Q4_0", 0, 31, x), VKT_E_SHAPE);
    assert_int_equal(vkt_gguf_read_f32(g, "Q4_0", 192, 32, x), VKT_E_SHAPE);
    assert_int_equal(vkt_gguf_read_f32(g, "Q4_0", 0, UINT64_MAX - 31, x), VKT_E_SHAPE);
    assert_int_equal(vkt_gguf_read_f32(g, "Q4_0", 192, 0, x), VKT_OK);
    vkt_gguf_destroy(&g);
}

static void tensors_have_names_dimensions_and_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[4], bytes;
    } want[] = { { "F32", 2, { 5, 3, 1, 1 }, 60 },     { "F16", 3, { 7, 3, 2, 1 }, 84 },
                 { "BF16", 4, { 5, 3, 1, 2 }, 60 },    { "Q4_0", 2, { 64, 3, 1, 1 }, 108 },
                 { "Q6_K", 2, { 512, 2, 1, 1 }, 840 }, { "one", 1, { 1, 1, 1, 1 }, 4 } };
    vkt_gguf *g = open_golden(GOLDEN("types.gguf"));
    assert_int_equal(vkt_gguf_n_tensors(g), 12);
    for (size_t k = 0; k < VKT_COUNT(want); k++) {
        const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, want[k].name);
        assert_non_null(t);
        assert_string_equal(t->name, want[k].name);
        assert_int_equal(t->rank, want[k].rank);
        assert_memory_equal(t->dims, want[k].dims, sizeof t->dims);
        assert_int_equal(t->bytes, want[k].bytes);
        assert_int_equal(t->offset % 64, 0);
    }
    const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, "I32");
    assert_memory_equal(t->data, ((const int32_t[]){ 7, 8 }), 8);
    vkt_gguf_destroy(&g);
}

/* ---- files of the library ---- */

static uint64_t random_bits(vkt_rng *r)
{
    return (uint64_t)vkt_rng_u32(r) << 32 | vkt_rng_u32(r);
}

enum { MAX_META = 12, MAX_TENSORS = 8, ROOM = 1 << 16 };

/* Random metadata and tensors, and the memory of their values. */
typedef struct content {
    vkt_gguf_meta meta[MAX_META];
    vkt_gguf_tensor tensors[MAX_TENSORS];
    char keys[MAX_META][32], names[MAX_TENSORS][32], text[64];
    vkt_gguf_string strings[MAX_META][8];
    uint64_t numbers[MAX_META][8], data[ROOM / 8];
    uint32_t alignment;
    size_t n_meta, n_tensors;
} content;

static void make_meta(content *c, vkt_rng *r, size_t i)
{
    static const vkt_gguf_kind kinds[] = {
#define KIND(name, number, type) VKT_GGUF_KIND_##name,
        VKT_GGUF_KINDS(KIND)
#undef KIND
    };
    vkt_gguf_meta *m = &c->meta[i];
    snprintf(c->keys[i], sizeof c->keys[i], "key.%zu", i);
    *m = (vkt_gguf_meta){ .key = c->keys[i], .kind = kinds[vkt_rng_range(r, 0, VKT_COUNT(kinds) - 1)] };
    m->is_array = vkt_rng_range(r, 0, 1);
    m->count = m->is_array ? vkt_rng_range(r, 0, 8) : 1;
    m->values = m->kind == VKT_GGUF_KIND_TEXT ? (const void *)c->strings[i] : (const void *)c->numbers[i];
    for (size_t k = 0; k < 8; k++) {
        c->strings[i][k] = (vkt_gguf_string){ c->text, vkt_rng_range(r, 0, sizeof c->text) };
        c->numbers[i][k] = random_bits(r);
        if (m->kind == VKT_GGUF_KIND_BOOL) c->numbers[i][k] &= 0x0101010101010101u;
    }
}

static void make_tensor(content *c, vkt_rng *r, size_t i)
{
    static const vkt_gguf_type types[] = {
#define TYPE(name, number, elements, bytes, read) number,
        VKT_GGUF_TYPES(TYPE)
#undef TYPE
    };
    vkt_gguf_tensor *t = &c->tensors[i];
    snprintf(c->names[i], sizeof c->names[i], "blk.%zu", i);
    *t = (vkt_gguf_tensor){ .name = c->names[i], .type = types[vkt_rng_range(r, 0, VKT_COUNT(types) - 1)] };
    t->rank = vkt_rng_range(r, 1, VKT_GGUF_MAX_RANK);
    t->dims[0] = (uint64_t)vkt_gguf_block_elements(t->type) * vkt_rng_range(r, 0, 3);
    for (uint32_t k = 1; k < t->rank; k++) t->dims[k] = vkt_rng_range(r, 1, 3);
    t->data = (const uint8_t *)c->data + vkt_rng_range(r, 0, 99);
}

static void make_content(content *c, uint32_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof c->text; i++) c->text[i] = (char)vkt_rng_u32(&r);
    for (size_t i = 0; i < VKT_COUNT(c->data); i++) c->data[i] = random_bits(&r);
    c->n_meta = vkt_rng_range(&r, 0, MAX_META);
    c->n_tensors = vkt_rng_range(&r, 0, MAX_TENSORS);
    for (size_t i = 0; i < c->n_meta; i++) make_meta(c, &r, i);
    for (size_t i = 0; i < c->n_tensors; i++) make_tensor(c, &r, i);
    c->alignment = 32;
    if (c->n_meta == 0 || seed % 2 == 0) return;
    c->alignment = 8u << vkt_rng_range(&r, 0, 4);
    c->meta[0] = (vkt_gguf_meta){ "general.alignment", VKT_GGUF_KIND_U32, false, 1, &c->alignment };
}

static void assert_meta_equal(const vkt_gguf_meta *got, const vkt_gguf_meta *want)
{
    static const size_t bytes[] = {
#define BYTES(name, number, type) [number] = sizeof(type),
        VKT_GGUF_KINDS(BYTES)
#undef BYTES
    };
    assert_string_equal(got->key, want->key);
    assert_int_equal(got->kind, want->kind);
    assert_int_equal(got->is_array, want->is_array);
    assert_int_equal(got->count, want->count);
    const vkt_gguf_string *a = got->values, *b = want->values;
    for (size_t i = 0; want->kind == VKT_GGUF_KIND_TEXT && i < want->count; i++) {
        assert_int_equal(a[i].bytes, b[i].bytes);
        if (b[i].bytes) assert_memory_equal(a[i].text, b[i].text, b[i].bytes);
        assert_int_equal(a[i].text[a[i].bytes], 0);
    }
    if (want->kind != VKT_GGUF_KIND_TEXT && want->count)
        assert_memory_equal(got->values, want->values, want->count * bytes[want->kind]);
}

static void assert_tensor_equal(const vkt_gguf_tensor *got, const vkt_gguf_tensor *want, uint32_t alignment)
{
    uint64_t elements = 1;
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->type, want->type);
    assert_int_equal(got->rank, want->rank);
    for (uint32_t i = 0; i < want->rank; i++) {
        assert_int_equal(got->dims[i], want->dims[i]);
        elements *= want->dims[i];
    }
    assert_int_equal(got->elements, elements);
    assert_int_equal(got->bytes, elements / vkt_gguf_block_elements(want->type) * vkt_gguf_block_bytes(want->type));
    if (got->bytes) assert_memory_equal(got->data, want->data, (size_t)got->bytes);
    if (got->bytes) assert_int_equal(got->offset % alignment, 0);
}

static void assert_same_files(const char *a, const char *b)
{
    const vkt_host h = vkt_test_host();
    void *x, *y;
    size_t n, m;
    assert_int_equal(vkt_file_read(&h, a, 1 << 24, &x, &n), VKT_OK);
    assert_int_equal(vkt_file_read(&h, b, 1 << 24, &y, &m), VKT_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    vkt_free(&h, x);
    vkt_free(&h, y);
}

static void random_files_come_back(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.gguf"), *again = vkt_temp_dir_file(&dir, "b.gguf");
    content *c = malloc(sizeof *c);
    for (uint32_t seed = 0; seed < 100; seed++) {
        make_content(c, seed);
        assert_int_equal(vkt_gguf_write(&h, path, c->meta, c->n_meta, c->tensors, c->n_tensors), VKT_OK);
        vkt_gguf *g;
        assert_int_equal(vkt_gguf_open(&h, path, &g), VKT_OK);
        assert_int_equal(vkt_gguf_version(g), 3);
        assert_int_equal(vkt_gguf_alignment(g), c->alignment);
        assert_int_equal(vkt_gguf_n_meta(g), c->n_meta);
        assert_int_equal(vkt_gguf_n_tensors(g), c->n_tensors);
        for (size_t i = 0; i < c->n_meta; i++) {
            assert_meta_equal(vkt_gguf_meta_at(g, i), &c->meta[i]);
            assert_ptr_equal(vkt_gguf_find_meta(g, c->meta[i].key), vkt_gguf_meta_at(g, i));
        }
        for (size_t i = 0; i < c->n_tensors; i++) {
            assert_tensor_equal(vkt_gguf_tensor_at(g, i), &c->tensors[i], c->alignment);
            assert_ptr_equal(vkt_gguf_find_tensor(g, c->tensors[i].name), vkt_gguf_tensor_at(g, i));
        }
        assert_int_equal(vkt_gguf_write(&h, again, vkt_gguf_meta_at(g, 0), vkt_gguf_n_meta(g), vkt_gguf_tensor_at(g, 0),
                                        vkt_gguf_n_tensors(g)),
                         VKT_OK);
        vkt_gguf_destroy(&g);
        assert_same_files(path, again);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    free(c);
    vkt_temp_dir_remove(&dir);
}

static void a_file_of_the_package_is_written_with_the_same_bytes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.gguf");
    static const char *const files[] = { GOLDEN("types.gguf"), GOLDEN("llama.gguf"), GOLDEN("qwen3.gguf") };
    for (size_t i = 0; i < VKT_COUNT(files); i++) {
        vkt_gguf *g = open_golden(files[i]);
        assert_int_equal(vkt_gguf_write(&h, path, vkt_gguf_meta_at(g, 0), vkt_gguf_n_meta(g), vkt_gguf_tensor_at(g, 0),
                                        vkt_gguf_n_tensors(g)),
                         VKT_OK);
        vkt_gguf_destroy(&g);
        assert_same_files(path, files[i]);
    }
    vkt_temp_dir_remove(&dir);
}

static void what_cannot_be_written_is_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.gguf");
    const uint32_t three = 3, eight = 8;
    const float x[32] = { 1 };
    const char *const long_name = "0123456789012345678901234567890123456789012345678901234567890123";
    const vkt_gguf_meta good = { "k", VKT_GGUF_KIND_U32, false, 1, &eight };
    const vkt_gguf_meta metas[] = {
        { NULL, VKT_GGUF_KIND_U32, false, 1, &eight },
        { "", VKT_GGUF_KIND_U32, false, 1, &eight },
        { "k", VKT_GGUF_KIND_U32, false, 1, &eight }, /* given twice */
        { "l", (vkt_gguf_kind)9, false, 1, &eight },
        { "l", (vkt_gguf_kind)99, false, 1, &eight },
        { "l", VKT_GGUF_KIND_U32, false, 1, NULL },
        { "l", VKT_GGUF_KIND_U32, true, SIZE_MAX, &eight },
        { "l", VKT_GGUF_KIND_TEXT, false, 1, &(vkt_gguf_string){ NULL, 1 } },
        { "general.alignment", VKT_GGUF_KIND_U32, false, 1, &three },
        { "general.alignment", VKT_GGUF_KIND_I32, false, 1, &eight },
    };
    const vkt_gguf_tensor right = { .name = "t", .rank = 1, .dims = { 32 }, .data = x };
    const vkt_gguf_tensor tensors[] = {
        { .name = NULL, .rank = 1, .dims = { 32 }, .data = x },
        { .name = "", .rank = 1, .dims = { 32 }, .data = x },
        { .name = "t", .rank = 1, .dims = { 32 }, .data = x },
        { .name = long_name, .rank = 1, .dims = { 32 }, .data = x },
        { .name = "u", .type = (vkt_gguf_type)4, .rank = 1, .dims = { 32 }, .data = x },
        { .name = "u", .type = (vkt_gguf_type)-1, .rank = 1, .dims = { 32 }, .data = x },
        { .name = "u", .rank = 5, .dims = { 32 }, .data = x },
        { .name = "u", .rank = 1, .dims = { 32 } },
        { .name = "u", .type = VKT_GGUF_Q4_0, .rank = 1, .dims = { 33 }, .data = x },
        { .name = "u", .rank = 2, .dims = { 1u << 31, 1ull << 33 }, .data = x },
        { .name = "u", .rank = 1, .dims = { 1ull << 61 }, .data = x },
        { .name = "u", .rank = 1, .dims = { (1ull << 61) - 1 }, .data = x }, /* too large together with `right` */
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(metas); i++)
        assert_int_equal(vkt_gguf_write(&h, path, (const vkt_gguf_meta[]){ good, metas[i] }, 2, &right, 1), VKT_E_ARG);
    for (size_t i = 0; i < VKT_COUNT(tensors); i++)
        assert_int_equal(vkt_gguf_write(&h, path, &good, 1, (const vkt_gguf_tensor[]){ right, tensors[i] }, 2),
                         VKT_E_ARG);
    assert_int_equal(vkt_gguf_write(&h, NULL, &good, 1, &right, 1), VKT_E_ARG);
    assert_int_equal(vkt_gguf_write(&h, path, NULL, 1, &right, 1), VKT_E_ARG);
    assert_int_equal(vkt_gguf_write(&h, path, &good, 1, NULL, 1), VKT_E_ARG);
    assert_int_equal(vkt_temp_dir_count(&dir), 0);
    assert_int_equal(vkt_gguf_write(&h, vkt_temp_dir_file(&dir, "no/a.gguf"), &good, 1, &right, 1), VKT_E_IO);
    assert_int_equal(vkt_gguf_write(&h, path, &good, 1, &right, 1), VKT_OK);
    vkt_temp_dir_remove(&dir);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.gguf");
    vkt_gguf *g, *other;
    unsigned failed = 0;
    vkt_test_expect_errors(true);
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_gguf_open(&h, GOLDEN("types.gguf"), &g);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(g);
        assert_int_equal(vkt_test_live_blocks(), 0);
        failed++;
    }
    assert_true(failed > 30); /* opening allocates a memory block for each of 18 keys and 12 names */
    const size_t live = vkt_test_live_blocks();
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_gguf_write(&h, path, vkt_gguf_meta_at(g, 0), vkt_gguf_n_meta(g),
                                            vkt_gguf_tensor_at(g, 0), vkt_gguf_n_tensors(g));
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), live);
        assert_int_equal(vkt_temp_dir_count(&dir), 0);
    }
    vkt_test_fail_allocation(0);
    assert_int_equal(vkt_gguf_open(&h, path, &other), VKT_OK);
    vkt_gguf_destroy(&other);
    vkt_gguf_destroy(&g);
    vkt_temp_dir_remove(&dir);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(integers_of_each_kind_are_read),
        TEST(other_values_and_arrays_are_read),
        TEST(wrong_questions_are_answered_with_errors),
        TEST(tensors_have_names_dimensions_and_bytes),
        TEST(random_files_come_back),
        TEST(a_file_of_the_package_is_written_with_the_same_bytes),
        TEST(what_cannot_be_written_is_refused),
        TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
