/* Tests the CSV reader with correct and with malformed texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/philox.h"
#include "data/csv.h"
#include "data/temp.h"
#include "support/host.h"

static const vkt_csv_format tsv = { .separator = '\t', .no_quotes = true };

/* Reads all of `text`. Prints each record to `out` as "N:[field][field]...", with ";" between records. N is the number
 * of the line in which the record begins. */
static vkt_result read_all(const char *text, size_t n, const vkt_csv_format *format, char *out, size_t room)
{
    const vkt_host h = vkt_test_host();
    vkt_csv c;
    assert_int_equal(vkt_csv_open_memory(&h, "table.csv", text, n, format, &c), VKT_OK);
    bool more = true;
    vkt_result r = VKT_OK;
    size_t used = 0;
    *out = 0;
    while ((r = vkt_csv_next(&c, &more)) == VKT_OK && more) {
        used += (size_t)snprintf(out + used, room - used, "%s%zu:", used ? ";" : "", c.line);
        for (size_t i = 0; i < c.n_fields; i++) used += (size_t)snprintf(out + used, room - used, "[%s]", c.fields[i]);
        assert_true(used < room);
    }
    if (r == VKT_OK) assert_int_equal(vkt_csv_next(&c, &more), VKT_OK); /* the reader stays at the end */
    assert_false(more);
    vkt_csv_close(&c);
    vkt_csv_close(&c);
    return r;
}

static void expect(const char *text, size_t n, const vkt_csv_format *format, const char *want)
{
    char got[512];
    assert_int_equal(read_all(text, n, format, got, sizeof got), VKT_OK);
    assert_string_equal(got, want);
}

static void expect_bad(const char *text, size_t n, const vkt_csv_format *format, const char *says)
{
    char got[512];
    vkt_test_expect_errors(true);
    assert_int_equal(read_all(text, n, format, got, sizeof got), VKT_E_FORMAT);
    vkt_test_error_contains(says);
}

#define READS(text, format, want) expect(text, sizeof(text) - 1, format, want)
#define REFUSES(text, format, says) expect_bad(text, sizeof(text) - 1, format, "table.csv, line " says)

static void records_and_fields_are_read(void **state)
{
    (void)state;
    READS("a,b\nc,d\n", NULL, "1:[a][b];2:[c][d]");
    READS("a,b\r\nc,d", NULL, "1:[a][b];2:[c][d]");
    READS("a\n", NULL, "1:[a]");
    READS("", NULL, "");
    READS("\n\r\n\n", NULL, "");
    READS("\xef\xbb\xbf\"a\",b\n", NULL, "1:[a][b]");
    READS("\xef\xbb\xbf", NULL, "");
    READS(",\n,", NULL, "1:[][];2:[][]");
    READS("\na,b\n\n\r\nc,d\n\n", NULL, "2:[a][b];5:[c][d]");
    READS(" a , b\n", NULL, "1:[ a ][ b]");
    READS("caf\xc3\xa9,\xff\n", NULL, "1:[caf\xc3\xa9][\xff]");
    READS("a;b,c\n", &(vkt_csv_format){ .separator = ';' }, "1:[a][b,c]");
}

static void quoted_fields_hold_anything(void **state)
{
    (void)state;
    READS("\"a,b\",\"c\"\"d\"\n", NULL, "1:[a,b][c\"d]");
    READS("\"\",\"\"\"\"\n\"\"\"\"\"\",x", NULL, "1:[][\"];2:[\"\"][x]");
    READS("\"a\nb\r\nc\",\"d\r\"\r\ne,f", NULL, "1:[a\nb\r\nc][d\r];4:[e][f]");
    READS("\"\"\n\"a\"", NULL, "1:[];2:[a]");
    READS("a\tsay \"hi\"\nb\t\"\n", &tsv, "1:[a][say \"hi\"];2:[b][\"]");
}

static void malformed_texts_are_reported_with_their_line(void **state)
{
    (void)state;
    REFUSES("a,b\nc,\"d\n\ne", NULL, "2: a quote that is never closed");
    REFUSES("\"", NULL, "1: a quote that is never closed");
    REFUSES("\"a\"\"", NULL, "1: a quote that is never closed");
    REFUSES("\"a\nb\"c,d\n", NULL, "2: want a separator or a line end behind a closing quote");
    REFUSES("\"a\" ,b\n", NULL, "1: want a separator or a line end behind a closing quote");
    REFUSES("a\nb\"\n", NULL, "2: a quote in a field that does not begin with one");
    REFUSES("a\nb\rc\n", NULL, "2: a carriage return without a line feed");
    REFUSES("a\r", NULL, "1: a carriage return without a line feed");
    REFUSES("\r", NULL, "1: a carriage return without a line feed");
    REFUSES("a\n\"b\"\r", NULL, "2: a carriage return without a line feed");
    REFUSES("a\nb\0c\n", NULL, "2: a byte 0");
    REFUSES("a\n\"b\n\0\"\n", NULL, "3: a byte 0");
    REFUSES("\"b\"\0\n", NULL, "1: a byte 0");
    REFUSES("a\0\n", &tsv, "1: a byte 0");
    REFUSES("a,b\n\n\"c\nd\"\n", NULL, "3: want 2 fields, as in the first record, got 1");
    REFUSES("a\nc,d", NULL, "2: want 1 fields, as in the first record, got 2");
}

/* A simple writer in this test writes random fields, with many special characters. It quotes each field that needs
 * quotes, and some other fields at random. The reader must return the same fields. */
static void what_was_written_is_read(void **state)
{
    (void)state;
    static const char letters[] = "ab,\"\n\r \xc3";
    const vkt_host h = vkt_test_host();
    for (uint32_t seed = 1; seed <= 200; seed++) {
        vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
        const uint32_t rows = vkt_rng_range(&rng, 1, 9), columns = vkt_rng_range(&rng, 2, 20);
        static char fields[9 * 20][8];
        vkt_text text = { .h = &h };
        for (uint32_t i = 0; i < rows * columns; i++) {
            const uint32_t n = vkt_rng_range(&rng, 0, 7);
            for (uint32_t k = 0; k < n; k++) fields[i][k] = letters[vkt_rng_range(&rng, 0, sizeof letters - 2)];
            fields[i][n] = 0;
            const bool quoted = strpbrk(fields[i], ",\"\r\n") || vkt_rng_range(&rng, 0, 1);
            if (quoted) vkt_text_add(&text, "\"");
            for (const char *s = fields[i]; *s; s++) vkt_text_add(&text, *s == '"' ? "\"\"" : "%c", *s);
            if (quoted) vkt_text_add(&text, "\"");
            const bool last = i % columns == columns - 1;
            vkt_text_add(&text, !last ? "," : vkt_rng_range(&rng, 0, 1) ? "\r\n" : "\n");
        }
        vkt_csv c;
        assert_int_equal(vkt_csv_open_memory(&h, "x", text.s, text.len, NULL, &c), VKT_OK);
        bool more;
        for (uint32_t i = 0; i < rows; i++) {
            assert_int_equal(vkt_csv_next(&c, &more), VKT_OK);
            assert_true(more && c.n_fields == columns);
            for (uint32_t k = 0; k < columns; k++) assert_string_equal(c.fields[k], fields[i * columns + k]);
        }
        assert_int_equal(vkt_csv_next(&c, &more), VKT_OK);
        assert_false(more);
        vkt_csv_close(&c);
        vkt_text_free(&text);
    }
}

/* Reads random special characters as CSV. The reader may return VKT_OK or VKT_E_FORMAT, but it must not read or write
 * outside of its copy of the text. The test host finds writes behind this copy, and AddressSanitizer finds most reads
 * outside of it. */
static void noise_does_no_harm(void **state)
{
    (void)state;
    static const char letters[] = "a,\"\n\r\0\xef\xbb\xbf";
    uint32_t good = 0, bad = 0;
    vkt_test_expect_errors(true);
    for (uint32_t seed = 1; seed <= 3000; seed++) {
        vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_TEST, 1, 0);
        char text[24], out[1024];
        const uint32_t n = vkt_rng_range(&rng, 0, sizeof text);
        for (uint32_t i = 0; i < n; i++) text[i] = letters[vkt_rng_range(&rng, 0, sizeof letters - 2)];
        const vkt_result r = read_all(text, n, seed % 3 ? NULL : &tsv, out, sizeof out);
        assert_true(r == VKT_OK || r == VKT_E_FORMAT);
        *(r == VKT_OK ? &good : &bad) += 1;
    }
    assert_true(good > 100 && bad > 100);
}

static void a_file_is_read_and_its_header_found(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    static const char text[] = "Path,label,path\nx.png,3,y\n";
    const char *path = temp_write(t, "t.csv", text, sizeof text - 1, false);
    vkt_csv c;
    bool more;
    assert_int_equal(vkt_csv_open(&h, path, NULL, &c), VKT_OK);
    assert_int_equal(vkt_csv_find(&c, "path"), SIZE_MAX); /* no record is read yet */
    assert_int_equal(vkt_csv_next(&c, &more), VKT_OK);
    assert_int_equal(vkt_csv_find(&c, "path"), 0);
    assert_int_equal(vkt_csv_find(&c, "LABEL"), 1);
    assert_int_equal(vkt_csv_find(&c, "labels"), SIZE_MAX);
    const char *first = c.fields[0];
    assert_int_equal(vkt_csv_next(&c, &more), VKT_OK);
    assert_string_equal(first, "Path"); /* texts stay valid after the next record is read */
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_csv_fail(&c, "want a label below %d, got %s", 2, c.fields[1]), VKT_E_FORMAT);
    vkt_test_error_contains("t.csv, line 2: want a label below 2, got 3");
    vkt_csv_close(&c);
    assert_int_equal(vkt_csv_open(&h, vkt_temp_dir_file(t, "none.csv"), NULL, &c), VKT_E_NOT_FOUND);
    vkt_test_error_contains("none.csv");
}

static void failed_allocations_are_a_status(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    const char *path = temp_write(t, "t.csv", "a,b\n", 4, false);
    for (int from_file = 0; from_file < 2; from_file++)
        for (unsigned n = 1;; n++) {
            vkt_test_fail_allocation(n);
            vkt_csv c;
            vkt_result r =
                from_file ? vkt_csv_open(&h, path, NULL, &c) : vkt_csv_open_memory(&h, "memory", "a,b\n", 4, NULL, &c);
            bool more;
            if (r == VKT_OK) r = vkt_csv_next(&c, &more);
            vkt_csv_close(&c);
            assert_int_equal(vkt_test_live_blocks(), 0);
            if (!vkt_test_allocation_failed()) break;
            assert_int_equal(r, VKT_E_NOMEM);
        }
    vkt_test_fail_allocation(0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(records_and_fields_are_read),
        TEST(quoted_fields_hold_anything),
        TEST(malformed_texts_are_reported_with_their_line),
        TEST(what_was_written_is_read),
        TEST(noise_does_no_harm),
        TEST(a_file_is_read_and_its_header_found),
        TEST(failed_allocations_are_a_status),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
