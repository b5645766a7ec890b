/* Tests --run DIR of vkt-gpt on a small text: the files in the folder, and how a run continues in it. */
#include "samples/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/schema.h"

#define TINY                                                                                                     \
    "--data", "text", "--context", "8", "--layers", "1", "--heads", "2", "--width", "16", "--sample", "0", "-q", \
        "--schedule", "constant", "--epochs"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_GPT_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

#define START(r, ...) program_start(r, VKT_GPT_PROGRAM, NULL, (const char *const[]){ __VA_ARGS__, NULL })

static void write_text(const rig *r)
{
    char text[401];
    for (int i = 0; i < 400; i++) text[i] = "the old cat hid. "[i % 17];
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), text, 400), VKT_OK);
}

/* Waits until a running program has written the file. */
static void wait_for(const rig *r, const char *name)
{
    for (int i = 0; i < 240000 && !program_wrote(r, name); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_true(program_wrote(r, name));
}

static bool is_there(const rig *r, const char *name)
{
    return access(vkt_temp_dir_file(&r->dir, name), F_OK) == 0;
}

/* Fails the test unless the file contains `text`. */
static void expect_text(const rig *r, const char *name, const char *text)
{
    char *all = program_text(r, name);
    if (!strstr(all, text)) fail_msg("%s: want '%s' in it, got '%s'", name, text, all);
    vkt_free(&r->h, all);
}

/* Fails the test unless the history file `name` has exactly the epochs 1..n. */
static void expect_epochs(const rig *r, const char *name, unsigned n)
{
    char *text = program_text(r, name), *line = strchr(text, '\n');
    assert_memory_equal(text, "epoch,train_loss", 16);
    for (unsigned i = 1; i <= n; i++) {
        assert_non_null(line);
        assert_int_equal(strtoul(line + 1, NULL, 10), i);
        line = strchr(line + 1, '\n');
    }
    assert_string_equal(line, "\n");
    vkt_free(&r->h, text);
}

/* ---- event files ---- */

enum { MAX_EVENTS = 1 << 20 };

/* Returns how many event files the folder has. `all` gets their bytes, one file behind the other. */
static unsigned read_events(const rig *r, const char *folder, uint8_t *all, size_t *n)
{
    char name[512];
    unsigned files = 0;
    DIR *d = opendir(vkt_temp_dir_file(&r->dir, folder));
    assert_non_null(d);
    *n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (strncmp(e->d_name, "events.out.tfevents.", 20) != 0) continue;
        snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
        FILE *f = fopen(vkt_temp_dir_file(&r->dir, name), "rb");
        assert_non_null(f);
        *n += fread(all + *n, 1, MAX_EVENTS - *n, f);
        assert_int_equal(fclose(f), 0);
        files++;
    }
    assert_int_equal(closedir(d), 0);
    assert_true(*n < MAX_EVENTS);
    return files;
}

/* Returns how often the bytes `what` are in `all`. */
static unsigned count(const uint8_t *all, size_t n, const void *what, size_t size)
{
    unsigned times = 0;
    for (size_t i = 0; i + size <= n; i++) times += memcmp(all + i, what, size) == 0;
    return times;
}

/* Returns how often a scalar is in the event files. A scalar is a protobuf message Summary.Value: field 1 is the tag,
 * field 2 is the value in float32. */
static unsigned count_scalar(const uint8_t *all, size_t n, const char *tag, double value)
{
    uint8_t bytes[64];
    const float number = (float)value;
    const size_t length = strlen(tag);
    bytes[0] = 1 << 3 | 2;
    bytes[1] = (uint8_t)length;
    memcpy(bytes + 2, tag, length);
    bytes[2 + length] = 2 << 3 | 5;
    memcpy(bytes + 3 + length, &number, sizeof number); /* the test needs a little-endian machine */
    return count(all, n, bytes, 7 + length);
}

/* Checks that every loss and learning rate of results.json is in the event files. */
static void expect_losses(const rig *r, const char *folder, const uint8_t *all, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%s/results.json", folder);
    json_t *results = program_json(r, name);
    const json_t *epochs = json_object_get(results, "epochs");
    for (size_t i = 0; i < json_array_size(epochs); i++) {
        const json_t *e = json_array_get(epochs, i);
        assert_true(count_scalar(all, n, "loss/training", json_number_of(e, "train_loss")) > 0);
        assert_true(count_scalar(all, n, "loss/validation", json_number_of(e, "val_loss")) > 0);
        assert_true(count_scalar(all, n, "run/learning rate", json_number_of(e, "lr")) > 0);
    }
    json_decref(results);
}

/* ---- the folder ---- */

static void a_run_leaves_all_in_one_folder(void **state)
{
    rig *r = rig_of(state);
    static const char *const names[] = { "checkpoint.ckpt", "best.safetensors", "results.json", "history.csv",
                                         "history.svg",     "options.json",     "log.txt" };
    char why[256];
    write_text(r);
    EXPECT(r, 0, "", TINY, "3", "--run", "runs/first", "--seed", "9");
    assert_int_equal(vkt_temp_dir_count(&r->dir), 1 + 1 + 2); /* text, runs, out and err */
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "runs/first/%s", names[i]);
        if (!program_wrote(r, name)) fail_msg("%s was not written", name);
    }
    assert_false(is_there(r, "runs/first/.history.png"));
    expect_epochs(r, "runs/first/history.csv", 3);
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, "runs/first/results.json"), why)) fail_msg("%s", why);
    if (!schema_fits("options", vkt_temp_dir_file(&r->dir, "runs/first/options.json"), why)) fail_msg("%s", why);
    json_t *options = program_json(r, "runs/first/options.json"), *data = json_object_get(options, "data");
    assert_true(json_number_of(options, "seed") == 9 && json_number_of(options, "epochs") == 3);
    assert_string_equal(json_string_value(json_object_get(data, "source")), "text");
    assert_int_equal(json_string_value(json_object_get(json_object_get(options, "identity"), "data"))[0], '#');
    json_decref(options);
}

static void events_and_log_have_every_start(void **state)
{
    rig *r = rig_of(state);
    uint8_t *all = test_malloc(MAX_EVENTS);
    size_t n;
    write_text(r);
    EXPECT(r, 0, "", TINY, "2", "--run", "run");
    assert_int_equal(read_events(r, "run", all, &n), 1);
    expect_losses(r, "run", all, n);
    assert_int_equal(count(all, n, "vktrain-options-1", 17), 1);
    assert_int_equal(count(all, n, "transformer.wte", 15), 1); /* the network's summary has this text */
    assert_true(count(all, n, "\x89PNG\r\n\x1a\n", 8) == 1 && count(all, n, "history", 7) == 1);
    EXPECT(r, 0, "", TINY, "3", "--run", "run", "--lr", "0.001");
    assert_int_equal(read_events(r, "run", all, &n), 2);
    expect_losses(r, "run", all, n);
    test_free(all);
    expect_text(r, "run/log.txt", " --epochs 2 --run run\n");
    expect_text(r, "run/log.txt", "\ndevice  ");
    expect_text(r, "run/log.txt", "transformer.wte (Embedding)");
    expect_text(r, "run/log.txt", "\nepoch 1/2  ");
    expect_text(r, "run/log.txt", "\nbest    epoch 2: validation loss ");
    expect_text(r, "run/log.txt", " --epochs 3 --run run --lr 0.001\n");
    expect_text(r, "run/log.txt", "\nresume  run/checkpoint.ckpt: goes on with epoch 3 of 3\n");
    expect_text(r, "run/log.txt", "\nepoch 3/3  ");
    EXPECT(r, 1, "batch: checkpoint 16, this run 8", TINY, "4", "--run", "run", "--batch", "8");
    expect_text(r, "run/log.txt", "batch: checkpoint 16, this run 8"); /* the log also has the message */
}

static void an_option_puts_its_file_elsewhere(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, "1", "--run", "run", "--save", "w", "--history", "h", "--plot", "p.png");
    assert_true(program_wrote(r, "w") && program_wrote(r, "h") && program_wrote(r, "p.png"));
    assert_false(is_there(r, "run/best.safetensors") || is_there(r, "run/history.csv") ||
                 is_there(r, "run/history.svg"));
    assert_true(program_wrote(r, "run/checkpoint.ckpt") && program_wrote(r, "run/results.json"));
}

static void an_impossible_folder_is_reported_before_training(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 1, "--run: text cannot be made: Not a directory", TINY, "1000000", "--run", "text");
    EXPECT(r, 1, "--run: text/run cannot be made: Not a directory", TINY, "1000000", "--run", "text/run");
    EXPECT(r, 1, "--run: want a folder, got ''", TINY, "1000000", "--run", "");
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "run"), 0777), 0);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "run/log.txt"), 0777), 0);
    EXPECT(r, 1, "--run: run/log.txt cannot be opened: Is a directory", TINY, "1000000", "--run", "run");
}

static void one_program_at_a_time(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    assert_int_equal(mkdir(vkt_temp_dir_file(&r->dir, "run"), 0777), 0);
    const int fd = open(vkt_temp_dir_file(&r->dir, "run/log.txt"), O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) skip(); /* a file system without locks */
    EXPECT(r, 1, "another program runs in this folder", TINY, "1000000", "--run", "run");
    assert_false(program_wrote(r, "run/log.txt") || is_there(r, "run/checkpoint.ckpt"));
    assert_int_equal(close(fd), 0);
}

/* ---- a run that continues ---- */

static void expect_same_end(const rig *r, const char *a, const char *b)
{
    static const char *const names[] = { "best.safetensors", "checkpoint.ckpt" };
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        char first[64], second[64];
        snprintf(first, sizeof first, "%s/%s", a, names[i]);
        snprintf(second, sizeof second, "%s/%s", b, names[i]);
        rig_same_file(vkt_temp_dir_file(&r->dir, first), vkt_temp_dir_file(&r->dir, second));
    }
}

static void more_epochs_end_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, "5", "--run", "whole");
    EXPECT(r, 0, "", TINY, "2", "--run", "again");
    EXPECT(r, 0, "", TINY, "5", "--run", "again");
    expect_epochs(r, "again/history.csv", 5);
    expect_same_end(r, "whole", "again");
    EXPECT(r, 0, "", TINY, "5", "--run", "again", "--load", "none"); /* the run continues, so "none" is not loaded */
    expect_epochs(r, "again/history.csv", 5);
    expect_same_end(r, "whole", "again");
}

static void a_killed_run_goes_on(void **state)
{
    rig *r = rig_of(state);
    static const int signals[] = { SIGTERM, SIGKILL };
    static const char *const runs[] = { "ended", "killed" };
    write_text(r);
    EXPECT(r, 0, "", TINY, "60", "--run", "whole");
    for (size_t i = 0; i < VKT_COUNT(signals); i++) {
        char history[64], log[64];
        snprintf(history, sizeof history, "%s/history.csv", runs[i]);
        snprintf(log, sizeof log, "%s/log.txt", runs[i]);
        const pid_t child = START(r, TINY, "60", "--run", runs[i], "--checkpoint-every", "1");
        wait_for(r, history);
        assert_int_equal(kill(child, signals[i]), 0);
        run done = program_finish(r, child);
        if (done.status == 128 + SIGTERM) { /* else the run ended before the signal, or by SIGKILL */
            assert_non_null(strstr(done.err, " --run ended --checkpoint-every 1\n"));
            expect_text(r, log, "\nended by SIGTERM\n");
        }
        run_forget(r, &done);
        EXPECT(r, 0, "", TINY, "60", "--run", runs[i], "--checkpoint-every", "1");
        expect_epochs(r, history, 60);
        expect_same_end(r, "whole", runs[i]);
    }
}

static void another_run_is_refused(void **state)
{
    rig *r = rig_of(state);
    write_text(r);
    EXPECT(r, 0, "", TINY, "1", "--run", "run", "--seed", "3");
    EXPECT(r, 0, "", TINY, "1", "--run", "other");
    EXPECT(r, 1, "--seed: the run of run/checkpoint.ckpt has the seed 3, got 4", TINY, "2", "--run", "run", "--seed",
           "4");
    EXPECT(r, 2, "--checkpoint: --run keeps its checkpoint in new/checkpoint.ckpt: leave out --checkpoint", TINY, "2",
           "--run", "new", "--checkpoint", "other/checkpoint.ckpt");
    assert_false(is_there(r, "new"));
    EXPECT(r, 1, "--resume: run has a run of its own", TINY, "2", "--run", "run", "--resume", "other/checkpoint.ckpt");
    expect_epochs(r, "run/history.csv", 1);
    EXPECT(r, 0, "", TINY, "2", "--run", "run", "--seed", "3");
    expect_epochs(r, "run/history.csv", 2);
    EXPECT(r, 0, "", TINY, "2", "--run", "branch", "--resume", "other/checkpoint.ckpt");
    expect_epochs(r, "branch/history.csv", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_leaves_all_in_one_folder),
        rig_test(events_and_log_have_every_start),
        rig_test(an_option_puts_its_file_elsewhere),
        rig_test(an_impossible_folder_is_reported_before_training),
        rig_test(one_program_at_a_time),
        rig_test(more_epochs_end_in_the_same_bytes),
        rig_test(a_killed_run_goes_on),
        rig_test(another_run_is_refused),
    };
    return cmocka_run_group_tests_name("--run", tests, NULL, NULL);
}
