/* support/find_data.c - see find_data.h. */
#include "support/find_data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"

/* Writes the path of `name` in the first folder that has `name`. The list `files` ends with NULL. If the list is not
 * empty, `name` is itself a folder, and must have all these files, plain or packed (.gz). If `name` is not found,
 * prints a line that begins with SKIPPED and returns false. */
static bool find(const char *name, const char *const *files, char path[512])
{
    const char *env = getenv("VKT_DATA");
    const char *const folders[] = { env ? env : VKT_TEST_DIR "/../data", VKT_TEST_DIR "/../data",
                                    VKT_TEST_DIR "/../../shared/data" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        bool all = snprintf(path, 512, "%s/%s", folders[i], name) < 512 && vkt_path_is_readable(path);
        for (size_t k = 0; all && files[k]; k++) {
            char plain[640], packed[644];
            snprintf(plain, sizeof plain, "%s/%s", path, files[k]);
            snprintf(packed, sizeof packed, "%s.gz", plain);
            all = vkt_path_is_readable(plain) || vkt_path_is_readable(packed);
        }
        if (all) return true;
    }
    printf("SKIPPED: %s is not in $VKT_DATA, data/ or ../shared/data/\n", name);
    return false;
}

bool vkt_test_find_data(const char *name, char path[512])
{
    return find(name, (const char *const[]){ NULL }, path);
}

bool vkt_test_find_mnist(char folder[512])
{
    return find("mnist",
                (const char *const[]){ "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                       "t10k-labels-idx1-ubyte", NULL },
                folder);
}
