/* Compares vkt_update_by_sum, which updates by the sum of the gradients of all shards, with the plain update by
 * vkt_update. The division by the number of rows is exact, because each number of rows is a power of two. So both
 * updates must give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { N = 70, B = 4, C = 3, PARAMS = 6, STEPS = 4 };

/* The loss is sum(a x) + mean(b a x) + mean(batch_norm(z) z). `a` and `b` are parameters, and x and z are inputs. The
 * gradient of `a` depends on `b`, and the gradient of `b` depends on `a`. */
typedef struct rig {
    vkt_graph *g, *update; /* update: NULL for the plain update */
    vkt_store *store;
    vkt_program *p, *u;
    vkt_array *sum, *saved;
    vkt_tensor x, z;
    vkt_metrics m; /* of the last step */
} rig;

static vkt_tensor declare(rig *r)
{
    r->g = harness_graph();
    r->x = vkt_input(r->g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    r->z = vkt_input(r->g, "z", VKT_F32, VKT_BATCH_LAST, vkt_shape2(B, C));
    const vkt_tensor a = vkt_param(r->g, "net.a", vkt_shape1(N)), b = vkt_param(r->g, "net.b", vkt_shape1(N));
    vkt_param(r->g, "spare", vkt_shape1(N));
    const vkt_batch_norm_params bn = { .gamma = vkt_param(r->g, "gamma", vkt_shape1(C)),
                                       .running_mean = vkt_state(r->g, "mean", vkt_shape1(C)),
                                       .running_var = vkt_state(r->g, "var", vkt_shape1(C)) };
    const vkt_tensor y = vkt_mul(r->g, vkt_batch_norm(r->g, r->z, &bn), r->z), ax = vkt_mul(r->g, a, r->x);
    OK(vkt_freeze(r->g, "spare"));
    OK(vkt_set_group(r->g, "*.b", 1));
    return vkt_add(r->g, vkt_add(r->g, vkt_sum(r->g, ax), vkt_mean(r->g, vkt_mul(r->g, b, ax))), vkt_mean(r->g, y));
}

static void start(rig *r)
{
    for (uint32_t i = 0; i < PARAMS; i++) {
        float v[N];
        for (uint32_t k = 0; k < N; k++) v[k] = 0.5f + 0.25f * (float)((i * N + k * 7) % 5);
        OK(vkt_store_write(r->store, i, VKT_PART_VALUE, v));
    }
}

static rig make_plain(const vkt_optimizer *o)
{
    rig r = { 0 };
    const vkt_tensor loss = declare(&r);
    OK(vkt_backward(r.g, loss));
    OK(vkt_update(r.g, o));
    vkt_report(r.g, loss, (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, r.g, &r.store));
    OK(vkt_program_create(harness_ctx, r.g, r.store, NULL, &r.p));
    start(&r);
    return r;
}

static vkt_array *vector_for(const rig *r, vkt_tensor t)
{
    vkt_array *a;
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .shape = vkt_tensor_shape(r->g, t) }, &a));
    return a;
}

/* Makes the rig of an update by the sum: one shard, three buckets. */
static rig make_by_sum(const vkt_optimizer *o)
{
    rig r = { 0 };
    vkt_shard_values v;
    const vkt_tensor loss = declare(&r);
    OK(vkt_backward(r.g, loss));
    const uint64_t ends[] = { r.g->values[r.g->params[1]].arena_offset_bytes,
                              r.g->values[r.g->params[3]].arena_offset_bytes, r.g->arena_bytes };
    const vkt_shard_params p = { .parts = 1, .draws = 1, .ends = ends, .n_ends = VKT_COUNT(ends) };
    OK(vkt_shard_sums(r.g, &p, &v));
    vkt_report(r.g, loss, (vkt_tensor){ 0 });
    r.update = harness_graph();
    OK(vkt_update_by_sum(r.update, r.g, o, &p, &v.update));
    const float none = 0;
    vkt_report(r.update, vkt_graph_const(r.update, "none", VKT_F32, vkt_shape0(), &none), (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, r.update, &r.store));
    r.sum = vector_for(&r, v.sum);
    r.saved = vector_for(&r, v.saved);
    const vkt_binding arrays[] = { { v.sum, r.sum }, { v.saved, r.saved } }, sum = { v.update, r.sum };
    OK(vkt_program_create(harness_ctx, r.g, r.store, &(vkt_program_params){ .arrays = arrays, .n_arrays = 2 }, &r.p));
    OK(vkt_program_create(harness_ctx, r.update, r.store, &(vkt_program_params){ .arrays = &sum, .n_arrays = 1 },
                          &r.u));
    start(&r);
    return r;
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->u);
    vkt_program_destroy(&r->p);
    vkt_store_destroy(&r->store);
    vkt_array_destroy(&r->sum);
    vkt_array_destroy(&r->saved);
    vkt_graph_destroy(&r->update);
    vkt_graph_destroy(&r->g);
}

/* Runs step `number` with `rows` rows. The update by the sum divides by `update_rows`. The plain update does not use
 * `update_rows`. */
static void run_as(rig *r, uint32_t number, uint32_t rows, uint32_t update_rows)
{
    float x[N], z[B * C];
    uint64_t index;
    for (uint32_t i = 0; i < N; i++) x[i] = 0.3f * (float)(number + 1) * (float)(i % 5);
    for (uint32_t i = 0; i < B * C; i++) z[i] = (float)((i * 7 + number * 3) % 11) - 4;
    OK(vkt_program_write(r->p, r->x, x, sizeof x));
    OK(vkt_program_write(r->p, r->z, z, sizeof z));
    vkt_run run = { .lr = 0.05f, .rows = rows };
    if (r->u) {
        const vkt_shard_run words = { .draw = 1 };
        OK(vkt_program_run_sections(r->p, &run, &words, NULL, NULL, NULL));
    }
    if (r->u) run.rows = update_rows;
    OK(vkt_program_run(r->u ? r->u : r->p, &run, &index));
    OK(vkt_program_metrics(r->u ? r->u : r->p, index, &r->m));
}

static void run(rig *r, uint32_t number, uint32_t rows)
{
    run_as(r, number, rows, rows);
}

static void same(rig *a, rig *b)
{
    static const vkt_store_part parts[] = { VKT_PART_VALUE, VKT_PART_MOMENT1, VKT_PART_MOMENT2, VKT_PART_MOMENT3 };
    for (size_t p = 0; p < VKT_COUNT(parts); p++) {
        assert_int_equal(vkt_store_has(a->store, parts[p]), vkt_store_has(b->store, parts[p]));
        for (uint32_t i = 0; i < PARAMS && vkt_store_has(a->store, parts[p]); i++) {
            float x[N] = { 0 }, y[N] = { 0 };
            OK(vkt_store_read(a->store, i, parts[p], x));
            OK(vkt_store_read(b->store, i, parts[p], y));
            assert_memory_equal(x, y, sizeof x);
        }
    }
    assert_int_equal(a->m.t, b->m.t);
    assert_memory_equal(&a->m.grad_norm, &b->m.grad_norm, sizeof a->m.grad_norm);
}

static const vkt_optimizer optimizers[] = {
    { .kind = VKT_SGD },
    { .kind = VKT_SGD, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.1f },
    { .kind = VKT_SGD, .momentum = 0.9f, .keras = true },
    { .kind = VKT_ADAM, .amsgrad = true },
    { .kind = VKT_ADAMW, .keras = true },
    { .kind = VKT_NADAM, .weight_decay = 0.01f },
    { .kind = VKT_RMSPROP, .centered = true, .momentum = 0.5f },
    { .kind = VKT_ADAGRAD, .lr_decay = 0.1f },
};

/* Returns optimizer i with a parameter group. The optimizer clips gradients by norm if `clip` is 1, and by value if
 * `clip` is 2. */
static vkt_optimizer clipped(size_t i, int clip)
{
    vkt_optimizer o = optimizers[i];
    o.groups[1] = (vkt_param_group){ .lr_factor = 0.5f, .weight_decay = 0.02f };
    o.clip_norm = clip == 1 ? 0.75f : 0;
    o.clip_value = clip == 2 ? 0.3f : 0;
    return o;
}

static void every_optimizer_has_the_bits_of_the_plain_update(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(optimizers); i++)
        for (int clip = 0; clip < 3; clip++) {
            const vkt_optimizer o = clipped(i, clip);
            rig a = make_plain(&o), b = make_by_sum(&o);
            for (uint32_t k = 0; k < STEPS; k++) {
                const uint32_t rows = 1u << k % 3;
                run(&a, k, rows);
                run(&b, k, rows);
                same(&a, &b);
            }
            assert_true(clip != 1 || a.m.grad_norm > 0.75f); /* the norm was clipped */
            rig_free(&a);
            rig_free(&b);
            harness_forget(harness_ctx);
        }
}

/* Shows that the comparison can fail: an update that gets another number of rows has other bits. */
static void another_number_of_rows_has_other_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[3][N];
    for (int i = 0; i < 3; i++) {
        rig r = make_by_sum(&optimizers[0]);
        run_as(&r, 0, 4, i == 2 ? 2 : 4);
        OK(vkt_store_read(r.store, 0, VKT_PART_VALUE, x[i]));
        rig_free(&r);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer_has_the_bits_of_the_plain_update),
        cmocka_unit_test(another_number_of_rows_has_other_bits),
    };
    return cmocka_run_group_tests_name("update by sum", tests, harness_setup, harness_teardown);
}
