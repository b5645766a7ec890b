/* base/terminal.h - the abilities of the terminal behind a stream. Reads the environment and changes nothing.
 *
 * The locale is the environment's (LC_ALL, else LC_CTYPE, else LANG), not the process': a library does not call
 * setlocale, and most programs never do. */
#ifndef VKT_TERMINAL_H
#define VKT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the columns of the terminal behind `stream`. Each call asks the terminal, so it sees a resized window. If the
 * terminal does not know its size: COLUMNS of the environment, else 80. 0: `stream` is no terminal. */
uint32_t vkt_terminal_columns(FILE *stream);
/* Returns whether `stream` is a terminal that can erase and rewrite a line: TERM is set and not "dumb". */
bool vkt_terminal_rewrites(FILE *stream);
/* Returns whether text may contain letters beyond ASCII: the environment's locale uses UTF-8. */
bool vkt_terminal_unicode(void);

#endif
