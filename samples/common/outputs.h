/* common/outputs.h - what all programs that write files do first. */
#ifndef SAMPLE_OUTPUTS_H
#define SAMPLE_OUTPUTS_H

/* A full disk, a quota or a reader that is gone shall fail the write, which is told, and not end the program. */
void outputs_begin(void);
/* The path that an option's value stands for. "-" is standard output: what is printed besides goes to stderr from now
 * on, so that a reader gets the file alone. Static; the same for every "-". NULL for NULL. */
const char *output_path(const char *value);

#endif
