/* common/find_data.h - finds a data set in the folders where the sample programs look for data. */
#ifndef SAMPLE_FIND_DATA_H
#define SAMPLE_FIND_DATA_H

#include <stdbool.h>

enum { DATA_PATH = 1024 };

/* Tries the paths $VKT_DATA/<name> (if the variable is not empty), data/<name> and ../shared/data/<name> in this order.
 * If `is_it` returns true for a path, copies this path to `room` and returns `room`. Returns NULL if there is no
 * such path. */
const char *find_data(const char *name, bool (*is_it)(const char *path), char room[DATA_PATH]);

#endif
