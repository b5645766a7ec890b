/* Tests the IDX reader with correct and with wrong files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "data/idx.h"
#include "data/temp.h"
#include "support/host.h"

#define LIMIT (UINT64_C(1) << 20)

typedef struct image { /* the bytes of a file */
    uint8_t b[4096];
    size_t n;
} image;

/* Makes a file with a header of `rank` dimensions and `payload` bytes of data. Byte i of the data is
 * (i * 7 + 1) % 256. */
static image idx_file(unsigned type, unsigned rank, const uint32_t *dim, size_t payload)
{
    image f = { .b = { 0, 0, (uint8_t)type, (uint8_t)rank }, .n = 4 };
    for (unsigned i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8) f.b[f.n++] = (uint8_t)(dim[i] >> shift);
    for (size_t i = 0; i < payload; i++) f.b[f.n++] = (uint8_t)(i * 7 + 1);
    return f;
}

static const uint32_t dims[4] = { 5, 2, 3, 4 };

static void expect(vkt_temp_dir *t, const image *f, bool gzip, vkt_result want, const char *says)
{
    const vkt_host h = vkt_test_host();
    const char *path = temp_write(t, "f", f->b, f->n, gzip);
    vkt_idx idx;
    vkt_test_expect_errors(want != VKT_OK);
    const vkt_result r = vkt_idx_read(&h, path, LIMIT, &idx);
    if (r != want) print_error("%s of %zu bytes: want \"%s\"\n", gzip ? "gzip" : "plain file", f->n, says);
    assert_int_equal(r, want);
    if (want == VKT_OK) {
        vkt_free(&h, idx.data);
        return;
    }
    vkt_test_error_contains(path);
    vkt_test_error_contains(says);
    assert_null(idx.data);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void expect_both(vkt_temp_dir *t, const image *f, const char *says)
{
    expect(t, f, false, VKT_E_FORMAT, says);
    expect(t, f, true, VKT_E_FORMAT, says);
}

static void all_ranks_are_read_plain_and_gzipped(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    size_t payload = 1;
    for (unsigned rank = 1; rank <= 4; rank++) {
        payload *= dims[rank - 1];
        const image f = idx_file(8, rank, dims, payload);
        for (int gzip = 0; gzip < 2; gzip++) {
            vkt_idx idx;
            assert_int_equal(vkt_idx_read(&h, temp_write(t, "f", f.b, f.n, gzip), LIMIT, &idx), VKT_OK);
            assert_int_equal(idx.rank, rank);
            for (unsigned i = 0; i < 4; i++) assert_int_equal(idx.dim[i], i < rank ? dims[i] : 1);
            assert_int_equal(idx.bytes, payload);
            assert_memory_equal(idx.data, f.b + 4 + 4 * rank, payload);
            vkt_free(&h, idx.data);
        }
    }
}

static void a_file_truncated_at_any_byte_is_refused(void **state)
{
    vkt_temp_dir *t = *state;
    image f = idx_file(8, 4, dims, 120);
    assert_int_equal(f.n, 140);
    for (f.n = 0; f.n < 140; f.n++) {
        char says[64];
        snprintf(says, sizeof says, f.n < 20 ? "the file has only %zu" : "140 bytes, the file has %zu", f.n);
        expect(t, &f, false, VKT_E_FORMAT, says);
        snprintf(says, sizeof says, "(decompressed), the file has only %zu", f.n);
        expect(t, &f, true, VKT_E_FORMAT, f.n ? says : "the file has only 0");
    }
}

static void a_gzip_stream_truncated_or_damaged_at_any_byte_is_refused(void **state)
{
    vkt_temp_dir *t = *state;
    const image f = idx_file(8, 2, dims, 10);
    FILE *file = fopen(temp_write(t, "g", f.b, f.n, true), "rb");
    assert_non_null(file);
    image g = { 0 };
    g.n = fread(g.b, 1, sizeof g.b, file);
    fclose(file);
    assert_in_range(g.n, 20, 100);
    image truncated = g;
    for (truncated.n = 0; truncated.n < g.n; truncated.n++) expect(t, &truncated, false, VKT_E_FORMAT, "");
    for (size_t i = g.n - 8; i < g.n; i++) { /* damages each byte of the gzip trailer: CRC-32, unpacked length */
        image bad = g;
        bad.b[i] ^= 0x10;
        expect(t, &bad, false, VKT_E_FORMAT, "");
    }
    image two = g; /* a second gzip member: the file unpacks to twice the bytes */
    memcpy(two.b + g.n, g.b, g.n);
    two.n *= 2;
    expect(t, &two, false, VKT_E_FORMAT, "asks for 22 bytes (decompressed), the file has 44");
    expect(t, &g, false, VKT_OK, "");
}

static void bytes_behind_the_array_are_refused(void **state)
{
    vkt_temp_dir *t = *state;
    image f = idx_file(8, 3, dims, 31);
    expect(t, &f, false, VKT_E_FORMAT, "asks for 46 bytes, the file has 47");
    expect(t, &f, true, VKT_E_FORMAT, "asks for 46 bytes (decompressed), the file has 47");
    const size_t big = 3u << 20;
    uint8_t *zeros = calloc(1, big);
    assert_non_null(zeros);
    memcpy(zeros, f.b, f.n);
    const vkt_host h = vkt_test_host();
    vkt_idx idx;
    assert_int_equal(vkt_idx_read(&h, temp_write(t, "f", zeros, big, true), LIMIT, &idx), VKT_E_FORMAT);
    vkt_test_error_contains("the file has at least ");
    free(zeros);
}

static void wrong_header_fields_are_named(void **state)
{
    vkt_temp_dir *t = *state;
    image f = idx_file(8, 3, dims, 30);
    f.b[0] = 0x89;
    f.b[1] = 'P';
    expect_both(t, &f, "want 00 00 as its first bytes, got 89 50");
    f.b[0] = 0;
    expect_both(t, &f, "got 00 50");
    const unsigned types[] = { 0, 9, 0xb, 0xc, 0xd, 0xe, 0xff };
    for (size_t i = 0; i < VKT_COUNT(types); i++) {
        char says[64];
        snprintf(says, sizeof says, "want IDX element type 0x08 (u8), got 0x%02x", types[i]);
        f = idx_file(types[i], 3, dims, 30);
        expect_both(t, &f, says);
    }
    f = idx_file(8, 0, dims, 30);
    expect_both(t, &f, "want 1 to 4 IDX dimensions, got 0");
    f = idx_file(8, 5, (const uint32_t[]){ 1, 1, 1, 1, 30 }, 30);
    expect_both(t, &f, "want 1 to 4 IDX dimensions, got 5");
    for (unsigned i = 0; i < 4; i++) {
        uint32_t zero[4] = { 5, 2, 3, 1 };
        zero[i] = 0;
        char says[64];
        snprintf(says, sizeof says, "IDX dimension %u is 0", i);
        f = idx_file(8, 4, zero, 0);
        expect_both(t, &f, says);
    }
}

static void huge_sizes_are_refused_before_memory_is_allocated(void **state)
{
    vkt_temp_dir *t = *state;
    const uint32_t overflow[4] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
    const uint32_t wraps[4] = { 1u << 16, 1u << 16, 1u << 16, 1u << 16 }; /* their product is 2^64 */
    const uint32_t above[2] = { 1u << 10, (1u << 10) + 1 };
    image f = idx_file(8, 4, overflow, 16);
    expect_both(t, &f, "more than the 1048576 bytes that are allowed");
    f = idx_file(8, 4, wraps, 16);
    expect_both(t, &f, "more than the 1048576 bytes that are allowed");
    f = idx_file(8, 2, above, 16);
    expect_both(t, &f, "more than the 1048576 bytes that are allowed");

    const uint32_t wrong[1] = { 1u << 20 };
    f = idx_file(8, 1, wrong, 16);
    const vkt_host h = vkt_test_host();
    for (int gzip = 0; gzip < 2; gzip++) {
        vkt_idx idx;
        const char *path = temp_write(t, "f", f.b, f.n, gzip);
        const unsigned long before = vkt_test_allocations();
        assert_int_equal(vkt_idx_read(&h, path, LIMIT, &idx), VKT_E_FORMAT);
        assert_int_equal(vkt_test_allocations() - before, 1); /* only the file's name was allocated */
        vkt_test_error_contains("asks for 1048584 bytes");
    }
}

static void what_is_no_file_is_reported(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_idx idx;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_idx_read(&h, vkt_temp_dir_file(t, "absent"), LIMIT, &idx), VKT_E_NOT_FOUND);
    vkt_test_error_contains("absent");
    assert_int_equal(vkt_idx_read(&h, t->path, LIMIT, &idx), VKT_E_IO);
    vkt_test_error_contains(t->path);
}

static void every_failed_allocation_is_a_status(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    const image f = idx_file(8, 3, dims, 30);
    const char *path = temp_write(t, "f", f.b, f.n, true);
    vkt_idx idx;
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_idx_read(&h, path, LIMIT, &idx);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    assert_int_equal(n, 3); /* there are two allocations: the name and the data */
    vkt_free(&h, idx.data);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_ranks_are_read_plain_and_gzipped),
        TEST(a_file_truncated_at_any_byte_is_refused),
        TEST(a_gzip_stream_truncated_or_damaged_at_any_byte_is_refused),
        TEST(bytes_behind_the_array_are_refused),
        TEST(wrong_header_fields_are_named),
        TEST(huge_sizes_are_refused_before_memory_is_allocated),
        TEST(what_is_no_file_is_reported),
        TEST(every_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests_name("idx", tests, NULL, NULL);
}
