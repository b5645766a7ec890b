/* Tests safetensors: the library's files load again, files of other programs load, and every malformed file is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/philox.h"
#include "io/safetensors.h"
#include "support/find_data.h"
#include "support/host.h"
#include "support/temp_dir.h"

/* ---- round trips ---- */

static const vkt_st_dtype all_dtypes[] = {
#define NAME(name, bytes) VKT_ST_##name,
    VKT_ST_DTYPES(NAME)
#undef NAME
};

/* Writes and reads random files. A file has 0 to 12 tensors of any dtype, with rank 0 to 8 and dimensions up to 5. */
static void random_files_come_back(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.safetensors");
    enum { MAX_TENSORS = 12 };
    uint8_t *data = malloc(1 << 22), *got = malloc(1 << 22);
    for (uint32_t seed = 0; seed < 60; seed++) {
        vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
        vkt_blob blobs[MAX_TENSORS] = { { 0 } };
        char names[MAX_TENSORS][32];
        const uint32_t n = vkt_rng_range(&rng, 0, MAX_TENSORS);
        size_t used = 0;
        for (uint32_t i = 0; i < n; i++) {
            vkt_blob *b = &blobs[i];
            snprintf(names[i], sizeof names[i], "layer%u.\"%c\\weight", i, 'a' + (int)i);
            b->name = names[i];
            b->dtype = all_dtypes[vkt_rng_range(&rng, 0, VKT_COUNT(all_dtypes) - 1)];
            b->rank = vkt_rng_range(&rng, 0, VKT_ST_MAX_RANK);
            for (uint32_t k = 0; k < b->rank; k++) b->dims[k] = vkt_rng_range(&rng, k < 2 ? 0 : 1, k < 4 ? 5 : 2);
            b->data = data + used;
            for (uint64_t k = 0; k < vkt_blob_bytes(b); k++) data[used++] = (uint8_t)vkt_rng_u32(&rng);
        }
        const vkt_meta meta[] = { { "step", "12345678901234567890" }, { "", "\xc3\xa9 \"\\\n\x01" } };
        assert_int_equal(vkt_safetensors_write(&h, path, blobs, n, meta, seed % 3), VKT_OK);

        vkt_safetensors *st;
        assert_int_equal(vkt_safetensors_open(&h, path, &st), VKT_OK);
        assert_int_equal(vkt_safetensors_count(st), n);
        for (uint32_t i = 0; i < n; i++) {
            const vkt_st_entry *e = vkt_safetensors_find(st, names[i]);
            assert_non_null(e);
            assert_int_equal(e->dtype, blobs[i].dtype);
            assert_string_equal(e->dtype_name, vkt_st_dtype_name(blobs[i].dtype));
            assert_int_equal(e->rank, blobs[i].rank);
            assert_memory_equal(e->dims, blobs[i].dims, sizeof e->dims);
            assert_int_equal(e->bytes, vkt_blob_bytes(&blobs[i]));
            assert_int_equal(vkt_safetensors_read_raw(st, e, got, e->bytes), VKT_OK);
            if (e->bytes) assert_memory_equal(got, blobs[i].data, (size_t)e->bytes);
            assert_true(i == 0 || e->offset >= vkt_safetensors_find(st, names[i - 1])->offset);
        }
        for (size_t i = 0; i < 2; i++) {
            const char *value = vkt_safetensors_meta(st, meta[i].key);
            if (i < seed % 3)
                assert_string_equal(value, meta[i].value);
            else
                assert_null(value);
        }
        assert_null(vkt_safetensors_find(st, "absent"));
        vkt_safetensors_close(&st);
        assert_null(st);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    free(data);
    free(got);
    vkt_temp_dir_remove(&dir);
}

static void the_same_input_gives_the_same_aligned_bytes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    const float w[6] = { 1, 2, 3, 4, 5, 6 };
    const vkt_blob blobs[] = { { "z.weight", VKT_ST_F32, 2, { 2, 3 }, w }, { "a.bias", VKT_ST_F32, 1, { 1 }, w } };
    const vkt_meta meta = { "k", "v" };
    assert_int_equal(vkt_safetensors_write(&h, path, blobs, 2, &meta, 1), VKT_OK);
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&h, path, 4096, &bytes, &n), VKT_OK);
    static const char json[] = "{\"__metadata__\":{\"k\":\"v\"},\"z.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                               "\"data_offsets\":[0,24]},\"a.bias\":{\"dtype\":\"F32\",\"shape\":[1],"
                               "\"data_offsets\":[24,28]}}";
    const uint64_t length = vkt_round_up(sizeof json - 1, 8);
    assert_int_equal(n, 8 + length + 28);
    assert_memory_equal(bytes, &length, 8);
    assert_memory_equal((char *)bytes + 8, json, sizeof json - 1);
    for (size_t i = 8 + sizeof json - 1; i < 8 + length; i++) assert_int_equal(((char *)bytes)[i], ' ');
    assert_memory_equal((char *)bytes + 8 + length, w, 24);
    vkt_free(&h, bytes);
    vkt_temp_dir_remove(&dir);
}

static void narrow_and_wide_floats_become_f32(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    uint16_t *bits = malloc(65536 * sizeof *bits);
    float *got = malloc(65536 * sizeof *got);
    for (uint32_t i = 0; i < 65536; i++) bits[i] = (uint16_t)i;
    const double wide[] = { 1.0 / 3, -1e300, 16777217, 1e-46, 0 };
    const vkt_blob blobs[] = { { "h", VKT_ST_F16, 1, { 65536 }, bits },
                               { "b", VKT_ST_BF16, 2, { 256, 256 }, bits },
                               { "d", VKT_ST_F64, 1, { VKT_COUNT(wide) }, wide },
                               { "i", VKT_ST_I64, 1, { 1 }, wide } };
    assert_int_equal(vkt_safetensors_write(&h, path, blobs, VKT_COUNT(blobs), NULL, 0), VKT_OK);
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&h, path, &st), VKT_OK);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "h"), got, 65536), VKT_OK);
    for (uint32_t i = 0; i < 65536; i++) assert_int_equal(vkt_half_from_f32(got[i]), i);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "b"), got, 65536), VKT_OK);
    for (uint32_t i = 0; i < 65536; i++) assert_int_equal(vkt_bf16_from_f32(got[i]), i);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "d"), got, VKT_COUNT(wide)), VKT_OK);
    const float want[] = { 1.0f / 3, -INFINITY, 16777216, 0, 0 };
    assert_memory_equal(got, want, sizeof want);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "i"), got, 1), VKT_E_DTYPE);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "h"), got, 65535), VKT_E_SHAPE);
    assert_int_equal(vkt_safetensors_read_raw(st, vkt_safetensors_find(st, "d"), got, 8), VKT_E_SHAPE);
    vkt_safetensors_close(&st);
    free(bits);
    free(got);
    vkt_temp_dir_remove(&dir);
}

/* ---- files of other programs ---- */

static void a_file_of_the_python_package_loads(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&h, VKT_TEST_DIR "/io/fixtures/numpy.safetensors", &st), VKT_OK);
    static const struct {
        const char *name;
        vkt_st_dtype dtype;
        uint32_t rank;
        uint64_t dims[3], bytes;
    } want[] = {
        { "F16", VKT_ST_F16, 2, { 3, 5 }, 30 },     { "F32", VKT_ST_F32, 3, { 2, 3, 4 }, 96 },
        { "F64", VKT_ST_F64, 1, { 7 }, 56 },        { "scalar", VKT_ST_F32, 0, { 0 }, 4 },
        { "empty", VKT_ST_F32, 3, { 3, 0, 2 }, 0 }, { "counter", VKT_ST_I64, 0, { 0 }, 8 },
        { "bytes", VKT_ST_U8, 1, { 5 }, 5 },        { "flag \xc3\xa9 \"quoted\" \\", VKT_ST_BOOL, 1, { 2 }, 2 }
    };
    assert_int_equal(vkt_safetensors_count(st), VKT_COUNT(want));
    for (size_t i = 0; i < VKT_COUNT(want); i++) {
        const vkt_st_entry *e = vkt_safetensors_find(st, want[i].name);
        assert_non_null(e);
        assert_int_equal(e->dtype, want[i].dtype);
        assert_int_equal(e->rank, want[i].rank);
        assert_memory_equal(e->dims, want[i].dims, sizeof want[i].dims);
        assert_int_equal(e->bytes, want[i].bytes);
        if (i >= 3) continue;
        float values[24];
        assert_int_equal(vkt_safetensors_read_f32(st, e, values, e->elements), VKT_OK);
        for (uint32_t k = 0; k < e->elements; k++) assert_true(values[k] == (float)k / 8 - 1);
    }
    float scalar = 0;
    int64_t counter = 0;
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "scalar"), &scalar, 1), VKT_OK);
    assert_int_equal(vkt_safetensors_read_raw(st, vkt_safetensors_find(st, "counter"), &counter, 8), VKT_OK);
    assert_int_equal(vkt_safetensors_read_f32(st, vkt_safetensors_find(st, "empty"), NULL, 0), VKT_OK);
    assert_true(scalar == 2.5f);
    assert_int_equal(counter, -7);
    assert_string_equal(vkt_safetensors_meta(st, "said"), "\xc3\xa9\n\"x\"");
    vkt_safetensors_close(&st);
}

/* The file has the tensors that the README of the folder pretrained lists. */
static void the_pretrained_mnist_network_loads(void **state)
{
    (void)state;
    char path[512];
    if (!vkt_test_find_data("pretrained/mnist-cnn.safetensors", path)) skip();
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[4];
    } want[] = {
        { "conv1.weight", 4, { 8, 1, 3, 3 } },
        { "conv1.bias", 1, { 8 } },
        { "conv2.weight", 4, { 16, 8, 3, 3 } },
        { "conv2.bias", 1, { 16 } },
        { "conv3.weight", 4, { 24, 16, 3, 3 } },
        { "conv3.bias", 1, { 24 } },
        { "norm1.weight", 1, { 24 } },
        { "norm1.bias", 1, { 24 } },
        { "norm1.running_mean", 1, { 24 } },
        { "norm1.running_var", 1, { 24 } },
        { "norm1.num_batches_tracked", 0, { 0 } },
        { "fc1.weight", 2, { 32, 11616 } },
        { "fc1.bias", 1, { 32 } },
        { "fc2.weight", 2, { 10, 32 } },
        { "fc2.bias", 1, { 10 } },
        { "norm2.weight", 1, { 10 } },
        { "norm2.bias", 1, { 10 } },
        { "norm2.running_mean", 1, { 10 } },
        { "norm2.running_var", 1, { 10 } },
        { "norm2.num_batches_tracked", 0, { 0 } },
    };
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&h, path, &st), VKT_OK);
    assert_int_equal(vkt_safetensors_count(st), VKT_COUNT(want));
    float *values = malloc(32 * 11616 * sizeof *values);
    for (size_t i = 0; i < VKT_COUNT(want); i++) {
        const vkt_st_entry *e = vkt_safetensors_find(st, want[i].name);
        assert_non_null(e);
        assert_int_equal(e->rank, want[i].rank);
        assert_memory_equal(e->dims, want[i].dims, sizeof want[i].dims);
        assert_int_equal(e->dtype, want[i].rank == 0 ? VKT_ST_I64 : VKT_ST_F32);
        if (want[i].rank == 0) continue;
        assert_int_equal(vkt_safetensors_read_f32(st, e, values, e->elements), VKT_OK);
        for (uint64_t k = 0; k < e->elements; k++) assert_true(fabsf(values[k]) < 1000); /* trained weights are small */
    }
    free(values);
    vkt_safetensors_close(&st);
}

/* ---- malformed files ---- */

/* Writes `length` as u64, the header and `data_bytes` zeros, opens the file and returns the status. */
static vkt_result open_made(const char *path, uint64_t length, const char *header, size_t data_bytes)
{
    const vkt_host h = vkt_test_host();
    FILE *f = fopen(path, "wb");
    fwrite(&length, 1, 8, f);
    fputs(header, f);
    for (size_t i = 0; i < data_bytes; i++) putc(0, f);
    assert_int_equal(fclose(f), 0);
    vkt_safetensors *st = (vkt_safetensors *)1;
    const vkt_result r = vkt_safetensors_open(&h, path, &st);
    assert_int_equal(st == NULL, r != VKT_OK);
    vkt_safetensors_close(&st);
    assert_int_equal(vkt_test_live_blocks(), 0);
    return r;
}

/* Entries of a header: the F32 tensor "x", and behind it the F32 tensor "y" of shape [1]. */
#define X(shape, begin, end) "\"x\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define Y(begin, end) ",\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *says; /* NULL: the file must open */
} headers[] = {
    { "{" X("[1]", "0", "4") "}", 4, NULL },
    { "{" X("[]", "0", "4") "}  ", 4, NULL },
    { "{" X("[0,9]", "0", "0") "}", 0, NULL },
    { "{}", 0, NULL },
    { "{\"__metadata__\":{}}", 0, NULL },
    { "{" X("[1]", "4", "8") Y("0", "4") "}", 8, NULL }, /* the header has x first, the data have y first */
    { "{\"x\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, NULL }, /* an unknown dtype */
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"new\":null}}", 4, NULL },
    { "", 0, "does not begin with '{'" },
    { " {}", 0, "does not begin with '{'" },
    { "[]", 0, "does not begin with '{'" },
    { "{" X("[1]", "0", "4"), 4, "header byte" },
    { "{" X("[1]", "0", "4") "}}", 4, "header byte" },
    { "{" X("[1]", "0", "4") "," X("[1]", "0", "4") "}", 4, "duplicate" },
    { "{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate" },
    { "{\"x\xff\":{}}", 0, "header byte" },
    { "{\"x\":5}", 0, "not described by an object" },
    { "{\"x\":{}}", 0, "\"dtype\"" },
    { "{\"x\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"dtype\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"shape\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "\"shape\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"data_offsets\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "\"data_offsets\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "\"data_offsets\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":0,\"1\":4}}}", 4, "\"data_offsets\"" },
    { "{" X("[-1]", "0", "4") "}", 4, "not an integer >= 0" },
    { "{" X("[1.0]", "0", "4") "}", 4, "not an integer >= 0" },
    { "{" X("[\"1\"]", "0", "4") "}", 4, "not an integer >= 0" },
    { "{" X("[true]", "0", "4") "}", 4, "not an integer >= 0" },
    { "{" X("[99999999999999999999]", "0", "4") "}", 4, "header byte" },
    { "{" X("[1]", "-4", "0") "}", 4, "\"data_offsets\"" },
    { "{" X("[1]", "4", "0") "}", 4, "\"data_offsets\"" },
    { "{" X("[1]", "0", "4.0") "}", 4, "\"data_offsets\"" },
    { "{" X("[2]", "0", "4") "}", 4, "do not fill" },
    { "{" X("[1]", "0", "5") "}", 5, "do not fill" },
    { "{" X("[0]", "0", "4") "}", 4, "do not fill" },
    { "{" X("[4294967296,4294967296]", "0", "4") "}", 4, "more than 2^64" },
    { "{" X("[4294967296,1073741824]", "0", "0") "}", 0, "do not fill" }, /* 2^64 bytes must not wrap to 0 */
    { "{" X("[1]", "0", "4") "}", 3, "truncated" },
    { "{" X("[1]", "9223372036854775803", "9223372036854775807") "}", 4, "truncated" },
    { "{" X("[1]", "0", "4") "}", 5, "1 bytes behind" },
    { "{}", 1, "1 bytes behind" },
    { "{" X("[1]", "0", "4") Y("0", "4") "}", 4, "overlap" },
    { "{" X("[2]", "0", "8") Y("4", "8") "}", 8, "overlap" },
    { "{" X("[1]", "0", "4") Y("5", "9") "}", 9, "a hole" },
    { "{" X("[1]", "1", "5") "}", 5, "a hole" },
    { "{\"__metadata__\":1}", 0, "__metadata__ is not an object" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "is not text" },
    { "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "duplicate" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate" },
    { "{\"__metadata__\":{\"a\":\"b\"}", 0, "header byte 25" },
    { "{\"x\":", 0, "want a value" },
    { "{\"x\"}", 0, "want ':'" },
    { "{\"x", 0, "never ends" },
    { "{\"x\\", 0, "never ends" },
    { "{\"x\":[", 0, "never closed" },
    { "{,}", 0, "want a name" },
    { "{" X("[1]", "0", "4") ",}", 4, "want a name" },
    { "{" X("[1]", "0", "4") " 5}", 4, "want ',' or '}'" },
    { "{\"\\u0000\":{}}", 0, "header byte" },
    { "{\"e\x1b[31m\":5}", 0, "header byte" }, /* JSON allows control characters only as escapes */
    /* The message has the text \x1b instead of the control character, so no terminal executes it. */
    { "{\"e\\u001b[31m\":5}", 0, "\"e\\x1b[31m\" is not des" },
};

static void malformed_headers_are_refused_with_the_reason(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(headers); i++) {
        const char *text = headers[i].header;
        const vkt_result r = open_made(vkt_temp_dir_file(&dir, "a"), strlen(text), text, headers[i].data_bytes);
        if (r != (headers[i].says ? VKT_E_FORMAT : VKT_OK)) fail_msg("%s with %s", vkt_result_name(r), text);
        if (headers[i].says) vkt_test_error_contains(headers[i].says);
    }
    static const char rank9[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}";
    assert_int_equal(open_made(vkt_temp_dir_file(&dir, "a"), strlen(rank9), rank9, 1), VKT_E_UNSUPPORTED);
    vkt_temp_dir_remove(&dir);
}

static void wrong_lengths_are_refused(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_test_expect_errors(true);
    static const uint64_t lengths[] = { 3,         100,        VKT_ST_MAX_HEADER_BYTES, VKT_ST_MAX_HEADER_BYTES + 1ull,
                                        INT64_MAX, UINT64_MAX, UINT64_MAX - 7 };
    for (size_t i = 0; i < VKT_COUNT(lengths); i++) {
        assert_int_equal(open_made(vkt_temp_dir_file(&dir, "a"), lengths[i], "{}", 0), VKT_E_FORMAT);
        vkt_test_error_contains("truncated, or of another kind");
    }
    assert_int_equal(open_made(vkt_temp_dir_file(&dir, "a"), 1, "{}", 0), VKT_E_FORMAT);
    vkt_temp_dir_remove(&dir);
}

/* Truncates the fixture to each length. The file opens only if it is complete. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&h, VKT_TEST_DIR "/io/fixtures/numpy.safetensors", 4096, &bytes, &n), VKT_OK);
    vkt_test_expect_errors(true);
    for (size_t k = 0; k <= n; k++) {
        FILE *f = fopen(path, "wb"); /* without fsync, because there are hundreds of files */
        assert_int_equal(fwrite(bytes, 1, k, f), k);
        fclose(f);
        vkt_safetensors *st;
        assert_int_equal(vkt_safetensors_open(&h, path, &st), k == n ? VKT_OK : VKT_E_FORMAT);
        vkt_safetensors_close(&st);
        assert_int_equal(vkt_test_live_blocks(), 1);
    }
    vkt_free(&h, bytes);
    vkt_temp_dir_remove(&dir);
}

/* Random damage must never cause a read outside of a buffer (sanitizers check that) or an entry outside of the file. */
static void random_damage_never_gives_an_entry_outside_the_file(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    void *bytes;
    size_t n;
    unsigned opened = 0;
    assert_int_equal(vkt_file_read(&h, VKT_TEST_DIR "/io/fixtures/numpy.safetensors", 4096, &bytes, &n), VKT_OK);
    vkt_test_expect_errors(true);
    vkt_rng rng = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    for (int round = 0; round < 3000; round++) {
        char *copy = malloc(n);
        memcpy(copy, bytes, n);
        for (uint32_t k = vkt_rng_range(&rng, 1, 3); k > 0; k--) {
            copy[vkt_rng_range(&rng, 0, (uint32_t)n - 1)] =
                (char)"0123456789[]{},:\"-. \xff"[vkt_rng_range(&rng, 0, 20)];
        }
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(copy, 1, n, f), n);
        fclose(f);
        free(copy);
        vkt_safetensors *st;
        const vkt_result r = vkt_safetensors_open(&h, path, &st);
        opened += r == VKT_OK;
        for (size_t i = 0; r == VKT_OK && i < vkt_safetensors_count(st); i++) {
            const vkt_st_entry *e = vkt_safetensors_entry(st, i);
            assert_true(e->offset <= n && e->bytes <= n - e->offset);
        }
        vkt_safetensors_close(&st);
    }
    assert_in_range(opened, 300, 2700); /* some damaged files open, and some do not */
    vkt_free(&h, bytes);
    vkt_temp_dir_remove(&dir);
}

/* ---- headers that declare more than the file has ---- */

/* json_now: bytes that jansson has allocated now. json_peak: the largest value of json_now since the last reset. */
static size_t json_now, json_peak;

static void *json_allocate(size_t n)
{
    max_align_t *p = malloc(sizeof *p + n);
    if (!p) return NULL;
    *(size_t *)(void *)p = n;
    json_now += n;
    json_peak = VKT_MAX(json_peak, json_now);
    return p + 1;
}

static void json_release(void *block)
{
    if (!block) return;
    max_align_t *p = (max_align_t *)block - 1;
    json_now -= *(size_t *)(void *)p;
    free(p);
}

/* Opens a file with a header of about 2 MB: `begin`, then many copies of `again`, then `end`. In copy i, the number i
 * replaces "%u". Fails the test if opening the file takes too much memory. */
static vkt_result open_repeated(const char *path, const char *begin, const char *again, const char *end)
{
    enum { BYTES = 2000000 };
    char *text = malloc(BYTES + 1000);
    size_t n = (size_t)sprintf(text, "%s", begin);
    for (unsigned i = 0; n < BYTES; i++) {
        if (i) text[n++] = ',';
        const char *number = strstr(again, "%u");
        n += (size_t)sprintf(text + n, "%.*s", number ? (int)(number - again) : (int)strlen(again), again);
        if (number) n += (size_t)sprintf(text + n, "%u%s", i, number + 2);
    }
    n += (size_t)sprintf(text + n, "%s", end);
    json_peak = 0;
    vkt_test_peak_bytes();
    const vkt_result r = open_made(path, n, text, 0);
    free(text);
    const size_t host = vkt_test_peak_bytes();
    if (host > 16u << 20) fail_msg("%s..: %zu bytes of the host for a header of %zu", begin, host, n);
    if (json_peak > 6u << 20) fail_msg("%s..: %zu bytes of jansson for a header of %zu", begin, json_peak, n);
    return r;
}

static void a_header_costs_a_few_times_its_bytes(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    json_set_alloc_funcs(json_allocate, json_release);
    assert_int_equal(open_repeated(path, "{", "\"%u\":{\"dtype\":\"F4\",\"shape\":[],\"data_offsets\":[0,0]}", "}"),
                     VKT_OK);
    assert_int_equal(open_repeated(path, "{\"__metadata__\":{", "\"%u\":\"\"", "}}"), VKT_OK);
    vkt_test_expect_errors(true);
    static const char *const bombs[][2] = { { "{\"x\":[", "{}" },
                                            { "{\"x\":{\"a\":[", "{}" },
                                            { "{\"__metadata__\":{\"x\":[", "[]" },
                                            { "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"shape\":[", "1" },
                                            { "{", "\"%u\":{}" } };
    for (size_t i = 0; i < VKT_COUNT(bombs); i++) {
        static const char *const ends[] = { "]}", "]}}", "]}}", "]}}", "}" };
        assert_int_equal(open_repeated(path, bombs[i][0], bombs[i][1], ends[i]), VKT_E_FORMAT);
    }
    json_set_alloc_funcs(malloc, free);
    vkt_temp_dir_remove(&dir);
}

/* ---- refused writes, lack of memory ---- */

static void senseless_tensors_are_not_written(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    const float one = 1;
    const struct {
        vkt_blob blob;
        const char *says;
    } cases[] = {
        { { NULL, VKT_ST_F32, 0, { 0 }, &one }, "no name" },
        { { "__metadata__", VKT_ST_F32, 0, { 0 }, &one }, "no name" },
        { { "a", VKT_ST_F32, 0, { 0 }, &one }, "given twice" },
        { { "x", VKT_ST_UNKNOWN, 0, { 0 }, &one }, "no known dtype" },
        { { "x", VKT_ST_F32, 9, { 0 }, &one }, "rank 9" },
        { { "x", VKT_ST_F32, 2, { 1ull << 40, 1ull << 40 }, &one }, "more than 2^63" },
        { { "x", VKT_ST_F32, 1, { 1ull << 61 }, &one }, "more than 2^63" },
        { { "x", VKT_ST_F32, 0, { 0 }, NULL }, "no data" },
        { { "\xff", VKT_ST_F32, 0, { 0 }, &one }, "not UTF-8" },
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_blob blobs[] = { { "a", VKT_ST_F32, 0, { 0 }, &one }, cases[i].blob };
        assert_int_equal(vkt_safetensors_write(&h, path, blobs, 2, NULL, 0), VKT_E_ARG);
        vkt_test_error_contains(cases[i].says);
    }
    const vkt_meta twice[] = { { "k", "v" }, { "k", "w" } }, bad[] = { { "k", "\xff" }, { NULL, "v" } };
    assert_int_equal(vkt_safetensors_write(&h, path, NULL, 0, twice, 2), VKT_E_ARG);
    assert_int_equal(vkt_safetensors_write(&h, path, NULL, 0, bad, 1), VKT_E_ARG);
    assert_int_equal(vkt_safetensors_write(&h, path, NULL, 0, bad + 1, 1), VKT_E_ARG);
    assert_int_equal(vkt_temp_dir_count(&dir), 0);
    vkt_temp_dir_remove(&dir);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    const float w[2] = { 1, 2 };
    const vkt_blob blob = { "w", VKT_ST_F32, 1, { 2 }, w };
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_safetensors_write(&h, path, &blob, 1, NULL, 0);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        assert_int_equal(vkt_test_live_blocks(), 0);
        if (!failed) break;
        assert_int_equal(vkt_temp_dir_count(&dir), 0);
    }
    assert_true(n > 3);
    for (n = 1;; n++) {
        vkt_safetensors *st;
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_safetensors_open(&h, path, &st);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_safetensors_close(&st);
        assert_int_equal(vkt_test_live_blocks(), 0);
        if (!failed) break;
    }
    assert_true(n > 3);
    vkt_test_fail_allocation(0);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(random_files_come_back),
        TEST(the_same_input_gives_the_same_aligned_bytes),
        TEST(narrow_and_wide_floats_become_f32),
        TEST(a_file_of_the_python_package_loads),
        TEST(the_pretrained_mnist_network_loads),
        TEST(malformed_headers_are_refused_with_the_reason),
        TEST(wrong_lengths_are_refused),
        TEST(every_truncation_is_refused),
        TEST(random_damage_never_gives_an_entry_outside_the_file),
        TEST(a_header_costs_a_few_times_its_bytes),
        TEST(senseless_tensors_are_not_written),
        TEST(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
