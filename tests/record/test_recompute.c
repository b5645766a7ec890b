/* Tests the recomputation of activations. In these tests, a program that recomputes activations computes the same bits
 * as a program that keeps all of them, and needs no more memory. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

/* Builds a network whose convolutions keep the height and width of the images. The backward pass needs the output of
 * each relu. It also needs the outputs of the first three dropouts, because these are the inputs of convolutions. */
static vkt_tensor deep_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    for (uint32_t i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "conv%u", i);
        x = vkt_nn_conv2d(b, name, x, &(vkt_nn_conv2d_params){ .out_channels = 8, .kernel = { 3 }, .pad = { 1 } });
        x = vkt_nn_dropout(b, vkt_nn_relu(b, x), 0.2f);
    }
    x = vkt_nn_flatten(b, vkt_nn_adaptive_max_pool2d(b, x, 2, 2));
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static vkt_trainer *trained(rig *r, vkt_forward_fn forward, bool recompute, bool stream)
{
    vkt_trainer_params p = rig_params(r);
    p.model.forward = forward;
    p.recompute = recompute;
    p.stream = stream;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    return t;
}

static vkt_plan_info plan_of(const vkt_trainer *t)
{
    vkt_plan_info plan;
    vkt_program_plan(t->program, &plan);
    return plan;
}

static void what_is_made_again_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    const vkt_forward_fn forwards[] = { deep_forward, rig_forward };
    for (size_t i = 0; i < VKT_COUNT(forwards); i++) {
        vkt_trainer *keeps = trained(r, forwards[i], false, i), *again = trained(r, forwards[i], true, i);
        const vkt_plan_info a = plan_of(keeps), b = plan_of(again);
        printf("kept: %llu bytes, %u kernels, %.2f ms a step; made again: %llu bytes, %u kernels, %.2f ms\n",
               (unsigned long long)a.total_bytes, a.dispatches, vkt_trainer_ms_per_step(keeps),
               (unsigned long long)b.total_bytes, b.dispatches, vkt_trainer_ms_per_step(again));
        assert_int_equal(a.recomputed, 0);
        assert_true(b.recomputed > 0);
        assert_int_equal(b.dispatches, a.dispatches + b.recomputed);
        /* In rig_forward the convolution is fused with its pooling, so no program stores the large output of the
         * convolution. Recomputation may save nothing with rig_forward. */
        assert_true(forwards[i] == deep_forward ? b.total_bytes < a.total_bytes : b.total_bytes <= a.total_bytes);
        for (int part = 0; part < 4; part++) rig_same(keeps, again, (vkt_store_part)part);
        uint32_t n;
        const vkt_epoch_record *x = vkt_trainer_history(keeps, &n), *y = vkt_trainer_history(again, &n);
        for (uint32_t k = 0; k < n; k++)
            assert_true(x[k].train_loss == y[k].train_loss && x[k].val_acc == y[k].val_acc);
    }
}

/* Without recomputation, the outputs of three dropouts stay in memory until the gradients of the convolutions that read
 * them are computed. Recomputation saves the memory of at least two of these outputs. */
static void much_is_saved_where_much_is_cheap(void **state)
{
    rig *r = rig_of(state);
    const vkt_plan_info a = plan_of(trained(r, deep_forward, false, false));
    const vkt_plan_info b = plan_of(trained(r, deep_forward, true, false));
    const uint64_t image = (uint64_t)RIG_BATCH * 8 * RIG_SIDE * RIG_SIDE * 4;
    assert_true(a.total_bytes - b.total_bytes >= 2 * image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(what_is_made_again_has_the_same_bits),
        rig_test(much_is_saved_where_much_is_cheap),
    };
    return cmocka_run_group_tests_name("recomputation", tests, NULL, NULL);
}
