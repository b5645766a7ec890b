/* Tests the program vkt-bench as its users run it: a short run, its files, its exit codes, and the result of --tune. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/schema.h"
#include "gpu/gpu.h"
#include "kernel/tuning.h"
#include "support/host.h"
#include "support/temp_dir.h"

enum { MAX_ARGS = 16 };

static vkt_temp_dir dir; /* the program's working directory */
static char cache[64];   /* the program's cache directory */
static bool has_device;

static int open_device(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx = NULL;
    dir = vkt_temp_dir_make();
    snprintf(cache, sizeof cache, "/tmp/vkt-bench-XXXXXX");
    if (!mkdtemp(cache) || setenv("XDG_CACHE_HOME", cache, 1)) return -1;
    const vkt_result r = vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx);
    has_device = r == VKT_OK;
#ifndef VKT_REQUIRE_DEVICE
    if (!has_device) puts("SKIPPED: no Vulkan device");
#else
    assert_int_equal(r, VKT_OK);
#endif
    if (has_device) vkt_test_ran_on(vkt_ctx_device(ctx)->name, vkt_ctx_device(ctx)->driver);
    vkt_ctx_destroy(&ctx);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    vkt_temp_dir_remove(&dir);
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    return system(command);
}

static char *text_of(const char *name)
{
    const vkt_host h = vkt_test_host();
    void *text;
    size_t n;
    assert_int_equal(vkt_file_read(&h, vkt_temp_dir_file(&dir, name), 1 << 24, &text, &n), VKT_OK);
    return text;
}

/* Runs the program in the directory, and writes its output to the directory's files `out` and `err`. Returns the exit
 * code, or -1 if a signal ended the program. */
static int run(const char *const *args)
{
    const char *argv[MAX_ARGS + 2] = { VKT_BENCH_PROGRAM };
    for (int i = 0; args[i]; i++) argv[i + 1] = args[i];
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(dir.path) != 0) _exit(127);
        dup2(open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
        dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    const vkt_host h = vkt_test_host();
    char *err = text_of("err");
    if (strstr(err, "validation:")) fail_msg("%s", err);
    vkt_free(&h, err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static void says(const char *file, const char *part)
{
    const vkt_host h = vkt_test_host();
    char *text = text_of(file);
    const bool found = strstr(text, part);
    if (!found) print_error("want \"%s\" in \"%s\"\n", part, text);
    vkt_free(&h, text);
    assert_true(found);
}

static unsigned count(const char *file, const char *part)
{
    const vkt_host h = vkt_test_host();
    unsigned n = 0;
    char *text = text_of(file);
    for (size_t i = 0; text[i]; i++) n += strncmp(text + i, part, strlen(part)) == 0;
    vkt_free(&h, text);
    return n;
}

static void a_short_run_measures_and_writes(void **state)
{
    (void)state;
    if (!has_device) skip();
    char why[256];
    assert_int_equal(RUN("--filter", "conv2d", "--sizes", "small", "--variant", "tile", "--min-time", "1", "--json",
                         "a.json", "--csv", "a.csv", "--plot", "a.svg"),
                     0);
    says("out", "conv2d\n");
    says("out", "checked");
    says("a.csv", "[tile]\",conv2d,forward,");
    says("a.json", "\"conv2d d");
    says("a.svg", "<svg");
    if (!schema_fits("bench", vkt_temp_dir_file(&dir, "a.json"), why)) fail_msg("%s", why);
    const int status = RUN("--filter", "conv2d forward", "--sizes", "small", "--variant", "tile", "--min-time", "1",
                           "--compare", "a.json");
    assert_true(status == 0 || status == 3); /* 3: slower than in a.json, which can happen on a busy machine */
    says("out", " were in a.json");
}

/* Checks that a filter may name any phase of an op: forward, or the gradients of some inputs. For instance, the phase
 * d0+d2 computes the gradients of inputs 0 and 2. */
static void a_filter_knows_every_phase(void **state)
{
    if (!has_device) skip();
    (void)state;
    assert_int_equal(RUN("--filter", "^(batch_norm d0\\+d2|mlp d0\\+d1\\+d2\\+d3.*wide)", "--sizes", "small",
                         "--min-time", "1", "--json", "c.json"),
                     0);
    says("c.json", "batch_norm d0+d2 ");
    says("c.json", "mlp d0+d1+d2+d3+");
}

static void steps_and_the_device_are_measured(void **state)
{
    (void)state;
    if (!has_device) skip();
    assert_int_equal(
        RUN("--filter", "step linreg|micro (submit|barrier|upload|pipeline)", "--min-time", "1", "--json", "b.json"),
        0);
    char why[256];
    if (!schema_fits("bench", vkt_temp_dir_file(&dir, "b.json"), why)) fail_msg("%s", why);
    says("b.json", "\"check\": \"checked-step\"");
    says("b.json", "\"micro pipeline ");
}

static void shapes_come_from_a_file(void **state)
{
    (void)state;
    if (!has_device) skip();
    const vkt_host h = vkt_test_host();
    static const char good[] = "# two cases\nmatmul (24,20) (20,28)\n\nlinear (5,8)b (3,8) -\n", bad[] = "relu (3\n";
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "shapes"), good, sizeof good - 1), VKT_OK);
    assert_int_equal(RUN("--shapes", "shapes", "--min-time", "1", "--variant", "packed", "--csv", "c.csv"), 0);
    says("c.csv", "\"matmul forward (24,20) (20,28) [packed]\"");
    assert_int_equal(RUN("--shapes", "shapes", "--min-time", "1", "--preferred", "--csv", "d.csv"), 0);
    /* The product has several variants. With --preferred, only one is measured. */
    assert_int_equal(count("d.csv", "\"matmul forward (24,20) (20,28) ["), 1);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "shapes"), bad, sizeof bad - 1), VKT_OK);
    assert_int_equal(RUN("--shapes", "shapes", "--min-time", "1"), 1);
    says("err", "want an input");
}

static void tuning_is_used_by_programs_to_come(void **state)
{
    (void)state;
    if (!has_device) skip();
    assert_int_equal(RUN("--tune", "linreg-1e6", "--min-time", "1"), 0);
    says("out", "entries written to");
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx;
    assert_int_equal(vkt_ctx_create_wide(NULL, &h, &ctx), VKT_OK); /* vkt-bench opens its context in the same way */
    assert_int_equal(vkt_tuning_use(ctx), VKT_OK);
    assert_true(ctx->limits.choices.n_tuned > 0);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(RUN("--tune", "warp"), 1);
    says("err", "no network 'warp'");
}

/* If a file cannot be opened, or the file of --compare cannot be used, the program must end before it measures. If a
 * file cannot be written, the program must still write all other files and print the table. */
static void files_are_tried_and_an_output_that_fails_keeps_no_other(void **state)
{
    (void)state;
    if (!has_device) skip();
    const vkt_host h = vkt_test_host();
    char why[256];
    assert_int_equal(RUN("--sizes", "large", "--plot", "roofline.txt"), 2);
    says("err", "--plot: want a name that ends with .svg or .png, got 'roofline.txt'");
    assert_int_equal(RUN("--filter", "conv2d", "--sizes", "large", "--csv", "none/f"), 1);
    says("err", "none/f");
    assert_int_equal(count("out", "\n"), 0); /* no measurement was made */
    assert_int_equal(RUN("--filter", "relu forward", "--sizes", "small", "--min-time", "1", "--compare", "none.json"),
                     1);
    says("err", "none.json");
    assert_int_equal(count("out", "\n"), 0);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "old"), "{}", 2), VKT_OK);
    assert_int_equal(RUN("--filter", "relu forward", "--sizes", "small", "--min-time", "1", "--compare", "old"), 1);
    says("err", "\"old\" is no result of vkt-bench");
    assert_int_equal(count("err", "relu"), 0); /* no measurement was begun */
    assert_int_equal(
        RUN("--filter", "relu forward", "--sizes", "small", "--min-time", "1", "--json", "-", "--csv", "/dev/full"), 1);
    says("err", "/dev/full");
    says("err", "GFLOP/s");
    if (!schema_fits("bench", vkt_temp_dir_file(&dir, "out"), why)) fail_msg("%s", why);
}

static void wrong_options_end_with_2(void **state)
{
    (void)state;
    assert_int_equal(RUN("--sizes", "huge"), 2);
    assert_int_equal(RUN("--filter", "("), 2);
    assert_int_equal(RUN("--variant", "warp"), 2);
    assert_int_equal(RUN("--min-time", "0"), 2);
    assert_int_equal(RUN("words"), 2);
    static const char *const ignored[][2] = { { "--filter", "relu" },    { "--sizes", "small" }, { "--shapes", "s" },
                                              { "--variant", "tile" },   { "--json", "j" },      { "--csv", "c" },
                                              { "--compare", "a.json" }, { "--plot", "p.svg" } };
    for (size_t i = 0; i < VKT_COUNT(ignored); i++) {
        assert_int_equal(RUN(ignored[i][0], ignored[i][1], "--tune", "none"), 2);
        says("err", ignored[i][0]);
    }
    assert_int_equal(RUN("--tune", "none", "--preferred"), 2);
    says("err", "--tune has no use for --preferred");
    assert_int_equal(RUN("--help"), 0);
    says("out", "--compare");
    assert_int_equal(RUN("-h"), 0);
    says("out", "--compare");
    assert_int_equal(RUN("--version"), 0);
    says("out", "vktrain ");
    assert_int_equal(RUN("--list"), 0);
    says("out", "tile ");
    says("out", "mnist-b128 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_short_run_measures_and_writes, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(a_filter_knows_every_phase, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(steps_and_the_device_are_measured, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(shapes_come_from_a_file, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(tuning_is_used_by_programs_to_come, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(files_are_tried_and_an_output_that_fails_keeps_no_other, vkt_test_setup,
                                        vkt_test_teardown),
        cmocka_unit_test_setup_teardown(wrong_options_end_with_2, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("vkt-bench", tests, open_device, remove_dir);
}
