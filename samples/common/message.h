/* common/message.h - prints messages on standard error. Every message begins with the program's name. */
#ifndef SAMPLE_MESSAGE_H
#define SAMPLE_MESSAGE_H

#include <argp.h>

#include "vktrain/core.h"

/* Returns the name by which the program was called, without its folder: "vkt-mnist". */
const char *program_name(void);
/* Prints an error. Writes "vkt-mnist: ", the text of printf's arguments (cut after 2000 bytes) and a newline to
 * standard error. On a terminal, a long line is broken between words. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a message that is not an error, in the same form. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error in the command line, in the same form. A second line names --help. */
void complain_of_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Makes this process rank `rank` above 0 of several: it prints no remarks, and an error with its number. It drops
 * errors of other ranks, which rank 0 prints, but not those of rank 0. */
void message_rank(uint32_t rank);
/* Prints the meaning of `r`, unless an error was printed before: that message is more precise. */
void complain_of_result(vkt_result r);
/* Is the log function of a vkt_host. Sends errors to complain, and other lines to remark with their level in front. */
void message_log(void *user, vkt_log_level level, const char *line);
/* Returns a host whose errors are printed as "--option: ...". Other lines are dropped. `option` must outlive it. */
vkt_host message_host(const char *option);
/* Calls argp_parse and makes its messages begin with program_name(), too. A wrong option ends the program with
 * status 2. */
void parse_arguments(const struct argp *parser, int argc, char **argv, void *input);

#endif
