/* mnist.c - vkt-mnist: trains a convolutional network to read handwritten digits on a Vulkan device.
 *
 * Any data set in the format of MNIST works, if its images have at least 14x14 pixels. The network adapts to the size
 * and the channels of the images, and to the number of classes. */
#include <math.h>

#include "common/digits.h"
#include "common/message.h"
#include "common/mnist_data.h"
#include "common/predict_images.h"
#include "common/session.h"

#define PROGRAM "vkt-mnist"
enum { SMALLEST_IMAGE = 14 };

/* Builds the network: x (B,C,H,W) -> (B,classes). It has 53,994 parameters for one channel and ten classes. */
static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const uint32_t *classes = user;
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 5 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_dropout2d(b, x, 0.1f);
    x = vkt_nn_adaptive_max_pool2d(b, x, 1, 1);
    x = vkt_nn_flatten(b, x);
    x = vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 32 });
    x = vkt_nn_relu(b, x);
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = *classes });
}

static bool images_fit(const uint32_t chw[3])
{
    if (chw[1] >= SMALLEST_IMAGE && chw[2] >= SMALLEST_IMAGE) return true;
    complain("the network wants images of %ux%u or more, the data set has %ux%u", SMALLEST_IMAGE, SMALLEST_IMAGE,
             chw[1], chw[2]);
    return false;
}

/* Attaches the data card (vktrain/card.h) to the trainer. The card's "ground" is the brightness of the training
 * images' border. --predict uses this brightness to decide whether to invert an image. If image_ground returns NaN, the
 * card has no "ground". */
static vkt_result attach(vkt_trainer *t, const vkt_dataset *train)
{
    const double ground = image_ground(train);
    char more[48];
    snprintf(more, sizeof more, "{\"ground\": %.17g}", ground);
    return vkt_trainer_attach_card(t, PROGRAM, isnan(ground) ? NULL : more);
}

static vkt_result predict(session *s)
{
    vkt_card *card;
    vkt_result r = predict_card(s, PROGRAM, &card);
    if (r == VKT_OK && !images_fit(card->chw)) r = VKT_E_SHAPE;
    if (r == VKT_OK) r = predict_images(s, PROGRAM, forward, &card->classes, card, 0);
    vkt_card_destroy(&card);
    return r;
}

static vkt_result run(session *s, const mnist_data *data)
{
    uint32_t classes = vkt_dataset_classes(data->train);
    const vkt_trainer_params p = { .model = { .name = "MNIST network", .forward = forward, .user = &classes },
                                   .train = data->train,
                                   .validation = data->test };
    s->scored = data->test;
    s->scored_set = "test";
    vkt_trainer *t = NULL;
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = attach(t, data->train);
    if (r == VKT_OK) r = session_fit(s, NULL, t);
    if (r == VKT_OK && !s->o.quiet && !session_interrupted()) r = print_predictions(t, data->test);
    vkt_trainer_destroy(&t);
    return r;
}

int main(int argc, char **argv)
{
    static const train_cli cli = { .doc = "Trains a small convolutional network to read handwritten digits (MNIST, or "
                                          "another data set of its layout) "
                                          "on a Vulkan device.",
                                   .data = "folder with train-* and t10k-* (or test-*) IDX files, plain or gzip",
                                   .classes = true,
                                   .predict = "read the digit in each FILE, a PNG or JPEG of any size (- is standard "
                                              "input) or all of an IDX file, with the weights of --load; dark digits "
                                              "on a light ground are inverted" };
    session s = { .o = { .epochs = 3, .batch = 128, .optimizer = { .kind = VKT_ADAM }, .lr = 0.01f, .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    if (s.o.predict) return session_end(&s, predict(&s));
    mnist_data data = { 0 };
    /* Until session_fit, a rank waits longer for the other ranks, because the data may arrive at one rank much later
     * than at another. */
    ranks_wait(&s.ranks, RANKS_LONGEST_WAIT);
    vkt_result r = mnist_data_open(&s.host, s.o.data, s.o.quiet ? NULL : stdout, &data);
    uint32_t chw[3] = { 0 };
    if (r == VKT_OK) {
        session_set_data(&s, &(session_data){ data.source, data.made_up, data.train, data.test, data.test });
        vkt_dataset_sample_shape(data.train, chw);
        r = images_fit(chw) ? run(&s, &data) : VKT_E_SHAPE;
    }
    mnist_data_close(&data);
    return session_end(&s, r);
}
