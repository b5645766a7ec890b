/* Compares the steps of a small transformer with runs that PyTorch recorded. The network has attention, layer norms and
 * GELU. AdamW decays only the matrices. The learning rate has a warm-up, then falls along a cosine. The last
 * batch of each epoch is not full. golden/README.md describes the file. */
#include <math.h>

#include "train/golden.h"
#include "vktrain/models.h"

enum { SEED = 1, ROWS = 22, BATCH = 6, STEPS = 20, WARMUP = 4, CONTEXT = 16, VOCABULARY = 40 };

static vkt_tensor forward(vkt_builder *b, vkt_tensor ids, void *user)
{
    (void)user;
    const vkt_gpt_params p = { .vocabulary = VOCABULARY, .context = CONTEXT, .layers = 2, .heads = 4, .width = 32 };
    return vkt_gpt(b, vkt_slice(vkt_builder_graph(b), ids, 1, 0, CONTEXT, 1), &p);
}

static vkt_tensor next_token(vkt_builder *b, vkt_tensor z, vkt_tensor ids, vkt_tensor labels, vkt_tensor targets,
                             void *user)
{
    (void)labels, (void)targets, (void)user;
    vkt_graph *g = vkt_builder_graph(b);
    assert_int_equal(vkt_set_group(g, "*.bias", 0), VKT_OK);
    assert_int_equal(vkt_set_group(g, "*.ln_*.weight", 0), VKT_OK);
    return vkt_cross_entropy(g, z, vkt_slice(g, ids, 1, 1, VKT_END, 1), NULL);
}

/* ---- tokens and weights, by the formulas of golden/README.md ---- */

static vkt_dataset *tokens(const vkt_host *h)
{
    static uint16_t ids[ROWS][CONTEXT + 1];
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t m = golden_mix(i + 0x10000000u);
        for (uint32_t t = 0; t <= CONTEXT; t++) ids[i][t] = (uint16_t)((m + t * (1 + (m >> 8) % 3)) % VOCABULARY);
    }
    const vkt_dataset_params p = { .rows = ROWS, .width = CONTEXT + 1, .type = VKT_ROW_U16 };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, ids, &d), VKT_OK);
    return d;
}

static void set_weights(vkt_store *store)
{
    for (uint32_t k = 0; k < vkt_store_count(store); k++) {
        const uint32_t n = (uint32_t)vkt_shape_elements(vkt_store_shape(store, k));
        const char *name = vkt_store_name(store, k), *end = strrchr(name, '.');
        const float centre = strstr(name, ".ln_") && strcmp(end, ".weight") == 0 ? 1 : 0;
        float *w = test_malloc(n * sizeof *w);
        for (uint32_t e = 0; e < n; e++) {
            const uint32_t m = golden_mix(((uint32_t)SEED << 24 | k << 16) + e) >> 8;
            w[e] = ((float)m - 0x1p23f) * 0x1p-26f + centre;
        }
        assert_int_equal(vkt_store_write(store, k, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

static void twenty_steps_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "gpt");
    vkt_dataset *data = tokens(&r->h);
    const vkt_schedule schedule = {
        .kind = VKT_SCHEDULE_COSINE, .warmup = WARMUP, .warmup_from = 0.1, .total = STEPS - WARMUP, .min_lr = 3e-4
    };
    const vkt_trainer_params p = { .model = { .forward = forward, .loss = next_token },
                                   .train = data,
                                   .batch = BATCH,
                                   .optimizer = { .kind = VKT_ADAMW, .weight_decay = 0.1f, .beta2 = 0.95 } };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(vkt_trainer_store(t));
    golden_start(t);
    uint64_t n;
    double losses[STEPS], *rates = golden_numbers(st, "lr", &n);
    assert_int_equal(n, STEPS);
    for (uint32_t s = 0, first = 0; s < STEPS; s++) {
        const double lr = vkt_schedule_lr(&schedule, 3e-3, s);
        assert_true(fabs(lr - rates[s]) <= 1e-12 * rates[s]);
        losses[s] = golden_step(t, (float)lr, first, VKT_MIN(BATCH, ROWS - first));
        first = first + BATCH < ROWS ? first + BATCH : 0;
        if (s == 0)
            golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL }, 0);
    }
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL }, 0);
    test_free(rates);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(twenty_steps_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("a transformer against PyTorch", tests, NULL, NULL);
}
