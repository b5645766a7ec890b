/* support/find_data.h - real data sets, for tests that skip without them. */
#ifndef VKT_TEST_FIND_DATA_H
#define VKT_TEST_FIND_DATA_H

#include <stdbool.h>

/* Writes the path of `name` in $VKT_DATA, data/ or ../shared/data/ of the source tree. If it is in none of them, prints
 * a line that begins with SKIPPED and returns false. */
bool vkt_test_find_data(const char *name, char path[512]);
/* Does the same as vkt_test_find_data for the folder of MNIST. A folder that lacks one of the four files is ignored. */
bool vkt_test_find_mnist(char folder[512]);

#endif
