/* Tests common/fetch.c with files of the temporary folder (file:// addresses). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fetch.h"
#include "support/temp_dir.h"

/* Two empty files. */
static const fetch_file files[] = {
    { "a", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "b", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
};

static void write_file(const vkt_temp_dir *dir, const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(vkt_temp_dir_file(dir, name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static bool exists(const vkt_temp_dir *dir, const char *name)
{
    return access(vkt_temp_dir_file(dir, name), F_OK) == 0;
}

/* Writes bin/gzip, a script that creates the file `began`, waits for the file `go` (20 minutes at most), and then runs
 * gzip. */
static void write_slow_gzip(const vkt_temp_dir *dir)
{
    char text[1024];
    const int n = snprintf(text, sizeof text,
                           "#!/bin/sh\n"
                           ": >'%s/began'\n"
                           "for i in $(seq 60000); do [ -e '%s/go' ] && break; sleep 0.02; done\n"
                           "PATH=${PATH#*:}\n"
                           "exec gzip \"$@\"\n",
                           dir->path, dir->path);
    assert_int_equal(mkdir(vkt_temp_dir_file(dir, "bin"), 0777), 0);
    write_file(dir, "bin/gzip", text, (size_t)n);
    assert_int_equal(chmod(vkt_temp_dir_file(dir, "bin/gzip"), 0777), 0);
}

/* Starts a process that fetches the files with the gzip of write_slow_gzip. Its exit status is 0 if that succeeds. */
static pid_t start_slow(const vkt_temp_dir *dir, const char *url, const char *folder)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    char path[4096];
    snprintf(path, sizeof path, "%s/bin:%s", dir->path, getenv("PATH"));
    setenv("PATH", path, 1);
    _exit(fetch_files(url, folder, files, 2) ? 0 : 1);
}

/* The second process fetches all files while the first one has downloaded a file and not yet unpacked it. */
static void two_processes_may_fetch_the_same_files(void **state)
{
    (void)state;
    static const unsigned char gzip_of_nothing[20] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3 };
    char url[512], folder[512];
    int status = -1;
    if (system("command -v curl gzip sha256sum >/dev/null") != 0) {
        puts("SKIPPED: downloads: want curl, gzip and sha256sum");
        skip();
    }
    const vkt_temp_dir dir = vkt_temp_dir_make();
    write_file(&dir, "a.gz", gzip_of_nothing, sizeof gzip_of_nothing);
    write_file(&dir, "b.gz", gzip_of_nothing, sizeof gzip_of_nothing);
    write_slow_gzip(&dir);
    snprintf(url, sizeof url, "file://%s", dir.path);
    snprintf(folder, sizeof folder, "%s/set", dir.path);
    const pid_t child = start_slow(&dir, url, folder);
    while (!exists(&dir, "began") && waitpid(child, &status, WNOHANG) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_true(exists(&dir, "began")); /* else the process has ended too early */
    const bool fetched = fetch_files(url, folder, files, 2);
    write_file(&dir, "go", "", 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(fetched && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(unlink(vkt_temp_dir_file(&dir, "set/a")), 0);
    assert_int_equal(unlink(vkt_temp_dir_file(&dir, "set/b")), 0);
    assert_int_equal(rmdir(folder), 0); /* no temporary file is left */
    vkt_temp_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(two_processes_may_fetch_the_same_files) };
    return cmocka_run_group_tests_name("downloads", tests, NULL, NULL);
}
