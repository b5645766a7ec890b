/* common/message.h - prints messages on standard error. Every message begins with the program's name. */
#ifndef SAMPLE_MESSAGE_H
#define SAMPLE_MESSAGE_H

#include <argp.h>

#include "vktrain/core.h"

/* Returns the name by which the program was called, without its folder, for instance "vkt-mnist". */
const char *program_name(void);
/* Prints an error. Writes the program's name and ": ", the formatted text (truncated after about 2000 bytes) and a
 * newline to standard error. On a terminal, a long line is broken between words. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a message that is not an error. Formats the message as complain does. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error in the command line. Formats the error as complain does. A second line names --help. */
void complain_of_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Declares this process a rank above 0. From then on, remarks are dropped, and errors have "rank <rank>: " behind the
 * program's name. A message of the library about a rank other than 0 is dropped, because rank 0 prints it too. */
void message_rank(uint32_t rank);
/* Prints the meaning of `r`. Prints nothing if an error was printed before, because the message of that error is more
 * precise. A rank above 0 does not print VKT_E_PEER. */
void complain_of_result(vkt_result r);
/* Is the log function of a vkt_host. Prints errors by complain. Prints other messages by remark, with the level in
 * front. */
void message_log(void *user, vkt_log_level level, const char *line);
/* Returns a host that prints errors as "--option: ..." and drops other messages. `option` must outlive the host. */
vkt_host message_host(const char *option);
/* Calls argp_parse and makes argp's messages begin with program_name(). A wrong option ends the program with
 * status 2. */
void parse_arguments(const struct argp *parser, int argc, char **argv, void *input);

#endif
