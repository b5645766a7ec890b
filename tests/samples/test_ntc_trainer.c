/* Tests the trainer of vkt-ntc. With a window, vkt-ntc divides a step into slices, and submits them between the frames
 * of the window. Such a training must give the same bits as a training by whole steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "ntc/train.h"
#include "support/host.h"

enum { SIDE = 64, STEPS = 40, SEED = 5 }; /* the latents are frozen in the last two steps */

/* Two grids: one of BC4 blocks, one of latents with 4 bits. */
static void make_set(ntc_set *s)
{
    *s = (ntc_set){ .width = SIDE, .height = SIDE, .channels = 1, .n_textures = 1, .n_grids = 2, .hidden = 16 };
    s->textures[0] = (ntc_texture){ "grey", 1 };
    s->grids[0] = (ntc_grid){ .scale = 4, .features = 2 };
    s->grids[1] = (ntc_grid){ .scale = 16, .features = 1, .bits = 4, .corners = true };
    assert_int_equal(ntc_allocate(s), VKT_OK);
}

/* Trains by whole steps (budget_ns 0), or in slices. `budget_ns` is the budget of one call of ntc_trainer_slices.
 * Writes the latents of the BC4 grid as they are in the store, before ntc_trainer_result would encode them. */
static void train(vkt_ctx *ctx, uint64_t budget_ns, float *latents, size_t n)
{
    const ntc_params p = { .seed = SEED, .steps = STEPS, .rounded = 0.1, .tile = { 8, 8 }, .lr = 0.01f };
    uint8_t texels[SIDE * SIDE];
    char name[24];
    ntc_set set;
    ntc_trainer t;
    uint32_t at;
    for (uint32_t i = 0; i < SIDE * SIDE; i++) texels[i] = (uint8_t)(i * 7 + i / SIDE * 11);
    make_set(&set);
    assert_int_equal(ntc_latents(&set.grids[0]), n);
    assert_int_equal(ntc_trainer_create(ctx, &set, texels, &p, &t), VKT_OK);
    while (t.step < STEPS)
        assert_int_equal(budget_ns ? ntc_trainer_slices(&t, budget_ns) : ntc_trainer_step(&t), VKT_OK);
    assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    ntc_grid_name(0, name);
    assert_true(vkt_store_find(t.store, name, &at));
    assert_int_equal(vkt_store_read(t.store, at, VKT_PART_VALUE, latents), VKT_OK);
    ntc_trainer_destroy(&t);
    ntc_free(&set);
}

static void slices_give_the_bits_of_whole_steps(void **state)
{
    (void)state;
    enum { LATENTS = 2 * (SIDE / 4) * (SIDE / 4) };
    static float want[LATENTS], got[LATENTS];
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx = NULL;
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .device = NULL }, &h, &ctx), VKT_OK);
    train(ctx, 0, want, LATENTS);
    train(ctx, 100000, got, LATENTS); /* 0.1 ms: a step has several slices */
    assert_memory_equal(got, want, sizeof got);
    train(ctx, UINT64_MAX, got, LATENTS); /* one call submits all steps */
    assert_memory_equal(got, want, sizeof got);
    vkt_ctx_destroy(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_give_the_bits_of_whole_steps, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
