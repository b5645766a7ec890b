/* base/win32/wide.c - see wide.h. */
#include "base/win32/wide.h"

#include <errno.h>
#include <windows.h>

enum { LONGEST_PLAIN = 247 /* CreateDirectory accepts MAX_PATH - 12 units of UTF-16, with the NUL */ };

int vkt_wide_path(const char *path, wchar_t out[VKT_WIDE_PATH])
{
    static const wchar_t prefix[] = L"\\\\?\\";
    enum { PREFIX = sizeof prefix / sizeof *prefix - 1 };
    wchar_t relative[VKT_WIDE_PATH];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, relative, VKT_WIDE_PATH) == 0)
        return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    if (!*relative) return ENOENT;
    const DWORD n = GetFullPathNameW(relative, VKT_WIDE_PATH, out, NULL);
    if (n == 0 || n + PREFIX >= VKT_WIDE_PATH) return ENAMETOOLONG;
    if (n <= LONGEST_PLAIN || out[0] == L'\\') return 0; /* a path that begins with "\\" gets no prefix */
    memmove(out + PREFIX, out, (n + 1) * sizeof *out);
    memcpy(out, prefix, PREFIX * sizeof *out);
    return 0;
}

size_t vkt_narrow(const wchar_t *text, char *out, size_t room)
{
    const int n = room < 0x7fffffff ? WideCharToMultiByte(CP_UTF8, 0, text, -1, out, (int)room, NULL, NULL) : 0;
    return n > 0 ? (size_t)n - 1 : 0;
}

int vkt_errno_of(unsigned long error)
{
    switch (error) {
    case ERROR_SUCCESS: return 0;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_INVALID_NAME: return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
    case ERROR_WRITE_PROTECT: return EACCES;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS: return EEXIST;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: return ENOMEM;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_FILENAME_EXCED_RANGE: return ENAMETOOLONG;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: return EPIPE;
    default: return EIO;
    }
}
