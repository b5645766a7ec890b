/* Tests reading and writing of files when system calls fail: interrupted calls, a file system without locks, errors of
 * the disk, a random name that is in use. The functions from open() to getrandom() below replace those of the C
 * library in this whole program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "support/host.h"
#include "support/temp_dir.h"

long syscall(long number, ...); /* _POSIX_C_SOURCE hides the declaration in unistd.h */

typedef enum call { OPEN, OPENAT, READ, WRITE, FLOCK, FSYNC, CALLS } call;

static struct {
    int error[CALLS];      /* errno after a call that fails */
    unsigned times[CALLS]; /* n: the next n calls fail */
    unsigned failed[CALLS];
    bool armed, same_random;
} faults;

static bool fails(call c)
{
    if (!faults.armed || faults.times[c] == 0) return false;
    faults.times[c]--;
    faults.failed[c]++;
    errno = faults.error[c];
    return true;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return fails(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return fails(OPENAT) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    return fails(READ) ? -1 : (ssize_t)syscall(SYS_pread64, fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return fails(WRITE) ? -1 : (ssize_t)syscall(SYS_write, fd, bytes, n);
}

int flock(int fd, int operation)
{
    return fails(FLOCK) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int fsync(int fd)
{
    return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
    if (!faults.same_random) return (ssize_t)syscall(SYS_getrandom, bytes, n, flags);
    memset(bytes, 0xab, n);
    return (ssize_t)n;
}

static void fail_next(call c, int error, unsigned times)
{
    faults.armed = true;
    faults.error[c] = error;
    faults.times[c] = times;
    faults.failed[c] = 0;
}

static void calm(void)
{
    memset(&faults, 0, sizeof faults);
}

static void assert_content(const char *path, const char *want)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, &n), VKT_OK);
    assert_string_equal(bytes, want);
    vkt_free(&h, bytes);
}

static void interrupted_calls_are_repeated(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    for (int c = OPEN; c < CALLS; c++) {
        fail_next((call)c, EINTR, 3);
        assert_int_equal(vkt_file_write(&h, path, "text", 4), VKT_OK);
        assert_content(path, "text");
        assert_int_equal(faults.failed[c], 3);
        calm();
    }
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

static void files_are_written_where_there_are_no_locks(void **state)
{
    (void)state;
    static const int errors[] = { ENOSYS, ENOLCK, EOPNOTSUPP };
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *other = vkt_temp_dir_file(&dir, "a.0123456789abcdef.vkttmp");
    /* `other` has the name of a temporary file. On a file system without locks, a running process may still use this
     * file. So `other` must stay. */
    close(open(other, O_WRONLY | O_CREAT, 0600));
    for (size_t i = 0; i < VKT_COUNT(errors); i++) {
        fail_next(FLOCK, errors[i], 100);
        assert_int_equal(vkt_file_write(&h, path, "text", 4), VKT_OK);
        assert_true(faults.failed[FLOCK] >= 2);
        calm();
        assert_content(path, "text");
        assert_int_equal(vkt_temp_dir_count(&dir), 2);
    }
    vkt_temp_dir_remove(&dir);
}

/* In each iteration, all calls of one kind fail. The old file stays, and no temporary file is left. */
static void a_failed_call_is_reported_and_leaves_the_old_file(void **state)
{
    (void)state;
    static const call calls[] = { OPEN, OPENAT, WRITE, FLOCK, FSYNC };
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    assert_int_equal(vkt_file_write(&h, path, "old", 3), VKT_OK);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(calls); i++) {
        fail_next(calls[i], EIO, 100);
        assert_int_equal(vkt_file_write(&h, path, "new", 3), VKT_E_IO);
        vkt_test_error_contains("Input/output error");
        vkt_test_error_contains(path);
        calm();
        assert_content(path, "old");
        assert_int_equal(vkt_temp_dir_count(&dir), 1);
    }
    vkt_temp_dir_remove(&dir);
}

static void a_temporary_that_prevents_writing_is_named(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *foreign = vkt_temp_dir_file(&dir, "a.abababababababab.vkttmp");
    assert_int_equal(mkfifo(foreign, 0600), 0);
    vkt_test_expect_errors(true);
    faults.same_random = true;
    assert_int_equal(vkt_file_write(&h, path, "new", 3), VKT_E_IO);
    vkt_test_error_contains("\"a.abababababababab.vkttmp\" is there already");
    vkt_test_error_contains(path);
    calm();
    struct stat st;
    assert_int_equal(lstat(foreign, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(interrupted_calls_are_repeated),
        TEST(files_are_written_where_there_are_no_locks),
        TEST(a_failed_call_is_reported_and_leaves_the_old_file),
        TEST(a_temporary_that_prevents_writing_is_named),
    };
    return cmocka_run_group_tests_name("file faults", tests, NULL, NULL);
}
