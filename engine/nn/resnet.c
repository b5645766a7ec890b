/* nn/resnet.c - residual networks: see vktrain/models.h. */
#include "vktrain/models.h"

#include <math.h>
#include <stdio.h>

#include "nn/builder.h"

/* The form of a network: it follows from the members `depth` and `cifar` of vkt_resnet_params. */
typedef struct form {
    uint32_t blocks[4]; /* blocks of each stage; 0: the network does not have this stage */
    bool bottleneck;    /* the blocks are bottlenecks */
    uint32_t channels;  /* channels of the 3x3 convolutions in the first stage */
} form;

static bool form_of(const vkt_resnet_params *p, form *out)
{
    static const struct {
        uint32_t depth;
        form form;
    } table[] = { { 18, { { 2, 2, 2, 2 }, false, 64 } },
                  { 34, { { 3, 4, 6, 3 }, false, 64 } },
                  { 50, { { 3, 4, 6, 3 }, true, 64 } },
                  { 101, { { 3, 4, 23, 3 }, true, 64 } },
                  { 152, { { 3, 8, 36, 3 }, true, 64 } } };
    if (p->cifar) {
        const uint32_t n = p->depth / 6;
        *out = (form){ { n, n, n, 0 }, false, 16 };
        return n > 0 && p->depth == 6 * n + 2;
    }
    for (size_t i = 0; i < VKT_COUNT(table); i++)
        if (table[i].depth == p->depth) {
            *out = table[i].form;
            return true;
        }
    return false;
}

/* Adds a convolution without bias, then a norm. With stride 1, the padding keeps the size of the image. */
static vkt_tensor conv_norm(vkt_builder *b, const char *conv, const char *norm, vkt_tensor x, uint32_t out,
                            uint32_t kernel, uint32_t stride, const vkt_resnet_params *p)
{
    const float deviation = (float)sqrt(2 / ((double)out * kernel * kernel));
    x = vkt_nn_conv2d(b, conv, x,
                      &(vkt_nn_conv2d_params){ .out_channels = out,
                                               .kernel = { kernel },
                                               .stride = { stride },
                                               .pad = { kernel / 2 },
                                               .no_bias = true,
                                               .weight_init = { VKT_INIT_NORMAL, 0, deviation } });
    return vkt_nn_batch_norm(b, norm, x, &(vkt_nn_batch_norm_params){ .use_running = p->use_running });
}

/* Converts x to the shape of a block's output. If x has this shape already, returns x. */
static vkt_tensor shortcut(vkt_builder *b, vkt_tensor x, uint32_t out, uint32_t stride, const vkt_resnet_params *p)
{
    const uint32_t channels = vkt_tensor_shape(b->g, x).dim[1];
    if (channels == out && stride == 1) return x;
    if (!p->cifar) return conv_norm(b, "downsample.0", "downsample.1", x, out, 1, stride, p);
    const uint32_t more = out - channels, before[] = { 0, more / 2, 0, 0 }, after[] = { 0, more - more / 2, 0, 0 };
    /* A pooling with windows of 1 x 1 pixels copies one pixel of each square of `stride` x `stride` pixels. */
    const vkt_pool2d_params every = { .kernel = { 1, 1 }, .stride = { stride, stride } };
    return vkt_builder_note(b, NULL, "Shortcut", vkt_pad(b->g, vkt_avg_pool2d(b->g, x, &every), before, after, 0));
}

/* Adds a block: relu(shortcut(x) + f(x)), where f has two convolutions, or three in a bottleneck. */
static vkt_tensor block(vkt_builder *b, vkt_tensor x, uint32_t channels, bool bottleneck, uint32_t stride,
                        const vkt_resnet_params *p)
{
    const uint32_t out = bottleneck ? 4 * channels : channels;
    vkt_tensor y = conv_norm(b, "conv1", "bn1", x, channels, bottleneck ? 1 : 3, bottleneck ? 1 : stride, p);
    y = conv_norm(b, "conv2", "bn2", vkt_nn_relu(b, y), channels, 3, bottleneck ? stride : 1, p);
    if (bottleneck) y = conv_norm(b, "conv3", "bn3", vkt_nn_relu(b, y), out, 1, 1, p);
    x = shortcut(b, x, out, stride, p);
    return vkt_nn_relu(b, vkt_nn_add(b, y, x));
}

/* Adds stage i; the first is 0. Stage 0 keeps height and width. Block 0 of each other stage halves both, rounded up. */
static vkt_tensor stage(vkt_builder *b, vkt_tensor x, const form *f, uint32_t i, const vkt_resnet_params *p)
{
    char name[16];
    snprintf(name, sizeof name, "layer%u", i + 1);
    vkt_nn_push(b, name);
    for (uint32_t k = 0; k < f->blocks[i]; k++) {
        snprintf(name, sizeof name, "%u", k);
        vkt_nn_push(b, name);
        x = block(b, x, f->channels << i, f->bottleneck, i > 0 && k == 0 ? 2 : 1, p);
        vkt_nn_pop(b);
    }
    vkt_nn_pop(b);
    return x;
}

vkt_tensor vkt_resnet(vkt_builder *b, vkt_tensor x, const vkt_resnet_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_resnet_params defaults;
    if (!p) p = &defaults;
    form f;
    if (!form_of(p, &f)) {
        vkt_graph_error(b->g,
                        vkt_fail(&b->g->host, VKT_E_ARG, "resnet: want a depth of %s, got %u",
                                 p->cifar ? "6 n + 2 (20, 32, 44, 56, 110)" : "18, 34, 50, 101 or 152", p->depth));
        return (vkt_tensor){ 0 };
    }
    const uint32_t classes = p->classes ? p->classes : p->cifar ? 10 : 1000;
    x = conv_norm(b, "conv1", "bn1", x, f.channels, p->cifar ? 3 : 7, p->cifar ? 1 : 2, p);
    x = vkt_nn_relu(b, x);
    if (!p->cifar)
        x = vkt_nn_max_pool2d_with(b, x, &(vkt_nn_pool2d_params){ .kernel = { 3 }, .stride = { 2 }, .pad = { 1 } });
    for (uint32_t i = 0; i < VKT_COUNT(f.blocks); i++)
        if (f.blocks[i]) x = stage(b, x, &f, i, p);
    x = vkt_nn_global_avg_pool(b, x);
    return vkt_nn_linear(b, p->cifar ? "linear" : "fc", x, &(vkt_nn_linear_params){ .out_features = classes });
}
