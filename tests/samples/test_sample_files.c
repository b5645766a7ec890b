/* Tests the code that all samples share, with vkt-gpt on a small text: the files of a training, and signals that end a
 * training. */
#include "samples/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/schema.h"

#define TINY \
    "--data", "text", "--context", "8", "--layers", "1", "--heads", "2", "--width", "16", "--sample", "0", "--epochs"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_GPT_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

#define START(r, ...) program_start(r, VKT_GPT_PROGRAM, NULL, (const char *const[]){ __VA_ARGS__, NULL })

static void write_text(const rig *r)
{
    char text[401];
    for (int i = 0; i < 400; i++) text[i] = "the old cat hid. "[i % 17];
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), text, 400), VKT_OK);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* Waits until a running program has written the file. */
static void wait_for(const rig *r, const char *name)
{
    for (int i = 0; i < 240000 && !program_wrote(r, name); i++) pause_ms(1);
    assert_true(program_wrote(r, name));
}

/* ---- before the training ---- */

static void outputs_are_tried_before_training(void **state)
{
    rig *r = rig_of(state);
    static const char *const options[] = { "--checkpoint", "--save", "--json", "--history", "--plot", "--profile" };
    write_text(r);
    for (size_t i = 0; i < VKT_COUNT(options); i++) {
        char says[64];
        snprintf(says, sizeof says, "%s: cannot open the directory of \"none/f.svg\"", options[i]);
        run done = program_finish(r, START(r, TINY, "1000000", options[i], "none/f.svg"));
        assert_int_equal(done.status, 1);
        assert_non_null(strstr(done.err, says));
        assert_int_equal(done.out[0], 0);
        run_forget(r, &done);
    }
    EXPECT(r, 1, "--save: cannot write \".\": it is a directory", TINY, "1", "--save", ".");
    EXPECT(r, 2,
           "vkt-gpt: --plot: want a name that ends in .svg or .png, got 'p.pdf'\n"
           "Try `vkt-gpt --help' or `vkt-gpt --usage' for more information.\n",
           TINY, "1", "--plot", "p.pdf");
    EXPECT(r, 2, "--save: want the name of a file, got '-'", TINY, "1", "--save", "-");
    assert_int_equal(vkt_temp_dir_count(&r->dir), 1 + 2); /* text, out and err */
}

static void two_options_for_one_file_are_refused(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 2, "--checkpoint and --save: want two files", TINY, "1", "--checkpoint", "f", "--save", "f");
    EXPECT(r, 2, "--save and --json: want two files", TINY, "1", "--json", "./f", "--save", "f");
    EXPECT(r, 2, "--json and --history: want two files", TINY, "1", "--json", "-", "--history", "-");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "f"), "old", 3), VKT_OK);
    assert_int_equal(symlink("f", vkt_temp_dir_file(&r->dir, "link")), 0);
    EXPECT(r, 2, "'f' and 'link', which are the same", TINY, "1", "--checkpoint", "f", "--history", "link");
    EXPECT(r, 0, "", TINY, "1", "-q", "--json", "/dev/null", "--history", "/dev/null");
    char *text = program_text(r, "f");
    assert_string_equal(text, "old");
    vkt_free(&r->h, text);
}

/* The data "nowhere" do not exist. The program checks the file of --load or --resume before the data. If this file is
 * missing or wrong, the message names this file. If the file is good, the message names the data. */
static void inputs_are_tried_before_the_data(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, "1", "-q", "--save", "w", "--checkpoint", "c");
    EXPECT(r, 1, "vkt-gpt: --load: cannot open \"none\": No such file", "--data", "nowhere", "--load", "none");
    EXPECT(r, 1, "vkt-gpt: --resume: cannot open \"none\": No such file", "--data", "nowhere", "--resume", "none");
    EXPECT(r, 1, "--load: \"text\" is not a sound safetensors file", "--data", "nowhere", "--load", "text");
    EXPECT(r, 1, "--resume: \"text\" is not a sound safetensors file", "--data", "nowhere", "--resume", "text");
    EXPECT(r, 1, "--resume: \"w\" is a safetensors file, but not a vktrain checkpoint", "--data", "nowhere", "--resume",
           "w");
    EXPECT(r, 1, "vkt-gpt: nowhere: cannot be read", "--data", "nowhere", "--load", "w");
    EXPECT(r, 1, "vkt-gpt: nowhere: cannot be read", "--data", "nowhere", "--resume", "c");
}

/* The messages come from the program itself, getopt, argp and the library. */
static void every_message_begins_with_the_program(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        int status;
        const char *args[5];
    } cases[] = { { 2, { "--nonsense" } },       { 2, { "--epochs" } },
                  { 2, { "--batch", "0" } },     { 2, { "stray" } },
                  { 2, { "--heads", "5" } },     { 1, { "--device", "no such card" } },
                  { 1, { "--save", "none/w" } }, { 1, { "--run", "" } },
                  { 1, { "--data", "." } } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        run done = program_finish(r, program_start(r, VKT_GPT_PROGRAM, NULL, cases[i].args));
        assert_int_equal(done.status, cases[i].status);
        assert_memory_equal(done.err, "vkt-gpt: ", 9);
        assert_null(strstr(done.err, "vktrain error"));
        const char *second = strchr(done.err, '\n');
        assert_non_null(second);
        if (second[1]) assert_memory_equal(second + 1, cases[i].status == 2 ? "Try `vkt-gpt" : "vkt-gpt: ", 9);
        run_forget(r, &done);
    }
}

/* ---- at the end ---- */

static void check_report(const rig *r, const char *name)
{
    char why[256];
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, name), why)) fail_msg("%s: %s", name, why);
}

static void one_failed_file_does_not_keep_the_others(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 1, "cannot write \"/dev/full\": No space left on device", TINY, "1", "-q", "--save", "/dev/full",
           "--history", "h", "--plot", "p.svg", "--json", "j");
    check_report(r, "j");
    assert_true(program_wrote(r, "h") && program_wrote(r, "p.svg"));
}

static void a_quota_is_reported_and_does_not_kill(void **state)
{
    rig *r = rig_of(state);
    char command[1024];
    write_text(r);
    snprintf(command, sizeof command,
             "ulimit -f 2; exec '%s' --data text --context 8 --layers 1 --heads 2 --width 16 --sample 0 --epochs 1 -q "
             "--save w --history h",
             VKT_GPT_PROGRAM);
    program_expect(r, "/bin/sh", 1, "cannot write \"w\": File too large", (const char *const[]){ "-c", command, NULL });
    assert_false(program_wrote(r, "w"));
    assert_true(program_wrote(r, "h"));
}

static void dash_is_standard_output_and_has_nothing_else(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    run done = program_finish(r, START(r, TINY, "1", "--json", "-"));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.err, "epoch 1/1"));
    run_forget(r, &done);
    check_report(r, "out");
    EXPECT(r, 0, "", TINY, "1", "-q", "--history", "-");
    char *text = program_text(r, "out");
    assert_memory_equal(text, "epoch,train_loss", 16);
    vkt_free(&r->h, text);
    done = program_finish(r, START(r, TINY, "1", "--json", "/dev/stdout"));
    const char *json = strstr(done.out, "\n{");
    assert_non_null(json);
    assert_true(strstr(done.out, "epoch 1/1") && strstr(done.out, "epoch 1/1") < json);
    assert_non_null(strstr(json, "\"skipped_steps\""));
    run_forget(r, &done);
}

static void a_link_and_a_file_beside_the_report_stay(void **state)
{
    rig *r = rig_of(state);
    struct stat st;
    write_text(r);
    assert_int_equal(symlink("real", vkt_temp_dir_file(&r->dir, "j")), 0);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "j.tmp"), "mine", 4), VKT_OK);
    EXPECT(r, 0, "", TINY, "1", "-q", "--json", "j");
    assert_int_equal(lstat(vkt_temp_dir_file(&r->dir, "j"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    check_report(r, "real");
    char *text = program_text(r, "j.tmp");
    assert_string_equal(text, "mine");
    vkt_free(&r->h, text);
}

static void generated_data_are_reported_also_when_quiet(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "training on generated sentences", "-q", "--width", "16", "--layers", "1", "--heads", "2", "--context",
           "16", "--batch", "64", "--epochs", "1", "--json", "j");
    check_report(r, "j");
    json_t *report = program_json(r, "j"), *data = json_object_get(report, "data");
    assert_true(json_is_true(json_object_get(data, "made_up")));
    assert_string_equal(json_string_value(json_object_get(data, "source")), "generated sentences");
    json_decref(report);
}

/* ---- signals ---- */

/* Returns the command that the program printed, with --epochs 1 added. The caller frees the result with vkt_free. */
static char *command_of(const rig *r, const run *done)
{
    const char *begin = strstr(done->err, "continues the run:\n  ");
    assert_non_null(begin);
    begin = strchr(begin, '\n') + 3;
    const size_t n = strcspn(begin, "\n");
    char *command = vkt_alloc(&r->h, n + 16);
    snprintf(command, n + 16, "%.*s --epochs 1", (int)n, begin);
    return command;
}

static void a_signal_ends_the_run_in_order(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        int number;
        const char *name;
    } signals[] = { { SIGINT, "SIGINT" }, { SIGTERM, "SIGTERM" }, { SIGHUP, "SIGHUP" } };
    write_text(r);
    for (size_t i = 0; i < VKT_COUNT(signals); i++) {
        unlink(vkt_temp_dir_file(&r->dir, "c"));
        const pid_t child = START(r, TINY, "1000000", "--seed", "4", "--schedule", "constant", "--checkpoint", "c",
                                  "--checkpoint-every", "1", "--save", "w", "--json", "j", "--history", "it's");
        wait_for(r, "c");
        assert_int_equal(kill(child, signals[i].number), 0);
        run done = program_finish(r, child);
        assert_int_equal(done.status, 128 + signals[i].number);
        assert_non_null(strstr(done.err, signals[i].name));
        assert_non_null(strstr(done.err, "w has the weights so far"));
        assert_non_null(strstr(done.err,
                               " --schedule constant --checkpoint c --checkpoint-every 1 --save w --json j --history "
                               "'it'\\''s' --resume c\n"));
        check_report(r, "j");
        json_t *report = program_json(r, "j");
        assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), signals[i].name);
        json_decref(report);
        assert_true(program_wrote(r, "w") && program_wrote(r, "it's"));
        if (i == 0) { /* the printed command works */
            char *command = command_of(r, &done);
            program_expect(r, "/bin/sh", 0, "", (const char *const[]){ "-c", command, NULL });
            vkt_free(&r->h, command);
        }
        run_forget(r, &done);
        EXPECT(r, 0, "", TINY, "1", "-q", "--load", "w");
    }
}

/* The report goes to a FIFO without a reader, so the program waits when it writes the report, after the first signal.
 * The second signal comes more than 250 ms after the first one. An earlier second signal has no effect: test_stop.c. */
static void a_second_signal_ends_it_at_once(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    assert_int_equal(mkfifo(vkt_temp_dir_file(&r->dir, "fifo"), 0600), 0);
    const pid_t child = START(r, TINY, "1000000", "-q", "--checkpoint", "c", "--checkpoint-every", "1", "--history",
                              "h", "--json", "fifo");
    wait_for(r, "c");
    assert_int_equal(kill(child, SIGTERM), 0);
    wait_for(r, "h");
    pause_ms(300);
    assert_int_equal(kill(child, SIGINT), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, -1);
    run_forget(r, &done);
}

static void without_a_checkpoint_the_weights_are_saved(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    const pid_t child = START(r, TINY, "1000000", "--save", "w");
    wait_for(r, "out");
    for (int i = 0; i < 240000; i++) {
        char *text = program_text(r, "out");
        const bool trains = strstr(text, "epoch 2/") != NULL;
        vkt_free(&r->h, text);
        if (trains) break;
        pause_ms(1);
    }
    assert_int_equal(kill(child, SIGTERM), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 128 + SIGTERM);
    assert_non_null(strstr(done.err, "no checkpoint was written"));
    run_forget(r, &done);
    EXPECT(r, 0, "", TINY, "1", "-q", "--load", "w");
}

static void a_checkpoint_that_failed_is_not_offered(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    const pid_t child = START(r, TINY, "1000000", "-q", "--checkpoint", "/dev/full", "--checkpoint-every", "1");
    wait_for(r, "err");
    assert_int_equal(kill(child, SIGTERM), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 128 + SIGTERM);
    assert_non_null(strstr(done.err, "no checkpoint could be written"));
    assert_null(strstr(done.err, "--resume"));
    run_forget(r, &done);
}

/* Makes a full FIFO. A program that writes to it waits until another process reads. */
static int full_fifo(const rig *r, const char *name)
{
    static const char zeros[4096];
    assert_int_equal(mkfifo(vkt_temp_dir_file(&r->dir, name), 0600), 0);
    const int fd = open(vkt_temp_dir_file(&r->dir, name), O_RDWR | O_NONBLOCK);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0) continue;
    while (write(fd, zeros, 1) > 0) continue;
    assert_int_equal(errno, EAGAIN);
    return fd;
}

/* Reads all bytes that are in the FIFO, and appends those that are not zero to `text`. */
static void drain(int fd, char *text, size_t room)
{
    char part[4096];
    size_t n = strlen(text);
    for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            if (part[i] && n + 1 < room) text[n++] = part[i];
    text[n] = 0;
}

/* The program generates its data and reports that on stderr. Stderr is a full FIFO, so the program waits there, before
 * it has a network. The first line on stdout shows that the program has begun. */
static void before_the_first_step_nothing_is_written(void **state)
{
    rig *r = rig_of(state);
    char printed[8192] = "";
    const char *const args[] = { "-c", "exec '" VKT_GPT_PROGRAM "' --epochs 1000000 --save w --json j 2>fifo", NULL };
    const int fd = full_fifo(r, "fifo");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "w"), "of an older run", 15), VKT_OK);
    const pid_t child = program_start(r, "/bin/sh", NULL, args);
    wait_for(r, "out");
    assert_int_equal(kill(child, SIGTERM), 0);
    drain(fd, printed, sizeof printed);
    run done = program_finish(r, child);
    drain(fd, printed, sizeof printed);
    assert_int_equal(close(fd), 0);
    assert_int_equal(done.status, 128 + SIGTERM);
    run_forget(r, &done);
    assert_non_null(strstr(printed, "vkt-gpt: ended by SIGTERM before the first step: no file was written"));
    char *text = program_text(r, "w");
    assert_string_equal(text, "of an older run");
    vkt_free(&r->h, text);
    assert_false(program_wrote(r, "j"));
}

static void nohup_is_heeded(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    signal(SIGHUP, SIG_IGN); /* the program inherits this */
    const pid_t child = START(r, TINY, "40", "-q", "--checkpoint", "c", "--checkpoint-every", "1");
    signal(SIGHUP, SIG_DFL);
    wait_for(r, "c");
    assert_int_equal(kill(child, SIGHUP), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 0);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(outputs_are_tried_before_training),
        rig_test(inputs_are_tried_before_the_data),
        rig_test(every_message_begins_with_the_program),
        rig_test(two_options_for_one_file_are_refused),
        rig_test(one_failed_file_does_not_keep_the_others),
        rig_test(a_quota_is_reported_and_does_not_kill),
        rig_test(dash_is_standard_output_and_has_nothing_else),
        rig_test(a_link_and_a_file_beside_the_report_stay),
        rig_test(generated_data_are_reported_also_when_quiet),
        rig_test(a_signal_ends_the_run_in_order),
        rig_test(a_second_signal_ends_it_at_once),
        rig_test(without_a_checkpoint_the_weights_are_saved),
        rig_test(a_checkpoint_that_failed_is_not_offered),
        rig_test(before_the_first_step_nothing_is_written),
        rig_test(nohup_is_heeded),
    };
    return cmocka_run_group_tests_name("files of samples", tests, NULL, NULL);
}
