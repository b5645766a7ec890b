/* common/terminal.h - what a program prints fits the terminal that it is printed on. */
#ifndef SAMPLE_TERMINAL_H
#define SAMPLE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns of the terminal behind `out`, those of COLUMNS where it does not know its size, else 80. 0: `out` is no
 * terminal. */
uint32_t terminal_columns(FILE *out);
/* Whether text may have letters beyond ASCII: the locale of the environment (LC_ALL, else LC_CTYPE, else LANG) is one
 * of UTF-8. */
bool terminal_unicode(void);
/* Writes text. A line that is wider than the terminal has wide gaps closed, and if that is not enough goes on,
 * indented, in the next one. Elsewhere than on a terminal nothing is changed. */
void terminal_print(FILE *out, const char *text);
/* The same for printf's arguments; text beyond 1023 bytes is cut. */
void terminal_printf(FILE *out, const char *format, ...);

#endif
