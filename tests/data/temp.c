/* data/temp.c - see temp.h. */
#include "data/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void temp_make(temp_dir *t)
{
    const char *base = getenv("TMPDIR");
    snprintf(t->path, sizeof t->path, "%s/vktrain-test-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(t->path));
}

const char *temp_path(temp_dir *t, const char *name)
{
    snprintf(t->file, sizeof t->file, "%s/%s", t->path, name);
    return t->file;
}

const char *temp_write(temp_dir *t, const char *name, const void *bytes, size_t n, bool gzip)
{
    const gzFile f = gzopen(temp_path(t, name), gzip ? "wb" : "wbT");
    assert_non_null(f);
    assert_int_equal(n ? gzwrite(f, bytes, (unsigned)n) : 0, n);
    assert_int_equal(gzclose(f), Z_OK);
    return t->file;
}

void temp_remove(temp_dir *t)
{
    DIR *dir = opendir(t->path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(temp_path(t, e->d_name));
    closedir(dir);
    assert_int_equal(rmdir(t->path), 0);
}
