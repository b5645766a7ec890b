/* images.c - vkt-images: trains a small convolutional network to classify photographs on a Vulkan device.
 *
 * Network, initial weights, optimizer, schedule and augmentation are those of a PyTorch program for Caltech-101. That
 * program is not part of this project, but tests/golden/make_images_golden.py has the same network. */
#include <stdlib.h>

#include "common/classes.h"
#include "common/image_data.h"
#include "common/predict_images.h"
#include "common/session.h"
#include "common/terminal.h"

#define PROGRAM "vkt-images"
enum { OPT_SIZE = 512, OPT_NO_FLIP, OPT_SKIP_BROKEN, OPT_LR_PATIENCE, OPT_MAX_PIXELS };
enum {
    SMALLEST = 10 /* smallest side of an image: 10 -> 8 (3x3 convolution) -> 4 (pooling) -> 2 (convolution) -> 1 */,
    LARGEST = 1024,
    SHOWN = 8
};

/* Mean and standard deviation of red, green and blue (0 to 1) in Caltech-101 at 32 x 32 pixels. The PyTorch program
 * (see above) uses these numbers. */
static const double mean[3] = { 0.4948052, 0.48568845, 0.44682974 },
                    deviation[3] = { 0.24580306, 0.24236229, 0.2603115 };

typedef struct image_options {
    image_data_params data;
    uint32_t lr_patience;
} image_options;

/* ---- the network: x (B,3,S,S) -> (B,classes); 655,397 parameters for 32x32 and 101 classes ---- */

static vkt_tensor conv(vkt_builder *b, const char *name, vkt_tensor x, uint32_t channels)
{
    const vkt_nn_conv2d_params p = { .out_channels = channels,
                                     .kernel = { 3 },
                                     .weight_init = { .kind = VKT_INIT_XAVIER_NORMAL },
                                     .bias_init = { .kind = VKT_INIT_CONSTANT } };
    return vkt_nn_max_pool2d(b, vkt_nn_relu(b, vkt_nn_conv2d(b, name, x, &p)), 2);
}

static vkt_tensor linear(vkt_builder *b, const char *name, vkt_tensor x, uint32_t features)
{
    const vkt_nn_linear_params p = { .out_features = features,
                                     .weight_init = { .kind = VKT_INIT_NORMAL, .b = 0.01f },
                                     .bias_init = { .kind = VKT_INIT_CONSTANT } };
    return vkt_nn_linear(b, name, x, &p);
}

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const uint32_t *classes = user;
    x = conv(b, "conv1", x, 32);
    x = conv(b, "conv2", x, 64);
    x = vkt_nn_flatten(b, x);
    x = vkt_nn_relu(b, linear(b, "fc1", x, 256));
    x = vkt_nn_relu(b, linear(b, "fc2", x, 128));
    return linear(b, "fc3", x, *classes);
}

/* ---- the run ---- */

static vkt_result show_test(const session *s, vkt_trainer *t)
{
    const vkt_dataset *test = s->data.test;
    const uint32_t rows = vkt_dataset_rows(test), n = rows < SHOWN ? rows : SHOWN;
    terminal_printf(stdout,
                    "test    %u images: loss %.4f, accuracy %.4f\n\n"
                    "the first of them: class, and the likeliest by the network (*: correct)\n",
                    rows, s->test_loss, s->test_accuracy);
    float *logits = malloc((size_t)n * vkt_dataset_classes(test) * sizeof *logits);
    const vkt_result r = logits ? vkt_trainer_predict(t, test, 0, n, NULL, logits) : VKT_E_NOMEM;
    if (r == VKT_OK) print_guesses(stdout, test, n, logits);
    free(logits);
    return r;
}

static vkt_result run(session *s, const image_data *data, uint32_t lr_patience)
{
    uint32_t classes = vkt_dataset_classes(data->train);
    const vkt_trainer_params p = {
        .model = { .name = "image network", .forward = forward, .user = &classes },
        .train = data->train,
        .validation = data->check,
        .schedule = { .kind = VKT_SCHEDULE_PLATEAU,
                      .plateau = { .patience = lr_patience ? lr_patience : VKT_PATIENCE_NONE } },
    };
    s->scored = data->test ? data->test : data->check;
    s->scored_set = data->test ? "test" : "validation";
    vkt_trainer *t = NULL;
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = vkt_trainer_attach_card(t, PROGRAM, NULL);
    if (r == VKT_OK) r = session_fit(s, NULL, t);
    if (r == VKT_OK && !s->o.quiet && !session_interrupted() && data->test) r = show_test(s, t);
    vkt_trainer_destroy(&t);
    return r;
}

static vkt_result predict(session *s, uint64_t max_pixels)
{
    vkt_card *card;
    vkt_result r = predict_card(s, PROGRAM, &card);
    if (r == VKT_OK) r = predict_images(s, PROGRAM, forward, &card->classes, card, max_pixels);
    vkt_card_destroy(&card);
    return r;
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    image_options *o = state->input;
    switch (key) {
    case OPT_SIZE:
        o->data.images.height = o->data.images.width = (uint32_t)option_integer(state, "size", text, SMALLEST, LARGEST);
        break;
    case OPT_NO_FLIP: o->data.images.random_flip = false; break;
    case OPT_SKIP_BROKEN: o->data.images.skip_broken = true; break;
    case OPT_MAX_PIXELS: o->data.images.max_pixels = option_integer(state, "max-pixels", text, 1, UINT32_MAX); break;
    case OPT_LR_PATIENCE:
        o->lr_patience = (uint32_t)option_integer(state, "lr-patience", text, 0, VKT_PATIENCE_NONE - 1);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "size", OPT_SIZE, "N", 0, "images are resized to NxN (32)", 1 },
        { "no-flip", OPT_NO_FLIP, 0, 0, "do not mirror training images at random", 1 },
        { "skip-broken", OPT_SKIP_BROKEN, 0, 0, "leave out files that are missing or are no images", 1 },
        { "max-pixels", OPT_MAX_PIXELS, "N", 0,
          "read images of up to N pixels (16 million, and 64 for each byte of the file)", 1 },
        { "lr-patience", OPT_LR_PATIENCE, "N", 0,
          "after more than N epochs without a lower validation loss, a tenth of the learning rate (10)", 2 },
        { 0 }
    };
    static const struct argp more = { .options = options, .parser = on_option };
    image_options o = { .data = { .name = "caltech101",
                                  .images = { .height = 32, .width = 32, .random_flip = true },
                                  .mean = mean,
                                  .deviation = deviation },
                        .lr_patience = 10 };
    const train_cli cli = {
        .doc =
            "Trains a small convolutional network to classify images on a Vulkan device. It uses stochastic gradient "
            "descent with momentum 0.9 and dampening 0.1. The rate falls when the validation loss stops falling. The "
            "default rate is that of a PyTorch program. It is low for small data sets: --lr 0.03 learns faster.",
        .data = image_data_help,
        .classes = true,
        .predict = image_predict_help,
        .more = &more,
        .input = &o
    };
    session s = { .o = { .epochs = 50,
                         .batch = 32,
                         .optimizer = { .kind = VKT_SGD, .momentum = 0.9f, .dampening = 0.1f },
                         .lr = 0.001f,
                         .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    if (s.o.predict) return session_end(&s, predict(&s, o.data.images.max_pixels));
    o.data.folder = s.o.data;
    image_data data;
    vkt_result r = image_data_open(&s.host, &o.data, &data);
    if (r == VKT_OK)
        session_set_data(&s, &(session_data){ data.source, data.made_up, data.train, data.check, data.test });
    if (r == VKT_OK) r = run(&s, &data, o.lr_patience);
    image_data_close(&data);
    return session_end(&s, r);
}
