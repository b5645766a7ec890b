/* data/temp.h - a temporary folder with files in it, for tests of readers. */
#ifndef VKT_TEST_TEMP_H
#define VKT_TEST_TEMP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct temp_dir {
    char path[256];
    char file[512]; /* the last result of temp_path */
} temp_dir;

/* Each fails the test when the system refuses. */
void temp_make(temp_dir *t);
/* "<folder>/<name>", valid until the next call. */
const char *temp_path(temp_dir *t, const char *name);
/* Writes a file, plain or as one gzip member; returns its path. */
const char *temp_write(temp_dir *t, const char *name, const void *bytes, size_t n, bool gzip);
/* Removes the folder and its files. */
void temp_remove(temp_dir *t);

#endif
