/* step.c FILE - trains a small network for two epochs of four steps and writes its weights to FILE. tests/ports.sh runs
 * the program under wine and qemu-user. There the program links the shared library, so it also tests what the library
 * exports. The status is 0 if the loss has fallen, 77 if there is no device. */
#include <stdio.h>

#include "vktrain/vktrain.h"

enum { NO_DEVICE = 77 };

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 4, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 4);
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = 10 });
}

typedef struct losses {
    double first, last;
} losses;

static bool on_epoch(void *user, const vkt_epoch_record *r, bool best)
{
    losses *l = user;
    (void)best;
    if (r->epoch == 1) l->first = r->train_loss;
    l->last = r->train_loss;
    return false;
}

static vkt_result train(vkt_ctx *ctx, vkt_dataset *data, const char *path, losses *l)
{
    vkt_trainer *t = NULL;
    const vkt_fit_callbacks callbacks = { .user = l, .on_epoch = on_epoch };
    vkt_trainer_params params = { .train = data, .batch = 64, .seed = 1, .optimizer = { .kind = VKT_ADAM } };
    params.model = (vkt_model){ .forward = forward };
    vkt_result r = vkt_trainer_create(ctx, &params, &t);
    if (r == VKT_OK) r = vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 2, .callbacks = callbacks });
    if (r == VKT_OK) r = vkt_trainer_save(t, path);
    vkt_trainer_destroy(&t);
    return r;
}

int main(int argc, char **argv)
{
    vkt_ctx *ctx = NULL;
    vkt_dataset *data = NULL;
    losses l = { 0 };
    if (argc != 2) {
        fprintf(stderr, "usage: step FILE\n");
        return 2;
    }
    vkt_result r = vkt_ctx_create(NULL, NULL, &ctx);
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) return NO_DEVICE;
    if (r == VKT_OK) r = vkt_dataset_digits(NULL, 256, 1, &data);
    if (r == VKT_OK) r = train(ctx, data, argv[1], &l);
    if (r == VKT_OK) {
        const vkt_device_info *device = vkt_ctx_device(ctx);
        printf("loss %.4f, then %.4f\nran on: %s, %s\n", l.first, l.last, device->name, device->driver);
    }
    vkt_dataset_destroy(&data);
    vkt_ctx_destroy(&ctx);
    return r == VKT_OK && l.last < l.first ? 0 : 1;
}
