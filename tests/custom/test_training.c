/* Checks that a training with relu as an op of the application ends with the same bits as a training with the library's
 * relu. Also tests recomputed parts of a network, checkpoints and 16-bit programs with ops of the application. */
#include "custom/stand.h"

#include <stdlib.h>

#include "vktrain/nn.h"

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *own)
{
    vkt_graph *g = vkt_builder_graph(b);
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 6, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, *(bool *)own ? own_relu(g, x) : vkt_nn_relu(b, x), 2);
    x = vkt_nn_linear(b, "fc1", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = 20 });
    x = *(bool *)own ? own_relu(g, x) : vkt_nn_relu(b, x);
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void a_run_with_an_own_relu_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer *trainers[2];
    static bool own[2] = { false, true };
    /* Without fusion, both trainings use the same kernels for all ops but relu. Fusion would compute the library's relu
     * in kernels of other ops. */
    assert_int_equal(setenv("VKT_NO_FUSE", "1", 1), 0);
    for (int i = 0; i < 2; i++) {
        vkt_trainer_params p = rig_params(r);
        p.model = (vkt_model){ .forward = forward, .user = &own[i] };
        trainers[i] = rig_trainer(r, &p);
        rig_fit(trainers[i], &(vkt_fit_params){ .epochs = 3 });
    }
    assert_int_equal(unsetenv("VKT_NO_FUSE"), 0);
    rig_same(trainers[0], trainers[1], VKT_PART_VALUE);
    rig_same(trainers[0], trainers[1], VKT_PART_MOMENT1);
    rig_same(trainers[0], trainers[1], VKT_PART_MOMENT2);
}

static vkt_tensor forward_in_blocks(vkt_builder *b, vkt_tensor x, void *blocks)
{
    vkt_graph *g = vkt_builder_graph(b);
    x = vkt_to_layout(g, vkt_nn_flatten(b, x), VKT_ROWS);
    for (int i = 0; i < 2; i++) {
        if (*(bool *)blocks) vkt_recompute_begin(g);
        x = vkt_nn_linear(b, i ? "fc2" : "fc1", x, &(vkt_nn_linear_params){ .out_features = 20 });
        x = own_relu(g, wave(g, x, x, "wave_dx"));
        if (*(bool *)blocks) vkt_recompute_end(g);
    }
    return vkt_nn_linear(b, "fc3", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void a_block_with_own_ops_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer *trainers[2];
    static bool blocks[2] = { false, true };
    vkt_plan_info plan[2];
    for (int i = 0; i < 2; i++) {
        vkt_trainer_params p = rig_params(r);
        p.model = (vkt_model){ .forward = forward_in_blocks, .user = &blocks[i] };
        trainers[i] = rig_trainer(r, &p);
        rig_fit(trainers[i], &(vkt_fit_params){ .epochs = 3 });
        vkt_program_plan(trainers[i]->program, &plan[i]);
    }
    assert_true(plan[1].dispatches > plan[0].dispatches);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++)
        rig_same(trainers[0], trainers[1], (vkt_store_part)part);
}

/* Builds a network with the op wave, whose gradient shader is the module `gradient`. A checkpoint has the hash of the
 * shaders, so a run with another shader cannot resume from the checkpoint. */
static vkt_tensor with_wave(vkt_builder *b, vkt_tensor x, void *gradient)
{
    vkt_graph *g = vkt_builder_graph(b);
    x = vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
    x = vkt_to_layout(g, x, VKT_ROWS);
    return wave(g, x, x, gradient);
}

static void a_checkpoint_knows_its_shaders(void **state)
{
    rig *r = rig_of(state);
    static char right[] = "wave_dx", wrong[] = "wave_dx_wrong";
    const char *path = vkt_temp_dir_file(&r->dir, "checkpoint");
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .forward = with_wave, .user = right };
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    assert_int_equal(vkt_trainer_resume(rig_trainer(r, &p), path), VKT_OK);
    p.model.user = wrong;
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("shader");
}

/* Trains in f16, and in bf16 with recomputed activations. Checks that the loss falls to less than half of the
 * first epoch's loss. (The inputs and outputs of the op stay f32.) */
static void programs_of_16_bits(void **state)
{
    rig *r = rig_of(state);
    static bool own = true;
    const vkt_precision precisions[] = { VKT_PRECISION_F16, VKT_PRECISION_BF16 };
    for (size_t i = 0; i < VKT_COUNT(precisions); i++) {
        vkt_trainer_params p = rig_params(r);
        p.model = (vkt_model){ .forward = forward, .user = &own };
        p.precision = precisions[i];
        p.recompute = i == 1;
        vkt_trainer *t = rig_trainer(r, &p);
        rig_fit(t, &(vkt_fit_params){ .epochs = 4 });
        uint32_t n;
        const vkt_epoch_record *e = vkt_trainer_history(t, &n);
        assert_true(n == 4 && e[3].train_loss < 0.5 * e[0].train_loss);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(a_run_with_an_own_relu_has_the_same_bits),
                                        rig_test(a_block_with_own_ops_has_the_same_bits),
                                        rig_test(a_checkpoint_knows_its_shaders), rig_test(programs_of_16_bits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
