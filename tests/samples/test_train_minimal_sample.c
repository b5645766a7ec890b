/* Tests samples/train_minimal.c. The program is short, and README.md has it word for word. Its network learns digits
 * and a folder of images. */
#include "samples/program.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"

#define RUN(r, ...) \
    program_finish(r, program_start(r, VKT_TRAIN_MINIMAL_PROGRAM, NULL, (const char *const[]){ __VA_ARGS__ NULL }))

static void it_learns_generated_digits(void **state)
{
    rig *r = rig_of(state);
    double percent = 0;
    run done = RUN(r, );
    assert_int_equal(done.status, 0);
    const char *last = strstr(done.out, "of the test images");
    assert_non_null(last);
    while (last > done.out && last[-1] != '\n') last--;
    assert_int_equal(sscanf(last, "%lf %%", &percent), 1);
    assert_true(percent > 90 && percent <= 100);
    assert_true(program_wrote(r, "weights.safetensors"));
    run_forget(r, &done);
}

static void copy_image(rig *r, const char *from, const char *to)
{
    void *bytes;
    size_t n;
    char path[512];
    snprintf(path, sizeof path, "%s/golden/images/%s", VKT_TEST_DIR, from);
    assert_int_equal(vkt_file_read(&r->h, path, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, to), bytes, n), VKT_OK);
    vkt_free(&r->h, bytes);
}

static void it_reads_a_folder_of_images(void **state)
{
    rig *r = rig_of(state);
    static const char *const folders[] = { "own", "own/colour", "own/gray" };
    for (size_t i = 0; i < VKT_COUNT(folders); i++)
        assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, folders[i]), 0700), 0);
    copy_image(r, "420.jpg", "own/colour/1.jpg");
    copy_image(r, "444.jpg", "own/colour/2.jpg");
    copy_image(r, "progressive.jpg", "own/colour/3.jpg");
    copy_image(r, "gray.jpg", "own/gray/1.jpg");
    copy_image(r, "gray_20x20.png", "own/gray/2.png");
    copy_image(r, "gray_53x20.png", "own/gray/3.png");
    run done = RUN(r, vkt_temp_dir_file(&r->dir, "own"), );
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "of the test images"));
    run_forget(r, &done);
}

static void a_wrong_folder_ends_it_with_a_reason(void **state)
{
    rig *r = rig_of(state);
    run done = RUN(r, "no-such-folder", );
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "no-such-folder"));
    run_forget(r, &done);
}

static char *text_of(const vkt_host *h, const char *path)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(h, path, 1 << 20, &bytes, &n), VKT_OK);
    return bytes;
}

static void the_readme_has_it(void **state)
{
    rig *r = rig_of(state);
    char *readme = text_of(&r->h, VKT_TEST_DIR "/../README.md");
    char *source = text_of(&r->h, VKT_TEST_DIR "/../samples/train_minimal.c");
    int lines = 0, readme_lines = 0;
    for (const char *c = source; *c; c++) lines += *c == '\n';
    for (const char *c = readme; *c; c++) readme_lines += *c == '\n';
    assert_in_range(lines, 1, 55);
    assert_in_range(readme_lines, 1, 150);
    assert_non_null(strstr(readme, source));
    vkt_free(&r->h, readme);
    vkt_free(&r->h, source);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(it_learns_generated_digits), rig_test(it_reads_a_folder_of_images),
                                        rig_test(a_wrong_folder_ends_it_with_a_reason), rig_test(the_readme_has_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
