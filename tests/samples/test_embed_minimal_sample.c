/* Tests samples/embed_minimal.c. The program is short, and docs/embedding.md has it word for word. The network learns a
 * curve. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"

/* The program has no messenger, so the validation layer prints its messages on stdout. LSAN_OPTIONS switches
 * LeakSanitizer off, because the program does not destroy all that it makes. */
static void it_learns_the_curve(void **state)
{
    rig *r = rig_of(state);
    double want, got;
    const char *const env[] = { "LSAN_OPTIONS=detect_leaks=0", NULL }, *const none[] = { NULL };
    run done = program_finish(r, program_start(r, VKT_EMBED_MINIMAL_PROGRAM, env, none));
    assert_int_equal(done.status, 0);
    assert_int_equal(sscanf(done.out, "the curve ends at %lf, the network predicts %lf", &want, &got), 2);
    assert_float_equal(want, sin(4 * 511.0 / 512), 1e-3);
    assert_float_equal(got, want, 0.1);
    assert_null(strstr(done.out, "alidation"));
    run_forget(r, &done);
}

static char *text_of(const vkt_host *h, const char *path)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(h, path, 1 << 20, &bytes, &n), VKT_OK);
    return bytes;
}

static void the_guide_has_it(void **state)
{
    rig *r = rig_of(state);
    char *guide = text_of(&r->h, VKT_TEST_DIR "/../docs/embedding.md");
    char *source = text_of(&r->h, VKT_TEST_DIR "/../samples/embed_minimal.c");
    int lines = 0;
    for (const char *c = source; *c; c++) lines += *c == '\n';
    assert_in_range(lines, 1, 119);
    assert_non_null(strstr(guide, source));
    vkt_free(&r->h, guide);
    vkt_free(&r->h, source);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(it_learns_the_curve), rig_test(the_guide_has_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
