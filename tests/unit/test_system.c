/* Tests how engine/base uses the operating system: paths and folders, files with any name, the locale of numbers,
 * clocks, the environment, shared libraries, and the description of the machine. These tests run on every system.
 * test_file.c and test_file_faults.c have more tests for POSIX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/numbers.h"
#include "base/paths.h"
#include "base/system.h"
#include "support/host.h"
#include "support/temp_dir.h"

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

static void write_text(const char *path, const char *text)
{
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_file_write(&h, path, text, strlen(text)), VKT_OK);
}

/* Returns whether the folder has an entry of this name. */
static bool lists(const char *folder, const char *want)
{
    vkt_folder *f;
    bool found = false;
    assert_int_equal(vkt_folder_open(folder, &f), 0);
    for (const char *name;;) {
        assert_int_equal(vkt_folder_next(f, &name), 0);
        if (!name) break;
        found = found || strcmp(name, want) == 0;
    }
    vkt_folder_close(f);
    return found;
}

/* ---- maps ---- */

static void a_file_is_mapped_until_it_is_unmapped(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "file"), *empty = vkt_temp_dir_file(&dir, "empty");
    enum { BYTES = 100001 }; /* not a whole number of pages */
    char *text = calloc(1, BYTES);
    for (size_t i = 0; i < BYTES; i++) text[i] = (char)(i * 7 % 251);
    assert_int_equal(vkt_file_write(&h, path, text, BYTES), VKT_OK);
    assert_int_equal(vkt_file_write(&h, empty, text, 0), VKT_OK);
    vkt_file f;
    const void *map, *other;
    assert_int_equal(vkt_file_open(&h, path, &f), VKT_OK);
    assert_int_equal(vkt_file_map(&f, &map), VKT_OK);
    assert_int_equal(vkt_file_map(&f, &other), VKT_OK);
    const uint64_t size = f.size;
    vkt_file_close(&f);
    assert_memory_equal(map, text, BYTES);
    vkt_file_unmap(map, size);
    assert_memory_equal(other, text, BYTES);
    vkt_file_unmap(other, size);
    assert_int_equal(vkt_file_open(&h, empty, &f), VKT_OK);
    map = text;
    assert_int_equal(vkt_file_map(&f, &map), VKT_OK);
    assert_null(map);
    vkt_file_unmap(map, f.size);
    vkt_file_close(&f);
    free(text);
    vkt_temp_dir_remove(&dir);
}

/* ---- paths and folders ---- */

static void files_and_folders_are_distinguished(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *file = vkt_temp_dir_file(&dir, "file"), *folder = vkt_temp_dir_file(&dir, "folder"),
               *none = vkt_temp_dir_file(&dir, "none");
    bool is = true;
    write_text(file, "text");
    assert_int_equal(vkt_folder_make(folder, false), 0);
    assert_int_equal(vkt_folder_make(folder, false), EEXIST);
    assert_true(vkt_path_exists(file) && vkt_path_exists(folder) && !vkt_path_exists(none));
    assert_true(vkt_path_is_readable(file) && !vkt_path_is_readable(none));
    assert_true(vkt_path_is_folder(file, &is) == 0 && !is);
    assert_true(vkt_path_is_folder(folder, &is) == 0 && is);
    assert_true(vkt_path_is_folder(none, &is) == ENOENT && !is);
    assert_true(lists(dir.path, "file") && lists(dir.path, "folder") && !lists(dir.path, "none"));
    vkt_folder *f;
    assert_int_equal(vkt_folder_open(none, &f), ENOENT);
    assert_int_equal(vkt_folder_open(file, &f), ENOTDIR);
    assert_int_equal(vkt_path_remove(file), 0);
    assert_int_equal(vkt_path_remove(file), ENOENT);
    assert_string_equal(vkt_path_name(folder), "folder");
    assert_string_equal(vkt_path_name("name"), "name");
    assert_true(vkt_path_is_absolute("/") && vkt_path_is_absolute("/a/b"));
    assert_true(!vkt_path_is_absolute("") && !vkt_path_is_absolute("a/b") && !vkt_path_is_absolute("./a"));
#ifdef _WIN32
    assert_true(vkt_path_is_absolute("C:\\a") && vkt_path_is_absolute("\\a"));
    assert_string_equal(vkt_path_name("C:\\a\\name"), "name");
#else
    assert_true(!vkt_path_is_absolute("C:\\a")); /* on POSIX, a relative path */
#endif
    vkt_temp_dir_remove(&dir);
}

static void folders_above_a_path_are_made(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&dir, "a/b/c/file"));
    vkt_folder_make_above(path, true);
    assert_string_equal(path, vkt_temp_dir_file(&dir, "a/b/c/file"));
    write_text(path, "deep");
    assert_content(path, "deep");
    vkt_temp_dir_remove(&dir);
}

static void a_new_file_replaces_nothing(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "new");
    FILE *file;
    assert_int_equal(vkt_file_create(path, &file), 0);
    fputs("line\n", file);
    assert_int_equal(fclose(file), 0);
    assert_content(path, "line\n");
    assert_int_equal(vkt_file_create(path, &file), EEXIST);
    assert_null(file);
    assert_int_equal(vkt_file_create(vkt_temp_dir_file(&dir, "none/new"), &file), ENOENT);
    vkt_temp_dir_remove(&dir);
}

static void only_one_program_appends_to_a_log(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "log.txt");
    FILE *first, *second;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vkt_file_append(path, &first), 0);
        assert_int_equal(vkt_file_append(path, &second), EWOULDBLOCK);
        assert_null(second);
        fputs("line\n", first);
        assert_int_equal(fclose(first), 0);
    }
    assert_content(path, "line\nline\n");
    vkt_temp_dir_remove(&dir);
}

/* ---- files ---- */

/* A small letter with an umlaut, two Chinese characters, and a character above U+FFFF (a surrogate pair in UTF-16). */
#define ANY_NAME "\xc3\xa4 \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x9a\x80.txt"

static void a_name_has_any_characters(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, ANY_NAME);
    write_text(path, "one");
    write_text(path, "two"); /* replaces the file */
    assert_content(path, "two");
    assert_true(lists(dir.path, ANY_NAME));
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    assert_int_equal(vkt_path_remove(path), 0);
    vkt_temp_dir_remove(&dir);
}

/* By default, Windows accepts a path of 260 characters or more only with a prefix, which the library must add. */
static void a_path_may_be_long(void **state)
{
    (void)state;
    enum { LEVELS = 5 };
    const char *const part = "/a-folder-with-a-name-of-sixty-characters-so-that-paths-are-long";
    const vkt_temp_dir dir = vkt_temp_dir_make();
    char path[512];
    size_t n[LEVELS + 1];
    n[0] = (size_t)snprintf(path, sizeof path, "%.100s", dir.path);
    for (int i = 0; i < LEVELS; i++) {
        n[i + 1] = n[i] + (size_t)snprintf(path + n[i], sizeof path - n[i], "%s", part);
        assert_int_equal(vkt_folder_make(path, false), 0);
    }
    assert_true(n[LEVELS] > 300);
    snprintf(path + n[LEVELS], sizeof path - n[LEVELS], "/file");
    write_text(path, "text");
    assert_content(path, "text");
    assert_int_equal(vkt_path_remove(path), 0);
    assert_false(vkt_path_exists(path));
    for (int i = LEVELS; i > 0; i--) {
        path[n[i]] = 0;
        assert_int_equal(vkt_path_remove(path), 0);
    }
    vkt_temp_dir_remove(&dir);
}

static void an_aborted_write_changes_nothing(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    vkt_file_writer w;
    write_text(path, "old");
    assert_int_equal(vkt_file_writer_begin(&h, path, &w), VKT_OK);
    assert_int_equal(vkt_file_writer_write(&w, "new", 3), VKT_OK);
    assert_content(path, "old");
    vkt_file_writer_abort(&w);
    assert_content(path, "old");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    assert_int_equal(vkt_try_output(&h, path), VKT_OK);
    assert_int_equal(vkt_try_output(&h, vkt_temp_dir_file(&dir, "b")), VKT_OK);
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_try_output(&h, vkt_temp_dir_file(&dir, "none/b")), VKT_E_IO);
    assert_int_equal(vkt_file_write(&h, dir.path, "x", 1), VKT_E_IO);
    vkt_test_error_contains("it is a directory");
    vkt_temp_dir_remove(&dir);
}

/* The temporary file of a running writer stays. The temporary file of a killed writer is removed. */
static void only_left_temporaries_are_removed(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a"), *left = vkt_temp_dir_file(&dir, "a.0123456789abcdef.vkttmp");
    FILE *file;
    vkt_file_writer first, second;
    assert_int_equal(vkt_file_create(left, &file), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(vkt_file_writer_begin(&h, path, &first), VKT_OK);
    assert_false(vkt_path_exists(left));
    assert_int_equal(vkt_file_writer_begin(&h, path, &second), VKT_OK);
    assert_int_equal(vkt_temp_dir_count(&dir), 2);
    assert_int_equal(vkt_file_writer_write(&first, "first", 5), VKT_OK);
    assert_int_equal(vkt_file_writer_write(&second, "second", 6), VKT_OK);
    assert_int_equal(vkt_file_writer_commit(&first), VKT_OK);
    assert_content(path, "first");
    assert_int_equal(vkt_file_writer_commit(&second), VKT_OK);
    assert_content(path, "second");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

/* A reader that has opened the old file reads only bytes of the old file. While a file is open, Windows may refuse to
 * replace it. */
static void an_open_file_keeps_its_bytes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a");
    char seen[4] = { 0 };
    vkt_file f;
    write_text(path, "old");
    assert_int_equal(vkt_file_open(&h, path, &f), VKT_OK);
    vkt_test_expect_errors(true);
    const vkt_result r = vkt_file_write(&h, path, "new", 3);
    assert_true(r == VKT_OK || r == VKT_E_IO);
    assert_int_equal(vkt_file_read_at(&f, 0, seen, 3), VKT_OK);
    assert_string_equal(seen, "old");
    vkt_file_close(&f);
    assert_content(path, r == VKT_OK ? "new" : "old");
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_temp_dir_remove(&dir);
}

/* ---- numbers, time, environment, libraries ---- */

static void numbers_have_a_decimal_point(void **state)
{
    (void)state;
    const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "German", "C" };
    char inside[32], again[32], before[32], after[32];
    for (size_t i = 0; i < VKT_COUNT(locales) && !setlocale(LC_ALL, locales[i]); i++) continue;
    snprintf(before, sizeof before, "%g", 1.5); /* "1,5" if the system has a locale with a comma */
    const vkt_numbers n = vkt_numbers_begin();
    snprintf(inside, sizeof inside, "%g", 1.5);
    const double read = strtod("0.25", NULL);
    vkt_number_text(0.001, true, again);
    vkt_numbers_end(n);
    snprintf(after, sizeof after, "%g", 1.5);
    setlocale(LC_ALL, "C");
    if (strcmp(before, "1.5") == 0) printf("note: this system has no locale with a decimal comma\n");
    assert_string_equal(inside, "1.5");
    assert_true(read == 0.25);
    assert_string_equal(again, "0.001");
    assert_string_equal(after, before);
}

static void clocks_go_forward(void **state)
{
    (void)state;
    char text[32];
    const uint64_t start = vkt_now_ns(), end = start + 3000000;
    vkt_sleep_until(end);
    assert_true(vkt_now_ns() >= end);
    vkt_sleep_until(start);                                     /* a time in the past */
    assert_true(vkt_wall_ns() > UINT64_C(1704067200000000000)); /* 2024-01-01 */
    vkt_time_text(0, text);
    assert_string_equal(text, "1970-01-01 00:00:00 UTC");
    vkt_time_text(1715938200, text);
    assert_string_equal(text, "2024-05-17 09:30:00 UTC");
    const uint64_t cpu = vkt_thread_cpu_ns();
    volatile double sum = 0;
    while (vkt_thread_cpu_ns() == cpu) sum += sqrt(sum + 1); /* ends when the clock has counted this thread's work */
    assert_true(vkt_thread_cpu_ns() > cpu);
}

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_woken;
} waiter;

static void *wake_up(void *user)
{
    waiter *w = user;
    pthread_mutex_lock(&w->lock);
    w->is_woken = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void a_thread_waits_until_a_time(void **state)
{
    (void)state;
    waiter w = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;
    vkt_cond_init(&w.wake);
    pthread_mutex_lock(&w.lock);
    const uint64_t end = vkt_now_ns() + 20000000;
    while (vkt_cond_wait_until(&w.wake, &w.lock, end)) continue; /* repeated: a wait may end without a signal */
    assert_true(vkt_now_ns() + 2000000 >= end);                  /* 2 ms: Windows counts the wait in milliseconds */
    assert_false(vkt_cond_wait_until(&w.wake, &w.lock, 0));
    assert_int_equal(pthread_create(&thread, NULL, wake_up, &w), 0);
    while (!w.is_woken) assert_true(vkt_cond_wait_until(&w.wake, &w.lock, vkt_now_ns() + UINT64_C(600000000000)));
    pthread_mutex_unlock(&w.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_cond_destroy(&w.wake);
    pthread_mutex_destroy(&w.lock);
}

static void the_environment_is_changed(void **state)
{
    (void)state;
    static const char name[] = "VKT_TEST_SYSTEM";
    assert_true(vkt_env_set(name, "7"));
    assert_string_equal(getenv(name), "7");
    assert_int_equal(vkt_env_int(name, 0), 7);
    assert_true(vkt_env_set(name, NULL));
    assert_null(getenv(name));
}

/* The folder for caches is $XDG_CACHE_HOME on POSIX and %LOCALAPPDATA% on Windows, if the variable has an absolute
 * path. */
static void caches_are_in_the_folder_of_the_user(void **state)
{
    (void)state;
    static const char *const names[] = { "XDG_CACHE_HOME", "LOCALAPPDATA" };
    /* If the name of the loader begins with 'v', the name is vulkan-1.dll, and the system is Windows. */
    const char *const root = vkt_loader_names()[0][0] == 'v' ? "C:\\caches" : "/caches";
    char *kept[2], folder[512];
    for (int i = 0; i < 2; i++) {
        kept[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        assert_true(vkt_env_set(names[i], root));
    }
    assert_int_equal(vkt_user_cache(folder, sizeof folder), strlen(root));
    assert_string_equal(folder, root);
    assert_int_equal(vkt_user_cache(folder, strlen(root)), 0); /* no room for the NUL */
    for (int i = 0; i < 2; i++) assert_true(vkt_env_set(names[i], "caches"));
    const size_t n = vkt_user_cache(folder, sizeof folder); /* a relative path is ignored */
    assert_true(n == 0 || strcmp(folder, "caches") != 0);
    for (int i = 0; i < 2; i++) {
        assert_true(vkt_env_set(names[i], kept[i]));
        free(kept[i]);
    }
}

static void libraries_are_loaded_by_name(void **state)
{
    (void)state;
    static const char *const names[] = { "libc.so.6", "msvcrt.dll", "libSystem.B.dylib", "libc.so" };
    void *library = NULL;
    for (size_t i = 0; i < VKT_COUNT(names) && !library; i++) library = vkt_library_open(names[i]);
    assert_non_null(library);
    size_t (*length)(const char *);
    void *symbol = vkt_library_symbol(library, "strlen");
    assert_non_null(symbol);
    memcpy(&length, &symbol, sizeof length);
    assert_int_equal(length("four"), 4);
    assert_null(vkt_library_symbol(library, "vkt_no_such_function"));
    vkt_library_close(library);
    assert_null(vkt_library_open("vkt-no-such-library.so.7"));
    vkt_library_close(NULL);
    assert_non_null(vkt_loader_names()[0]);
}

static void the_machine_is_described(void **state)
{
    (void)state;
    char host[65], text[128];
    assert_in_range(vkt_cpu_count(), 1, 65536);
    assert_true(vkt_cpu_cache_bytes() == 0 || vkt_cpu_cache_bytes() >= 1024);
    assert_true(vkt_process_id() > 0);
    vkt_host_name(host);
    assert_in_range(strlen(host), 1, 64);
    assert_string_not_equal(vkt_error_text(ENOENT, text), "");
    assert_string_not_equal(vkt_error_text(123456, text), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_mapped_until_it_is_unmapped),
        TEST(files_and_folders_are_distinguished),
        TEST(folders_above_a_path_are_made),
        TEST(a_new_file_replaces_nothing),
        TEST(only_one_program_appends_to_a_log),
        TEST(a_name_has_any_characters),
        TEST(a_path_may_be_long),
        TEST(an_aborted_write_changes_nothing),
        TEST(only_left_temporaries_are_removed),
        TEST(an_open_file_keeps_its_bytes),
        TEST(numbers_have_a_decimal_point),
        TEST(clocks_go_forward),
        TEST(a_thread_waits_until_a_time),
        TEST(the_environment_is_changed),
        TEST(caches_are_in_the_folder_of_the_user),
        TEST(libraries_are_loaded_by_name),
        TEST(the_machine_is_described),
    };
    return cmocka_run_group_tests_name("system", tests, NULL, NULL);
}
