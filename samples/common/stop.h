/* common/stop.h - Ctrl-C, kill and a terminal that is closed: the program ends in order. */
#ifndef SAMPLE_STOP_H
#define SAMPLE_STOP_H

#include <stdio.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP is only noted. Another one, a quarter of a second later or more, ends
 * the program at once. SIGHUP stays ignored where it was (nohup). */
void stop_begin(void);
int stop_signal(void);                    /* the one that came; 0: none */
const char *stop_name(int signal_number); /* "SIGTERM"; "?" for one that is not among the three */
/* Writes a line for a shell: this program with these options, but that it resumes `checkpoint`. NULL: as it was called.
 */
void stop_print_command(FILE *to, int argc, char **argv, const char *checkpoint);

#endif
