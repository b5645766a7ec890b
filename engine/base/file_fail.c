/* base/file_fail.c - the message of a file operation that failed. */
#include <errno.h>

#include "base/file.h"
#include "base/system.h"

vkt_result vkt_file_fail(const vkt_host *h, const char *verb, const char *path, int error)
{
    char text[128];
    return vkt_fail(h, error == ENOENT ? VKT_E_NOT_FOUND : VKT_E_IO, "cannot %s \"%s\": %s", verb, path,
                    vkt_error_text(error, text));
}
