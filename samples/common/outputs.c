/* common/outputs.c - see outputs.h. */
#include "common/outputs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void outputs_begin(void)
{
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

const char *output_path(const char *value)
{
    static char path[32];
    if (!value || strcmp(value, "-") != 0) return value;
    if (*path) return path;
    fflush(stdout);
    const int fd = dup(STDOUT_FILENO);
    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return "/dev/stdout";
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    return path;
}
