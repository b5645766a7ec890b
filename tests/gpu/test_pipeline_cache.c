/* Tests that the file of the pipeline cache is written, used again, and always checked. */
#include "fake.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/tools.h"

static char root[64]; /* $XDG_CACHE_HOME of this program */

/* The engine's last message about the cache. */
static char logged[1024];
static void keep_debug(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (level == VKT_LOG_DEBUG && strstr(line, "pipeline cache")) snprintf(logged, sizeof logged, "%s", line);
}

/* Opens a context, creates a pipeline and closes the context. `opening` gets the message of the opening, and `logged`
 * the message of the closing. */
static char opening[1024];
static void run(bool no_cache)
{
    vkt_host host = vkt_test_host();
    const uint32_t spec[] = { 8 };
    const vkt_pipeline *p;
    vkt_ctx *ctx = NULL;
    host.log = keep_debug;
    host.log_level = VKT_LOG_DEBUG;
    logged[0] = 0;
    const vkt_result r = vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = no_cache }, &host, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    assert_int_equal(r, VKT_OK);
    snprintf(opening, sizeof opening, "%s", logged);
    assert_int_equal(vkt_pipeline_get(ctx, VKT_K_PHILOX_TEST, false, 0, spec, 1, &p), VKT_OK);
    logged[0] = 0;
    vkt_ctx_destroy(&ctx);
}

/* Writes the path of the only file in the cache directory. Returns false if there is none. */
static bool cache_file(char path[512])
{
    char dir[128];
    snprintf(dir, sizeof dir, "%s/vktrain", root);
    DIR *d = opendir(dir);
    int n = 0;
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.') {
            snprintf(path, 512, "%s/%s", dir, e->d_name);
            n++;
        }
    if (d) closedir(d);
    assert_in_range(n, 0, 1);
    return n == 1;
}

static void says(const char *line, const char *part)
{
    if (strstr(line, part)) return;
    fail_msg("want \"%s\" in \"%s\"", part, line);
}

static void is_written_once_and_used(void **state)
{
    (void)state;
    char path[512];
    run(false);
    says(opening, "not there");
    says(logged, "written");
    assert_true(cache_file(path));
    run(false);
    says(opening, "used");
}

static void is_off_by_option(void **state)
{
    (void)state;
    char path[512];
    run(true);
    assert_false(cache_file(path));
    assert_int_equal(setenv("VKT_NO_PIPELINE_CACHE", "1", 1), 0);
    run(false);
    assert_false(cache_file(path));
    assert_int_equal(unsetenv("VKT_NO_PIPELINE_CACHE"), 0);
}

/* The engine ignores a bad file, logs a debug line and replaces the file by a good file. */
static void bad_files_are_ignored(void **state)
{
    (void)state;
    const vkt_host host = vkt_test_host();
    char path[512];
    unsigned char *good;
    size_t n;
    run(false);
    assert_true(cache_file(path));
    assert_int_equal(vkt_file_read(&host, path, 1 << 28, (void **)&good, &n), VKT_OK);
    const size_t vendor = 24 + 8; /* vendorID: after our header (24 bytes), headerSize and headerVersion */
    const struct {
        size_t bytes, flip; /* size of the file, and index of the changed byte (SIZE_MAX: none) */
        bool rehash;        /* the checksum is computed again, from the changed data */
        const char *want;
    } cases[] = {
        { 0, SIZE_MAX, false, "too short" },
        { 20, SIZE_MAX, false, "too short" },
        { n - 1, SIZE_MAX, false, "truncated" },
        { n, 0, false, "no pipeline cache" },
        { n, 8, false, "truncated" },
        { n, 16, false, "damaged" },
        { n, n - 1, false, "damaged" },
        { n, vendor, true, "of another device or driver" },
        { n, vendor + 8, true, "of another device or driver" },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        unsigned char *bad = malloc(n);
        assert_non_null(bad);
        memcpy(bad, good, n);
        if (cases[i].flip != SIZE_MAX) bad[cases[i].flip] ^= 0x40;
        const uint64_t hash = vkt_hash(VKT_HASH_START, bad + 24, n - 24);
        if (cases[i].rehash) memcpy(bad + 16, &hash, sizeof hash);
        assert_int_equal(vkt_file_write(&host, path, bad, cases[i].bytes), VKT_OK);
        free(bad);
        run(false);
        says(opening, cases[i].want);
        says(logged, "written");
        run(false);
        says(opening, "used");
    }
    vkt_free(&host, good);
}

static void a_path_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    char blocked[128];
    snprintf(blocked, sizeof blocked, "%s/file", root);
    FILE *f = fopen(blocked, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(setenv("XDG_CACHE_HOME", blocked, 1), 0);
    run(false);
    says(logged, "cannot be written");
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative/is/ignored", 1), 0);
    const char *home = getenv("HOME");
    char kept[256];
    snprintf(kept, sizeof kept, "%s", home ? home : "");
    assert_int_equal(unsetenv("HOME"), 0);
    run(false); /* there is no directory for the cache */
    assert_true(opening[0] == 0 && logged[0] == 0);
    assert_int_equal(setenv("HOME", root, 1), 0);
    run(false);
    says(logged, ".cache/vktrain/");
    assert_int_equal(setenv("HOME", kept, 1) | setenv("XDG_CACHE_HOME", root, 1) | unlink(blocked), 0);
}

static int setup(void **state)
{
    char path[512];
    if (cache_file(path)) unlink(path);
    return vkt_test_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, vkt_test_teardown)
int main(void)
{
    snprintf(root, sizeof root, "/tmp/vkt-test-XXXXXX");
    if (!mkdtemp(root) || setenv("XDG_CACHE_HOME", root, 1) || chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        TEST(is_written_once_and_used),
        TEST(is_off_by_option),
        TEST(bad_files_are_ignored),
        TEST(a_path_that_cannot_be_written_is_no_error),
    };
    vkt_tools_begin();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) != 0 || failed;
}
