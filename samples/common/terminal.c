/* common/terminal.c - see terminal.h. */
#include "common/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80, MOST_COLUMNS = 10000, INDENT = 4 };

uint32_t terminal_columns(FILE *out)
{
    struct winsize size;
    const int fd = fileno(out);
    if (fd < 0 || !isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *text = getenv("COLUMNS");
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n <= MOST_COLUMNS ? (uint32_t)n : USUAL_COLUMNS;
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

/* ---- folding ---- */

/* Columns of n bytes of UTF-8: every byte but those that continue a character. */
static uint32_t width_of(const char *s, size_t n)
{
    uint32_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

/* A line of words; gaps of three blanks and more become two. A line without blanks, a rule, is cut. */
static void print_narrow(FILE *out, const char *line, size_t n, uint32_t room)
{
    uint32_t column = 0, lines = 0;
    if (!memchr(line, ' ', n)) {
        fwrite(line, 1, n < room || line[0] != '-' ? n : room, out);
        return;
    }
    for (size_t at = 0; at < n;) {
        const size_t gap = strspn(line + at, " ");
        at += gap;
        const size_t length = strcspn(line + at, " \n");
        const uint32_t width = width_of(line + at, length);
        uint32_t before = gap > 2 && (column || lines) ? 2 : (uint32_t)gap;
        if (column && length && column + before + width > room) {
            fputc('\n', out);
            column = 0;
            lines++;
            before = INDENT;
        }
        if (length) fprintf(out, "%*s%.*s", (int)before, "", (int)length, line + at);
        column += before + width;
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
