/* support/find_data.c - see find_data.h. */
#include "support/find_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool vkt_test_find_data(const char *name, char path[512])
{
    const char *env = getenv("VKT_DATA");
    const char *const folders[] = { env ? env : VKT_TEST_DIR "/../data", VKT_TEST_DIR "/../data",
                                    VKT_TEST_DIR "/../../shared/data" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, 512, "%s/%s", folders[i], name);
        if (access(path, R_OK) == 0) return true;
    }
    printf("SKIPPED: %s is not in $VKT_DATA, data/ or ../shared/data/\n", name);
    return false;
}
