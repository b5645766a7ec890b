/* data/temp.h - files for tests of readers, in a folder that exists for one test. */
#ifndef VKT_TEST_TEMP_H
#define VKT_TEST_TEMP_H

#include <stdbool.h>
#include <stddef.h>

#include "support/temp_dir.h"

/* Writes a file, plain or as one gzip member; returns its path (see vkt_temp_dir_file). */
const char *temp_write(const vkt_temp_dir *t, const char *name, const void *bytes, size_t n, bool gzip);
/* Fixtures of one test: they make and remove a folder, whose vkt_temp_dir is *state. They also call vkt_test_setup and
 * vkt_test_teardown. */
int temp_setup(void **state);
int temp_teardown(void **state);

#endif
