/* in_terminal.c - in_terminal COLUMNS REPORT COMMAND...: runs a command in a pseudo-terminal and prints what a reader
 * sees.
 *
 * Writes counts to REPORT, one "NAME COUNT" per line: torn, escapes, letters, rewritten (see support/terminal.h). Then
 * writes "wide LINE" for each line that is too wide for the terminal, unless may_be_wide allows the line. Ends with
 * the command's status, with 128 + n if signal n killed the command, or with 127 if the command cannot run. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/terminal.h"

static void run_command(const char *path, char **command)
{
    setsid();
    const int fd = open(path, O_RDWR);
    if (fd < 0) _exit(127);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++) dup2(fd, i);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

/* Returns whether the line in rows [first, end) is a message or names a file. Such a line may be wider than the
 * terminal. */
static bool may_be_wide(const terminal *t, size_t first, size_t end)
{
    const char *text = terminal_text(t, first);
    if (strncmp(text, "vkt", 3) == 0 || strncmp(text, "/", 1) == 0) return true;
    for (size_t i = first; i < end; i++)
        if (strstr(terminal_text(t, i), "/")) return true;
    return false;
}

static void write_wide(const terminal *t, FILE *report)
{
    for (size_t i = 0, end; i < t->n_rows; i = end) {
        for (end = i + 1; end < t->n_rows && t->rows[end].continues; end++) {
        }
        if (end == i + 1 || may_be_wide(t, i, end)) continue;
        fputs("wide ", report);
        for (size_t k = i; k < end; k++) fputs(terminal_text(t, k), report);
        fputc('\n', report);
    }
}

int main(int argc, char **argv)
{
    terminal t;
    int status = 0;
    const unsigned columns = argc > 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (columns == 0 || columns > TERMINAL_WIDEST) {
        fprintf(stderr, "usage: in_terminal COLUMNS REPORT COMMAND...\n");
        return 127;
    }
    if (!terminal_open(&t, columns)) {
        perror("a pseudo-terminal");
        return 127;
    }
    const int keep = open(t.path, O_RDWR | O_NOCTTY); /* else reading would end before the child opens the terminal */
    const pid_t child = fork();
    if (child == 0) run_command(t.path, argv + 3);
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0 && terminal_look(&t, 20)) {
    }
    terminal_look(&t, 0);
    close(keep);
    size_t n = t.n_rows;
    while (n && !*terminal_text(&t, n - 1)) n--;
    for (size_t i = 0; i < n; i++) puts(terminal_text(&t, i));
    FILE *report = fopen(argv[2], "w");
    if (report)
        fprintf(report, "torn %u\nescapes %u\nletters %u\nrewritten %u\n", t.torn, t.escapes, t.letters, t.rewritten);
    if (report) write_wide(&t, report);
    if (!report || fclose(report) != 0) perror(argv[2]);
    terminal_close(&t);
    return child < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
