/* data/temp.h - files for tests of readers, in a folder that exists for one test. */
#ifndef VKT_TEST_TEMP_H
#define VKT_TEST_TEMP_H

#include <stdbool.h>
#include <stddef.h>

#include "support/temp_dir.h"

/* Writes a file, plain or as one gzip member. Returns the path. vkt_temp_dir_file says how long the path is valid. */
const char *temp_write(const vkt_temp_dir *t, const char *name, const void *bytes, size_t n, bool gzip);
/* temp_setup makes the folder of a test, sets *state to the vkt_temp_dir of this folder, and calls vkt_test_setup.
 * temp_teardown removes the folder, and calls vkt_test_teardown. */
int temp_setup(void **state);
int temp_teardown(void **state);

#endif
