/* Tests training in f16 and bf16. The accuracy is nearly as good as in f32. A resumed run gives the same bits as a run
 * without interruption, also after steps whose gradients overflowed. Also tests resumes in another precision. */
#include "io/checkpoint.h"
#include "train/rig.h"

enum { EPOCHS = 3, ROWS = 2560, CHECK = 640 };

/* ---- resumes and checkpoints ---- */

static bool after_six_batches(void *user)
{
    return ++*(uint32_t *)user == 6;
}

/* Makes a trainer whose first loss scale is 2^30. In f16 this is far too large: the gradients of the first steps
 * overflow, and these steps are skipped. */
static vkt_trainer *start(rig *r, vkt_precision precision)
{
    vkt_trainer_params p = rig_params(r);
    p.precision = precision;
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_store_set_loss_scale(t->store, &(vkt_loss_scale){ .scale = 0x1p30f }), VKT_OK);
    return t;
}

static void a_resumed_run_ends_like_one_that_never_stopped(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    for (int precision = VKT_PRECISION_F16; precision <= VKT_PRECISION_BF16; precision++) {
        vkt_trainer *all = start(r, (vkt_precision)precision), *first = start(r, (vkt_precision)precision);
        rig_fit(all, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = whole });
        vkt_loss_scale l;
        uint64_t t, seed;
        assert_int_equal(vkt_store_get_loss_scale(all->store, &l), VKT_OK);
        assert_int_equal(vkt_store_get_clock(all->store, &t, &seed), VKT_OK);
        assert_int_equal(l.skipped + t, EPOCHS * RIG_STEPS);
        assert_true(precision == VKT_PRECISION_F16 ? l.skipped > 3 && t > 3 : l.skipped == 0);

        uint32_t asked = 0;
        const vkt_fit_callbacks stop = { .user = &asked, .stop = after_six_batches };
        rig_fit(first, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part, .callbacks = stop });
        const vkt_trainer_params p = first->params;
        vkt_trainer *second = rig_trainer(r, &p);
        assert_int_equal(vkt_trainer_resume(second, part), VKT_OK);
        rig_fit(second, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part, .checkpoint_every = 2 });
        rig_same_file(whole, part);
    }
}

/* Writes a copy of a checkpoint, with another loss scale. */
static void with_scale(rig *r, const char *from, const char *to, const char *scale)
{
    enum { MOST = 64 };
    vkt_safetensors *st;
    vkt_blob blobs[MOST];
    vkt_meta meta[MOST];
    size_t n = 0, n_meta = 0;
    assert_int_equal(vkt_checkpoint_open(&r->h, from, &st), VKT_OK);
    for (; n < vkt_safetensors_count(st); n++) {
        const vkt_st_entry *e = vkt_safetensors_entry(st, n);
        void *data = test_malloc(e->bytes);
        assert_true(n < MOST);
        assert_int_equal(vkt_safetensors_read_raw(st, e, data, e->bytes), VKT_OK);
        blobs[n] = (vkt_blob){ .name = e->name, .dtype = e->dtype, .rank = e->rank, .data = data };
        for (uint32_t d = 0; d < e->rank; d++) blobs[n].dims[d] = (uint32_t)e->dims[d];
    }
    for (const char *key = vkt_safetensors_next_meta(st, NULL); key; key = vkt_safetensors_next_meta(st, key)) {
        const bool is_scale = strcmp(key, "vktrain.loss_scale") == 0;
        const bool own =
            !strcmp(key, "vktrain.crc32") || !strcmp(key, "vktrain.kind") || !strcmp(key, "vktrain.version");
        assert_true(n_meta < MOST);
        if (!own) meta[n_meta++] = (vkt_meta){ key, is_scale ? scale : vkt_safetensors_meta(st, key) };
    }
    assert_int_equal(vkt_checkpoint_write(&r->h, to, blobs, n, meta, n_meta), VKT_OK);
    vkt_safetensors_close(&st);
    for (size_t i = 0; i < n; i++) test_free((void *)blobs[i].data);
}

/* A store has only loss scales that are powers of two: 1.5 * 2^3 is refused, 2^3 is accepted. A resume attaches the
 * texts of the checkpoint (vkt_trainer_attach) to the trainer. The resume that is refused must not do this. */
static void a_loss_scale_that_no_store_has_is_refused(void **state)
{
    rig *r = rig_of(state);
    const char *good = vkt_temp_dir_file(&r->dir, "good"), *bad = vkt_temp_dir_file(&r->dir, "bad"),
               *weights = vkt_temp_dir_file(&r->dir, "weights");
    vkt_trainer *t = start(r, VKT_PRECISION_F16), *other = start(r, VKT_PRECISION_F16);
    char *text;
    assert_int_equal(vkt_trainer_attach(t, "words", "of the file"), VKT_OK);
    assert_int_equal(vkt_trainer_checkpoint(t, good), VKT_OK);
    with_scale(r, good, bad, "0x1.8p+3 0 0");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(other, bad), VKT_E_FORMAT);
    assert_int_equal(vkt_trainer_save(other, weights), VKT_OK);
    assert_int_equal(vkt_read_attachment(&r->h, weights, "words", &text), VKT_E_NOT_FOUND);
    vkt_test_expect_errors(false);
    with_scale(r, good, bad, "0x1p+3 0 0");
    assert_int_equal(vkt_trainer_resume(other, bad), VKT_OK);
}

static void a_profiled_step_leaves_the_scale_as_it_was(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.precision = VKT_PRECISION_F16;
    p.profile = true;
    vkt_trainer *t = rig_trainer(r, &p), *untouched = rig_trainer(r, &p);
    vkt_loss_scale l = { .scale = 0x1p60f, .skipped = 3 };
    assert_int_equal(vkt_store_set_loss_scale(t->store, &l), VKT_OK);
    assert_int_equal(vkt_trainer_profile(t, vkt_temp_dir_file(&r->dir, "trace")), VKT_OK);
    assert_int_equal(vkt_store_get_loss_scale(t->store, &l), VKT_OK);
    assert_true(l.scale == 0x1p60f && l.good_steps == 0 && l.skipped == 3);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++)
        if (part != VKT_PART_GRADIENT) rig_same(t, untouched, (vkt_store_part)part);
}

static void a_checkpoint_of_another_precision_is_refused(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    static const char *const says[] = { "precision: checkpoint f32, this run f16",
                                        "precision: checkpoint f16, this run bf16",
                                        "precision: checkpoint bf16, this run f32" };
    for (int written = VKT_PRECISION_F32; written <= VKT_PRECISION_BF16; written++) {
        rig_fit(start(r, (vkt_precision)written), &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
        vkt_trainer *other = start(r, (vkt_precision)((written + 1) % 3));
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_resume(other, path), VKT_E_STATE);
        vkt_test_error_contains(says[written]);
        vkt_test_expect_errors(false);
    }
}

/* A run in f32 resumes a checkpoint of f32-split, and a run in f32-split resumes a checkpoint of f32. A run in f16
 * refuses both checkpoints. */
static void f32_and_f32_split_go_on_with_each_other(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    static const vkt_precision both[] = { VKT_PRECISION_F32, VKT_PRECISION_F32_SPLIT };
    r->ctx->logged_no_split = true; /* suppresses the warning that products are not split (see ops/test_split.c) */
    for (int i = 0; i < 2; i++) {
        rig_fit(start(r, both[i]), &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
        vkt_trainer *other = start(r, both[1 - i]);
        assert_int_equal(vkt_trainer_resume(other, path), VKT_OK);
        rig_fit(other, &(vkt_fit_params){ .epochs = 2 });
        vkt_trainer *half = start(r, VKT_PRECISION_F16);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_resume(half, path), VKT_E_STATE);
        vkt_test_error_contains("precision: checkpoint f32, this run f16");
        vkt_test_expect_errors(false);
    }
}

/* ---- accuracy ---- */

static void half_the_bits_learn_as_well(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *digits, *check;
    assert_int_equal(vkt_dataset_digits(&r->h, ROWS, 1, &digits), VKT_OK);
    assert_int_equal(vkt_dataset_digits(&r->h, CHECK, 2, &check), VKT_OK);
    double accuracy[3];
    for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_BF16; precision++) {
        float dropout = 0.1f;
        vkt_trainer_params p = rig_params(r);
        p.model = (vkt_model){ .forward = rig_mnist_forward, .user = &dropout };
        p.train = digits;
        p.validation = check;
        p.batch = 64;
        p.precision = (vkt_precision)precision;
        vkt_trainer *t = NULL;
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
        rig_fit(t, &(vkt_fit_params){ .epochs = 3 });
        accuracy[precision] = vkt_trainer_best_accuracy(t);
        vkt_trainer_destroy(&t);
    }
    print_message("f32 %.4f, f16 %.4f, bf16 %.4f\n", accuracy[0], accuracy[1], accuracy[2]);
    for (int i = 0; i < 3; i++) assert_true(accuracy[i] > 0.9);
    for (int i = 1; i < 3; i++) assert_true(accuracy[i] > accuracy[0] - 0.03);
    vkt_dataset_destroy(&check);
    vkt_dataset_destroy(&digits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_resumed_run_ends_like_one_that_never_stopped),
        rig_test(a_loss_scale_that_no_store_has_is_refused),
        rig_test(a_profiled_step_leaves_the_scale_as_it_was),
        rig_test(a_checkpoint_of_another_precision_is_refused),
        rig_test(f32_and_f32_split_go_on_with_each_other),
        rig_test(half_the_bits_learn_as_well),
    };
    return cmocka_run_group_tests_name("trainer precision", tests, NULL, NULL);
}
