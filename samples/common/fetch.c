/* common/fetch.c - see fetch.h. */
#include "common/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_ROOM = 1024 };

/* Runs a program with `input` as standard input, and drops its output. `input` must fit into a pipe's buffer, because
 * the function writes all of `input` before it starts the program. Returns true if the exit status is 0. */
static bool run(const char *const *argv, const char *input)
{
    int in[2];
    if (pipe(in) != 0) return false;
    const size_t n = strlen(input);
    const bool written = n == 0 || write(in[1], input, n) == (ssize_t)n;
    close(in[1]);
    const pid_t child = written ? fork() : -1;
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(in[0], STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execvp(argv[0], (char *const *)(size_t)argv); /* execvp changes no string, but its parameter is not const */
        _exit(127);
    }
    close(in[0]);
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Makes each missing folder of `path`. Returns the number of folders that it made. These are the last folders of the
 * path. */
static unsigned make_folders(char *path)
{
    unsigned made = 0;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        made += mkdir(path, 0777) == 0;
        *slash = '/';
    }
    return made + (mkdir(path, 0777) == 0);
}

/* Removes the last `made` folders of `path`. Folders that are not empty stay. */
static void remove_folders(char *path, unsigned made)
{
    while (made-- > 0 && rmdir(path) == 0) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* Writes "<folder>/<name of f><ending>" to `path`. Returns false if the path is too long. */
static bool name_of(char path[PATH_ROOM], const char *folder, const fetch_file *f, const char *ending)
{
    return snprintf(path, PATH_ROOM, "%s/%s%s", folder, f->name, ending) < PATH_ROOM;
}

static bool has_hash(const char *path, const char *sha256)
{
    char sum[PATH_ROOM + 128];
    const char *const check[] = { "sha256sum", "-c", "--status", NULL };
    snprintf(sum, sizeof sum, "%s  %s\n", sha256, path);
    return run(check, sum);
}

/* Downloads and unpacks a file to the folder `fresh`, unless `folder` has the file already. Returns whether the new or
 * the existing file has the right hash. */
static bool fetch_one(const char *base_url, const char *folder, const char *fresh, const fetch_file *f)
{
    char url[PATH_ROOM], gz[PATH_ROOM], unpacked[PATH_ROOM], path[PATH_ROOM];
    if (!name_of(gz, fresh, f, ".gz") || !name_of(url, base_url, f, ".gz")) return false;
    if (!name_of(unpacked, fresh, f, "") || !name_of(path, folder, f, "")) return false;
    if (access(path, F_OK) == 0) return has_hash(path, f->sha256);
    const char *const curl[] = { "curl", "-fsSL", "--connect-timeout", "3", "--max-time", "300", "-o", gz, url, NULL };
    const char *const gzip[] = { "gzip", "-df", gz, NULL };
    const bool good = run(curl, "") && run(gzip, "") && has_hash(unpacked, f->sha256);
    unlink(gz);
    return good;
}

/* Moves the files from `fresh` to `folder` if `good` is true. Otherwise removes them. Returns whether all is well. The
 * first file is the last one to move: a program that finds the first file in `folder` finds the others, too. */
static bool move_files(const char *fresh, const char *folder, const fetch_file *files, size_t n, bool good)
{
    char unpacked[PATH_ROOM], path[PATH_ROOM];
    for (size_t i = n; i-- > 0;) {
        if (!name_of(unpacked, fresh, &files[i], "") || !name_of(path, folder, &files[i], "")) continue;
        if (good && access(unpacked, F_OK) == 0) good = rename(unpacked, path) == 0;
        unlink(unpacked);
    }
    return good;
}

bool fetch_files(const char *base_url, const char *folder, const fetch_file *files, size_t n)
{
    char root[PATH_ROOM], fresh[PATH_ROOM];
    if (snprintf(root, sizeof root, "%s", folder) >= PATH_ROOM) return false;
    if (snprintf(fresh, sizeof fresh, "%s/.fetch-XXXXXX", folder) >= PATH_ROOM) return false;
    const unsigned made = make_folders(root);
    bool good = mkdtemp(fresh) != NULL; /* other processes and machines get another name */
    if (good) {
        for (size_t i = 0; i < n && good; i++) good = fetch_one(base_url, folder, fresh, &files[i]);
        good = move_files(fresh, folder, files, n, good);
        rmdir(fresh);
    }
    if (!good) remove_folders(root, made);
    return good;
}
