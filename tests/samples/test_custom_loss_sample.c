/* Tests samples/custom_loss.c. The program is short. docs/custom.md has the program and its shader word for word. With
 * its own loss, the program finds the right line in spite of outliers. */
#include "samples/program.h"

#include <stdio.h>

#include "base/file.h"

static void its_loss_finds_the_line(void **state)
{
    rig *r = rig_of(state);
    double w[2], b[2];
    const char *const none[] = { NULL };
    run done = program_finish(r, program_start(r, VKT_CUSTOM_LOSS_PROGRAM, NULL, none));
    assert_int_equal(done.status, 0);
    assert_int_equal(
        sscanf(done.out, "mean squared error y = %lf x + %lf own loss y = %lf x + %lf", &w[0], &b[0], &w[1], &b[1]), 4);
    assert_true(w[0] > 2.5 && b[0] > 1.5); /* the outliers pull the first line up */
    assert_float_equal(w[1], 2, 0.1);
    assert_float_equal(b[1], 1, 0.1);
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
    char *guide = text_of(&r->h, VKT_TEST_DIR "/../docs/custom.md");
    char *source = text_of(&r->h, VKT_TEST_DIR "/../samples/custom_loss.c");
    char *shader = text_of(&r->h, VKT_TEST_DIR "/../samples/custom_loss.comp");
    int lines = 0;
    for (const char *c = source; *c; c++) lines += *c == '\n';
    assert_in_range(lines, 1, 79);
    assert_non_null(strstr(guide, source));
    assert_non_null(strstr(guide, shader));
    vkt_free(&r->h, guide);
    vkt_free(&r->h, source);
    vkt_free(&r->h, shader);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(its_loss_finds_the_line), rig_test(the_guide_has_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
