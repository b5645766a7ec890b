/* Tests the transport over MPI by runs of dist/mpi/program.c under OpenMPI's and MPICH's mpirun. The output shows
 * whether all ranks report a failure with the same message. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { MOST_RANKS = 4, OUTPUT_BYTES = 1 << 16 };

typedef struct mpi {
    const char *name;
    const char *program, *launch; /* NULL: the build has no program for this MPI */
} mpi;

#ifdef VKT_OPENMPI_PROGRAM
static const mpi openmpi = { "OpenMPI", VKT_OPENMPI_PROGRAM, VKT_OPENMPI_LAUNCHER " --oversubscribe" };
#else
static const mpi openmpi = { "OpenMPI", NULL, NULL };
#endif
#ifdef VKT_MPICH_PROGRAM
static const mpi mpich = { "MPICH", VKT_MPICH_PROGRAM, VKT_MPICH_LAUNCHER };
#else
static const mpi mpich = { "MPICH", NULL, NULL };
#endif

static int status;
static char output[OUTPUT_BYTES];

static const mpi *installed(void **state)
{
    const mpi *m = *state;
    if (m->program) return m;
    printf("SKIPPED: ranks over %s: no compiler or no launcher of it\n", m->name);
    skip();
    return NULL;
}

/* Runs dist/mpi/program.c on `ranks` ranks. Its argument FOLDER is a new folder. `before` is a text between the
 * launcher's options and the program's name. */
static void run(const mpi *m, int ranks, const char *before, const char *mode)
{
    char command[2000];
    snprintf(command, sizeof command,
             "folder=$(mktemp -d) && timeout -k 5 60 %s -n %d %s%s \"$folder\" %s 2>&1; status=$?; cat "
             "\"$folder/output\"; rm -rf \"$folder\";"
             " exit $status",
             m->launch, ranks, before, m->program, mode);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    const size_t n = fread(output, 1, sizeof output - 1, f);
    output[n] = 0;
    const int ended = pclose(f);
    status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

/* Fails the test and shows the output unless the condition holds. */
#define WANT(condition)                                                                       \
    do {                                                                                      \
        if (!(condition)) fail_msg("%s: status %d, output:\n%s", #condition, status, output); \
    } while (0)

/* Copies the first line that begins with "rank R: <start>", from <start> on. Returns false if no line does. */
static bool line_of(int rank, const char *start, char line[400])
{
    char prefix[100];
    snprintf(prefix, sizeof prefix, "rank %d: %s", rank, start);
    const char *at = strstr(output, prefix);
    if (!at) return false;
    at += strlen(prefix) - strlen(start);
    snprintf(line, 400, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

/* Checks the output of a run that fails. All ranks except `silent` (-1: none) must have printed the same message, which
 * begins with `start`. They must also have printed "closed", because they closed their connection. */
static void one_message(int silent, const char *start)
{
    char first[400] = "", line[400];
    for (int r = 0; r < MOST_RANKS; r++) {
        if (r == silent) continue;
        WANT(line_of(r, start, line));
        if (!*first) memcpy(first, line, sizeof first);
        WANT(strcmp(first, line) == 0);
        WANT(line_of(r, "closed", line));
    }
    WANT(!strstr(output, "WRONG"));
    WANT(status != 0 && status != 124); /* vkt_mpi_abort ended the run; `timeout` would have returned 124 */
}

/* ---- runs ---- */

static void ranks_exchange_and_add(void **state)
{
    const mpi *m = installed(state);
    static const char *const modes[] = { "all", "app_threads" };
    char line[400];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks *= 2)
        for (int i = 0; i < 2; i++) {
            run(m, ranks, "", modes[i]);
            WANT(status == 0 && !strstr(output, "WRONG"));
            for (int r = 0; r < ranks; r++) WANT(line_of(r, "ok", line));
        }
}

static void three_ranks_are_refused(void **state)
{
    run(installed(state), 3, "", "all");
    WANT(status == 0);
    WANT(strstr(output, "want a power of two of ranks, got 3: start 2 or 4 processes"));
    WANT(strstr(output, "open: VKT_E_ARG"));
}

static void mpi_without_threads_is_refused(void **state)
{
    run(installed(state), 2, "", "app_single");
    WANT(status == 0);
    WANT(strstr(output, "call MPI_Init_thread instead of MPI_Init"));
    WANT(strstr(output, "open: VKT_E_STATE"));
}

static void a_fault_ends_all_ranks(void **state)
{
    run(installed(state), 4, "", "fault 20");
    one_message(-1, "rank 2 has failed: the disk is full");
}

/* When a process that the launcher has started is killed, the launcher ends all ranks. So here the launcher starts a
 * shell for each rank, and the shell starts the rank. The shell of the killed rank goes on until the other three ranks
 * have closed their connection. */
static void a_killed_rank_is_named(void **state)
{
    run(installed(state), 4,
        "sh -c '\"$0\" \"$@\"; n=0; until [ $n = 300 ] || [ $(ls \"$1\" | grep -c closed) = 3 ]; do sleep 0.1; "
        "n=$((n + 1)); done' ",
        "kill 2");
    one_message(2, "rank 2 does not answer: rank ");
}

static void the_launcher_ends_a_killed_run(void **state)
{
    run(installed(state), 4, "", "kill 2");
    WANT(status != 0 && status != 124);
    WANT(!strstr(output, "WRONG"));
}

static void a_stopped_rank_is_named(void **state)
{
    run(installed(state), 4, "", "stop 2");
    one_message(2, "rank 2 does not answer: rank ");
}

static void a_rank_that_comes_late_gets_the_message_too(void **state)
{
    run(installed(state), 4, "", "late 2");
    one_message(-1, "rank 2 does not answer: rank ");
}

static void a_timeout_that_is_changed_holds(void **state)
{
    run(installed(state), 4, "", "late 1000 2");
    one_message(-1, "rank 2 does not answer: rank ");
}

static void calls_that_do_not_match_are_found(void **state)
{
    const mpi *m = installed(state);
    run(m, 4, "", "barrier 20");
    one_message(-1, "calls do not match: rank 2 is in a barrier of 0 bytes, rank 3 in an exchange of 8 bytes");
    run(m, 4, "", "bytes 20");
    one_message(-1, "calls do not match: rank 2 is in an exchange of 4 bytes, rank 3 in an exchange of 8 bytes");
    run(m, 4, "", "ring 2");
    one_message(-1, "rank ");
    WANT(strstr(output, " wait for each other since "));
    WANT(strstr(output, " s, in calls that do not match"));
}

#define TEST(f, m)                                        \
    {                                                     \
#f " (" #m ")", f, NULL, NULL, (void *)(size_t)&m \
    }
#define TESTS(m)                                                                                                   \
    TEST(ranks_exchange_and_add, m), TEST(three_ranks_are_refused, m), TEST(mpi_without_threads_is_refused, m),    \
        TEST(a_fault_ends_all_ranks, m), TEST(a_killed_rank_is_named, m), TEST(the_launcher_ends_a_killed_run, m), \
        TEST(a_stopped_rank_is_named, m), TEST(a_rank_that_comes_late_gets_the_message_too, m),                    \
        TEST(a_timeout_that_is_changed_holds, m), TEST(calls_that_do_not_match_are_found, m)

int main(void)
{
    const struct CMUnitTest tests[] = { TESTS(openmpi), TESTS(mpich) };
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* programs in containers often run as root */
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return cmocka_run_group_tests_name("ranks over MPI", tests, NULL, NULL);
}
