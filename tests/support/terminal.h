/* support/terminal.h - a terminal for tests: a pseudo-terminal, and the screen that a reader would see on it. The
 * screen wraps lines as xterm does. It implements carriage return, newline, backspace, tab and the escape sequence
 * "erase to the end of the line". Other escape sequences are only counted. Each character of UTF-8 is one column wide.
 * This code must not need cmocka, because tests/first_hour/in_terminal.c, which has no cmocka, uses this code too. */
#ifndef VKT_TEST_TERMINAL_H
#define VKT_TEST_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERMINAL_WIDEST = 512 };

typedef struct terminal_row {
    uint32_t cells[TERMINAL_WIDEST]; /* code points; 0: never written, or erased */
    bool continues;                  /* the line above did not fit and continues here */
} terminal_row;

typedef struct terminal {
    int master;     /* the test's end of the pseudo-terminal: the test reads here what the program wrote */
    char path[128]; /* the program's end: the device file that the program opens */
    unsigned columns;
    terminal_row *rows; /* from the top; nothing scrolls away */
    size_t n_rows, cap_rows;
    unsigned column;
    /* number of times that a text, after a carriage return, rewrote only the last row of a wrapped line. The rows of
     * the line above this row then keep their old text. */
    unsigned torn;
    unsigned wrapped;   /* number of rows that continue the line above */
    unsigned escapes;   /* number of escape sequences */
    unsigned colours;   /* number of escape sequences that end in 'm': colours, bold and so on */
    unsigned letters;   /* number of characters beyond ASCII */
    unsigned rewritten; /* number of carriage returns followed by a text, directly or after escape sequences */
    bool returned;      /* the last character, not counting escape sequences, was a carriage return */
    char escape[32];    /* an unfinished escape sequence */
    size_t in_escape;
    uint32_t code; /* an unfinished character of UTF-8 */
    unsigned code_left;
} terminal;

bool terminal_open(terminal *t, unsigned columns); /* false: no pseudo-terminal is available */
void terminal_close(terminal *t);
bool terminal_resize(terminal *t, unsigned columns); /* existing text does not move */
/* Reads what the program writes, until the program has written nothing for wait_ms milliseconds. Returns false if the
 * program's side was closed. */
bool terminal_look(terminal *t, int wait_ms);
/* Returns row `i` as text, without blanks at its end, and "" for a row behind the last one. The text is valid until the
 * next call. */
const char *terminal_text(const terminal *t, size_t i);

#endif
