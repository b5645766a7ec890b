/* support/terminal.c - see terminal.h. */
#define _XOPEN_SOURCE 700 /* posix_openpt and related functions */
#include "support/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void add_row(terminal *t, bool continues)
{
    t->column = 0;
    if (t->n_rows == t->cap_rows) {
        const size_t cap = t->cap_rows ? 2 * t->cap_rows : 64;
        terminal_row *rows = realloc(t->rows, cap * sizeof *rows);
        if (!rows) return; /* out of memory: further output stays in the last row */
        t->rows = rows;
        t->cap_rows = cap;
    }
    memset(&t->rows[t->n_rows], 0, sizeof *t->rows);
    t->rows[t->n_rows++].continues = continues;
    t->wrapped += continues;
}

bool terminal_resize(terminal *t, unsigned columns)
{
    const struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    t->columns = columns < TERMINAL_WIDEST && columns ? columns : TERMINAL_WIDEST;
    return ioctl(t->master, TIOCSWINSZ, &size) == 0;
}

bool terminal_open(terminal *t, unsigned columns)
{
    memset(t, 0, sizeof *t);
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (t->master < 0) return false;
    const char *path = grantpt(t->master) == 0 && unlockpt(t->master) == 0 ? ptsname(t->master) : NULL;
    if (path && strlen(path) < sizeof t->path) strcpy(t->path, path);
    add_row(t, false);
    if (*t->path && t->rows && terminal_resize(t, columns)) return true;
    terminal_close(t);
    return false;
}

void terminal_close(terminal *t)
{
    close(t->master);
    free(t->rows);
    memset(t, 0, sizeof *t);
    t->master = -1;
}

/* ---- the effect of the bytes ---- */

static void put(terminal *t, uint32_t code)
{
    terminal_row *row = &t->rows[t->n_rows - 1];
    t->letters += code >= 0x80;
    if (t->returned) {
        t->rewritten++;
        t->torn += row->continues;
    }
    if (t->column >= t->columns) {
        add_row(t, true);
        row = &t->rows[t->n_rows - 1];
    }
    row->cells[t->column++] = code;
}

static void control(terminal *t, unsigned char c)
{
    if (c == '\n') {
        const unsigned column = t->column;
        add_row(t, false);
        t->column = column; /* newline keeps the column; the terminal driver adds the carriage return */
    } else if (c == '\r') {
        t->column = 0;
        t->returned = true;
        return;
    } else if (c == '\b' && t->column) {
        t->column--;
    } else if (c == '\t') {
        do {
            put(t, ' ');
            t->returned = false; /* so put() counts a carriage return before the tab only once */
        } while (t->column % 8 && t->column < t->columns);
    }
    t->returned = false;
}

/* Processes one byte of a sequence that begins with ESC. */
static void escape(terminal *t, unsigned char c)
{
    if (t->in_escape < sizeof t->escape - 1) t->escape[t->in_escape++] = (char)c;
    if (t->in_escape == 1 || (t->in_escape == 2 && c == '[')) return;
    if (t->escape[1] == '[' && (c < 0x40 || c > 0x7e)) return; /* c does not end the sequence */
    t->escapes++;
    t->colours += c == 'm';
    if (c == 'K' && t->column < TERMINAL_WIDEST)
        memset(&t->rows[t->n_rows - 1].cells[t->column], 0, (TERMINAL_WIDEST - t->column) * sizeof(uint32_t));
    t->in_escape = 0;
}

static void take(terminal *t, unsigned char c)
{
    if (t->in_escape || c == 0x1b) {
        escape(t, c);
    } else if (t->code_left) {
        t->code = t->code << 6 | (c & 0x3f);
        if (--t->code_left) return;
        put(t, t->code);
        t->returned = false;
    } else if (c >= 0xc0) {
        t->code_left = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        t->code = c & (0x3fu >> t->code_left);
    } else if (c < 0x20) {
        control(t, c);
    } else {
        put(t, c);
        t->returned = false;
    }
}

bool terminal_look(terminal *t, int wait_ms)
{
    unsigned char bytes[4096];
    struct pollfd p = { .fd = t->master, .events = POLLIN };
    while (poll(&p, 1, wait_ms) > 0) {
        const ssize_t n = read(t->master, bytes, sizeof bytes);
        if (n <= 0) return false;
        for (ssize_t i = 0; i < n; i++) take(t, bytes[i]);
    }
    return true;
}

/* ---- the reader's side ---- */

const char *terminal_text(const terminal *t, size_t i)
{
    static char text[4 * TERMINAL_WIDEST + 1];
    size_t n = 0, end = 0;
    for (unsigned k = 0; i < t->n_rows && k < TERMINAL_WIDEST; k++) {
        const uint32_t c = t->rows[i].cells[k] ? t->rows[i].cells[k] : ' ';
        if (c < 0x80) {
            text[n++] = (char)c;
        } else if (c < 0x800) {
            text[n++] = (char)(0xc0 | c >> 6);
            text[n++] = (char)(0x80 | (c & 0x3f));
        } else {
            if (c >= 0x10000) text[n++] = (char)(0xf0 | c >> 18);
            text[n++] = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12);
            text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            text[n++] = (char)(0x80 | (c & 0x3f));
        }
        if (c != ' ') end = n;
    }
    text[end] = 0;
    return text;
}
