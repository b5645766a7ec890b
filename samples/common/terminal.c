/* common/terminal.c - see terminal.h. */
#include "common/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 80, MAX_COLUMNS = 10000, INDENT = 4, LABEL = 8 };

uint32_t terminal_columns(FILE *out)
{
    struct winsize size;
    const int fd = fileno(out);
    if (fd < 0 || !isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *text = getenv("COLUMNS");
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n <= MAX_COLUMNS ? (uint32_t)n : DEFAULT_COLUMNS;
}

bool terminal_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *locale = getenv(names[i]);
        if (!locale || !*locale) continue;
        const char *codeset = strchr(locale, '.');
        return codeset && (strncasecmp(codeset, ".UTF-8", 6) == 0 || strncasecmp(codeset, ".utf8", 5) == 0);
    }
    return false;
}

/* ---- line breaks ---- */

/* Returns how many columns n bytes of UTF-8 need: the number of bytes that do not continue a character. */
static uint32_t width_of(const char *s, size_t n)
{
    uint32_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

/* Returns the number of bytes of the field at the start of `s`. A field is words with single blanks between them. */
static size_t field_length(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && !(s[i] == ' ' && (i + 1 == n || s[i + 1] == ' '))) i++;
    return i;
}

/* Prints a line that is too wide for the `room` columns of the terminal. A line consists of fields (field_length) and
 * gaps. A field that does not fit behind the previous field moves to a new, indented line.
 *
 * - Three kinds of fields are broken between their words, so that only the words that do not fit move: a field behind a
 *   label, the first field if at most one blank is before it, and a field that is too wide for a line of its own. (A
 *   label is a short first field: a label and the gap behind it have LABEL columns.)
 * - A gap of three blanks or more becomes two blanks, but not at the start of the line, and not behind a label.
 * - A line without blanks stays as it is. Only if it begins with '-' (a horizontal line), its end is cut off. */
static void print_narrow(FILE *out, const char *line, size_t n, uint32_t room)
{
    uint32_t column = 0;
    bool first = true;
    if (!memchr(line, ' ', n)) {
        fwrite(line, 1, n < room || line[0] != '-' ? n : room, out);
        return;
    }
    for (size_t at = 0; at < n; first = false) {
        size_t gap = 0;
        while (at + gap < n && line[at + gap] == ' ') gap++;
        at += gap;
        size_t length = field_length(line + at, n - at);
        uint32_t before = !first && gap > 2 ? 2 : (uint32_t)gap;
        const bool label = gap > 1 && column < LABEL && column + gap == LABEL; /* for instance "data    digits: ..." */
        if (label) before = (uint32_t)gap;
        if (label || gap < 2 || width_of(line + at, length) + INDENT > room) { /* break the field between words */
            const char *blank = memchr(line + at, ' ', n - at);
            length = blank ? (size_t)(blank - line) - at : n - at;
        }
        if (column && length && column + before + width_of(line + at, length) > room) {
            fputc('\n', out);
            column = 0;
            before = INDENT;
        }
        if (length) fprintf(out, "%*s%.*s", (int)before, "", (int)length, line + at);
        column += before + width_of(line + at, length);
        at += length;
    }
}

void terminal_print(FILE *out, const char *text)
{
    const uint32_t columns = terminal_columns(out);
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (!columns || width_of(text, n) <= columns)
            fwrite(text, 1, n, out);
        else
            print_narrow(out, text, n, columns);
        text += n;
        if (*text == '\n') fputc(*text++, out);
    }
}

void terminal_printf(FILE *out, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    terminal_print(out, text);
}
