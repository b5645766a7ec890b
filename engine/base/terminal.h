/* base/terminal.h - the abilities of the terminal behind a stream. Reads the environment and changes nothing.
 *
 * The locale is that of the environment (LC_ALL, else LC_CTYPE, else LANG), not that of the process: a library does not
 * call setlocale, and most programs never do. */
#ifndef VKT_TERMINAL_H
#define VKT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the columns of the terminal behind `stream`; 0 if `stream` is no terminal. Each call asks the terminal, so
 * the result is right after the window was resized. If the terminal does not know its size, the result is COLUMNS of
 * the environment, or 80 without that. */
uint32_t vkt_terminal_columns(FILE *stream);
/* Returns whether `stream` is a terminal that can erase and rewrite a line: TERM is set and not "dumb". */
bool vkt_terminal_rewrites(FILE *stream);
/* Returns whether text may contain letters beyond ASCII: the environment's locale uses UTF-8. */
bool vkt_terminal_unicode(void);

#endif
