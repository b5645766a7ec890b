/* Compares tiny language models of all three architectures with PyTorch: logits, gradients of all adapters, and the
 * losses of 50 steps. The three files together have all types of tensors that the library reads. golden/README.md
 * describes the files. */
#include <math.h>
#include <stdio.h>

#include "lm/tiny.h"

enum { STEPS = 50 };

/* Compares the logits of the first sample with those of PyTorch. */
static void check_logits(rig *r, const vkt_safetensors *st, tiny *t, const vkt_dataset *data, vkt_store *store)
{
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    uint64_t n, runs;
    enum { N = TINY_CONTEXT * TINY_WORDS };
    float *got = test_malloc(N * sizeof *got);
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, false, &b), VKT_OK);
    const vkt_tensor row = vkt_input(g, "row", VKT_U32, VKT_ROWS, vkt_shape2(1, 2 * TINY_CONTEXT));
    const vkt_tensor z = vkt_lm_logits(b, t->lm, tiny_forward(b, row, t));
    vkt_keep(g, z);
    assert_int_equal(vkt_program_create(r->ctx, g, store, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_write(p, row, vkt_dataset_features(data), 2 * TINY_CONTEXT * sizeof(uint32_t)),
                     VKT_OK);
    assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(p, z, got, N * sizeof *got), VKT_OK);
    double *want = golden_numbers(st, "logits64", &n), *theirs = golden_numbers(st, "logits_dev", &runs);
    double limit = 0, worst = 0;
    assert_int_equal(n, N);
    for (uint64_t i = 0; i < runs; i++) limit = fmax(limit, theirs[i]);
    for (uint64_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)got[i] - want[i]));
    print_message("logits           at most %.2f times PyTorch's float32 deviation\n", worst / limit);
    assert_true(worst <= 4 * limit);
    vkt_program_destroy(&p);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    test_free(want);
    test_free(theirs);
    test_free(got);
}

static void fifty_steps_follow(void **state, const char *architecture)
{
    rig *r = rig_of(state);
    char name[64];
    snprintf(name, sizeof name, "lm/%s", architecture);
    vkt_safetensors *st = golden_open(&r->h, name);
    vkt_dataset *data = tiny_data(&r->h);
    tiny t = tiny_open(r, architecture);
    const vkt_trainer_params p = tiny_trainer(&t, data);
    vkt_trainer *trainer;
    double losses[STEPS];
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    assert_int_equal(vkt_store_count(vkt_trainer_store(trainer)), 2 * 2 * TINY_TARGETS);
    tiny_set_adapters(vkt_trainer_store(trainer));
    check_logits(r, st, &t, data, vkt_trainer_store(trainer));
    golden_start(trainer);
    for (uint32_t s = 0, first = 0; s < STEPS; s++) {
        losses[s] = golden_step(trainer, 3e-3f, first, VKT_MIN(TINY_BATCH, TINY_ROWS - first));
        first = first + TINY_BATCH < TINY_ROWS ? first + TINY_BATCH : 0;
        if (s == 0)
            golden_check_tensors(st, trainer, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL },
                                 0);
    }
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    vkt_trainer_destroy(&trainer);
    vkt_lm_destroy(&t.lm);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

static void llama_follows_pytorch(void **state)
{
    fifty_steps_follow(state, "llama");
}

static void qwen2_follows_pytorch(void **state)
{
    fifty_steps_follow(state, "qwen2");
}

static void qwen3_follows_pytorch(void **state)
{
    fifty_steps_follow(state, "qwen3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(llama_follows_pytorch),
        rig_test(qwen2_follows_pytorch),
        rig_test(qwen3_follows_pytorch),
    };
    return cmocka_run_group_tests_name("language models against PyTorch", tests, NULL, NULL);
}
