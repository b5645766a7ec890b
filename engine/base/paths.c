/* base/paths.c - the functions of paths.h that need nothing of the system. */
#include "base/paths.h"

void vkt_folder_make_above(char *path, bool is_private)
{
    for (char *end = vkt_path_next(path); end; end = vkt_path_next(end)) {
        const char separator = *end;
        *end = 0;
        (void)vkt_folder_make(path, is_private);
        *end = separator;
    }
}
