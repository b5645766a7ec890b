/* common/find_data.h - finds a data set in the folders where the samples look for them. */
#ifndef SAMPLE_FIND_DATA_H
#define SAMPLE_FIND_DATA_H

#include <stdbool.h>

enum { DATA_PATH = 1024 };

/* Writes to `room` the first of $VKT_DATA/<name>, data/<name> and ../shared/data/<name> that is what is looked for.
 * Returns `room`. NULL: none of them is. */
const char *find_data(const char *name, bool (*is_it)(const char *path), char room[DATA_PATH]);

#endif
