/* common/outputs.h - functions for programs that write files. */
#ifndef SAMPLE_OUTPUTS_H
#define SAMPLE_OUTPUTS_H

/* Ignores SIGPIPE and SIGXFSZ. After this call, these signals do not end the program: a write to a closed pipe, or
 * beyond the file size limit of the process, fails with an error. */
void outputs_begin(void);
/* Returns the path of an output file. `value` is the value of an option: a path, or "-" for standard output. For NULL,
 * returns NULL. For "-", the result is a static string. After a call with "-", other output of the program goes to
 * stderr, so that stdout has only the file. */
const char *output_path(const char *value);

#endif
