/* Tests checkpoints: a reader gets the bits that were written. A damaged file, a file of another kind and a file of
 * another version cause different messages. No failed write loses the last good checkpoint. test_checkpoint_kill.c
 * tests writes to a full disk, and processes that are killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/philox.h"
#include "io/checkpoint.h"
#include "support/host.h"
#include "support/temp_dir.h"

static const float weight[6] = { 1, -2, 3.5f, 0, 1e-30f, 6 };
static const uint32_t order[3] = { 2, 0, 1 };
static const vkt_blob blobs[] = {
    { "fc.weight", VKT_ST_F32, 2, { 2, 3 }, weight },
    { "vktrain.moment1.fc.weight", VKT_ST_F32, 2, { 2, 3 }, weight },
    { "vktrain.order", VKT_ST_U32, 1, { 3 }, order },
    { "vktrain.nothing", VKT_ST_F32, 1, { 0 }, NULL },
};
static const vkt_meta meta[] = { { "vktrain.step", "469" }, { "note", "\"vktrain.crc32\":\"12345678\"" } };

static void write_small(const char *path)
{
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_checkpoint_write(&h, path, blobs, VKT_COUNT(blobs), meta, VKT_COUNT(meta)), VKT_OK);
}

/* Replaces the file. Does not sync it to the disk, because that takes time. */
static void put(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static char *get(const char *path, size_t *n)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, n), VKT_OK);
    return bytes;
}

static vkt_result try_open(const char *path)
{
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st = (vkt_safetensors *)1;
    const size_t before = vkt_test_live_blocks();
    const vkt_result r = vkt_checkpoint_open(&h, path, &st);
    assert_int_equal(st == NULL, r != VKT_OK);
    vkt_safetensors_close(&st);
    assert_int_equal(vkt_test_live_blocks(), before);
    return r;
}

static void the_state_comes_back_bit_by_bit(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    write_small(path);
    vkt_safetensors *st;
    assert_int_equal(vkt_checkpoint_open(&h, path, &st), VKT_OK);
    assert_int_equal(vkt_safetensors_count(st), VKT_COUNT(blobs));
    for (size_t i = 0; i < VKT_COUNT(blobs); i++) {
        char got[64];
        const vkt_st_entry *e = vkt_safetensors_find(st, blobs[i].name);
        assert_non_null(e);
        assert_int_equal(vkt_safetensors_read_raw(st, e, got, vkt_blob_bytes(&blobs[i])), VKT_OK);
        if (e->bytes) assert_memory_equal(got, blobs[i].data, e->bytes);
    }
    assert_string_equal(vkt_safetensors_meta(st, "vktrain.step"), "469");
    assert_string_equal(vkt_safetensors_meta(st, "note"), meta[1].value);
    vkt_safetensors_close(&st);

    size_t n, n2;
    char *first = get(path, &n);
    write_small(path);
    char *second = get(path, &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(first, second, n); /* the same state gives the same bytes */
    vkt_free(&h, first);
    vkt_free(&h, second);
    vkt_temp_dir_remove(&dir);
}

static void every_flipped_bit_and_every_truncation_is_found(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    write_small(path);
    size_t n;
    char *bytes = get(path, &n);
    vkt_test_expect_errors(true);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        put(path, bytes, n);
        if (try_open(path) != VKT_E_FORMAT) fail_msg("a flip of bit %zu of byte %zu was not found", bit % 8, bit / 8);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    bytes[n - 1] = (char)(bytes[n - 1] ^ 1);
    put(path, bytes, n);
    assert_int_equal(try_open(path), VKT_E_FORMAT);
    vkt_test_error_contains("is damaged");
    bytes[n - 1] = (char)(bytes[n - 1] ^ 1);
    for (size_t truncated = 0; truncated < n; truncated++) {
        put(path, bytes, truncated);
        assert_int_equal(try_open(path), VKT_E_FORMAT);
        if (truncated >= 8) vkt_test_error_contains("truncated");
    }
    put(path, bytes, n);
    assert_int_equal(try_open(path), VKT_OK);
    vkt_free(&h, bytes);
    vkt_temp_dir_remove(&dir);
}

/* Replaces a text of the header by a text of the same length. Also replaces the checksum, so that it fits the new bytes
 * (checkpoint.h). */
static void edit_and_seal(const char *path, const char *from, const char *to)
{
    const vkt_host h = vkt_test_host();
    size_t n;
    char *bytes = get(path, &n);
    size_t at = 8;
    while (at + strlen(from) <= n && memcmp(bytes + at, from, strlen(from)) != 0) at++;
    assert_true(at + strlen(from) <= n);
    memcpy(bytes + at, to, strlen(to));
    const size_t digits = 8 + strlen("{'__metadata__':{'vktrain.crc32':'");
    const uLong crc =
        crc32(crc32(0, (const Bytef *)bytes, (uInt)digits), (const Bytef *)bytes + digits + 8, (uInt)(n - digits - 8));
    char text[9];
    snprintf(text, sizeof text, "%08lx", crc);
    memcpy(bytes + digits, text, 8);
    put(path, bytes, n);
    vkt_free(&h, bytes);
}

static void other_kinds_and_versions_are_distinguished(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    vkt_test_expect_errors(true);
    assert_int_equal(try_open(path), VKT_E_NOT_FOUND);
    static const char png[] = "\x89PNG\r\n\x1a\n and so on, and so on";
    put(path, png, sizeof png);
    assert_int_equal(try_open(path), VKT_E_FORMAT);
    vkt_test_error_contains("of another kind");
    assert_int_equal(vkt_safetensors_write(&h, path, NULL, 0, NULL, 0), VKT_OK); /* a file without tensors */
    assert_int_equal(try_open(path), VKT_E_FORMAT);
    vkt_test_error_contains("not a vktrain checkpoint");
    assert_int_equal(vkt_safetensors_write(&h, path, blobs, VKT_COUNT(blobs), meta, VKT_COUNT(meta)), VKT_OK);
    assert_int_equal(try_open(path), VKT_E_FORMAT);
    vkt_test_error_contains("not a vktrain checkpoint");

    write_small(path);
    edit_and_seal(path, "469", "470"); /* 470 is valid: an error would mean a wrong checksum */
    assert_int_equal(try_open(path), VKT_OK);
    edit_and_seal(path, "training-state", "tuning-results");
    assert_int_equal(try_open(path), VKT_E_FORMAT);
    vkt_test_error_contains("tuning-results");
    write_small(path);
    edit_and_seal(path, "vktrain.version\":\"2", "vktrain.version\":\"3");
    assert_int_equal(try_open(path), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("version 3");
    edit_and_seal(path, "vktrain.version\":\"3", "vktrain.version\":\"1"); /* an older version */
    assert_int_equal(try_open(path), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("version 1: this library knows version 2; the weights in it can be loaded");
    vkt_temp_dir_remove(&dir);
}

/* ---- no failure loses the last good checkpoint ---- */

static void failures_leave_the_old_checkpoint(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    write_small(path);
    size_t n, n2;
    char *old = get(path, &n);
    vkt_test_expect_errors(true);
    const vkt_meta reserved = { "vktrain.kind", "x" };
    assert_int_equal(vkt_checkpoint_write(&h, path, blobs, 1, &reserved, 1), VKT_E_ARG);
    vkt_test_error_contains("given twice");
    for (unsigned k = 1;; k++) {
        vkt_test_fail_allocation(k);
        const vkt_result r = vkt_checkpoint_write(&h, path, blobs, 1, meta, 1);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 1);
        vkt_test_fail_allocation(0);
        char *now = get(path, &n2);
        assert_true(n == n2 && memcmp(old, now, n) == 0);
        vkt_free(&h, now);
    }
    for (unsigned k = 1;; k++) {
        vkt_test_fail_allocation(k);
        const vkt_result r = try_open(path);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        if (!failed) break;
    }
    vkt_test_fail_allocation(0);
    vkt_free(&h, old);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_state_comes_back_bit_by_bit),
        TEST(every_flipped_bit_and_every_truncation_is_found),
        TEST(other_kinds_and_versions_are_distinguished),
        TEST(failures_leave_the_old_checkpoint),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
