/* common/outputs.h - functions for programs that write files. */
#ifndef SAMPLE_OUTPUTS_H
#define SAMPLE_OUTPUTS_H

/* Ignores the signals of a failed write (SIGPIPE, SIGXFSZ). A full disk, a quota or a closed reader then makes the
 * write fail with an error, and does not end the program. */
void outputs_begin(void);
/* Returns the path of an output file. `value`, the value of an option, is a path, or "-" for standard output. For "-",
 * the result is a static string. After a "-", other output of the program goes to stderr, so that stdout has only the
 * file. Returns NULL for NULL. */
const char *output_path(const char *value);

#endif
