/* Tests that new entries are merged into the tuning file of a device, and that the next context uses them. A bad file
 * is ignored with one warning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "kernel/tuning.h"
#include "support/host.h"

static char root[64]; /* $XDG_CACHE_HOME of this program */
static unsigned warnings;
static char logged[1024];

static void keep(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (level != VKT_LOG_WARN || !strstr(line, "tuning")) return;
    warnings++;
    snprintf(logged, sizeof logged, "%s", line);
}

static vkt_ctx *open_ctx(bool no_cache)
{
    vkt_host h = vkt_test_host();
    vkt_ctx *ctx = NULL;
    h.log = keep;
    warnings = 0;
    const vkt_result r = vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = no_cache }, &h, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    assert_int_equal(r, VKT_OK);
    return ctx;
}

/* Returns the number of entries that a new context reads from the tuning file. *first gets the first entry, if there is
 * one and `first` is not NULL. */
static size_t entries_seen(bool no_cache, vkt_tuned *first)
{
    vkt_ctx *ctx = open_ctx(no_cache);
    assert_int_equal(vkt_tuning_use(ctx), VKT_OK);
    assert_int_equal(vkt_tuning_use(ctx), VKT_OK); /* the second call neither reads nor warns */
    const size_t n = ctx->limits.choices.n_tuned;
    if (n && first) *first = ctx->limits.choices.tuned[0];
    vkt_ctx_destroy(&ctx);
    return n;
}

static void path_of(char out[512])
{
    vkt_ctx *ctx = open_ctx(false);
    char *path;
    assert_int_equal(vkt_tuning_path(ctx, &path), VKT_OK);
    assert_non_null(path);
    snprintf(out, 512, "%s", path);
    vkt_free(&ctx->host, path);
    vkt_ctx_destroy(&ctx);
}

static void add(const vkt_tuned *list, size_t n)
{
    vkt_ctx *ctx = open_ctx(false);
    assert_int_equal(vkt_tuning_add(ctx, list, n), VKT_OK);
    assert_true(ctx->limits.choices.n_tuned >= n);
    vkt_ctx_destroy(&ctx);
}

static void entries_are_merged_and_used_by_the_next_context(void **state)
{
    (void)state;
    vkt_tuned first;
    char path[512];
    assert_int_equal(entries_seen(false, NULL), 0);
    assert_int_equal(warnings, 0);
    add((const vkt_tuned[]){ { 7, VKT_V(TILE) }, { 3, VKT_V(TILE) } }, 2);
    assert_int_equal(entries_seen(false, &first), 2);
    assert_true(first.key == 3 && first.variants == VKT_V(TILE));
    add((const vkt_tuned[]){ { 3, VKT_V(DIRECT) }, { 5, VKT_V(DIRECT) } }, 2);
    assert_int_equal(entries_seen(false, &first), 3);
    assert_true(first.key == 3 && first.variants == VKT_V(DIRECT));
    assert_int_equal(entries_seen(true, NULL), 0); /* this context does not use the cache directory */
    assert_int_equal(setenv("VKT_NO_TUNING", "1", 1), 0);
    assert_int_equal(entries_seen(false, NULL), 0);
    assert_int_equal(unsetenv("VKT_NO_TUNING"), 0);
    path_of(path);
    assert_int_equal(unlink(path), 0);
}

static void a_bad_file_is_ignored_with_one_warning(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    static const char *const bad[] = { "", "vktrain tuning 1\n", "not a tuning file, but long enough to be one" };
    char path[512];
    add((const vkt_tuned[]){ { 7, VKT_V(TILE) } }, 1);
    path_of(path);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_file_write(&h, path, bad[i], strlen(bad[i])), VKT_OK);
        assert_int_equal(entries_seen(false, NULL), 0);
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(logged, "truncated or damaged: ignored"));
    }
    add((const vkt_tuned[]){ { 9, VKT_V(TILE) } }, 1); /* replaces the bad file */
    assert_int_equal(entries_seen(false, NULL), 1);
    assert_int_equal(warnings, 0);
    assert_int_equal(unlink(path), 0);
}

static void without_a_cache_nothing_is_written(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_ctx(true);
    const vkt_tuned entry = { 1, VKT_V(TILE) };
    assert_int_equal(vkt_tuning_add(ctx, &entry, 1), VKT_E_STATE);
    vkt_ctx_destroy(&ctx);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/vkt-tuning-XXXXXX");
    return mkdtemp(root) ? setenv("XDG_CACHE_HOME", root, 1) : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_are_merged_and_used_by_the_next_context),
        TEST(a_bad_file_is_ignored_with_one_warning),
        TEST(without_a_cache_nothing_is_written),
    };
    return cmocka_run_group_tests_name("tuning file", tests, make_root, remove_root);
}
