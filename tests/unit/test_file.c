/* Tests reading and writing of files (base/file.h). A failed write must neither change the old file nor leave a
 * temporary file. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "support/host.h"
#include "support/temp_dir.h"

/* Checks that the file exists and has the text `want`. */
static void assert_content(const char *path, const char *want)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(n, strlen(want));
    assert_string_equal(bytes, want); /* vkt_file_read adds a NUL */
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
    assert_content(path, ""); /* nothing changes before the commit */
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
    vkt_test_error_contains("ends 1 bytes too early");
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
    vkt_test_error_contains(path);
    vkt_test_error_contains("No such file");
    assert_int_equal(vkt_file_read(&h, dir.path, 10, &bytes, &n), VKT_E_IO);
    vkt_test_error_contains("not a regular file");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(vkt_file_read(&h, fifo, 10, &bytes, &n), VKT_E_IO); /* the call does not wait for a writer */
    assert_int_equal(vkt_file_write(&h, path, "0123456789", 10), VKT_OK);
    assert_int_equal(vkt_file_read(&h, path, 10, &bytes, &n), VKT_OK);
    vkt_free(&h, bytes);
    assert_int_equal(vkt_file_read(&h, path, 9, &bytes, &n), VKT_E_FORMAT);
    vkt_test_error_contains("want at most 9");
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

/* Writes 4096 bytes, but RLIMIT_FSIZE allows 1000. As on a full disk, the first write() writes only a part, and the
 * second one fails. The function runs in a child, because the limit is for the whole process. */
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

/* Runs a function in a child and returns its result. A nonzero result identifies the check that failed. */
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

static void paths_that_name_no_file_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_write(&h, dir.path, "x", 1), VKT_E_IO);
    vkt_test_error_contains("not a regular file");
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, ""), "x", 1), VKT_E_IO);
    vkt_test_error_contains("names no file");
    assert_int_equal(vkt_file_write(&h, "", "x", 1), VKT_E_IO);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "none/a"), "x", 1), VKT_E_IO);
    vkt_test_error_contains("No such file");
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

/* Makes a file without a lock, like the temporary file of a killed process. */
static void make_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void a_left_temporary_is_removed_and_a_busy_one_is_not(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *temp = vkt_temp_dir_file(&dir, "a.0123456789abcdef.vkttmp");
    make_file(temp, "of a killed process");
    assert_int_equal(vkt_file_write(&h, path, "new", 3), VKT_OK);
    assert_content(path, "new");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);

    make_file(temp, "of a process that lives");
    const int fd = open(temp, O_WRONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(vkt_file_write(&h, path, "newer", 5), VKT_OK);
    assert_content(temp, "of a process that lives");
    assert_int_equal(unlink(temp), 0);
    close(fd);

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

/* The folder has other files, links and FIFOs, some with names that resemble names of temporary files. Writing a
 * file must not follow, replace or remove any of them. */
static void files_of_others_stay(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    static const char *const names[] = { "a.tmp",
                                         "a.tmp1",
                                         "other",
                                         "a.0123456789abcdeg.vkttmp",
                                         "a.0123456789abcde.vkttmp",
                                         "a.0123456789abcdef.vkttmp~",
                                         "ab.0123456789abcdef.vkttmp",
                                         ".0123456789abcdef.vkttmp" };
    for (size_t i = 0; i < VKT_COUNT(names); i++) make_file(vkt_temp_dir_file(&dir, names[i]), "mine");
    assert_int_equal(symlink("other", vkt_temp_dir_file(&dir, "b.tmp")), 0);
    assert_int_equal(symlink("other", vkt_temp_dir_file(&dir, "b.0123456789abcdef.vkttmp")), 0);
    assert_int_equal(mkfifo(vkt_temp_dir_file(&dir, "c.tmp"), 0600), 0);
    assert_int_equal(mkfifo(vkt_temp_dir_file(&dir, "c.0123456789abcdef.vkttmp"), 0600), 0);
    const unsigned before = vkt_temp_dir_count(&dir);
    static const char *const written[] = { "a", "b", "c" };
    for (size_t i = 0; i < VKT_COUNT(written); i++)
        assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, written[i]), "new", 3), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(names); i++) assert_content(vkt_temp_dir_file(&dir, names[i]), "mine");
    assert_int_equal(vkt_temp_dir_count(&dir), before + VKT_COUNT(written));
    vkt_temp_dir_remove(&dir);
}

static void a_long_name_has_a_temporary_too(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, name), "long", 4), VKT_OK);
    assert_content(vkt_temp_dir_file(&dir, name), "long");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

static void assert_link(const char *path, const char *to)
{
    char text[64] = "";
    assert_true(readlink(path, text, sizeof text - 1) >= 0);
    assert_string_equal(text, to);
}

static void a_link_stays_and_what_it_leads_to_is_written(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "link");
    assert_int_equal(mkdir(vkt_temp_dir_file(&dir, "sub"), 0700), 0);
    assert_int_equal(symlink("sub/next", path), 0);
    assert_int_equal(symlink("../file", vkt_temp_dir_file(&dir, "sub/next")), 0);
    /* The links lead to a file that does not exist yet. */
    assert_int_equal(vkt_file_write(&h, path, "made", 4), VKT_OK);
    path = vkt_temp_dir_file(&dir, "link");
    assert_content(vkt_temp_dir_file(&dir, "file"), "made");
    assert_int_equal(chmod(vkt_temp_dir_file(&dir, "file"), 0640), 0);
    assert_int_equal(vkt_file_write(&h, path, "replaced", 8), VKT_OK);
    assert_content(vkt_temp_dir_file(&dir, "file"), "replaced");
    assert_link(path, "sub/next");
    assert_link(vkt_temp_dir_file(&dir, "sub/next"), "../file");
    struct stat st;
    assert_int_equal(lstat(vkt_temp_dir_file(&dir, "file"), &st), 0);
    assert_true(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0640);
    assert_int_equal(vkt_temp_dir_count(&dir), 3);

    assert_int_equal(symlink("loop", vkt_temp_dir_file(&dir, "loop")), 0);
    assert_int_equal(symlink("/dev/null", vkt_temp_dir_file(&dir, "null")), 0);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "null"), "x", 1), VKT_OK);
    assert_link(vkt_temp_dir_file(&dir, "null"), "/dev/null");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "loop"), "x", 1), VKT_E_IO);
    vkt_test_error_contains("loop");
    vkt_temp_dir_remove(&dir);
}

static void what_is_no_regular_file_is_written_to_and_stays(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *fifo = vkt_temp_dir_file(&dir, "fifo");
    struct stat st;
    char got[8] = "";
    assert_int_equal(vkt_file_write(&h, "/dev/null", "x", 1), VKT_OK);
    assert_int_equal(lstat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_int_equal(vkt_file_write(&h, fifo, "through", 7), VKT_OK);
    assert_int_equal(read(reader, got, sizeof got), 7);
    assert_string_equal(got, "through");
    close(reader);
    assert_int_equal(lstat(fifo, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

/* A path may name an open descriptor, as /dev/stdout does. The new data are written at the descriptor's position,
 * behind the data that were written before. */
static void a_descriptor_is_written_where_it_stands(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *file = vkt_temp_dir_file(&dir, "file");
    char path[32], got[8] = "";
    int pair[2];
    const int fd = open(file, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "before ", 7), 7);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_int_equal(symlink(path, vkt_temp_dir_file(&dir, "link")), 0);
    assert_int_equal(vkt_file_write(&h, path, "report ", 7), VKT_OK);
    assert_int_equal(vkt_file_write(&h, vkt_temp_dir_file(&dir, "link"), "again ", 6), VKT_OK);
    assert_int_equal(write(fd, "behind", 6), 6);
    assert_content(file, "before report again behind");
    assert_int_equal(vkt_temp_dir_count(&dir), 2);
    close(fd);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_file_write(&h, path, "x", 1), VKT_E_IO);
    vkt_test_error_contains(path);
    vkt_test_expect_errors(false);
    /* A socket cannot be opened by its path; its descriptor can be duplicated. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", pair[0]);
    assert_int_equal(vkt_file_write(&h, path, "socket", 6), VKT_OK);
    assert_int_equal(read(pair[1], got, sizeof got), 6);
    assert_string_equal(got, "socket");
    close(pair[0]);
    close(pair[1]);
    vkt_temp_dir_remove(&dir);
}

static void root_leaves_a_file_to_its_owner(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    struct stat st;
    make_file(path, "old");
    if (chown(path, 65534, 65534) != 0) skip(); /* this user namespace has no user 65534 */
    assert_int_equal(vkt_file_write(&h, path, "new", 3), VKT_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_uid == 65534 && st.st_gid == 65534 && (st.st_mode & 0777) == 0600);
    vkt_temp_dir_remove(&dir);
}

static int try_a_readonly_directory(const char *path)
{
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    if (geteuid() == 0 && setuid(65534) != 0) return 2;
    if (vkt_try_output(&h, path) != VKT_E_IO) return 3;
    return strstr(vkt_test_last_error(), "Permission denied") && strstr(vkt_test_last_error(), path) ? 0 : 4;
}

static void an_output_is_tried_and_nothing_changes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_try_output(&h, path), VKT_OK);
    assert_false(is_there(path));
    make_file(path, "old");
    assert_int_equal(vkt_try_output(&h, path), VKT_OK);
    assert_content(path, "old");
    assert_int_equal(mkfifo(vkt_temp_dir_file(&dir, "fifo"), 0600), 0);
    /* The call does not wait for a reader. */
    assert_int_equal(vkt_try_output(&h, vkt_temp_dir_file(&dir, "fifo")), VKT_OK);
    assert_int_equal(vkt_try_output(NULL, "/dev/null"), VKT_OK);
    assert_int_equal(vkt_temp_dir_count(&dir), 2);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_try_output(&h, dir.path), VKT_E_IO);
    vkt_test_error_contains("directory");
    assert_int_equal(vkt_try_output(&h, vkt_temp_dir_file(&dir, "none/a")), VKT_E_IO);
    vkt_test_error_contains("none/a");
    assert_int_equal(vkt_try_output(&h, "/dev/fd/9999"), VKT_E_IO);
    assert_int_equal(vkt_try_output(&h, ""), VKT_E_IO);
    assert_int_equal(vkt_try_output(&h, NULL), VKT_E_ARG);
    assert_int_equal(vkt_write_file(&h, NULL, "x", 1), VKT_E_ARG);
    assert_int_equal(vkt_write_file(&h, path, NULL, 1), VKT_E_ARG);
    assert_int_equal(vkt_write_file(&h, path, NULL, 0), VKT_OK);
    assert_content(path, "");
    assert_int_equal(chmod(dir.path, 0555), 0);
    assert_int_equal(in_a_child(try_a_readonly_directory, path), 0);
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
    assert_int_equal(failures, 4);
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
        TEST(paths_that_name_no_file_are_refused),
        TEST(permissions_are_kept),
        TEST(a_left_temporary_is_removed_and_a_busy_one_is_not),
        TEST(files_of_others_stay),
        TEST(a_long_name_has_a_temporary_too),
        TEST(a_link_stays_and_what_it_leads_to_is_written),
        TEST(what_is_no_regular_file_is_written_to_and_stays),
        TEST(a_descriptor_is_written_where_it_stands),
        TEST(root_leaves_a_file_to_its_owner),
        TEST(an_output_is_tried_and_nothing_changes),
        TEST(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
