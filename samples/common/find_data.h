/* common/find_data.h - finds a data set in the folders where the samples look for data. */
#ifndef SAMPLE_FIND_DATA_H
#define SAMPLE_FIND_DATA_H

#include <stdbool.h>

enum { DATA_PATH = 1024 };

/* Tries the paths $VKT_DATA/<name>, data/<name> and ../shared/data/<name> in this order. Writes the first one that
 * `is_it` accepts to `room` and returns `room`. Returns NULL if it accepts none. */
const char *find_data(const char *name, bool (*is_it)(const char *path), char room[DATA_PATH]);

#endif
