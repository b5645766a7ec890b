/* base/posix/terminal.c - see base/terminal.h. */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 80, MAX_COLUMNS = 10000 };

uint32_t vkt_terminal_columns(FILE *stream)
{
    struct winsize size;
    const int fd = fileno(stream);
    if (fd < 0 || isatty(fd) != 1) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *text = getenv("COLUMNS");
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n <= MAX_COLUMNS ? (uint32_t)n : DEFAULT_COLUMNS;
}

bool vkt_terminal_rewrites(FILE *stream)
{
    const char *kind = getenv("TERM");
    return kind && *kind && strcmp(kind, "dumb") != 0 && isatty(fileno(stream)) == 1;
}

bool vkt_terminal_unicode(void)
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
