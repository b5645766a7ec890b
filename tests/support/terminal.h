/* support/terminal.h - a terminal for tests: a pseudo-terminal, and what a reader would see on it.
 *
 * It wraps lines as xterm does and knows carriage return, newline, backspace, tab and "erase to the end of the line";
 * every other escape sequence is counted and dropped. Each character of UTF-8 is one column wide. Needs no cmocka:
 * tests/first_hour/in_terminal.c uses it too. */
#ifndef VKT_TEST_TERMINAL_H
#define VKT_TEST_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERMINAL_WIDEST = 512 };

typedef struct terminal_row {
    uint32_t cells[TERMINAL_WIDEST]; /* code points; 0: never written */
    bool continues;                  /* the line above did not fit and goes on here */
} terminal_row;

typedef struct terminal {
    int master;     /* the side of the one who looks */
    char path[128]; /* the side of the program */
    unsigned columns;
    terminal_row *rows; /* from the top, nothing is scrolled away */
    size_t n_rows, cap_rows;
    unsigned column;
    unsigned torn;      /* times that a line which had wrapped was written anew: its first part stays behind */
    unsigned wrapped;   /* rows that go on with the line above */
    unsigned escapes;   /* escape sequences */
    unsigned colours;   /* those of them that set a colour */
    unsigned letters;   /* characters beyond ASCII */
    unsigned rewritten; /* carriage returns with text behind them */
    bool returned;      /* the last character was a carriage return */
    char escape[32];    /* an unfinished sequence */
    size_t in_escape;
    uint32_t code; /* an unfinished character of UTF-8 */
    unsigned code_left;
} terminal;

bool terminal_open(terminal *t, unsigned columns); /* false: no pseudo-terminal is to be had */
void terminal_close(terminal *t);
bool terminal_resize(terminal *t, unsigned columns); /* what stands there stays where it is */
/* Takes what the program has written so far. False: the program's side was closed. */
bool terminal_look(terminal *t, int wait_ms);
/* Row `i` as text, blanks at its end cut; "" behind the last one. Good until the next call. */
const char *terminal_text(const terminal *t, size_t i);

#endif
