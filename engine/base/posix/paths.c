/* base/posix/paths.c - see base/paths.h. */
#include "base/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *vkt_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool vkt_path_is_absolute(const char *path)
{
    return *path == '/';
}

char *vkt_path_next(char *path)
{
    return *path ? strchr(path + 1, '/') : NULL;
}

size_t vkt_path_list_first(const char *list)
{
    return strcspn(list, ":");
}

bool vkt_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool vkt_path_is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

int vkt_path_is_folder(const char *path, bool *is)
{
    struct stat st;
    *is = false;
    if (stat(path, &st) != 0) return errno;
    *is = S_ISDIR(st.st_mode);
    return 0;
}

int vkt_path_remove(const char *path)
{
    return remove(path) == 0 ? 0 : errno;
}

int vkt_folder_make(const char *path, bool is_private)
{
    return mkdir(path, is_private ? 0700 : 0777) == 0 ? 0 : errno;
}

/* ---- the names in a folder: a vkt_folder is a DIR ---- */

int vkt_folder_open(const char *path, vkt_folder **out)
{
    *out = (vkt_folder *)opendir(path);
    return *out ? 0 : errno;
}

int vkt_folder_next(vkt_folder *folder, const char **name)
{
    errno = 0; /* readdir returns NULL at the end, and after an error. Only an error sets errno. */
    const struct dirent *e = readdir((DIR *)folder);
    *name = e ? e->d_name : NULL;
    return e ? 0 : errno;
}

void vkt_folder_close(vkt_folder *folder)
{
    closedir((DIR *)folder);
}

/* ---- files ---- */

/* Makes a stream of a descriptor. Closes the descriptor after a failure. */
static int stream_of(int fd, const char *mode, FILE **out)
{
    *out = fd < 0 ? NULL : fdopen(fd, mode);
    const int error = *out ? 0 : errno;
    if (error && fd >= 0) close(fd);
    return error;
}

int vkt_file_create(const char *path, FILE **out)
{
    return stream_of(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), "wb", out);
}

int vkt_file_append(const char *path, FILE **out)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    *out = NULL;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return EWOULDBLOCK;
    }
    return stream_of(fd, "a", out);
}
