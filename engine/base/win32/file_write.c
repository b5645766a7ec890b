/* base/win32/file_write.c - writes files by a temporary file and a rename. Devices and pipes are written in place.
 *
 * While the handle of a temporary is open, other processes can neither write nor remove the temporary. So this handle
 * is the lock that file.h describes. The rename is a call for this handle, so the temporary is locked until it has its
 * new name. */
#define _CRT_RAND_S /* declares rand_s */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include "base/file.h"
#include "base/paths.h"
#include "base/win32/wide.h"

/* The names of temporary files have the same form as in posix/file_write.c. Windows allows 255 units of UTF-16 in a
 * name, so a name of at most 255 bytes of UTF-8 always fits. */
#define TEMP_END ".vkttmp"
enum { MAX_NAME_BYTES = 200, DIGITS = 16, TEMP_ROOM = MAX_NAME_BYTES + 1 + DIGITS + sizeof TEMP_END, TRIES = 100 };

/* Logs a failed write and returns VKT_E_IO, also if the directory is missing. */
static vkt_result fail_write(const vkt_host *h, const char *verb, const char *path, int error)
{
    vkt_file_fail(h, verb, path, error);
    return VKT_E_IO;
}

static vkt_result fail_last(const vkt_file_writer *w, const char *verb)
{
    return fail_write(w->h, verb, w->path, vkt_errno_of(GetLastError()));
}

static HANDLE handle_of(const vkt_file_writer *w)
{
    return (HANDLE)_get_osfhandle(w->fd);
}

static void close_writer(vkt_file_writer *w)
{
    if (w->fd >= 0) _close(w->fd);
    vkt_free(w->h, w->temp);
    vkt_free(w->h, w->target);
    vkt_free(w->h, w->path);
    *w = (vkt_file_writer){ .fd = -1, .dir_fd = -1 };
}

/* Gives the writer a descriptor that owns `file`. Closes `file` after a failure. */
static vkt_result take_handle(vkt_file_writer *w, HANDLE file)
{
    w->fd = _open_osfhandle((intptr_t)file, _O_WRONLY | _O_BINARY | _O_NOINHERIT);
    if (w->fd >= 0) return VKT_OK;
    CloseHandle(file);
    return fail_write(w->h, "write", w->path, EMFILE);
}

/* ---- the target of a path ---- */

typedef struct destination {
    bool in_place; /* the path leads to a device or a pipe, which is written to and never replaced */
} destination;

static HANDLE open_existing(const wchar_t *path, DWORD access)
{
    return CreateFileW(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                       FILE_ATTRIBUTE_NORMAL, NULL);
}

/* w->target is a link. Replaces w->target by the path of the file to which the link leads. Fails if there is no such
 * file. */
static vkt_result follow_link(vkt_file_writer *w, const wchar_t *link)
{
    wchar_t wide[VKT_WIDE_PATH];
    char target[3 * VKT_WIDE_PATH];
    const HANDLE file = open_existing(link, FILE_READ_ATTRIBUTES);
    if (file == INVALID_HANDLE_VALUE) return fail_last(w, "follow the link");
    const DWORD n = GetFinalPathNameByHandleW(file, wide, VKT_WIDE_PATH, FILE_NAME_NORMALIZED);
    CloseHandle(file);
    if (n == 0 || n >= VKT_WIDE_PATH || vkt_narrow(wide, target, sizeof target) == 0)
        return fail_write(w->h, "follow the link", w->path, ENAMETOOLONG);
    vkt_free(w->h, w->target);
    w->target = vkt_strdup(w->h, target);
    return w->target ? VKT_OK : vkt_fail_nomem(w->h, "a file name", strlen(target) + 1);
}

/* Returns true if there is a device or a pipe at this path. */
static bool is_device(const wchar_t *path)
{
    if (wcsncmp(path, L"\\\\.\\", 4) == 0) return true; /* GetFullPathName puts this prefix before NUL and CON */
    const HANDLE file = open_existing(path, 0);
    const bool is = file != INVALID_HANDLE_VALUE && GetFileType(file) != FILE_TYPE_DISK;
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    return is;
}

/* Refuses `path` if it does not end with a file name, or if it leads to a folder or a read-only file. Sets the path and
 * the target of *w. Sets *p. */
static vkt_result locate(vkt_file_writer *w, const vkt_host *h, const char *path, destination *p)
{
    wchar_t wide[VKT_WIDE_PATH];
    *w = (vkt_file_writer){ .h = h, .fd = -1, .dir_fd = -1 };
    *p = (destination){ 0 };
    if (*vkt_path_name(path) == 0) return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it names no file", path);
    const int error = vkt_wide_path(path, wide);
    if (error) return fail_write(h, "write", path, error);
    const DWORD attributes = GetFileAttributesW(wide);
    const bool exists = attributes != INVALID_FILE_ATTRIBUTES;
    p->in_place = is_device(wide);
    if (exists && !p->in_place && (attributes & FILE_ATTRIBUTE_DIRECTORY))
        return vkt_fail(h, VKT_E_IO, "cannot write \"%s\": it is a directory, not a regular file", path);
    if (exists && !p->in_place && (attributes & FILE_ATTRIBUTE_READONLY)) return fail_write(h, "write", path, EACCES);
    w->path = vkt_strdup(h, path);
    w->target = vkt_strdup(h, path);
    if (!w->path || !w->target) return vkt_fail_nomem(h, "a file name", strlen(path) + 1);
    return exists && !p->in_place && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) ? follow_link(w, wide) : VKT_OK;
}

static vkt_result open_in_place(vkt_file_writer *w)
{
    wchar_t wide[VKT_WIDE_PATH];
    const int error = vkt_wide_path(w->path, wide);
    if (error) return fail_write(w->h, "write", w->path, error);
    const HANDLE file = open_existing(wide, GENERIC_WRITE);
    return file == INVALID_HANDLE_VALUE ? fail_last(w, "write") : take_handle(w, file);
}

/* ---- temporaries ---- */

static bool is_temp_of(const char *name, const char *target)
{
    const size_t n = strnlen(target, MAX_NAME_BYTES);
    return strncmp(name, target, n) == 0 && name[n] == '.' && strspn(name + n + 1, "0123456789abcdef") == DIGITS &&
           strcmp(name + n + 1 + DIGITS, TEMP_END) == 0;
}

/* Returns the number of bytes of w->target in front of the file's name. These bytes are the directory with its
 * separator; 0: the current directory. */
static size_t directory_bytes(const vkt_file_writer *w)
{
    return (size_t)(vkt_path_name(w->target) - w->target);
}

/* Removes the temporary files of this target that a killed process left. The system does not remove a file that another
 * writer has open. Failures other than VKT_E_NOMEM are ignored, because they do not concern the file that is to be
 * written. */
static vkt_result drop_left_temporaries(vkt_file_writer *w)
{
    vkt_folder *folder;
    const size_t n = directory_bytes(w), room = n + TEMP_ROOM;
    char *path = vkt_alloc(w->h, room);
    if (!path) return vkt_fail_nomem(w->h, "a file name", room);
    snprintf(path, room, "%.*s.", (int)n, w->target);
    if (vkt_folder_open(path, &folder) == 0) {
        for (const char *name; vkt_folder_next(folder, &name) == 0 && name;) {
            if (!is_temp_of(name, vkt_path_name(w->target))) continue;
            snprintf(path + n, room - n, "%s", name);
            (void)vkt_path_remove(path);
        }
        vkt_folder_close(folder);
    }
    vkt_free(w->h, path);
    return VKT_OK;
}

/* Makes the temporary file. Writes its path to w->temp, which has `room` bytes. Sets *file. Returns 0 or an errno. */
static int make_temp(vkt_file_writer *w, size_t room, HANDLE *file)
{
    wchar_t wide[VKT_WIDE_PATH];
    for (int i = 0; i < TRIES; i++) {
        unsigned high, low;
        if (rand_s(&high) != 0 || rand_s(&low) != 0) return EIO;
        const size_t n = directory_bytes(w);
        snprintf(w->temp, room, "%.*s%.*s.%08x%08x" TEMP_END, (int)n, w->target, MAX_NAME_BYTES, w->target + n, high,
                 low);
        const int error = vkt_wide_path(w->temp, wide);
        if (error) return error;
        *file =
            CreateFileW(wide, GENERIC_WRITE | DELETE, FILE_SHARE_READ, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
        if (*file != INVALID_HANDLE_VALUE) return 0;
        if (vkt_errno_of(GetLastError()) != EEXIST) return vkt_errno_of(GetLastError());
    }
    return EEXIST;
}

static vkt_result open_temp(vkt_file_writer *w)
{
    const size_t room = directory_bytes(w) + TEMP_ROOM;
    HANDLE file;
    w->temp = vkt_alloc(w->h, room);
    if (!w->temp) return vkt_fail_nomem(w->h, "a file name", room);
    VKT_TRY(drop_left_temporaries(w));
    const int error = make_temp(w, room, &file);
    if (error) return fail_write(w->h, "create a temporary file beside", w->path, error);
    return take_handle(w, file);
}

/* ---- writing a file ---- */

vkt_result vkt_file_writer_begin(const vkt_host *h, const char *path, vkt_file_writer *w)
{
    destination p;
    vkt_result r = locate(w, h, path, &p);
    if (r == VKT_OK) r = p.in_place ? open_in_place(w) : open_temp(w);
    if (r != VKT_OK) vkt_file_writer_abort(w);
    return r;
}

vkt_result vkt_file_writer_write(vkt_file_writer *w, const void *bytes, size_t n)
{
    if (!w->path) return VKT_E_STATE; /* the writer is closed; if an earlier call failed, that call logged its error */
    const char *p = bytes;
    while (n > 0) {
        DWORD put = 0;
        if (!WriteFile(handle_of(w), p, (DWORD)VKT_MIN(n, VKT_FILE_STEP), &put, NULL) || put == 0) {
            const vkt_result r = fail_last(w, "write");
            vkt_file_writer_abort(w);
            return r;
        }
        p += put;
        n -= put;
    }
    return VKT_OK;
}

/* Renames the temporary to the name of the target, and so replaces the target. */
static vkt_result replace_target(vkt_file_writer *w)
{
    union {
        FILE_RENAME_INFO info;
        char room[sizeof(FILE_RENAME_INFO) + VKT_WIDE_PATH * sizeof(wchar_t)];
    } to = { .info = { .ReplaceIfExists = TRUE } };
    wchar_t target[VKT_WIDE_PATH];
    const int error = vkt_wide_path(w->target, target);
    if (error) return fail_write(w->h, "replace", w->path, error);
    const size_t bytes = wcslen(target) * sizeof *target;
    to.info.FileNameLength = (DWORD)bytes;
    memcpy(to.info.FileName, target, bytes + sizeof *target);
    if (SetFileInformationByHandle(handle_of(w), FileRenameInfo, &to, sizeof to)) return VKT_OK;
    return fail_last(w, "replace");
}

vkt_result vkt_file_writer_commit(vkt_file_writer *w)
{
    if (!w->path) return VKT_E_STATE;
    vkt_result r = VKT_OK;
    if (w->temp && !FlushFileBuffers(handle_of(w)))
        r = fail_last(w, "flush");
    else if (w->temp)
        r = replace_target(w);
    if (r != VKT_OK) {
        vkt_file_writer_abort(w);
        return r;
    }
    close_writer(w);
    return VKT_OK;
}

void vkt_file_writer_abort(vkt_file_writer *w)
{
    if (!w->h) return;
    FILE_DISPOSITION_INFO gone = { .DeleteFile = TRUE };
    if (w->fd >= 0 && w->temp) /* the system removes the temporary when its handle is closed */
        SetFileInformationByHandle(handle_of(w), FileDispositionInfo, &gone, sizeof gone);
    close_writer(w);
}

vkt_result vkt_try_output(const vkt_host *host, const char *path)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_file_writer w;
    destination p;
    if (!path) return vkt_fail(&h, VKT_E_ARG, "try an output: want a path, got NULL");
    vkt_result r = locate(&w, &h, path, &p);
    if (r == VKT_OK && !p.in_place) r = open_temp(&w);
    vkt_file_writer_abort(&w);
    return r;
}
