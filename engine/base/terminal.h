/* base/terminal.h - what the terminal behind a stream can show. Reads the environment and changes nothing.
 *
 * The locale is the environment's (LC_ALL, else LC_CTYPE, else LANG), not the process': a library does not call
 * setlocale, and most programs never do. */
#ifndef VKT_TERMINAL_H
#define VKT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns of the terminal behind `stream`, asked anew by every call, so that a resized window counts at once. Where the
 * terminal does not know its size: COLUMNS of the environment, else 80. 0: `stream` is no terminal. */
uint32_t vkt_terminal_columns(FILE *stream);
/* Whether `stream` is a terminal on which a line can be erased and written again: TERM is set, and not "dumb". */
bool vkt_terminal_rewrites(FILE *stream);
/* Whether text may have letters beyond ASCII: the environment's locale is one of UTF-8. */
bool vkt_terminal_unicode(void);

#endif
