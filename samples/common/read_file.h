/* common/read_file.h - reads a file, or standard input. */
#ifndef SAMPLE_READ_FILE_H
#define SAMPLE_READ_FILE_H

#include <stddef.h>

enum { READ_WHY = 128 };

/* Reads a whole file, which may be a pipe; "-" is standard input. A signal ends the reading of standard input
 * (stop.h). Returns *n bytes and a NUL behind them; the caller frees the result with free(). Returns NULL if the file
 * cannot be read or has more than `most` bytes; `why` has the reason. */
char *read_file(const char *path, size_t most, size_t *n, char why[READ_WHY]);

#endif
