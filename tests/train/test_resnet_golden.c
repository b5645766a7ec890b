/* Compares the steps of a residual network with runs that PyTorch recorded. The network has batch norms and shortcuts.
 * SGD has momentum and weight decay. In every epoch the last batch is not full. golden/README.md describes the file. */
#include "train/golden.h"

#include <math.h>

#include "vktrain/models.h"

enum { SEED = 31, ROWS = 37, BATCH = 8, STEPS = 20 };
static const float LR = 0.05f;

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_resnet(b, x, &(vkt_resnet_params){ .depth = 8, .cifar = true });
}

/* Sets the weights of convolutions, and the weight and bias of the last layer, by the formula of golden/README.md.
 * Batch norms keep their initial values. k of the formula is the index of a tensor in the store; running
 * statistics are not counted. */
static void set_weights(const vkt_trainer *t, vkt_store *store)
{
    for (uint32_t i = 0, number = 0; i < vkt_store_count(store); i++) {
        if (t->g->values[t->g->params[i]].state) continue;
        const uint32_t k = number++;
        if (strstr(vkt_store_name(store, i), "bn")) continue;
        const vkt_shape s = vkt_store_shape(store, i);
        const uint32_t n = (uint32_t)vkt_shape_elements(s);
        const double bound = s.rank == 4 ? sqrt(6 / (9.0 * s.dim[0])) : 0.125;
        float *w = test_malloc(n * sizeof *w);
        for (uint32_t e = 0; e < n; e++) {
            const uint32_t h = golden_mix(((uint32_t)SEED << 24 | k << 16) + e) >> 8;
            w[e] = ((float)h - 0x1p23f) * (float)(bound / 0x1p23);
        }
        assert_int_equal(vkt_store_write(store, i, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

static void twenty_steps_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "resnet");
    vkt_dataset *data = golden_images(&r->h, ROWS);
    const vkt_trainer_params p = { .model = { .forward = forward },
                                   .train = data,
                                   .batch = BATCH,
                                   .optimizer = { .kind = VKT_SGD, .momentum = 0.9f, .weight_decay = 1e-4f } };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(t, vkt_trainer_store(t));
    golden_start(t);
    double losses[STEPS];
    for (uint32_t s = 0, first = 0; s < STEPS; s++) {
        losses[s] = golden_step(t, LR, first, VKT_MIN(BATCH, ROWS - first));
        first = first + BATCH < ROWS ? first + BATCH : 0;
        if (s == 0)
            golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL }, 0);
    }
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL }, 0);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(twenty_steps_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("a residual network against PyTorch", tests, NULL, NULL);
}
