/* base/terminal.h - the abilities of the terminal behind a stream. Reads the environment and changes nothing.
 *
 * On POSIX the locale is that of the environment (LC_ALL, else LC_CTYPE, else LANG), not that of the process: a library
 * does not call setlocale, and most programs never do. */
#ifndef VKT_TERMINAL_H
#define VKT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the columns of the terminal behind `stream`; 0 if `stream` is no terminal. Each call asks the terminal, so
 * the result stays correct when the user resizes the window. If the terminal does not know its size, the result on
 * POSIX is COLUMNS of the environment, if that is a number from 1 to 10,000. Otherwise the result is 80. */
uint32_t vkt_terminal_columns(FILE *stream);
/* Returns whether `stream` is a terminal that can erase and rewrite a line. On POSIX TERM must be neither empty nor
 * "dumb". On Windows the console must process escape sequences. */
bool vkt_terminal_rewrites(FILE *stream);
/* Returns whether text may contain letters beyond ASCII: the environment's locale, or the code page of the Windows
 * console, is UTF-8. */
bool vkt_terminal_unicode(void);

#endif
