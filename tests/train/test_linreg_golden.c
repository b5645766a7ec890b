/* Compares the linear regression of samples/linreg.c with runs that PyTorch recorded (golden/README.md). A trainer
 * computes the regression from a batch that it gathers from a data set. A program that is built as in
 * samples/linreg.c computes the regression from the points, which are inputs of the program. Both must give the
 * same bits. */
#include "train/golden.h"

enum { ROWS = 4096, STEPS = 20 };

/* The points (x, t), and the parameters with which the runs start. forget() frees them. */
typedef struct start {
    float *x, *t, *weight, *bias;
} start;

static float *floats(const vkt_safetensors *st, const char *name, uint64_t n)
{
    const vkt_st_entry *e = vkt_safetensors_find(st, name);
    float *f = test_malloc(n * sizeof *f);
    assert_non_null(e);
    assert_int_equal(vkt_safetensors_read_f32(st, e, f, n), VKT_OK);
    return f;
}

static start read_start(const vkt_safetensors *st)
{
    return (start){ floats(st, "x", 2 * ROWS), floats(st, "t", ROWS), floats(st, "init/fc.weight", 2),
                    floats(st, "init/fc.bias", 1) };
}

static void forget(start *s)
{
    test_free(s->x);
    test_free(s->t);
    test_free(s->weight);
    test_free(s->bias);
}

static void set_weights(vkt_store *store, const start *s)
{
    assert_int_equal(vkt_store_count(store), 2);
    assert_string_equal(vkt_store_name(store, 0), "fc.weight");
    assert_string_equal(vkt_store_name(store, 1), "fc.bias");
    assert_int_equal(vkt_store_write(store, 0, VKT_PART_VALUE, s->weight), VKT_OK);
    assert_int_equal(vkt_store_write(store, 1, VKT_PART_VALUE, s->bias), VKT_OK);
}

/* ---- the trainer: each of its epochs is one step ---- */

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = 1 });
}

static bool after_one_step(void *user)
{
    uint32_t n;
    vkt_trainer_history(user, &n);
    return n == 0;
}

/* ---- the program as in samples/linreg.c: its inputs are the points ---- */

static void run_program(rig *r, const start *s, double losses[STEPS], float weights[3])
{
    vkt_graph *g;
    vkt_store *store;
    vkt_program *program;
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(ROWS, 2));
    const vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_BATCH_LAST, vkt_shape2(ROWS, 1));
    const vkt_tensor weight = vkt_param(g, "fc.weight", vkt_shape2(1, 2)),
                     bias = vkt_param(g, "fc.bias", vkt_shape1(1));
    const vkt_tensor loss = vkt_mse(g, vkt_linear(g, x, weight, bias), t);
    assert_int_equal(vkt_backward(g, loss), VKT_OK);
    assert_int_equal(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }), VKT_OK);
    vkt_report(g, loss, (vkt_tensor){ 0 });
    assert_int_equal(vkt_store_create(r->ctx, g, &store), VKT_OK);
    assert_int_equal(vkt_program_create(r->ctx, g, store, NULL, &program), VKT_OK);
    set_weights(store, s);
    assert_int_equal(vkt_program_write(program, x, s->x, 2 * ROWS * sizeof *s->x), VKT_OK);
    assert_int_equal(vkt_program_write(program, t, s->t, ROWS * sizeof *s->t), VKT_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t run;
        vkt_metrics m;
        assert_int_equal(vkt_program_run(program, &(vkt_run){ .lr = 0.1f }, &run), VKT_OK);
        assert_int_equal(vkt_program_metrics(program, run, &m), VKT_OK);
        losses[i] = (double)m.loss;
    }
    assert_int_equal(vkt_store_read(store, 0, VKT_PART_VALUE, weights), VKT_OK);
    assert_int_equal(vkt_store_read(store, 1, VKT_PART_VALUE, weights + 2), VKT_OK);
    vkt_program_destroy(&program);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
}

static void both_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "linreg");
    start s = read_start(st);
    vkt_dataset *data;
    const vkt_dataset_params points = { .rows = ROWS, .width = 2, .type = VKT_ROW_F32, .targets = s.t };
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &points, s.x, &data), VKT_OK);
    const vkt_trainer_params p = { .model = { .forward = forward },
                                   .train = data,
                                   .batch = ROWS,
                                   .optimizer = { .kind = VKT_ADAM },
                                   .lr = 0.1f,
                                   .no_shuffle = true };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(vkt_trainer_store(t), &s);
    rig_fit(t, &(vkt_fit_params){ .epochs = STEPS, .callbacks = { .user = t, .stop = after_one_step } });
    golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL }, 0);
    rig_fit(t, &(vkt_fit_params){ .epochs = STEPS });
    uint32_t n;
    uint64_t elements;
    double losses[STEPS];
    const vkt_epoch_record *history = vkt_trainer_history(t, &n);
    assert_int_equal(n, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) losses[i] = history[i].train_loss;
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL }, 0);

    double same[STEPS];
    float weights[3], *trained = rig_weights(t, VKT_PART_VALUE, &elements);
    run_program(r, &s, same, weights);
    assert_int_equal(elements, 3);
    assert_memory_equal(same, losses, sizeof same);
    assert_memory_equal(weights, trained, sizeof weights);
    test_free(trained);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    forget(&s);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(both_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("linear regression against PyTorch", tests, NULL, NULL);
}
