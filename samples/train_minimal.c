/* train_minimal.c - a small CNN learns images: FOLDER/<class>/<any name>.png or .jpg, or else generated digits. */
#include <stdio.h>
#include <stdlib.h>

#include "vktrain/vktrain.h"

#define CHECK(call) ((call) != VKT_OK ? exit(1) : (void)0) /* the library has printed the reason on stderr */

/* The network: from a batch of images (B,C,H,W) to one number per class (B,classes). */
static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *classes)
{
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 16, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 2);
    const uint32_t *out = classes;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = *out });
}

int main(int argc, char **argv)
{
    vkt_ctx *ctx;
    vkt_dataset *all, *train, *test;
    vkt_progress *progress;
    vkt_trainer *trainer;
    double mean[3], std[3];
    const vkt_image_params size = { .height = 32, .width = 32 };
    if (argc > 1)
        CHECK(vkt_dataset_from_image_folders(NULL, argv[1], &size, &all));
    else
        CHECK(vkt_dataset_digits(NULL, 4000, 1, &all));
    CHECK(vkt_dataset_split(all, 0.2, 1, &train, &test)); /* a fifth of the images is for the test */
    CHECK(vkt_dataset_measure(train, mean, std));
    CHECK(vkt_dataset_normalize(train, mean, std));
    CHECK(vkt_dataset_normalize(test, mean, std));
    CHECK(vkt_ctx_create(NULL, NULL, &ctx)); /* the best device of this machine */

    uint32_t classes = vkt_dataset_classes(all);
    vkt_trainer_params params = { .train = train, .validation = test, .optimizer = { .kind = VKT_ADAM } };
    params.model = (vkt_model){ .forward = forward, .user = &classes };
    CHECK(vkt_trainer_create(ctx, &params, &trainer));
    CHECK(vkt_progress_create(NULL, stdout, &progress));
    CHECK(vkt_trainer_fit(trainer, &(vkt_fit_params){ .epochs = 5, .callbacks = vkt_progress_callbacks(progress) }));
    printf("%.1f %% of the test images are recognized\n", 100 * vkt_trainer_best_accuracy(trainer));
    CHECK(vkt_trainer_save(trainer, "weights.safetensors")); /* with PyTorch's names and shapes */

    vkt_trainer_destroy(&trainer);
    vkt_progress_destroy(&progress);
    vkt_ctx_destroy(&ctx);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&test);
    vkt_dataset_destroy(&all);
}
