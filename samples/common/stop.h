/* common/stop.h - lets Ctrl-C, kill and a closed terminal end the program in an orderly way. */
#ifndef SAMPLE_STOP_H
#define SAMPLE_STOP_H

#include <stdio.h>

/* Installs the handlers. After that, the first SIGINT, SIGTERM or SIGHUP is only recorded. A second signal ends the
 * program at once, if it comes more than a quarter of a second after the first one. An ignored SIGHUP stays ignored
 * (nohup). */
void stop_begin(void);
int stop_signal(void);                    /* the first signal; 0: none */
const char *stop_name(int signal_number); /* for instance "SIGTERM"; "?": the number is not one of the three */
/* Opens standard input as a stream that a signal ends: after the first signal, a read fails with EINTR, even if it was
 * already waiting. Returns NULL, with errno, if this fails. fclose closes only the stream, not standard input. */
FILE *stop_open_input(void);
/* Prints a command for a shell: this program and its arguments. Leaves out --resume, --load and --seed, and adds
 * --resume with `checkpoint`. If `checkpoint` is NULL, leaves out only --resume, and adds nothing. */
void stop_print_command(FILE *to, int argc, char **argv, const char *checkpoint);

#endif
