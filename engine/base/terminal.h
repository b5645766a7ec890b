/* base/terminal.h - the abilities of the terminal behind a stream. Reads the environment and changes nothing.
 *
 * On POSIX vkt_terminal_unicode reads the locale from the environment (LC_ALL, else LC_CTYPE, else LANG). It does not
 * use the locale of the process, which is "C" in each program that does not call setlocale. A library must not call
 * setlocale. */
#ifndef VKT_TERMINAL_H
#define VKT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns how many columns the terminal behind `stream` has; 0 if `stream` is no terminal. Each call asks the terminal,
 * so the result stays correct when the user resizes the window. If the terminal does not know its size, the result is
 * 80. On POSIX, a number from 1 to 10,000 in the environment variable COLUMNS replaces this 80. */
uint32_t vkt_terminal_columns(FILE *stream);
/* Returns whether `stream` is a terminal that can erase and rewrite a line. On POSIX TERM must be neither empty nor
 * "dumb". On Windows the console must process escape sequences. */
bool vkt_terminal_rewrites(FILE *stream);
/* Returns whether text for the terminal may contain letters that are not ASCII. POSIX: the environment's locale must
 * have the encoding UTF-8. Windows: the console's code page must be UTF-8. */
bool vkt_terminal_unicode(void);

#endif
