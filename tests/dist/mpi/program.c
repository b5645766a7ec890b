/* dist/mpi/program.c - one rank of a run that test_mpi.c starts under mpirun: "program FOLDER MODE [TIMEOUT [LATER]]".
 * MODE is what the ranks do: see main() and work(). TIMEOUT is the timeout of vkt_mpi_open, in seconds. LATER is a new
 * timeout for vkt_mpi_set_timeout.
 *
 * Each line that a rank prints begins with "rank R: ". The rank prints the messages of the library, and "WRONG: .." if
 * a check fails. At the end, it prints "ok"; in a mode with a failure, it prints "closed" instead. If vkt_mpi_open
 * fails, it prints "open: " and the name of the result. Lines go to the file FOLDER/output, because launchers lose
 * output when they end a run. Ranks report their progress to each other by files in FOLDER, so that no test depends on
 * the machine's speed. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/philox.h"
#include "dist/dist.h"
#include "vktrain/mpi.h"

static int number = -1;    /* index of this rank; -1: not known yet */
static const char *folder; /* argument FOLDER */
static int output;         /* descriptor of FOLDER/output */
static unsigned errors;
static int blocks; /* how many allocations of host memory the library has not freed */

#ifdef VKT_SANITIZED /* MPI leaks memory, so leaks are not reported. `blocks` counts leaks of this library */
/* Returns the sanitizer's options. The function is visible because the sanitizer's shared library looks it up. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* Adds a line to FOLDER/output with one write, so that lines of several ranks do not mix. */
static void say(const char *fmt, ...) VKT_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    char line[1200];
    va_list args;
    va_start(args, fmt);
    int n = snprintf(line, sizeof line, "rank %d: ", number);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    va_end(args);
    line[n] = '\n';
    if (write(output, line, (size_t)n + 1) < 0) _exit(9);
}

static void keep_message(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    errors += level == VKT_LOG_ERROR;
    say("%s", line);
}

static void *counting_resize(void *user, void *p, size_t bytes)
{
    (void)user;
    blocks += (p == NULL) - (bytes == 0);
    if (bytes) return realloc(p, bytes);
    free(p);
    return NULL;
}

static void pause_ms(unsigned ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) != 0) continue;
}

/* Makes the file FOLDER/<event>.<rank>. */
static void tell(const char *event)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s.%d", folder, event, number);
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) != 0) say("WRONG: cannot write %s", path);
}

/* Waits until `count` of the ranks 0 .. ranks-1 have called tell(event). After 30 s, prints a line and returns. */
static void await(const char *event, uint32_t ranks, uint32_t count)
{
    char path[400];
    for (int i = 0; i < 3000; i++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < ranks; r++) {
            snprintf(path, sizeof path, "%s/%s.%u", folder, event, r);
            n += access(path, F_OK) == 0;
        }
        if (n >= count) return;
        pause_ms(10);
    }
    say("WRONG: fewer than %u ranks have %s", count, event);
}

/* Prints a line and ends the run unless the condition holds. */
#define WANT(condition)                                \
    do {                                               \
        if (!(condition)) {                            \
            say("WRONG: %s:%d", #condition, __LINE__); \
            vkt_mpi_abort(3);                          \
        }                                              \
    } while (0)

/* ---- modes in which all goes well ---- */

static void fill(float *data, size_t n, uint32_t rank)
{
    vkt_rng rng = vkt_rng_make(n, VKT_STREAM_TEST, rank, 0);
    for (size_t i = 0; i < n; i++) data[i] = vkt_rng_uniform(&rng, -1, 1);
}

/* Checks a sum over all ranks. Each rank also computes the sum by itself, from the data of all ranks, with
 * vkt_tree_add. test_all_reduce.c checks vkt_tree_add. */
static void check_sum(const vkt_transport *t, size_t n, vkt_wire wire)
{
    float *data = calloc(n * t->ranks + 1, sizeof *data), *scratch = calloc((n + 1) / 2 + 1, sizeof *data);
    float *got = calloc(n + 1, sizeof *data);
    WANT(data && scratch && got);
    for (uint32_t r = 0; r < t->ranks; r++) fill(data + r * n, n, r);
    memcpy(got, data + t->rank * n, n * sizeof *got);
    for (uint32_t step = 1; step < t->ranks; step *= 2)
        for (uint32_t r = 0; r < t->ranks; r += 2 * step) vkt_tree_add(data + r * n, data + (r + step) * n, n, wire);
    vkt_tree_end(data, n, wire);
    WANT(vkt_all_reduce(t, got, n, wire, scratch) == VKT_OK);
    WANT(memcmp(got, data, n * sizeof *got) == 0);
    free(data);
    free(scratch);
    free(got);
}

/* Checks messages of many sizes, some close to the size above which a message is split. */
static void check_exchanges(const vkt_transport *t)
{
    static const size_t sizes[] = { 0,
                                    1,
                                    8,
                                    VKT_MPI_MESSAGE_BYTES - 1,
                                    VKT_MPI_MESSAGE_BYTES,
                                    VKT_MPI_MESSAGE_BYTES + 1,
                                    3 * VKT_MPI_MESSAGE_BYTES,
                                    3000000 };
    static unsigned char send[3000000], receive[3000001];
    for (size_t s = 0; s < VKT_COUNT(sizes); s++)
        for (uint32_t bit = 1; bit < t->ranks; bit *= 2) {
            const uint32_t peer = t->rank ^ bit;
            for (size_t i = 0; i < sizes[s]; i++) send[i] = (unsigned char)(i * 7 + t->rank * 31 + peer);
            receive[sizes[s]] = 0x5a;
            WANT(t->exchange(t->user, peer, send, receive, sizes[s]) == VKT_OK);
            for (size_t i = 0; i < sizes[s]; i++) WANT(receive[i] == (unsigned char)(i * 7 + peer * 31 + t->rank));
            WANT(receive[sizes[s]] == 0x5a);
        }
}

static void check_all(const vkt_transport *t)
{
    static const size_t sizes[] = { 0, 1, 2, 3, 17, 997, 4096, 250001 };
    uint32_t records[VKT_MAX_SHARDS] = { 0 };
    check_exchanges(t);
    for (size_t s = 0; s < VKT_COUNT(sizes); s++) {
        check_sum(t, sizes[s], VKT_WIRE_F32);
        check_sum(t, sizes[s], VKT_WIRE_BF16);
    }
    records[t->rank] = t->rank + 1;
    WANT(vkt_all_gather(t, records, sizeof *records) == VKT_OK);
    for (uint32_t r = 0; r < t->ranks; r++) WANT(records[r] == r + 1);
    for (int i = 0; i < 100; i++) WANT(t->barrier(t->user) == VKT_OK);
}

static void check_arguments(const vkt_host *h, const vkt_transport *t)
{
    vkt_mpi *none = NULL, *second;
    unsigned char byte[1] = { 0 };
    WANT(vkt_mpi_open(h, 0, NULL) == VKT_E_ARG);
    WANT(vkt_mpi_open(h, -1, &none) == VKT_E_ARG && !none);
    WANT(vkt_mpi_open(h, NAN, &none) == VKT_E_ARG && !none);
    vkt_mpi_close(NULL);
    vkt_mpi_close(&none);
    WANT(!vkt_mpi_failed(NULL));
    WANT(!vkt_mpi_transport(NULL).exchange);
    WANT(t->exchange(t->user, t->rank, byte, byte, 1) == VKT_E_ARG);
    WANT(t->exchange(t->user, t->ranks, byte, byte, 1) == VKT_E_ARG);
    if (t->ranks > 1) WANT(t->exchange(t->user, t->rank ^ 1, NULL, byte, 1) == VKT_E_ARG);
    WANT(vkt_mpi_open(h, 0, &second) == VKT_OK); /* `second` has a communicator of its own */
    const vkt_transport other = vkt_mpi_transport(second);
    WANT(other.barrier(other.user) == VKT_OK);
    vkt_mpi_close(&second);
    WANT(!second);
}

/* ---- modes in which ranks fail ---- */

/* Does one step of work, for which each rank needs data of all other ranks. */
static vkt_result step(const vkt_transport *t)
{
    static float data[20000], scratch[10000];
    for (size_t i = 0; i < VKT_COUNT(data); i++) data[i] = 1;
    return vkt_all_reduce(t, data, VKT_COUNT(data), VKT_WIRE_F32, scratch);
}

/* Makes steps until a failure. At step 20, `mode` decides which ranks do something else:
 *   kill, stop   the second-last rank sends itself the signal SIGKILL or SIGSTOP
 *   late         the second-last rank waits until all other ranks have failed
 *   fault        the second-last rank reports a fault
 *   barrier      the last two ranks: one waits in the barrier, the other waits for an exchange with it
 *   bytes        the last two ranks exchange messages of different sizes
 *   ring         each rank waits for an exchange with the next rank */
static vkt_result work(const vkt_transport *t, const char *mode)
{
    const bool culprit = t->rank == t->ranks - 2;
    unsigned char bytes[8] = { 0 }, other[8];
    for (int i = 0; i < 1000000; i++) {
        if (i == 20 && culprit) {
            if (strcmp(mode, "kill") == 0) raise(SIGKILL);
            if (strcmp(mode, "stop") == 0) raise(SIGSTOP);
            if (strcmp(mode, "late") == 0) await("failed", t->ranks, t->ranks - 1);
            if (strcmp(mode, "fault") == 0) {
                t->fault(t->user, "the disk is full");
                return t->barrier(t->user);
            }
        }
        const bool last_two = i == 20 && t->rank >= t->ranks - 2;
        if (last_two && strcmp(mode, "barrier") == 0)
            return culprit ? t->barrier(t->user) : t->exchange(t->user, t->rank ^ 1, bytes, other, 8);
        if (last_two && strcmp(mode, "bytes") == 0)
            return t->exchange(t->user, t->rank ^ 1, bytes, other, 4 + 4 * (t->rank % 2));
        if (i == 20 && strcmp(mode, "ring") == 0)
            return t->exchange(t->user, (t->rank + 1) % t->ranks, bytes, other, 8);
        VKT_TRY(step(t));
    }
    return VKT_OK;
}

/* Works until the failure of `mode`. work() must return VKT_E_PEER after one message. Later calls must return
 * VKT_E_PEER without a message. vkt_mpi_close must not wait for the failed rank. Ends the run when all ranks, except a
 * rank that was killed or stopped, have closed their connection. */
static void fail_together(vkt_mpi *m, const char *mode)
{
    const vkt_transport t = vkt_mpi_transport(m);
    const vkt_result r = work(&t, mode);
    struct timespec begin, end;
    const bool one_is_gone = strcmp(mode, "kill") == 0 || strcmp(mode, "stop") == 0;
    tell("failed");
    if (r != VKT_E_PEER) say("WRONG: result %s", vkt_result_name(r));
    WANT(vkt_mpi_failed(m) && errors == 1);
    WANT(step(&t) == VKT_E_PEER && t.barrier(t.user) == VKT_E_PEER);
    t.fault(t.user, "no rank receives this");
    WANT(errors == 1);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    vkt_mpi_close(&m);
    clock_gettime(CLOCK_MONOTONIC, &end);
    WANT(end.tv_sec - begin.tv_sec < 20); /* usually 1 s; a wait for the failed rank would last until the alarm */
    say("closed");
    tell("closed");
    await("closed", t.ranks, t.ranks - one_is_gone);
    vkt_mpi_abort(7);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "";
    const vkt_host h = { .alloc = { .resize = counting_resize }, .log = keep_message };
    const bool starts_mpi = strncmp(mode, "app_", 4) == 0;
    int provided;
    if (argc < 3) return 2;
    char path[400];
    folder = argv[1];
    snprintf(path, sizeof path, "%s/output", folder);
    output = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (output < 0) return 2;
    alarm(50);                /* no test may hang */
    signal(SIGUSR1, SIG_IGN); /* MPICH's launcher sends this signal to the other ranks when a rank is killed */
    if (strcmp(mode, "app_single") == 0) MPI_Init(&argc, &argv);
    if (strcmp(mode, "app_threads") == 0) MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);

    vkt_mpi *m;
    const vkt_result r = vkt_mpi_open(&h, argc > 3 ? atof(argv[3]) : 0, &m);
    if (r != VKT_OK) {
        say("open: %s", vkt_result_name(r));
        if (starts_mpi) MPI_Finalize();
        return m ? 3 : 0;
    }
    const vkt_transport t = vkt_mpi_transport(m);
    number = (int)t.rank;
    if (argc > 4) WANT(vkt_mpi_set_timeout(m, atof(argv[4])) == VKT_OK); /* LATER */
    if (strcmp(mode, "all") == 0 || strcmp(mode, "app_threads") == 0) {
        check_all(&t);
        check_arguments(&h, &t);
        WANT(vkt_mpi_set_timeout(m, -1) == VKT_E_ARG && vkt_mpi_set_timeout(m, 2e9) == VKT_E_ARG);
        WANT(vkt_mpi_set_timeout(NULL, 1) == VKT_E_ARG && vkt_mpi_set_timeout(m, 0) == VKT_OK);
        WANT(!vkt_mpi_failed(m));
    } else {
        fail_together(m, mode);
    }
    vkt_mpi_close(&m);
    int finalized = 0;
    MPI_Finalized(&finalized);
    WANT(!m && (finalized != 0) == !starts_mpi);
    if (starts_mpi) MPI_Finalize();
    WANT(vkt_mpi_open(&h, 0, &m) == VKT_E_STATE && !m);
    WANT(blocks == 0);
    say("ok");
    return 0;
}
