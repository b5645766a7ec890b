/* common/terminal.h - fits output to the width of the terminal. */
#ifndef SAMPLE_TERMINAL_H
#define SAMPLE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the number of columns of the terminal `out`; 0 if `out` is not a terminal. If the terminal does not report
 * its size, returns the number in the environment variable COLUMNS if it is 1 to 10,000, otherwise 80. */
uint32_t terminal_columns(FILE *out);
/* Returns whether text may have characters beyond ASCII: the locale of the environment (LC_ALL, otherwise LC_CTYPE,
 * otherwise LANG) uses UTF-8. */
bool terminal_unicode(void);
/* Prints text. On a terminal, wide gaps in a line that is too wide become narrower. If that is not enough, the line is
 * broken at blanks, and the next line is indented. A line without blanks that begins with '-' is cut instead. If `out`
 * is not a terminal, the text is not changed. */
void terminal_print(FILE *out, const char *text);
/* Formats its arguments as printf does, and prints the text as terminal_print does. Text after 1023 bytes is cut. */
void terminal_printf(FILE *out, const char *format, ...);

#endif
