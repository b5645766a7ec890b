/* common/fetch.h - downloads checked files with curl, gzip and sha256sum, run as child processes without a shell. */
#ifndef SAMPLE_FETCH_H
#define SAMPLE_FETCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fetch_file {
    const char *name;
    const char *sha256; /* of the file as it will be in the folder, unpacked */
} fetch_file;

/* Gets <base_url>/<name>.gz for each file into `folder` (made if it is missing), unpacked and with the right hash. The
 * files appear under their names once all of them are whole. A file that is there already is kept; it must have the
 * right hash. Returns false, prints nothing and leaves nothing behind, also no folder that it made, when a tool is
 * missing, the server cannot be reached within three seconds, or a file is another one. */
bool fetch_files(const char *base_url, const char *folder, const fetch_file *files, size_t n);

#endif
