/* samples/failing/main.c - a sample program that cannot read its data in a chosen epoch and in all later epochs.
 * test_failing_run.c runs it.
 *
 * The environment variable VKT_TEST_FAIL is "EPOCH" or "EPOCH ROW". EPOCH is the first epoch that fails. With ROW,
 * only this row fails. Without ROW, all rows fail.
 *
 * The environment variable VKT_TEST_BLOCK is the path of a file. When a row fails, the program replaces this file by a
 * link to a file that cannot be written. */
#define _POSIX_C_SOURCE 200809L /* symlink */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/session.h"

enum { ROWS = 64, WIDTH = 8, CLASSES = 2 };

typedef struct source {
    uint32_t epoch;    /* the first epoch that fails; 0: none */
    uint32_t row;      /* the row that fails; ROWS: all rows fail */
    const char *block; /* the file of VKT_TEST_BLOCK; NULL: none */
} source;

/* Fetches a row, or fails. The class of a row is the sign of its first number. */
static vkt_result fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    const source *s = self;
    float *out = dst;
    (void)worker;
    if (s->epoch && pass.epoch >= s->epoch && (s->row == ROWS || s->row == row)) {
        if (s->block) remove(s->block);
        return s->block && symlink("/proc/version", s->block) != 0 ? VKT_E_STATE : VKT_E_IO;
    }
    for (uint32_t i = 0; i < WIDTH; i++) out[i] = (float)((row * 7 + i * 3) % 11) / 11;
    out[0] = row % CLASSES ? 1.0f : -1.0f;
    return VKT_OK;
}

static const char *why(void *self, uint32_t worker)
{
    (void)self;
    (void)worker;
    return "the disk was taken out";
}

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = CLASSES });
}

static vkt_result run(session *s, source *from)
{
    uint32_t labels[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) labels[i] = i % CLASSES;
    const vkt_data_source rows = { .fetch = fetch, .self = from, .why = why, .varies = true };
    const vkt_dataset_params p = {
        .rows = ROWS, .width = WIDTH, .type = VKT_ROW_F32, .labels = labels, .classes = CLASSES
    };
    vkt_dataset *data = NULL;
    vkt_trainer *t = NULL;
    vkt_result r = vkt_dataset_from_source(&s->host, &p, &rows, &data);
    if (r == VKT_OK) {
        session_set_data(s, &(session_data){ "a test", true, data, data, NULL });
        const vkt_trainer_params with = { .model = { .name = "small", .forward = forward },
                                          .train = data,
                                          .validation = data };
        r = session_train(s, &with, NULL, &t);
    }
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    return r;
}

int main(int argc, char **argv)
{
    static const train_cli cli = { .doc = "Trains until its data cannot be read." };
    const char *fail = getenv("VKT_TEST_FAIL");
    source from = { .row = ROWS, .block = getenv("VKT_TEST_BLOCK") };
    if (fail && sscanf(fail, "%u %u", &from.epoch, &from.row) < 1) return 2;
    session s = { .o = { .epochs = 3, .batch = 16, .optimizer = { .kind = VKT_ADAM }, .lr = 0.01f, .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    return session_end(&s, run(&s, &from));
}
