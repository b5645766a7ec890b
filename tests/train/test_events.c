/* Tests event files: the checksums of records, the bytes of messages, and failures. tests/tensorboard/check.py tests
 * that TensorBoard can read the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/host.h"
#include "support/temp_dir.h"
#include "train/events.h"
#include "vktrain/events.h"

/* The first number is the check value of the CRC catalogue. The other two are from RFC 3720, appendix B.4. */
static void the_checksum_is_crc_32c(void **state)
{
    (void)state;
    uint8_t zeros[32] = { 0 }, rising[32];
    for (uint8_t i = 0; i < 32; i++) rising[i] = i;
    assert_int_equal(vkt_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(vkt_crc32c(zeros, 32), 0x8a9136aa);
    assert_int_equal(vkt_crc32c(rising, 32), 0x46dd794e);
}

/* Returns the bytes of the event file with the index `which` (0 is the first) in the order of names. The caller frees
 * the bytes. */
static uint8_t *read_file(const vkt_temp_dir *dir, unsigned which, size_t *n)
{
    struct dirent **list;
    const int count = scandir(dir->path, &list, NULL, alphasort);
    uint8_t *bytes = NULL;
    for (int i = 0; i < count; i++) {
        if (strncmp(list[i]->d_name, "events.out.tfevents.", 20) == 0 && which-- == 0) {
            FILE *f = fopen(vkt_temp_dir_file(dir, list[i]->d_name), "rb");
            assert_non_null(f);
            bytes = malloc(1 << 16);
            assert_non_null(bytes);
            *n = fread(bytes, 1, 1 << 16, f);
            assert_int_equal(fclose(f), 0);
        }
        free(list[i]);
    }
    free(list);
    assert_non_null(bytes);
    return bytes;
}

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Loops over all records, checks their checksums, and returns how many records there are. *last is the message of the
 * last record. */
static unsigned read_records(const uint8_t *p, size_t n, const uint8_t **last, size_t *last_n)
{
    unsigned records = 0;
    for (size_t at = 0; at < n; records++) {
        assert_true(n - at >= 16);
        const uint64_t len = little_endian(p + at, 8);
        assert_int_equal(little_endian(p + at + 8, 4), masked(vkt_crc32c(p + at, 8)));
        assert_true(len <= n - at - 16);
        *last = p + at + 12;
        *last_n = (size_t)len;
        assert_int_equal(little_endian(p + at + 12 + len, 4), masked(vkt_crc32c(*last, *last_n)));
        at += (size_t)len + 16;
    }
    return records;
}

static bool has(const uint8_t *p, size_t n, const char *text)
{
    const size_t len = strlen(text);
    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(p + i, text, len) == 0) return true;
    return false;
}

/* Checks that a message is `want` after its first 9 bytes, which have the wall time. */
static void expect_message(const uint8_t *message, size_t n, const uint8_t *want, size_t want_n)
{
    assert_true(n >= 9);
    assert_int_equal(message[0], 1 << 3 | 1);
    assert_int_equal(n - 9, want_n);
    assert_memory_equal(message + 9, want, want_n);
}

typedef struct rig {
    vkt_temp_dir dir;
    vkt_host h;
    vkt_events *e;
} rig;

static int setup(void **state)
{
    rig *r = calloc(1, sizeof *r);
    vkt_test_setup(state);
    *state = r;
    r->h = vkt_test_host();
    r->dir = vkt_temp_dir_make();
    return vkt_events_create(&r->h, r->dir.path, 0, &r->e) == VKT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    rig *r = *state;
    vkt_events_destroy(&r->e);
    vkt_temp_dir_remove(&r->dir);
    free(r);
    return vkt_test_teardown(state);
}

static void a_scalar_is_a_record(void **state)
{
    rig *r = *state;
    const uint8_t *last;
    size_t n, last_n;
    assert_int_equal(vkt_events_scalar(r->e, "a/b", 300, 0.5), VKT_OK);
    assert_int_equal(vkt_events_flush(r->e), VKT_OK);
    uint8_t *file = read_file(&r->dir, 0, &n);
    assert_int_equal(read_records(file, n, &last, &last_n), 2);
    static const uint8_t want[] = { 0x10, 0xac, 0x02,               /* step 300 */
                                    0x2a, 25,   0x0a, 23,           /* summary, value */
                                    0x0a, 3,    'a',  '/', 'b',     /* tag */
                                    0x15, 0,    0,    0,   0x3f,    /* 0.5f */
                                    0x4a, 11,   0x0a, 9,   0x0a, 7, /* metadata, plugin data, name of the plugin */
                                    's',  'c',  'a',  'l', 'a',  'r', 's' };
    expect_message(last, last_n, want, sizeof want);
    free(file);
}

static void a_run_that_continues_prints_from_where(void **state)
{
    rig *r = *state;
    const uint8_t *last;
    size_t n, last_n;
    vkt_events_destroy(&r->e);
    /* Two files may be made in the same second of time. Their names must still differ. */
    assert_int_equal(vkt_events_create(&r->h, r->dir.path, 7, &r->e), VKT_OK);
    assert_int_equal(vkt_temp_dir_count(&r->dir), 2);
    uint8_t *file = read_file(&r->dir, 1, &n);
    assert_int_equal(read_records(file, n, &last, &last_n), 2);
    static const uint8_t want[] = { 0x10, 7, 0x3a, 2, 0x08, 1 }; /* step 7, session log: start */
    expect_message(last, last_n, want, sizeof want);
    free(file);
}

static void texts_and_images_are_records(void **state)
{
    rig *r = *state;
    const uint8_t *last, pixels[12] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9 };
    size_t n, last_n;
    assert_int_equal(vkt_events_text(r->e, "t", 0, "two words"), VKT_OK);
    assert_int_equal(vkt_events_image(r->e, "i", 1, pixels, 2, 2, 3), VKT_OK);
    assert_int_equal(vkt_events_image(r->e, "i", 2, pixels, 3, 4, 1), VKT_OK);
    assert_int_equal(vkt_events_image(r->e, "i", 3, pixels, 1, 3, 4), VKT_OK);
    assert_int_equal(vkt_events_flush(r->e), VKT_OK);
    uint8_t *file = read_file(&r->dir, 0, &n);
    assert_int_equal(read_records(file, n, &last, &last_n), 5);
    assert_true(has(file, n, "two words"));
    assert_true(has(last, last_n, "\x89PNG"));
    free(file);
}

static void wrong_arguments_are_refused(void **state)
{
    rig *r = *state;
    vkt_events *none = NULL;
    const uint8_t pixel = 0;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_events_create(&r->h, NULL, 0, &none), VKT_E_ARG);
    assert_int_equal(vkt_events_create(&r->h, r->dir.path, 0, NULL), VKT_E_ARG);
    assert_int_equal(vkt_events_create(&r->h, vkt_temp_dir_file(&r->dir, "nowhere"), 0, &none), VKT_E_IO);
    assert_null(none);
    assert_int_equal(vkt_events_scalar(r->e, NULL, 0, 1), VKT_E_ARG);
    assert_int_equal(vkt_events_scalar(NULL, "a", 0, 1), VKT_E_ARG);
    assert_int_equal(vkt_events_text(r->e, "", 0, "x"), VKT_E_ARG);
    assert_int_equal(vkt_events_image(r->e, "i", 0, NULL, 1, 1, 1), VKT_E_ARG);
    assert_int_equal(vkt_events_image(r->e, "i", 0, &pixel, 1, 1, 2), VKT_E_ARG);
    assert_int_equal(vkt_events_image(r->e, "i", 0, &pixel, 0, 1, 1), VKT_E_ARG);
    assert_int_equal(vkt_events_flush(NULL), VKT_E_ARG);
    vkt_events_destroy(NULL);
}

/* Each allocation fails once. Afterwards the file must have whole records only. */
static void a_failed_allocation_is_a_status(void **state)
{
    rig *r = *state;
    const uint8_t *last, pixels[4] = { 1, 2, 3, 4 };
    size_t n, last_n;
    vkt_test_expect_errors(true);
    for (unsigned i = 1;; i++) {
        vkt_test_fail_allocation(i);
        const vkt_result scalar = vkt_events_scalar(r->e, "s", i, 1);
        const vkt_result text = vkt_events_text(r->e, "t", i, "x");
        const vkt_result image = vkt_events_image(r->e, "i", i, pixels, 2, 2, 1);
        vkt_test_fail_allocation(0);
        if (scalar == VKT_OK && text == VKT_OK && image == VKT_OK) break;
        assert_true(scalar == VKT_E_NOMEM || text == VKT_E_NOMEM || image == VKT_E_NOMEM);
        assert_in_range(i, 1, 99);
    }
    assert_int_equal(vkt_events_flush(r->e), VKT_OK);
    uint8_t *file = read_file(&r->dir, 0, &n);
    assert_true(read_records(file, n, &last, &last_n) > 3);
    free(file);
}

static void a_full_disk_is_a_status(void **state)
{
    rig *r = *state;
    struct rlimit old, small;
    void (*const before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100;
    char text[512];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_events_text(r->e, "t", 0, text), VKT_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(vkt_events_flush(r->e), VKT_E_IO);
    vkt_test_error_contains("events.out.tfevents.");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, before);
    assert_int_equal(vkt_events_scalar(r->e, "s", 1, 1), VKT_E_IO);
    assert_int_equal(vkt_events_flush(r->e), VKT_E_IO);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_crc_32c),
        TEST(a_scalar_is_a_record),
        TEST(a_run_that_continues_prints_from_where),
        TEST(texts_and_images_are_records),
        TEST(wrong_arguments_are_refused),
        TEST(a_failed_allocation_is_a_status),
        TEST(a_full_disk_is_a_status),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
