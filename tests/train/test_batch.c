/* Tests batches that are larger than the data set, and batches that do not fit into memory. */
#include "train/rig.h"

#include <stdio.h>

#include "gpu/gpu.h"

/* ---- larger than the data set ---- */

static vkt_trainer *trained(rig *r, uint32_t batch, double *loss, uint64_t *bytes)
{
    vkt_memory_stats m;
    vkt_trainer_params p = rig_params(r);
    p.batch = batch;
    p.validation = r->check;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    uint32_t n;
    *loss = vkt_trainer_history(t, &n)[1].val_loss;
    vkt_ctx_memory(r->ctx, &m);
    *bytes = m.used_total_bytes;
    return t;
}

static void a_batch_beyond_the_rows_is_all_rows(void **state)
{
    rig *r = rig_of(state);
    double loss, same;
    uint64_t bytes, twice;
    vkt_trainer *t = trained(r, RIG_ROWS, &loss, &bytes), *u = trained(r, 1000000, &same, &twice);
    assert_true(loss == same);
    rig_same(t, u, VKT_PART_VALUE);
    assert_true(twice <= 2 * bytes);
    assert_null(strstr(vkt_trainer_summary(t), "a batch"));
    assert_non_null(strstr(vkt_trainer_summary(u), "a batch: all 200 rows, fewer than the 1000000 asked for\n"));
}

/* A batch has the same number of samples in each shard, so it may lack some samples of the data set. */
static void a_batch_of_shards_says_how_many_rows_it_has(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.batch = 1024;
    p.dist.shards = 16; /* 12 of the 200 samples for each shard */
    const vkt_trainer *t = rig_trainer(r, &p);
    assert_non_null(strstr(vkt_trainer_summary(t), "a batch: 192 rows, fewer than the 1024 asked for\n"));
}

/* Both batch sizes exceed the data set, so both runs have all samples in a batch. One run can resume the other. */
static void such_a_batch_resumes_another(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    vkt_trainer_params p = rig_params(r);
    p.batch = RIG_ROWS + 1;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = path });
    p.batch = UINT32_MAX;
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
}

/* A set of one sample is smaller than a batch. The test evaluates such a set and trains on it. */
static void one_row_is_a_batch(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *one = rig_data(&r->h, 3, 1);
    vkt_trainer_params p = rig_params(r);
    double loss[2], accuracy[2];
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_evaluate(t, one, &loss[0], &accuracy[0]), VKT_OK);
    p.train = one;
    p.validation = NULL;
    vkt_trainer *u = rig_trainer(r, &p);
    rig_fit(u, NULL);
    assert_int_equal(vkt_trainer_evaluate(u, r->check, &loss[1], &accuracy[1]), VKT_OK);
    assert_true(accuracy[0] == 0 || accuracy[0] == 1);
    vkt_trainer_destroy(&r->trainers[1]);
    vkt_dataset_destroy(&one);
}

/* ---- larger than the memory ---- */

/* Makes a trainer with this batch under a memory cap of `megabytes` MiB, and trains. `says` gets the error, or "". */
static vkt_result try_batch(const rig *r, const vkt_dataset *rows, uint32_t batch, uint64_t megabytes, char says[512])
{
    vkt_ctx *ctx = NULL;
    vkt_trainer *t = NULL;
    vkt_trainer_params p = rig_params(r);
    p.train = p.validation = rows;
    p.batch = batch;
    vkt_test_expect_errors(true);
    vkt_result s = vkt_ctx_create(&(vkt_ctx_params){ .max_device_bytes = megabytes << 20 }, &r->h, &ctx);
    assert_int_equal(s, VKT_OK);
    s = vkt_trainer_create(ctx, &p, &t);
    vkt_test_expect_errors(false);
    snprintf(says, 512, "%s", s == VKT_OK ? "" : vkt_test_last_error());
    if (s == VKT_OK) rig_fit(t, NULL);
    vkt_trainer_destroy(&t);
    vkt_ctx_destroy(&ctx);
    return s;
}

/* The message names a batch that fits under the cap, and a cap under which the large batch fits. Both numbers must be
 * right. */
static void a_batch_that_does_not_fit_has_a_message_with_one_that_does(void **state)
{
    rig *r = rig_of(state);
    enum { ROWS = 30000 };
    static const uint32_t caps[] = { 24, 150 };
    vkt_dataset *rows = rig_data(&r->h, 0, ROWS);
    for (size_t i = 0; i < VKT_COUNT(caps); i++) {
        char says[512], unused[512];
        unsigned fits = 0, limit = 0;
        assert_int_equal(try_batch(r, rows, ROWS, caps[i], says), VKT_E_MEMORY_CAP);
        const char *at = strstr(says, "a batch of 30000 takes up to "), *then = strstr(says, "MiB: a batch of ");
        if (!at || sscanf(at, "a batch of 30000 takes up to %u MiB", &limit) != 1 || !then ||
            sscanf(then, "MiB: a batch of %u would fit", &fits) != 1)
            fail_msg("'%s'", says);
        if (limit <= caps[i] || !fits || fits >= ROWS) fail_msg("%s", says);
        assert_int_equal(try_batch(r, rows, fits, caps[i], unused), VKT_OK);
        assert_int_equal(try_batch(r, rows, ROWS, limit, unused), VKT_OK);
    }
    vkt_dataset_destroy(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_batch_beyond_the_rows_is_all_rows),
        rig_test(a_batch_of_shards_says_how_many_rows_it_has),
        rig_test(such_a_batch_resumes_another),
        rig_test(one_row_is_a_batch),
        rig_test(a_batch_that_does_not_fit_has_a_message_with_one_that_does),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
