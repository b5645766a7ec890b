/* common/stop.h - lets Ctrl-C, kill and a closed terminal end the program in an orderly way. */
#ifndef SAMPLE_STOP_H
#define SAMPLE_STOP_H

#include <stdio.h>

/* Installs the handlers. From then on the first SIGINT, SIGTERM or SIGHUP is only noted. A second one, a quarter of a
 * second later or more, ends the program at once. An ignored SIGHUP stays ignored (nohup). */
void stop_begin(void);
int stop_signal(void);                    /* the first signal; 0: none */
const char *stop_name(int signal_number); /* for instance "SIGTERM"; "?": the number is not one of the three */
/* Prints a command for a shell: this program and its arguments. Leaves out --resume, --load and --seed, and adds
 * --resume with `checkpoint`. If `checkpoint` is NULL, leaves out only --resume, and adds nothing. */
void stop_print_command(FILE *to, int argc, char **argv, const char *checkpoint);

#endif
