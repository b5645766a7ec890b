/* base/win32/file.c - reads files: see base/file.h. */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include "base/file.h"
#include "base/paths.h"
#include "base/win32/wide.h"

static vkt_result fail_irregular(const vkt_host *h, const char *path)
{
    return vkt_fail(h, VKT_E_IO, "cannot read \"%s\": not a regular file", path);
}

/* Opens a regular file and sets *file. As on POSIX, other processes may write, rename or remove the file while it is
 * open. */
static vkt_result open_handle(const vkt_host *h, const char *path, HANDLE *file)
{
    wchar_t wide[VKT_WIDE_PATH];
    bool is_folder;
    int error = vkt_wide_path(path, wide);
    if (error) return vkt_file_fail(h, "open", path, error);
    if (vkt_path_is_folder(path, &is_folder) == 0 && is_folder) return fail_irregular(h, path);
    *file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                        FILE_ATTRIBUTE_NORMAL, NULL);
    if (*file == INVALID_HANDLE_VALUE) return vkt_file_fail(h, "open", path, vkt_errno_of(GetLastError()));
    if (GetFileType(*file) == FILE_TYPE_DISK) return VKT_OK;
    CloseHandle(*file);
    return fail_irregular(h, path);
}

vkt_result vkt_file_open(const vkt_host *h, const char *path, vkt_file *f)
{
    *f = (vkt_file){ .h = h, .fd = -1 };
    if (!path) return vkt_fail_null(h, "opening a file", "path");
    HANDLE file;
    LARGE_INTEGER size;
    VKT_TRY(open_handle(h, path, &file));
    vkt_result r = VKT_OK;
    if (!GetFileSizeEx(file, &size))
        r = vkt_file_fail(h, "inspect", path, vkt_errno_of(GetLastError()));
    else if (!(f->path = vkt_strdup(h, path)))
        r = vkt_fail_nomem(h, "a file name", strlen(path) + 1);
    else if ((f->fd = _open_osfhandle((intptr_t)file, _O_RDONLY | _O_BINARY | _O_NOINHERIT)) < 0)
        r = vkt_file_fail(h, "open", path, EMFILE);
    if (r != VKT_OK) {
        CloseHandle(file);
        vkt_free(h, f->path);
        *f = (vkt_file){ .fd = -1 };
        return r;
    }
    f->size = (uint64_t)size.QuadPart;
    return VKT_OK;
}

vkt_result vkt_file_read_at(const vkt_file *f, uint64_t offset, void *dst, size_t n)
{
    char *p = dst;
    if (offset > INT64_MAX - n) return vkt_fail(f->h, VKT_E_ARG, "read of \"%s\": offset out of range", f->path);
    while (n > 0) {
        OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
        DWORD got = 0;
        const BOOL ok = ReadFile((HANDLE)_get_osfhandle(f->fd), p, (DWORD)VKT_MIN(n, VKT_FILE_STEP), &got, &at);
        if (!ok && GetLastError() != ERROR_HANDLE_EOF)
            return vkt_file_fail(f->h, "read", f->path, vkt_errno_of(GetLastError()));
        if (got == 0) {
            return vkt_fail(f->h, VKT_E_IO, "cannot read \"%s\": it ends %zu bytes too early, at byte %llu", f->path, n,
                            (unsigned long long)offset);
        }
        p += got;
        n -= got;
        offset += got;
    }
    return VKT_OK;
}

int vkt_file_duplicate(const vkt_file *f)
{
    return _dup(f->fd);
}

void vkt_file_close_duplicate(int fd)
{
    if (fd >= 0) _close(fd);
}

vkt_result vkt_file_map(const vkt_file *f, const void **bytes)
{
    *bytes = NULL;
    if (f->size == 0) return VKT_OK; /* CreateFileMappingW refuses an empty file */
    if (f->size > SIZE_MAX) return vkt_fail_nomem(f->h, f->path, SIZE_MAX);
    const HANDLE mapping =
        CreateFileMappingW((HANDLE)_get_osfhandle(f->fd), NULL, PAGE_READONLY, 0, 0 /* the whole file */, NULL);
    if (!mapping) return vkt_file_fail(f->h, "map", f->path, vkt_errno_of(GetLastError()));
    *bytes = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, (SIZE_T)f->size);
    const DWORD error = *bytes ? 0 : GetLastError();
    CloseHandle(mapping); /* the view keeps the mapping */
    if (error == ERROR_NOT_ENOUGH_MEMORY) return vkt_fail_nomem(f->h, f->path, (size_t)f->size);
    return *bytes ? VKT_OK : vkt_file_fail(f->h, "map", f->path, vkt_errno_of(error));
}

void vkt_file_unmap(const void *bytes, uint64_t size)
{
    (void)size;
    if (bytes) UnmapViewOfFile(bytes);
}

void vkt_file_close(vkt_file *f)
{
    if (!f->path) return;
    _close(f->fd);
    vkt_free(f->h, f->path);
    *f = (vkt_file){ .fd = -1 };
}
