/* Tests that neither a full disk nor a kill loses the last good checkpoint. These tests need processes and limits of
 * POSIX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/philox.h"
#include "io/checkpoint.h"
#include "support/host.h"
#include "support/temp_dir.h"

static const float weight[6] = { 1, -2, 3.5f, 0, 1e-30f, 6 };
static const uint32_t order[3] = { 2, 0, 1 };
static const vkt_blob blobs[] = {
    { "fc.weight", VKT_ST_F32, 2, { 2, 3 }, weight },
    { "vktrain.moment1.fc.weight", VKT_ST_F32, 2, { 2, 3 }, weight },
    { "vktrain.order", VKT_ST_U32, 1, { 3 }, order },
    { "vktrain.nothing", VKT_ST_F32, 1, { 0 }, NULL },
};
static const vkt_meta meta[] = { { "vktrain.step", "469" }, { "note", "\"vktrain.crc32\":\"12345678\"" } };

static void write_small(const char *path)
{
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_checkpoint_write(&h, path, blobs, VKT_COUNT(blobs), meta, VKT_COUNT(meta)), VKT_OK);
}

static char *get(const char *path, size_t *n)
{
    const vkt_host h = vkt_test_host();
    void *bytes;
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, &bytes, n), VKT_OK);
    return bytes;
}

/* A limit of the file size simulates a full disk. The test tries each limit below the size of the checkpoint. A child
 * process does this, because a limit holds for a whole process. */
static void a_full_disk_leaves_the_old_checkpoint(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    write_small(path);
    size_t n;
    char *old = get(path, &n);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        vkt_test_expect_errors(true);
        signal(SIGXFSZ, SIG_IGN);
        for (rlim_t room = 0; room < n; room++) {
            const struct rlimit limit = { room, RLIM_INFINITY };
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
            if (vkt_checkpoint_write(&h, path, blobs, VKT_COUNT(blobs), meta, 2) != VKT_E_IO) _exit(3);
        }
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    size_t n2;
    char *now = get(path, &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(old, now, n);
    assert_int_equal(vkt_temp_dir_count(&dir), 1);
    vkt_free(&h, old);
    vkt_free(&h, now);
    vkt_temp_dir_remove(&dir);
}

enum { BIG = 1 << 18 };

/* Writes a training state. Each of its 32-bit words is `step`, so a mixture of two states would show. */
static vkt_result write_step(const char *path, uint32_t *words, uint32_t step)
{
    const vkt_host h = vkt_test_host();
    char text[16];
    snprintf(text, sizeof text, "%u", step);
    for (uint32_t i = 0; i < BIG; i++) words[i] = step;
    const vkt_blob blob = { "w", VKT_ST_U32, 1, { BIG }, words };
    const vkt_meta step_meta = { "step", text };
    return vkt_checkpoint_write(&h, path, &blob, 1, &step_meta, 1);
}

static pid_t start_writer(const char *path, uint32_t *words, uint32_t first)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child != 0) return child;
    for (uint32_t step = first;; step++) {
        if (write_step(path, words, step) != VKT_OK) _exit(3);
    }
}

static void assert_whole(const char *path, uint32_t *words)
{
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st;
    assert_int_equal(vkt_checkpoint_open(&h, path, &st), VKT_OK);
    assert_int_equal(vkt_safetensors_read_raw(st, vkt_safetensors_find(st, "w"), words, BIG * sizeof *words), VKT_OK);
    const uint32_t step = (uint32_t)strtoul(vkt_safetensors_meta(st, "step"), NULL, 10);
    for (uint32_t i = 0; i < BIG; i++) assert_int_equal(words[i], step);
    vkt_safetensors_close(&st);
}

/* Two processes rewrite the same checkpoint and are killed (SIGKILL) at random times. The file must always be one
 * complete checkpoint. */
static void killed_writers_leave_a_whole_checkpoint(void **state)
{
    (void)state;
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.ckpt");
    uint32_t *words = malloc(BIG * sizeof *words);
    /* The seed differs in every run of the test, so the times of the kills differ. */
    vkt_rng rng = vkt_rng_make(vkt_now_ns(), VKT_STREAM_TEST, 0, 0);
    unsigned left_temporaries = 0;
    assert_int_equal(write_step(path, words, 0), VKT_OK);
    for (uint32_t round = 1; round <= 30; round++) {
        const pid_t a = start_writer(path, words, round * 1000), b = start_writer(path, words, round * 1000 + 500000);
        const struct timespec nap = { 0, (long)vkt_rng_range(&rng, 100000, 40000000) };
        nanosleep(&nap, NULL);
        assert_whole(path, words); /* the file is complete, even while both processes write */
        int status_a, status_b;
        kill(a, SIGKILL);
        kill(b, SIGKILL);
        waitpid(a, &status_a, 0);
        waitpid(b, &status_b, 0);
        assert_true(WIFSIGNALED(status_a) && WIFSIGNALED(status_b)); /* no writer ended because of a failed write */
        assert_whole(path, words);
        left_temporaries += vkt_temp_dir_count(&dir) > 1;
    }
    assert_true(left_temporaries > 0); /* in some rounds, a writer was killed in the middle of writing */
    assert_in_range(vkt_temp_dir_count(&dir), 1, 3);
    assert_int_equal(write_step(path, words, 1), VKT_OK);
    assert_whole(path, words);
    free(words);
    vkt_temp_dir_remove(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_leaves_the_old_checkpoint),
        TEST(killed_writers_leave_a_whole_checkpoint),
    };
    return cmocka_run_group_tests_name("checkpoint_kill", tests, NULL, NULL);
}
