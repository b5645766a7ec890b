/* common/find_data.c - see find_data.h. */
#include "common/find_data.h"

#include <stdio.h>
#include <stdlib.h>

const char *find_data(const char *name, bool (*is_it)(const char *path), char room[DATA_PATH])
{
    const char *data = getenv("VKT_DATA");
    const char *const folders[] = { data && *data ? data : "data", "data", "../shared/data" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (snprintf(room, DATA_PATH, "%s/%s", folders[i], name) < DATA_PATH && is_it(room)) return room;
    return NULL;
}
