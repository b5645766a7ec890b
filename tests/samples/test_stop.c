/* Tests common/stop.c: a second signal ends a program only if the signal comes more than 250 ms after the first one.
 * The test has its own clock, so a slow machine does not matter. */
#define _GNU_SOURCE /* stop.c, which is included below, needs this */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile struct timespec fake_now; /* handlers of signals read it */

static int fake_clock(clockid_t id, struct timespec *t)
{
    (void)id;
    t->tv_sec = fake_now.tv_sec;
    t->tv_nsec = fake_now.tv_nsec;
    return 0;
}

#define clock_gettime fake_clock
#include "common/stop.c"

enum { ALIVE = 7 };

/* Returns the wait status of a process that got SIGTERM and, after `ms` milliseconds, the signal `second`. */
static int status_after(int second, long ms)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fake_now.tv_sec = 100;
        fake_now.tv_nsec = 900000000;
        stop_begin();
        raise(SIGTERM);
        fake_now.tv_sec += ms / 1000;
        fake_now.tv_nsec += ms % 1000 * 1000000;
        if (fake_now.tv_nsec >= 1000000000) {
            fake_now.tv_sec++;
            fake_now.tv_nsec -= 1000000000;
        }
        raise(second);
        _exit(stop_signal() == SIGTERM ? ALIVE : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void an_echo_is_no_second_wish(void **state)
{
    (void)state;
    static const long echoes[] = { 0, 1, 99, 101, 250 };
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            const int status = status_after(numbers[k], echoes[i]); /* timeout(1) sends a second signal at once */
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), ALIVE);
        }
}

static void a_later_one_ends_the_program(void **state)
{
    (void)state;
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const int status = status_after(numbers[k], 251);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[k]);
    }
}

int main(void)
{
    signal(SIGHUP, SIG_DFL); /* under nohup, this process ignores SIGHUP at first */
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_echo_is_no_second_wish),
                                        cmocka_unit_test(a_later_one_ends_the_program) };
    return cmocka_run_group_tests_name("signals of samples", tests, NULL, NULL);
}
