/* Files: what is read, what is refused, and that no failure of writing harms the old file or leaves a temporary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "support/host.h"
#include "support/temp_dir.h"

/* The text under `path`, compared; the caller knows that it exists. */
static void assert_content(const char *path, const char *want)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(n, strlen(want));
    assert_string_equal(bytes, want); /* the NUL behind it is promised */
    vkt_free(&h, bytes);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_file_write(&h, path, "one", 3), VKT_OK);
    assert_content(path, "one");
    assert_int_equal(vkt_file_write(&h, path, "", 0), VKT_OK);
    assert_content(path, "");
    vkt_file_writer w;
    assert_int_equal(vkt_file_writer_begin(&h, path, &w), VKT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(vkt_file_writer_write(&w, "chunk ", 6), VKT_OK);
    assert_content(path, ""); /* nothing is seen before the commit */
    assert_int_equal(vkt_file_writer_commit(&w), VKT_OK);
    assert_content(path, "chunk chunk chunk ");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);

    vkt_file f;
    char part[6] = { 0 };
    assert_int_equal(vkt_file_open(&h, path, &f), VKT_OK);
    assert_int_equal(f.size, 18);
    assert_int_equal(vkt_file_read_at(&f, 6, part, 5), VKT_OK);
    assert_string_equal(part, "chunk");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_read_at(&f, 14, part, 5), VKT_E_IO);
    vkt_test_error_says("ends 1 bytes too early");
    assert_int_equal(vkt_file_read_at(&f, UINT64_MAX, part, 5), VKT_E_ARG);
    vkt_file_close(&f);
    vkt_file_close(&f);
    vkt_temp_dir_remove(&dir);
}

static void what_cannot_be_read_is_refused_with_a_reason(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *fifo = vkt_temp_dir_file(&dir, "fifo");
    void *bytes = (void *)1;
    size_t n = 1;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_read(&h, path, 10, &bytes, &n), VKT_E_NOT_FOUND);
    assert_null(bytes);
    assert_int_equal(n, 0);
    vkt_test_error_says(path);
    vkt_test_error_says("No such file");
    assert_int_equal(vkt_file_read(&h, dir.path, 10, &bytes, &n), VKT_E_IO);
    vkt_test_error_says("not a regular file");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(vkt_file_read(&h, fifo, 10, &bytes, &n), VKT_E_IO); /* and does not wait for a writer */
    assert_int_equal(vkt_file_write(&h, path, "0123456789", 10), VKT_OK);
    assert_int_equal(vkt_file_read(&h, path, 10, &bytes, &n), VKT_OK);
    vkt_free(&h, bytes);
    assert_int_equal(vkt_file_read(&h, path, 9, &bytes, &n), VKT_E_FORMAT);
    vkt_test_error_says("want at most 9");
    vkt_temp_dir_remove(&dir);
}

static void an_aborted_write_leaves_the_old_file_alone(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_file_write(&h, path, "old", 3), VKT_OK);
    vkt_file_writer w, zero = { 0 };
    assert_int_equal(vkt_file_writer_begin(&h, path, &w), VKT_OK);
    assert_int_equal(vkt_file_writer_write(&w, "new", 3), VKT_OK);
    assert_int_equal(vkt_temp_dir_count(&dir), 2);
    vkt_file_writer_abort(&w);
    vkt_file_writer_abort(&w);
    vkt_file_writer_abort(&zero);
    assert_int_equal(vkt_file_writer_write(&w, "x", 1), VKT_E_STATE);
    assert_int_equal(vkt_file_writer_commit(&w), VKT_E_STATE);
    assert_content(path, "old");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

/* RLIMIT_FSIZE makes the kernel write short first and then fail, as a full disk does. In a child: the limit is for the
 * process. */
static int write_beyond_the_limit(const char *path)
{
    const vkt_host h = vkt_test_host();
    const struct rlimit limit = { 1000, 1000 };
    vkt_test_expect_errors(true);
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    static const char block[1 << 12];
    if (vkt_file_write(&h, path, block, sizeof block) != VKT_E_IO) return 3;
    if (!strstr(vkt_test_last_error(), "File too large") || !strstr(vkt_test_last_error(), path)) return 4;
    return vkt_test_live_blocks() == 0 ? 0 : 5;
}

static int write_into_a_readonly_directory(const char *path)
{
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    if (geteuid() == 0 && setuid(65534) != 0) return 2; /* root may write everywhere */
    if (vkt_file_write(&h, path, "new", 3) != VKT_E_IO) return 3;
    if (!strstr(vkt_test_last_error(), "Permission denied")) return 4;
    return vkt_test_live_blocks() == 0 ? 0 : 5;
}

/* The child's result; nonzero names the check that failed. */
static int in_a_child(int (*run)(const char *), const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(run(path));
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void a_full_disk_and_a_readonly_directory_leave_the_old_file_alone(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_file_write(&h, path, "old", 3), VKT_OK);
    assert_int_equal(in_a_child(write_beyond_the_limit, path), 0);
    assert_content(path, "old");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    assert_int_equal(chmod(dir.path, 0555), 0);
    assert_int_equal(in_a_child(write_into_a_readonly_directory, path), 0);
    assert_content(path, "old");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

static void paths_that_are_no_files_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_write(&h, dir.path, "x", 1), VKT_E_IO);
    vkt_test_error_says("not a regular file");
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, ""), "x", 1), VKT_E_IO);
    vkt_test_error_says("names no file");
    assert_int_equal(vkt_file_write(&h, "", "x", 1), VKT_E_IO);
    assert_int_equal(vkt_file_write(&h, "/dev/null", "x", 1), VKT_E_IO); /* not replaced by a file, even for root */
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "none/a"), "x", 1), VKT_E_IO);
    vkt_test_error_says("No such file");
    assert_int_equal(vkt_temp_dir_count(&dir), 0);
    vkt_temp_dir_remove(&dir);
}

static void permissions_are_kept(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    struct stat st;
    const mode_t old = umask(022);
    assert_int_equal(vkt_file_write(&h, path, "x", 1), VKT_OK);
    umask(old);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(vkt_file_write(&h, path, "y", 1), VKT_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    vkt_temp_dir_remove(&dir);
}

static void a_left_temporary_is_taken_over_and_a_busy_one_is_not(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *temp = vkt_temp_dir_file(&dir, "a.tmp");
    const int fd = open(temp, O_WRONLY | O_CREAT, 0600); /* as a killed process leaves it: no lock */
    assert_int_equal(write(fd, "longer than the new one", 23), 23);
    close(fd);
    assert_int_equal(vkt_file_write(&h, path, "new", 3), VKT_OK);
    assert_content(path, "new");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);

    vkt_file_writer first, second;
    assert_int_equal(vkt_file_writer_begin(&h, path, &first), VKT_OK);
    assert_int_equal(vkt_file_writer_begin(&h, path, &second), VKT_OK);
    assert_int_equal(vkt_file_writer_write(&first, "first", 5), VKT_OK);
    assert_int_equal(vkt_file_writer_write(&second, "second", 6), VKT_OK);
    assert_int_equal(vkt_file_writer_commit(&second), VKT_OK);
    assert_content(path, "second");
    assert_int_equal(vkt_file_writer_commit(&first), VKT_OK);
    assert_content(path, "first");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_file_write(&h, path, "old", 3), VKT_OK);
    unsigned failures = 0;
    for (unsigned n = 1;; n++, failures++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_file_write(&h, path, "new", 3);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
        assert_int_equal(vkt_temp_dir_count(&dir), 1);
        vkt_test_fail_allocation(0);
        assert_content(path, "old");
    }
    assert_int_equal(failures, 3);
    for (unsigned n = 1;; n++) {
        void *bytes;
        size_t size;
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_file_read(&h, path, 100, &bytes, &size);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_free(&h, bytes);
        assert_int_equal(vkt_test_live_blocks(), 0);
        if (!failed) break;
    }
    vkt_test_fail_allocation(0);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(what_cannot_be_read_is_refused_with_a_reason),
        TEST(an_aborted_write_leaves_the_old_file_alone),
        TEST(a_full_disk_and_a_readonly_directory_leave_the_old_file_alone),
        TEST(paths_that_are_no_files_are_refused),
        TEST(permissions_are_kept),
        TEST(a_left_temporary_is_taken_over_and_a_busy_one_is_not),
        TEST(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
