/* Tests the text of a tuning file, which has the variants and tiles that were measured to be the fastest on a device.
 * The decoder returns the entries that were encoded. It refuses a text that is damaged, truncated, or for another
 * device or build. The test needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "kernel/tuning.h"
#include "support/host.h"

static const vkt_tuning_id id = { .device = "00010005-00000000-00000001-00ff-8", .shaders = 0x0123456789abcdefull };
static const vkt_tuned entries[] = { { 1, VKT_V(TILE) },
                                     { 0x89abcdef01234567ull, VKT_V(DIRECT) | VKT_V(PACKED_A) },
                                     { UINT64_MAX, VKT_V(SHARED), { 64, 128, 8, 4 } } };

static char *text_of(const vkt_tuning_id *of, const vkt_tuned *list, size_t n, size_t *bytes)
{
    static char text[4096];
    const vkt_host h = vkt_test_host();
    vkt_text t = { .h = &h };
    vkt_tuning_encode(of, list, n, &t);
    assert_false(t.failed);
    assert_true(t.len < sizeof text);
    memcpy(text, t.s, t.len + 1);
    *bytes = t.len;
    vkt_text_free(&t);
    return text;
}

/* Decodes a text. Returns the fault that the decoder reports. If there is none, checks that the entries are `want`, and
 * returns NULL. */
static const char *fault_of(const char *text, size_t bytes, const vkt_tuned *want, size_t n_want)
{
    const vkt_host h = vkt_test_host();
    vkt_tuned *list;
    size_t n;
    const char *fault;
    assert_int_equal(vkt_tuning_decode(&h, &id, text, bytes, &list, &n, &fault), VKT_OK);
    if (fault) {
        assert_null(list);
        assert_int_equal(n, 0);
    } else {
        assert_int_equal(n, n_want);
        if (n) assert_memory_equal(list, want, n * sizeof *want);
    }
    vkt_free(&h, list);
    return fault;
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    size_t n;
    char *text = text_of(&id, entries, VKT_COUNT(entries), &n);
    assert_non_null(strstr(text, "\n89abcdef01234567 direct,packed_a\n"));
    assert_non_null(strstr(text, "\nffffffffffffffff shared 64x128,8x4\n"));
    assert_null(fault_of(text, n, entries, VKT_COUNT(entries)));
    text = text_of(&id, NULL, 0, &n);
    assert_null(fault_of(text, n, NULL, 0));
}

/* Encodes and decodes a text that is nearly as large as a tuning file may be (1 MiB). */
static void a_large_file_is_read_back(void **state)
{
    (void)state;
    enum { N = 30000 };
    const vkt_host h = vkt_test_host();
    vkt_tuned *list = vkt_alloc_array(&h, N, sizeof *list);
    assert_non_null(list);
    for (uint32_t i = 0; i < N; i++) {
        list[i] = (vkt_tuned){ .key = (uint64_t)(i + 1) * 0x1234567u, .variants = VKT_V(SHARED) };
        if (i % 3) list[i].tile = (vkt_tile){ (uint16_t)(1 + i % 128), 128, 8, (uint16_t)(1 + i / 128 % 99) };
    }
    vkt_text t = { .h = &h };
    vkt_tuning_encode(&id, list, N, &t);
    assert_false(t.failed);
    assert_in_range(t.len, 900000, 1 << 20);
    assert_null(fault_of(t.s, t.len, list, N));
    vkt_text_free(&t);
    vkt_free(&h, list);
}

/* Writes a file of version `version`, with `lines` and a correct check line, to `text`. Returns the length of the
 * text. */
static size_t with_check(char text[512], int version, const char *lines)
{
    size_t n = (size_t)snprintf(text, 512, "vktrain tuning %d\ndevice %s\nshaders %016llx\n%s", version, id.device,
                                (unsigned long long)id.shaders, lines);
    return n + (size_t)snprintf(text + n, 512 - n, "check %016llx\n",
                                (unsigned long long)vkt_hash(VKT_HASH_START, text, n));
}

/* The current version is 2. A file of version 1, which has no tiles, is still read. A file of version 3 is refused. */
static void a_file_of_the_last_version_is_read(void **state)
{
    (void)state;
    static const vkt_tuned want = { 1, VKT_V(TILE) | VKT_V(SHARED) };
    char text[512];
    assert_null(fault_of(text, with_check(text, 1, "0000000000000001 tile,shared\n"), &want, 1));
    assert_string_equal(fault_of(text, with_check(text, 3, "0000000000000001 tile\n"), NULL, 0), "of another version");
}

static void a_file_of_another_device_or_build_is_stale(void **state)
{
    (void)state;
    size_t n;
    vkt_tuning_id other = id;
    other.device[0] = '1';
    const char *text = text_of(&other, entries, 3, &n);
    assert_string_equal(fault_of(text, n, NULL, 0), "of another device or driver");
    other = id;
    other.shaders++;
    text = text_of(&other, entries, 3, &n);
    assert_string_equal(fault_of(text, n, NULL, 0), "of other shaders");
}

static void a_truncated_file_is_ignored(void **state)
{
    (void)state;
    size_t n;
    char *text = text_of(&id, entries, VKT_COUNT(entries), &n);
    while (n-- > 0) {
        text[n] = 0;
        assert_string_equal(fault_of(text, n, NULL, 0), "truncated or damaged");
    }
}

static void a_damaged_file_is_ignored(void **state)
{
    (void)state;
    size_t n;
    char *text = text_of(&id, entries, VKT_COUNT(entries), &n);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            if (!fault_of(text, n, entries, VKT_COUNT(entries))) fail_msg("bit %d of byte %zu does not matter", bit, i);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
}

/* Each text ends with a correct checksum, but vkt_tuning_encode writes none of these texts. */
static void content_that_makes_no_sense_is_ignored(void **state)
{
    (void)state;
    static const char *const lines[] = { "0000000000000001 no_variant\n",
                                         "0000000000000001 \n",
                                         "0000000000000001\n",
                                         "1 tile\n",
                                         "0000000000000001 tile,\n\n",
                                         "000000000000000g tile\n",
                                         "0000000000000002 tile\n0000000000000001 tile\n",
                                         "0000000000000001 tile\n0000000000000001 tile\n",
                                         "0000000000000001 shared 64x64\n",
                                         "0000000000000001 shared 64x64,8x0\n",
                                         "0000000000000001 shared 64x256,8x4\n",
                                         "0000000000000001 shared 64x64,8x4 \n",
                                         "0000000000000001 shared 064x64,8x4\n",
                                         "0000000000000001 shared  64x64,8x4\n",
                                         "0000000000000001 shared 64x64,8x4000000000000000000000000000\n",
                                         "0000000000000001 tile" };
    for (size_t i = 0; i < VKT_COUNT(lines); i++) {
        char text[512];
        const size_t n = with_check(text, 2, lines[i]);
        if (!fault_of(text, n, NULL, 0)) fail_msg("\"%s\" is accepted", lines[i]);
    }
}

static void decoding_without_memory_is_an_error(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_tuned *list;
    size_t n, bytes;
    const char *fault, *text = text_of(&id, entries, VKT_COUNT(entries), &bytes);
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_tuning_decode(&h, &id, text, bytes, &list, &n, &fault), VKT_E_NOMEM);
    vkt_test_fail_allocation(0);
    assert_null(list);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(a_large_file_is_read_back),
        TEST(a_file_of_the_last_version_is_read),
        TEST(a_file_of_another_device_or_build_is_stale),
        TEST(a_truncated_file_is_ignored),
        TEST(a_damaged_file_is_ignored),
        TEST(content_that_makes_no_sense_is_ignored),
        TEST(decoding_without_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("tuning text", tests, NULL, NULL);
}
