/* base/win32/paths.c - see base/paths.h. */
#include "base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "base/win32/wide.h"

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

const char *vkt_path_name(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (is_separator(*c) || (*c == ':' && c == path + 1)) name = c + 1;
    return name;
}

bool vkt_path_is_absolute(const char *path)
{
    return is_separator(*path) || (*path && path[1] == ':');
}

char *vkt_path_next(char *path)
{
    for (char *c = *path ? path + 1 : path; *c; c++)
        if (is_separator(*c)) return c;
    return NULL;
}

size_t vkt_path_list_first(const char *list)
{
    return strcspn(list, ";");
}

/* Returns the attributes of the file or folder at a path, and sets *error to 0. After a failure, returns
 * INVALID_FILE_ATTRIBUTES and sets *error to an errno. */
static DWORD attributes_of(const char *path, int *error)
{
    wchar_t wide[VKT_WIDE_PATH];
    *error = vkt_wide_path(path, wide);
    const DWORD attributes = *error ? INVALID_FILE_ATTRIBUTES : GetFileAttributesW(wide);
    if (!*error && attributes == INVALID_FILE_ATTRIBUTES) *error = vkt_errno_of(GetLastError());
    return attributes;
}

bool vkt_path_exists(const char *path)
{
    int error;
    return attributes_of(path, &error) != INVALID_FILE_ATTRIBUTES;
}

bool vkt_path_is_readable(const char *path)
{
    wchar_t wide[VKT_WIDE_PATH];
    return vkt_wide_path(path, wide) == 0 && _waccess(wide, 4 /* may be read */) == 0;
}

int vkt_path_is_folder(const char *path, bool *is)
{
    int error;
    const DWORD attributes = attributes_of(path, &error);
    *is = !error && (attributes & FILE_ATTRIBUTE_DIRECTORY);
    return error;
}

int vkt_path_remove(const char *path)
{
    wchar_t wide[VKT_WIDE_PATH];
    bool is_folder;
    int error = vkt_path_is_folder(path, &is_folder);
    if (!error) error = vkt_wide_path(path, wide);
    if (error) return error;
    return (is_folder ? RemoveDirectoryW(wide) : DeleteFileW(wide)) ? 0 : vkt_errno_of(GetLastError());
}

int vkt_folder_make(const char *path, bool is_private)
{
    (void)is_private; /* a new folder has the rights of the folder above it */
    wchar_t wide[VKT_WIDE_PATH];
    const int error = vkt_wide_path(path, wide);
    if (error) return error;
    return CreateDirectoryW(wide, NULL) ? 0 : vkt_errno_of(GetLastError());
}

/* ---- the names in a folder ---- */

struct vkt_folder {
    HANDLE find;
    WIN32_FIND_DATAW entry; /* the next entry, if has_entry */
    bool has_entry;
    char name[3 * MAX_PATH]; /* a unit of UTF-16 becomes at most 3 bytes */
};

int vkt_folder_open(const char *path, vkt_folder **out)
{
    wchar_t wide[VKT_WIDE_PATH];
    bool is_folder;
    *out = NULL;
    int error = vkt_path_is_folder(path, &is_folder);
    if (!error && !is_folder) error = ENOTDIR;
    if (!error) error = vkt_wide_path(path, wide);
    if (error) return error;
    const size_t n = wcslen(wide);
    if (n + 3 > VKT_WIDE_PATH) return ENAMETOOLONG;
    wcscpy(wide + n, wide[n - 1] == L'\\' ? L"*" : L"\\*");
    vkt_folder *folder = malloc(sizeof *folder); /* there is no vkt_host here; opendir of POSIX uses malloc too */
    if (!folder) return ENOMEM;
    folder->find = FindFirstFileW(wide, &folder->entry);
    folder->has_entry = folder->find != INVALID_HANDLE_VALUE;
    if (!folder->has_entry && GetLastError() != ERROR_FILE_NOT_FOUND) {
        error = vkt_errno_of(GetLastError());
        free(folder);
        return error;
    }
    *out = folder;
    return 0;
}

int vkt_folder_next(vkt_folder *folder, const char **name)
{
    *name = NULL;
    if (!folder->has_entry) return 0;
    if (vkt_narrow(folder->entry.cFileName, folder->name, sizeof folder->name) == 0) return EILSEQ;
    folder->has_entry = FindNextFileW(folder->find, &folder->entry);
    if (!folder->has_entry && GetLastError() != ERROR_NO_MORE_FILES) return vkt_errno_of(GetLastError());
    *name = folder->name;
    return 0;
}

void vkt_folder_close(vkt_folder *folder)
{
    if (folder->find != INVALID_HANDLE_VALUE) FindClose(folder->find);
    free(folder);
}

/* ---- files ---- */

/* Opens a file as a stream. Until the stream is closed, other processes may read the file, but not write it. */
static int open_stream(const char *path, DWORD access, DWORD how, const char *mode, FILE **out)
{
    wchar_t wide[VKT_WIDE_PATH];
    *out = NULL;
    int error = vkt_wide_path(path, wide);
    if (error) return error;
    const HANDLE file = CreateFileW(wide, access, FILE_SHARE_READ, NULL, how, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return GetLastError() == ERROR_SHARING_VIOLATION ? EWOULDBLOCK : vkt_errno_of(GetLastError());
    const int fd = _open_osfhandle((intptr_t)file, _O_BINARY | _O_NOINHERIT);
    if (fd < 0) {
        CloseHandle(file);
        return EMFILE;
    }
    *out = _fdopen(fd, mode);
    error = *out ? 0 : errno;
    if (error) _close(fd);
    return error;
}

int vkt_file_create(const char *path, FILE **out)
{
    return open_stream(path, GENERIC_WRITE, CREATE_NEW, "wb", out);
}

int vkt_file_append(const char *path, FILE **out)
{
    return open_stream(path, FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE, OPEN_ALWAYS, "ab", out);
}
