/* Tests --devices and --mpi of vkt-gpt on a small text: the number of ranks changes no byte of a file. Also tests
 * samples/launch.sh. */
#include "samples/mpi.h"
#include "samples/program.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define TINY                                                                                                          \
    "--data", "text", "--context", "8", "--layers", "1", "--heads", "2", "--width", "16", "--sample", "0", "--batch", \
        "16", "--schedule", "constant"
#define EPOCHS "--epochs", "4"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_GPT_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define START_MPI(r, ranks, ...) \
    program_start(r, mpirun, mpi_env, (const char *const[]){ "-n", ranks, VKT_GPT_PROGRAM, "--mpi", __VA_ARGS__, NULL })

static void write_text(const rig *r)
{
    char text[801];
    for (int i = 0; i < 800; i++) text[i] = "the old cat hid. "[i % 17];
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), text, 800), VKT_OK);
}

static void same(const rig *r, const char *a, const char *b)
{
    char path[512];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, a));
    rig_same_file(path, vkt_temp_dir_file(&r->dir, b));
}

/* Fails the test unless the program ends with `status` and stderr has `says`. */
static void finish(const rig *r, pid_t child, int status, const char *says)
{
    run done = program_finish(r, child);
    if (done.status != status || !strstr(done.err, says))
        fail_msg("want status %d and '%s', got %d: %s%s", status, says, done.status, done.out, done.err);
    run_forget(r, &done);
}

static void devices_change_no_byte(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, EPOCHS, "--shards", "8", "--save", "one", "--checkpoint", "c1");
    EXPECT(r, 0, "", TINY, EPOCHS, "--devices", "0,0", "--save", "two", "--checkpoint", "c2", "--json", "json");
    EXPECT(r, 0, "", TINY, EPOCHS, "--devices", "0,0,0,0", "--bucket", "4KiB", "--save", "four", "--checkpoint", "c4");
    same(r, "one", "two");
    same(r, "one", "four");
    same(r, "c1", "c2");
    same(r, "c1", "c4");
    json_t *report = program_json(r, "json"), *ranks = json_object_get(report, "ranks");
    assert_int_equal((int)json_number_of(ranks, "ranks"), 2);
    json_decref(report);
}

static void a_run_goes_on_with_other_devices(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, EPOCHS, "--devices", "0,0", "--save", "whole");
    EXPECT(r, 0, "", TINY, "--epochs", "2", "--devices", "0,0,0,0", "--checkpoint", "c");
    EXPECT(r, 0, "", TINY, EPOCHS, "--devices", "0,0", "--resume", "c", "--save", "rest");
    same(r, "whole", "rest");
    EXPECT(r, 1, "shards: checkpoint 8, this run 1", TINY, EPOCHS, "--resume", "c");
    EXPECT(r, 1, "messages: checkpoint f32, this run bf16", TINY, EPOCHS, "--devices", "0,0", "--messages", "bf16",
           "--resume", "c");
}

static void wrong_numbers_say_what_would_work(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 1, "got 3: 2 would work", TINY, "--devices", "0,0,0");
    EXPECT(r, 1, "want a number of shards that is a power of two", TINY, "--shards", "6");
    EXPECT(r, 1, "want at least one shard for each of the 4 ranks", TINY, "--devices", "0,0,0,0", "--shards", "2");
    EXPECT(r, 1, "want a batch that is a multiple of the 8 shards, got 20: 16 would work", TINY, "--devices", "0,0",
           "--batch", "20");
    EXPECT(r, 2, "--devices names all of them", TINY, "--devices", "0,0", "--device", "0");
    EXPECT(r, 2, "--messages: want f32 or bf16, got 'f64'", TINY, "--messages", "f64");
    EXPECT(r, 1, "want a trainer of one rank", TINY, "--devices", "0,0", "--find-lr", "rates.svg");
}

/* The devices of two drivers compute different bits, so they cannot be ranks of one run. */
static void unlike_devices_are_refused(void **state)
{
    rig *r = rig_of(state);
    const char *other = getenv("VKT_OTHER_DRIVER"), *first = getenv("VK_DRIVER_FILES");
    if (!other || !*other || !first) {
        puts("SKIPPED: unlike devices: VKT_OTHER_DRIVER names no second driver");
        skip();
    }
    char both[1200];
    snprintf(both, sizeof both, "VK_DRIVER_FILES=%s:%s", first, other);
    write_text(r);
    const pid_t child = program_start(r, VKT_GPT_PROGRAM, (const char *const[]){ both, NULL },
                                      (const char *const[]){ TINY, EPOCHS, "--devices", "0,1", "--save", "w", NULL });
    finish(r, child, 1, "the ranks are not alike, so their bits would differ: device: rank 0 ");
    assert_false(program_wrote(r, "w"));
}

/* Returns the rig if this build has MPI. Otherwise prints a message and returns NULL. */
static rig *with_mpi(void **state)
{
    if (mpirun) return rig_here(state);
    puts("SKIPPED: samples over MPI: it was not found when the build was configured");
    return NULL;
}

static void processes_change_no_byte(void **state)
{
    rig *r = rig_of(state);
    if (!with_mpi(state)) skip();
    write_text(r);
    EXPECT(r, 0, "", TINY, EPOCHS, "--shards", "8", "--save", "one", "--checkpoint", "c1");
    finish(r, START_MPI(r, "2", TINY, EPOCHS, "--save", "two", "--checkpoint", "c2"), 0, "");
    finish(r, START_MPI(r, "4", TINY, EPOCHS, "--run", "folder"), 0, "");
    same(r, "one", "two");
    same(r, "c1", "c2");
    same(r, "c1", "folder/checkpoint.ckpt");
    finish(r, START_MPI(r, "3", TINY, EPOCHS), 1, "power of two");
}

/* Returns one process of vkt-gpt that was started in the rig's folder; 0: there is none. */
static pid_t find_rank(const rig *r)
{
    DIR *all = opendir("/proc");
    pid_t found = 0;
    for (const struct dirent *e; all && (e = readdir(all)) != NULL;) {
        char path[300], where[512], program[512];
        const pid_t pid = (pid_t)atoi(e->d_name);
        if (pid <= 0) continue;
        snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
        const ssize_t n = readlink(path, where, sizeof where - 1);
        snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
        const ssize_t m = readlink(path, program, sizeof program - 1);
        if (n < 0 || m < 0) continue;
        where[n] = program[m] = 0;
        if (strcmp(where, r->dir.path) == 0 && strstr(program, "vkt-gpt")) found = pid;
    }
    if (all) closedir(all);
    return found;
}

static void a_killed_rank_loses_nothing(void **state)
{
    rig *r = rig_of(state);
    if (!with_mpi(state)) skip();
    write_text(r);
    EXPECT(r, 0, "", TINY, "--epochs", "30", "--shards", "8", "--save", "whole");
    const pid_t child = START_MPI(r, "4", TINY, "--epochs", "30", "--checkpoint", "c", "--checkpoint-every", "1");
    for (int i = 0; i < 60000 && !program_wrote(r, "c"); i++) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_true(program_wrote(r, "c"));
    const pid_t rank = find_rank(r);
    const bool killed = rank && kill(rank, SIGKILL) == 0;
    run done = program_finish(r, child);
    if (killed && done.status == 0) puts("SKIPPED: the run had ended before its rank was killed");
    run_forget(r, &done);
    finish(r, START_MPI(r, "2", TINY, "--epochs", "30", "--resume", "c", "--save", "rest"), 0, "");
    same(r, "whole", "rest");
}

/* A rank fails before the training. The message of the failure must be the only one. MPI may end the other rank before
 * it prints anything. */
static void an_early_failure_has_one_reason(void **state)
{
    rig *r = rig_of(state);
    if (!with_mpi(state)) skip();
    write_text(r);
    run done = program_finish(
        r, START_MPI(r, "1", TINY, EPOCHS, ":", "-n", "1", VKT_GPT_PROGRAM, "--mpi", TINY, EPOCHS, "--data", "none"));
    assert_int_not_equal(done.status, 0);
    if (!strstr(done.err, "rank 1: none") || strstr(done.err, "do not match"))
        fail_msg("want 'rank 1: none' alone, got: %s", done.err);
    run_forget(r, &done);
}

/* ---- launch.sh ---- */

/* Writes an executable script to the rig's folder. */
static void write_script(const rig *r, const char *name, const char *text)
{
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, name), "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(f), 0);
    char command[600];
    snprintf(command, sizeof command, "chmod +x '%s'", vkt_temp_dir_file(&r->dir, name));
    assert_int_equal(system(command), 0);
}

static void the_launcher_goes_on_with_hosts_that_answer(void **state)
{
    rig *r = rig_of(state);
    static const char *const env[] = { "MPIRUN=./fake-mpirun", "VKT_ASK=./ask", NULL };
    write_script(r, "ask", "[ \"$1\" != gone ] || [ ! -f c ]"); /* the host "gone" does not answer once c exists */
    write_script(r, "fake-mpirun",
                 "[ \"$1\" != --version ] || { echo 'mpirun (Open MPI) 4'; exit; }\n"
                 "echo \"$*\" >>calls\n"
                 "[ -f c ] && exit 0\n"
                 "echo state >c\n"
                 "exit 1");
    const pid_t child =
        program_start(r, "/bin/sh", env,
                      (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-H", "here:2,gone:2", "program",
                                             "--checkpoint", "c", "--epochs", "3", NULL });
    finish(r, child, 0, "gone does not answer");
    char *calls = program_text(r, "calls");
    assert_string_equal(calls,
                        "-n 4 --oversubscribe --host here:2,gone:2 program --checkpoint c --epochs 3 --mpi\n"
                        "-n 2 --oversubscribe --host here:2 program --checkpoint c --epochs 3 --mpi --resume c\n");
    vkt_free(&r->h, calls);
}

/* Beside --resume, programs refuse --seed and --load. So the script drops them, but only when it resumes. */
static void the_launcher_drops_what_a_checkpoint_has(void **state)
{
    rig *r = rig_of(state);
    static const char *const env[] = { "MPIRUN=./fake-mpirun", NULL };
    write_script(r, "fake-mpirun",
                 "[ \"$1\" != --version ] || exit\n"
                 "printf '<%s>' \"$@\" >>calls\n"
                 "echo >>calls\n"
                 "n=$(wc -l <calls)\n"
                 "[ $n != 2 ] || echo state >c\n"
                 "[ $n = 3 ]");
    const pid_t child =
        program_start(r, "/bin/sh", env,
                      (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-n", "1", "program", "--seed", "7",
                                             "--load=w", "--lo", "w", "--data", "a b", "--see=8", "--save", "s",
                                             "--checkpoint=c", "--seed", "9", NULL });
    finish(r, child, 0, "1 ranks, from c");
    char *calls = program_text(r, "calls");
#define WHOLE                                                                                            \
    "<-n><1><-hosts><localhost><program><--seed><7><--load=w><--lo><w><--data><a b><--see=8><--save><s>" \
    "<--checkpoint=c><--seed><9><--mpi>\n"
    assert_string_equal(calls, WHOLE WHOLE "<-n><1><-hosts><localhost><program><--data><a b><--save><s>"
                                           "<--checkpoint=c><--mpi><--resume><c>\n");
#undef WHOLE
    vkt_free(&r->h, calls);
}

static void the_launcher_halves_and_gives_up(void **state)
{
    rig *r = rig_of(state);
    static const char *const env[] = { "MPIRUN=./fake-mpirun", NULL };
    write_script(r, "fake-mpirun", "[ \"$1\" = --version ] && exit\necho \"$2\" >>calls\nexit 1");
    const pid_t child = program_start(r, "/bin/sh", env,
                                      (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-n", "4", "-r", "4",
                                                             "program", "--run", "d", NULL });
    finish(r, child, 1, "the last of 4 tries failed");
    char *calls = program_text(r, "calls");
    assert_string_equal(calls, "4\n2\n1\n1\n");
    vkt_free(&r->h, calls);
    const pid_t once = program_start(r, "/bin/sh", env,
                                     (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-n", "2", "-r", "1",
                                                            "program", "--checkpoint=c", NULL });
    finish(r, once, 1, "the last of 1 tries failed");
    program_expect(r, "/bin/sh", 2, "leave out --resume",
                   (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-n", "2", "program", "--resume=c",
                                          "--run=d", NULL });
    program_expect(r, "/bin/sh", 2, "want --checkpoint FILE or --run DIR",
                   (const char *const[]){ VKT_TEST_DIR "/../samples/launch.sh", "-n", "2", "program", NULL });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(devices_change_no_byte),
        rig_test(a_run_goes_on_with_other_devices),
        rig_test(wrong_numbers_say_what_would_work),
        rig_test(unlike_devices_are_refused),
        rig_test(processes_change_no_byte),
        rig_test(a_killed_rank_loses_nothing),
        rig_test(an_early_failure_has_one_reason),
        rig_test(the_launcher_goes_on_with_hosts_that_answer),
        rig_test(the_launcher_drops_what_a_checkpoint_has),
        rig_test(the_launcher_halves_and_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
