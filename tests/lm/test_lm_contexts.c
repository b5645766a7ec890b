/* Tests a language model in two contexts: training, generators, memory, errors. */
#include "base/base.h"
#include "lm/lm.h"
#include "lm/tiny.h"
#include "record/record.h"
#include "vktrain/generate.h"

/* Trains a model on the rig's context, and on `second` if it is not NULL. Returns the trainer. */
static vkt_trainer *train(rig *r, tiny *t, const vkt_dataset *data, vkt_ctx *second)
{
    vkt_trainer_params p = tiny_trainer(t, data);
    vkt_trainer *trainer;
    p.validation = data;
    p.dist = (vkt_dist_params){ .shards = 4, .bucket_bytes = 4096, .check_every = 1 };
    p.more_devices = &second;
    p.n_more_devices = second != NULL;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    rig_fit(trainer, &(vkt_fit_params){ .epochs = 2 });
    return trainer;
}

static void the_number_of_contexts_changes_no_bit(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "llama");
    vkt_dataset *data = tiny_data(&r->h);
    vkt_ctx *second;
    const uint64_t bytes = vkt_lm_bytes(t.lm);
    t.lora.dropout = 0.25f;
    assert_true(rig_open(&r->h, &second));
    vkt_trainer *one = train(r, &t, data, NULL);
    assert_int_equal(vkt_lm_add_context(t.lm, second), VKT_OK);
    assert_int_equal(vkt_lm_bytes(t.lm), bytes); /* vkt_lm_bytes counts the bytes in one context */
    vkt_trainer *two = train(r, &t, data, second);
    rig_same(one, two, VKT_PART_VALUE);
    rig_same(one, two, VKT_PART_MOMENT1);
    rig_same(one, two, VKT_PART_MOMENT2);
    assert_memory_equal(&vkt_trainer_best(one)->train_loss, &vkt_trainer_best(two)->train_loss, sizeof(double));
    assert_memory_equal(&vkt_trainer_best(one)->val_loss, &vkt_trainer_best(two)->val_loss, sizeof(double));
    vkt_trainer_destroy(&one);
    vkt_trainer_destroy(&two);
    vkt_lm_destroy(&t.lm);
    vkt_ctx_destroy(&second);
    vkt_dataset_destroy(&data);
}

/* Computes the logits of a short text in a context. */
static void logits_in(vkt_ctx *ctx, const vkt_lm *m, float logits[TINY_WORDS])
{
    static const uint32_t text[] = { 3, 1, 4, 1, 5 };
    vkt_generator *g;
    assert_int_equal(vkt_generator_create(ctx, m, NULL, &g), VKT_OK);
    assert_int_equal(vkt_generator_feed(g, text, VKT_COUNT(text)), VKT_OK);
    assert_int_equal(vkt_generator_logits(g, logits, TINY_WORDS), VKT_OK);
    vkt_generator_destroy(&g);
}

/* Fails the test unless seven tensors of the model have the same bytes in both contexts. */
static void same_tensors(const vkt_lm *m)
{
    const vkt_lm_block *b = m->blocks;
    const vkt_lm_tensor *const all[] = { &m->embedding, &m->norm, &b->q, &b->k, &b->v, &b->attn_norm, &b[1].down };
    for (size_t i = 0; i < VKT_COUNT(all); i++) {
        vkt_array *a = all[i]->array, *copy = a->next;
        assert_true(copy && copy->ctx != a->ctx && copy->next == a);
        assert_true(copy->bytes == a->bytes && copy->dtype == a->dtype);
        uint8_t *x = test_malloc(a->bytes), *y = test_malloc(a->bytes);
        assert_int_equal(vkt_readback(a->ctx, a->buffer, 0, x, a->bytes), VKT_OK);
        assert_int_equal(vkt_readback(copy->ctx, copy->buffer, 0, y, a->bytes), VKT_OK);
        assert_memory_equal(x, y, a->bytes);
        test_free(x);
        test_free(y);
    }
}

static void a_generator_works_in_each_context(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "llama");
    vkt_ctx *other;
    static float here[TINY_WORDS], there[TINY_WORDS];
    assert_true(rig_open(&r->h, &other));
    assert_int_equal(vkt_lm_add_context(t.lm, other), VKT_OK);
    same_tensors(t.lm);
    logits_in(r->ctx, t.lm, here);
    logits_in(other, t.lm, there);
    assert_memory_equal(here, there, sizeof here);
    vkt_lm_destroy(&t.lm);
    vkt_ctx_destroy(&other);
}

static void a_foreign_context_is_refused(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "qwen2");
    vkt_dataset *data = tiny_data(&r->h);
    vkt_trainer_params p = tiny_trainer(&t, data);
    vkt_trainer *trainer;
    vkt_generator *g;
    vkt_ctx *other;
    assert_true(rig_open(&r->h, &other));
    p.dist.shards = 2;
    p.more_devices = &other;
    p.n_more_devices = 1;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_E_ARG);
    assert_null(trainer);
    vkt_test_error_contains("is in another context, and this one has no copy of it");
    vkt_test_error_contains("vkt_lm_add_context");
    assert_int_equal(vkt_generator_create(other, t.lm, NULL, &g), VKT_E_ARG);
    vkt_test_error_contains("has no copy of it");
    assert_int_equal(vkt_lm_add_context(t.lm, r->ctx), VKT_E_ARG);
    vkt_test_error_contains("the weights are in this context already");
    assert_int_equal(vkt_lm_add_context(t.lm, other), VKT_OK);
    assert_int_equal(vkt_lm_add_context(t.lm, other), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_lm_destroy(&t.lm);
    vkt_dataset_destroy(&data);
    vkt_ctx_destroy(&other);
}

/* If a context has too little memory, vkt_lm_add_context fails, and the model does not change. */
static void too_little_memory_leaves_the_model(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "qwen3");
    vkt_ctx *small;
    vkt_array *first;
    static float before[TINY_WORDS], after[TINY_WORDS];
    const vkt_ctx_params p = { .max_device_bytes = 192 << 10, .block_bytes = 64 << 10, .staging_bytes = 64 << 10 };
    assert_int_equal(vkt_ctx_create(&p, &r->h, &small), VKT_OK);
    logits_in(r->ctx, t.lm, before);
    vkt_test_expect_errors(true);
    for (int k = 0; k < 2; k++) {
        /* The first tensor fits, so a later tensor fails. */
        assert_int_equal(vkt_array_copy(t.lm->embedding.array, small, &first), VKT_OK);
        vkt_array_destroy(&first);
        assert_int_equal(vkt_lm_add_context(t.lm, small), VKT_E_MEMORY_CAP);
        vkt_test_error_contains("of device memory in each context");
    }
    vkt_test_expect_errors(false);
    assert_null(t.lm->embedding.array->next);
    logits_in(r->ctx, t.lm, after);
    assert_memory_equal(before, after, sizeof before);
    vkt_lm_destroy(&t.lm);
    vkt_ctx_destroy(&small);
}

static void each_failing_allocation_leaves_the_model(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "llama");
    vkt_ctx *other;
    assert_true(rig_open(&r->h, &other));
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_lm_add_context(t.lm, other);
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        if (!failed) {
            assert_int_equal(result, VKT_OK);
            break;
        }
        assert_int_equal(result, VKT_E_NOMEM);
        assert_null(t.lm->embedding.array->next);
        assert_null(t.lm->blocks[0].q.array->next);
    }
    same_tensors(t.lm);
    vkt_lm_destroy(&t.lm);
    vkt_ctx_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(the_number_of_contexts_changes_no_bit),
        rig_test(a_generator_works_in_each_context),
        rig_test(a_foreign_context_is_refused),
        rig_test(too_little_memory_leaves_the_model),
        rig_test(each_failing_allocation_leaves_the_model),
    };
    return cmocka_run_group_tests_name("language models in several contexts", tests, NULL, NULL);
}
