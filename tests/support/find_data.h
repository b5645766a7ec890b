/* support/find_data.h - real data sets, for tests that skip without them. */
#ifndef VKT_TEST_FIND_DATA_H
#define VKT_TEST_FIND_DATA_H

#include <stdbool.h>

/* Where `name` lies: in $VKT_DATA, data/ or ../shared/data/ of the source tree. Says so when it is nowhere: skip(). */
bool vkt_test_find_data(const char *name, char path[512]);
/* The same of the folder with all four files of MNIST: a folder that lacks one is passed by, as if it were not there.
 */
bool vkt_test_find_mnist(char folder[512]);

#endif
