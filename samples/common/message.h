/* common/message.h - what a program says on standard error: every message begins with the program's name. */
#ifndef SAMPLE_MESSAGE_H
#define SAMPLE_MESSAGE_H

#include <argp.h>

#include "vktrain/core.h"

/* The name by which the program was called, without its folder: "vkt-mnist". */
const char *program_name(void);
/* Tells of an error. Writes "vkt-mnist: ", the text of printf's arguments (cut beyond 2000 bytes) and a newline to
 * standard error. On a terminal, long lines go on in the next one, between words. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for what is no error. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same as complain, for a wrong command line; a second line names --help. */
void complain_of_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says what `r` means, unless an error was told before: its message tells more. */
void complain_of_result(vkt_result r);
/* The log function of a vkt_host: errors go to complain, others to remark, with their level in front. */
void message_log(void *user, vkt_log_level level, const char *line);
/* argp_parse, whose own messages begin with program_name() too. Wrong options end the program with status 2. */
void parse_arguments(const struct argp *parser, int argc, char **argv, void *input);

#endif
