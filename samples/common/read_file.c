/* common/read_file.c - see read_file.h. */
#include "common/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/stop.h"

enum { FIRST_ROOM = 1 << 16 };

/* Reads the rest of `f`. If it fails, returns NULL and sets errno. EFBIG: there are more than `most` bytes. */
static char *read_stream(FILE *f, size_t most, size_t *n)
{
    char *bytes = NULL;
    size_t room = 0, got = 1;
    for (*n = 0; got && *n <= most; *n += got) {
        if (room - *n < 2) {
            room = room ? 2 * room : FIRST_ROOM;
            char *more = realloc(bytes, room);
            if (!more) break;
            bytes = more;
        }
        errno = 0;
        got = fread(bytes + *n, 1, room - *n - 1, f);
    }
    if (bytes && got == 0 && !ferror(f)) {
        bytes[*n] = 0;
        return bytes;
    }
    const int error = *n > most ? EFBIG : ferror(f) && errno ? errno : ENOMEM;
    free(bytes);
    errno = error;
    return NULL;
}

char *read_file(const char *path, size_t most, size_t *n, char why[READ_WHY])
{
    FILE *f = strcmp(path, "-") == 0 ? stop_open_input() : fopen(path, "rb");
    char *bytes = f ? read_stream(f, most, n) : NULL;
    const int error = errno;
    if (!bytes && f && error == EFBIG)
        snprintf(why, READ_WHY, "it is larger than the %zu MiB that are read of a file", most >> 20);
    else if (!bytes && error == EINTR && stop_signal())
        snprintf(why, READ_WHY, "a signal ended the input");
    else if (!bytes)
        snprintf(why, READ_WHY, "%s", strerror(error));
    if (f) fclose(f);
    return bytes;
}
