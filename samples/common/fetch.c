/* common/fetch.c - see fetch.h. */
#include "common/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Downloads and unpacks a file as <name>.part, unless the file <name> exists already. Returns whether the new or the
 * existing file has the right hash. */
static bool fetch_one(const char *base_url, const char *folder, const fetch_file *f)
{
    char url[PATH_ROOM], gz[PATH_ROOM], part[PATH_ROOM], path[PATH_ROOM];
    if (!name_of(gz, folder, f, ".part.gz") || !name_of(url, base_url, f, ".gz")) return false;
    if (!name_of(part, folder, f, ".part") || !name_of(path, folder, f, "")) return false;
    if (access(path, F_OK) == 0) return has_hash(path, f->sha256);
    const char *const curl[] = { "curl", "-fsSL", "--connect-timeout", "3", "--max-time", "300", "-o", gz, url, NULL };
    const char *const gzip[] = { "gzip", "-df", gz, NULL };
    const bool good = run(curl, "") && run(gzip, "") && has_hash(part, f->sha256);
    unlink(gz);
    return good;
}

bool fetch_files(const char *base_url, const char *folder, const fetch_file *files, size_t n)
{
    char root[PATH_ROOM], part[PATH_ROOM], path[PATH_ROOM];
    if (snprintf(root, sizeof root, "%s", folder) >= PATH_ROOM) return false;
    const unsigned made = make_folders(root);
    bool good = access(root, W_OK) == 0;
    for (size_t i = 0; i < n && good; i++) good = fetch_one(base_url, folder, &files[i]);
    for (size_t i = 0; i < n; i++) {
        if (!name_of(part, folder, &files[i], ".part") || !name_of(path, folder, &files[i], "")) continue;
        if (good && access(part, F_OK) == 0) good = rename(part, path) == 0;
        unlink(part);
    }
    if (!good) remove_folders(root, made);
    return good;
}
