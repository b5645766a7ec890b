/* Tests the trainer of vkt-ntc. A window submits a step in slices between its frames. The training must then give the
 * same bits as a training by whole steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ntc/train.h"
#include "train/rig.h"

enum { SIDE = 64, STEPS = 40, SEED = 5, HIDDEN = 16 }; /* the latents are frozen in the last two steps */
enum { LATENTS = 2 * (SIDE / 4) * (SIDE / 4), WEIGHTS = HIDDEN * 4 };

/* Two parameters of a trained network: the latents of grid 0, which has BC4 blocks, and the weight of the last
 * layer. */
typedef struct result {
    float latents[LATENTS], weight[WEIGHTS];
    bool was_split; /* a call of ntc_trainer_slices submitted only a part of a step */
} result;

/* Two grids: one with BC4 blocks, one with latents of 4 bits. */
static void make_set(ntc_set *s)
{
    *s = (ntc_set){ .width = SIDE, .height = SIDE, .channels = 1, .n_textures = 1, .n_grids = 2, .hidden = HIDDEN };
    s->textures[0] = (ntc_texture){ "grey", 1 };
    s->grids[0] = (ntc_grid){ .scale = 4, .features = 2 };
    s->grids[1] = (ntc_grid){ .scale = 16, .features = 1, .bits = 4, .corners = true };
    assert_int_equal(ntc_allocate(s), VKT_OK);
    assert_int_equal(ntc_latents(&s->grids[0]), LATENTS);
}

static void start(vkt_ctx *ctx, ntc_set *set, ntc_trainer *t)
{
    const ntc_params p = { .seed = SEED, .steps = STEPS, .rounded = 0.1, .tile = { 8, 8 }, .lr = 0.01f };
    uint8_t texels[SIDE * SIDE];
    for (uint32_t i = 0; i < SIDE * SIDE; i++) texels[i] = (uint8_t)(i * 7 + i / SIDE * 11);
    make_set(set);
    assert_int_equal(ntc_trainer_create(ctx, set, texels, &p, t), VKT_OK);
}

static void end(ntc_set *set, ntc_trainer *t)
{
    ntc_trainer_destroy(t);
    ntc_free(set);
}

/* Finds a parameter of the store, which must have n elements. */
static uint32_t find(const ntc_trainer *t, const char *name, size_t n)
{
    uint32_t at;
    size_t elements = 1;
    assert_true(vkt_store_find(t->store, name, &at));
    const vkt_shape shape = vkt_store_shape(t->store, at);
    for (uint32_t i = 0; i < shape.rank; i++) elements *= shape.dim[i];
    assert_int_equal(elements, n);
    return at;
}

/* Trains by whole steps if budget_ns is 0. Otherwise trains in slices, and budget_ns is the budget of each call of
 * ntc_trainer_slices. Then reads the parameters from the store. Does not call ntc_trainer_result, because that function
 * changes the parameters. */
static void train(vkt_ctx *ctx, uint64_t budget_ns, result *out)
{
    char name[24];
    ntc_set set;
    ntc_trainer t;
    *out = (result){ .was_split = false };
    start(ctx, &set, &t);
    while (t.step < STEPS) {
        assert_int_equal(budget_ns ? ntc_trainer_slices(&t, budget_ns) : ntc_trainer_step(&t), VKT_OK);
        out->was_split = out->was_split || t.under_way;
    }
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    ntc_grid_name(0, name);
    assert_int_equal(vkt_store_read(t.store, find(&t, name, LATENTS), VKT_PART_VALUE, out->latents), VKT_OK);
    ntc_weight_name(NTC_LAYERS - 1, false, name);
    assert_int_equal(vkt_store_read(t.store, find(&t, name, WEIGHTS), VKT_PART_VALUE, out->weight), VKT_OK);
    end(&set, &t);
}

static void slices_give_the_bits_of_whole_steps(void **state)
{
    rig *r = rig_of(state);
    static const uint64_t budgets_ns[] = { 100000, UINT64_MAX };
    static result want, got;
    train(r->ctx, 0, &want);
    for (size_t i = 0; i < VKT_COUNT(budgets_ns); i++) {
        train(r->ctx, budgets_ns[i], &got);
        assert_true(got.was_split);
        assert_memory_equal(got.latents, want.latents, sizeof got.latents);
        assert_memory_equal(got.weight, want.weight, sizeof got.weight);
    }
}

static void a_diverged_network_is_no_result(void **state)
{
    rig *r = rig_of(state);
    float weight[WEIGHTS] = { 0 };
    char name[24];
    ntc_set set;
    ntc_trainer t;
    start(r->ctx, &set, &t);
    weight[WEIGHTS - 1] = NAN;
    ntc_weight_name(NTC_LAYERS - 1, false, name);
    assert_int_equal(vkt_store_write(t.store, find(&t, name, WEIGHTS), VKT_PART_VALUE, weight), VKT_OK);
    assert_int_equal(ntc_trainer_result(&t, &set), VKT_E_DIVERGED);
    assert_true(isnan(ntc_half(NAN)) && ntc_half(INFINITY) == 65504 && ntc_half(-1e9f) == -65504);
    end(&set, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(slices_give_the_bits_of_whole_steps),
        rig_test(a_diverged_network_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
