/* common/stop.c - see stop.h. */
#define _GNU_SOURCE /* fopencookie, pipe2 */
#include "common/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} kinds[] = { { SIGINT, "SIGINT" }, { SIGTERM, "SIGTERM" }, { SIGHUP, "SIGHUP" } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One request to end the program may cause two signals: timeout(1) sends one to its child and one to the whole
 * process group, and a terminal and its shell may each send SIGHUP. So a second signal is ignored if it comes at most
 * ECHO_NS nanoseconds after the first one. */
#define ECHO_NS 250000000

static volatile sig_atomic_t came;
static struct timespec first; /* time of the first signal; the handler writes it, before `came` */
/* The first signal writes a byte to the pipe of stop_open_input, so that poll returns. A signal may run the handler in
 * another thread than the one that polls, so an interrupted poll alone would not be enough. */
static int wake_read = -1;
static volatile sig_atomic_t wake_write = -1; /* -1: there is no pipe */

static void on_signal(int number)
{
    struct timespec now;
    const int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!came) {
        first = now;
        came = number;
        if (wake_write >= 0 && write(wake_write, "", 1) != 1) errno = error; /* an empty pipe has room */
    } else if ((now.tv_sec - first.tv_sec) * 1000000000LL + now.tv_nsec - first.tv_nsec > ECHO_NS) {
        signal(number, SIG_DFL);
        raise(number); /* delivered after this handler returns */
    }
    errno = error;
}

void stop_begin(void)
{
    struct sigaction now, mine = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&mine.sa_mask);
    for (int i = 0; i < KINDS; i++) sigaddset(&mine.sa_mask, kinds[i].number);
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].number != SIGHUP || sigaction(SIGHUP, NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaction(kinds[i].number, &mine, NULL);
}

int stop_signal(void)
{
    return came;
}

const char *stop_name(int signal_number)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].number == signal_number) return kinds[i].name;
    return "?";
}

/* ---- standard input ---- */

/* Is the read function of stop_open_input. */
static ssize_t read_until_signal(void *cookie, char *to, size_t n)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = wake_read, .events = POLLIN } };
    (void)cookie;
    while (!came && poll(fds, 2, -1) < 0 && errno == EINTR) continue;
    if (!came) return read(STDIN_FILENO, to, n);
    errno = EINTR;
    return -1;
}

FILE *stop_open_input(void)
{
    int ends[2];
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) return NULL; /* it is closed, so the pipe would take its number */
    if (wake_write < 0) {
        if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
        wake_read = ends[0];
        wake_write = ends[1];
    }
    return fopencookie(NULL, "r", (cookie_io_functions_t){ .read = read_until_signal });
}

/* ---- the command that resumes ---- */

/* Returns whether `arg` is --option, perhaps shortened, perhaps with =VALUE. *alone becomes true if the value is not in
 * `arg`, but is the next argument. */
static bool is_option(const char *arg, const char *option, bool *alone)
{
    if (strncmp(arg, "--", 2) != 0 || arg[2] == 0) return false;
    const size_t n = strcspn(arg + 2, "=");
    *alone = arg[2 + n] == 0;
    return strncmp(arg + 2, option, n) == 0;
}

/* Prints a text for a shell, in quotes if necessary. */
static void print_quoted(FILE *to, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
    if (*text && strspn(text, plain) == strlen(text)) {
        fputs(text, to);
        return;
    }
    putc('\'', to);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else
            putc(*text, to);
    }
    putc('\'', to);
}

void stop_print_command(FILE *to, int argc, char **argv, const char *checkpoint)
{
    static const char *const dropped[] = { "resume", "load", "seed" }; /* the checkpoint has weights and seed */
    print_quoted(to, argv[0]);
    for (int i = 1; i < argc; i++) {
        bool drop = false, alone = false;
        for (size_t k = 0; k < sizeof dropped / sizeof *dropped && !drop; k++)
            drop = (checkpoint || k == 0) && is_option(argv[i], dropped[k], &alone);
        if (drop) {
            i += alone;
            continue;
        }
        putc(' ', to);
        print_quoted(to, argv[i]);
    }
    if (checkpoint) {
        fputs(" --resume ", to);
        print_quoted(to, checkpoint);
    }
    putc('\n', to);
}
