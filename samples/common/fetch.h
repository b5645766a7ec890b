/* common/fetch.h - downloads files and checks them. It runs curl, gzip and sha256sum as child processes, without a
 * shell. */
#ifndef SAMPLE_FETCH_H
#define SAMPLE_FETCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fetch_file {
    const char *name;
    const char *sha256; /* hash of the unpacked file */
} fetch_file;

/* Downloads <base_url>/<name>.gz for each file into `folder`, unpacks it and checks the hash of the unpacked file.
 * Makes the folder if it is missing. The files get their final names after all of them are complete. An existing file
 * is kept; it must have the right hash. Several processes, also on several machines, may fetch the same files to the
 * same folder at once: each downloads to a temporary folder of its own, <folder>/.fetch-XXXXXX. Returns false after a
 * failure, for instance if a tool is missing, if the server cannot be reached within three seconds, or if a hash is
 * wrong. Prints nothing. If a file cannot be completed, removes the new files and folders. */
bool fetch_files(const char *base_url, const char *folder, const fetch_file *files, size_t n);

#endif
