/* Tests environment variables that hide all drivers, and a context in a forked process. */
#define _DEFAULT_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_dir.h"

static const vkt_ctx_params no_cache = { .no_pipeline_cache = true };

/* ---- drivers ---- */

/* Sets the variable to `value`. Then opening must fail, and the message must name the variable and contain `part`. */
static void hides(const char *variable, const char *value, const char *part)
{
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = NULL;
    uint32_t n = 7;
    unsetenv("VK_DRIVER_FILES");
    unsetenv("VK_ICD_FILENAMES");
    setenv(variable, value, 1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_ctx_create(&no_cache, &host, &ctx), VKT_E_NO_DEVICE);
    assert_null(ctx);
    vkt_test_error_contains(variable);
    vkt_test_error_contains(part);
    vkt_test_error_contains("unset it");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_list_devices(&host, NULL, 0, &n), VKT_OK);
    assert_int_equal(n, 0);
    unsetenv(variable);
}

static void a_variable_that_hides_all_drivers_is_named(void **state)
{
    (void)state;
    const char *files = getenv("VK_DRIVER_FILES"), *icds = getenv("VK_ICD_FILENAMES");
    char *old_files = files ? strdup(files) : NULL, *old_icds = icds ? strdup(icds) : NULL;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "broken.json");
    FILE *f = fopen(path, "w");
    assert_true(
        f && fputs("{ \"file_format_version\": \"1.0.0\", \"ICD\": { \"library_path\": \"/no/such.so\" } }", f) >= 0);
    fclose(f);
    hides("VK_DRIVER_FILES", "/no/such/driver.json", "cannot be read");
    hides("VK_ICD_FILENAMES", "/no/such/driver.json", "cannot be read");
    hides("VK_ICD_FILENAMES", path, "could load none of these");
    vkt_temp_dir_remove(&dir);
    if (old_files) setenv("VK_DRIVER_FILES", old_files, 1);
    if (old_icds) setenv("VK_ICD_FILENAMES", old_icds, 1);
    free(old_files);
    free(old_icds);
}

/* ---- a forked child ---- */

/* Calls functions that would use the device, and destroys the context. Returns whether the calls return VKT_E_STATE.
 * No call may hang. */
static bool is_refused(vkt_ctx *ctx, vkt_buffer *b)
{
    const vkt_host host = vkt_test_host();
    vkt_test_expect_errors(true);
    uint64_t value;
    uint32_t word = 0;
    vkt_buffer *other = NULL;
    bool ok = vkt_ctx_wait_idle(ctx) == VKT_E_STATE &&
              vkt_submit(ctx, VK_NULL_HANDLE, "child", &value) == VKT_E_STATE &&
              vkt_upload(ctx, b, 0, &word, sizeof word) == VKT_E_STATE &&
              vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_OTHER, 256, "child", &other) == VKT_E_STATE &&
              strstr(vkt_test_last_error(), "fork") != NULL;
    vkt_buffer_destroy(ctx, &b);
    ok = ok && vkt_ctx_trim(ctx) == 0; /* nothing is freed, because the memory blocks belong to the parent process */
    vkt_ctx_destroy(&ctx);
    return ok && !ctx && host.log;
}

static void a_forked_child_gets_an_error(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    vkt_buffer *b;
    assert_int_equal(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_OTHER, 256, "parent", &b), VKT_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* ends the child if it hangs */
        _exit(is_refused(ctx, b) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    vkt_buffer_destroy(ctx, &b);
    vkt_ctx_destroy(&ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(a_variable_that_hides_all_drivers_is_named),
                                        TEST(a_forked_child_gets_an_error) };
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
