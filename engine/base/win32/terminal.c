/* base/win32/terminal.c - see base/terminal.h. */
#include "base/terminal.h"

#include <io.h>
#include <windows.h>

/* Returns the console behind a stream, and sets *mode to the console's mode; NULL: the stream is no console. */
static HANDLE console_of(FILE *stream, DWORD *mode)
{
    const int fd = _fileno(stream);
    const HANDLE console = fd < 0 ? INVALID_HANDLE_VALUE : (HANDLE)_get_osfhandle(fd);
    return console != INVALID_HANDLE_VALUE && GetConsoleMode(console, mode) ? console : NULL;
}

uint32_t vkt_terminal_columns(FILE *stream)
{
    enum { DEFAULT_COLUMNS = 80 };
    DWORD mode;
    CONSOLE_SCREEN_BUFFER_INFO info;
    const HANDLE console = console_of(stream, &mode);
    if (!console) return 0;
    const int columns = GetConsoleScreenBufferInfo(console, &info) ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
    return columns > 0 ? (uint32_t)columns : DEFAULT_COLUMNS;
}

bool vkt_terminal_rewrites(FILE *stream)
{
    DWORD mode;
    return console_of(stream, &mode) && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

bool vkt_terminal_unicode(void)
{
    return GetConsoleOutputCP() == CP_UTF8;
}
