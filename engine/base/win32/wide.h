/* base/win32/wide.h - converts UTF-8 paths to the form that Windows wants, and errors of Windows to numbers of errno.
 */
#ifndef VKT_WIN32_WIDE_H
#define VKT_WIN32_WIDE_H

#include <stddef.h>
#include <wchar.h>

enum { VKT_WIDE_PATH = 4096 }; /* the largest number of UTF-16 units in a path, with the NUL */

/* Makes a path absolute and converts it to UTF-16. A path of more than 247 units that begins with a drive gets the
 * prefix "\\?\". Without this prefix, Windows makes no folder with such a long path. Returns 0. EILSEQ: not UTF-8.
 * ENOENT: the path is empty. ENAMETOOLONG. */
int vkt_wide_path(const char *path, wchar_t out[VKT_WIDE_PATH]);
/* Converts UTF-16 to UTF-8. Returns the number of bytes without the NUL; 0: the text is empty or does not fit. */
size_t vkt_narrow(const wchar_t *text, char *out, size_t room);
/* Returns the errno for an error code of GetLastError. */
int vkt_errno_of(unsigned long error);

#endif
