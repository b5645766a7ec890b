/* common/outputs.h - functions for programs that write files. */
#ifndef SAMPLE_OUTPUTS_H
#define SAMPLE_OUTPUTS_H

/* Ignores SIGPIPE and SIGXFSZ. If a reader has closed its pipe, or a file reaches the file size limit of the process,
 * the write then fails with an error, and no signal ends the program. */
void outputs_begin(void);
/* Returns the path of an output file. `value` is the value of an option: a path, or "-" for standard output. For NULL,
 * returns NULL. For "-", the result is a static string. After a call with "-", other output of the program goes to
 * stderr, so that stdout has only the file. */
const char *output_path(const char *value);

#endif
