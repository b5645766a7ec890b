/* scaling/layers.c - see layers.h. */
#include "scaling/layers.h"

/* Appends a convolution with a window of h x w pixels, and a result of size x size pixels. `own` is the number of
 * additional parameters per output channel: 1 for a bias, 2 for a batch normalization. */
static void conv(layers *l, int own, int h, int w, int in, int out, int size)
{
    const double weights = (double)h * w * in * out;
    l->at[l->n++] = (layer){ weights + own * out, weights * size * size };
}

static void linear(layers *l, int in, int out)
{
    conv(l, 1, 1, 1, in, out, 1);
}

void layers_vgg16(layers *l)
{
    static const struct {
        int count, channels, size;
    } groups[] = { { 2, 64, 224 }, { 2, 128, 112 }, { 3, 256, 56 }, { 3, 512, 28 }, { 3, 512, 14 } };
    int in = 3;
    l->n = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int k = 0; k < groups[g].count; k++) {
            conv(l, 1, 3, 3, in, groups[g].channels, groups[g].size);
            in = groups[g].channels;
        }
    linear(l, 512 * 7 * 7, 4096);
    linear(l, 4096, 4096);
    linear(l, 4096, 1000);
}

void layers_resnet101(layers *l)
{
    static const struct {
        int blocks, channels, size;
    } groups[] = { { 3, 64, 56 }, { 4, 128, 28 }, { 23, 256, 14 }, { 3, 512, 7 } };
    int in = 64;
    l->n = 0;
    conv(l, 2, 7, 7, 3, 64, 112);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int k = 0; k < groups[g].blocks; k++) {
            const int c = groups[g].channels, size = groups[g].size;
            if (k == 0) conv(l, 2, 1, 1, in, 4 * c, size); /* the shortcut */
            conv(l, 2, 1, 1, in, c, size);
            conv(l, 2, 3, 3, c, c, size);
            conv(l, 2, 1, 1, c, 4 * c, size);
            in = 4 * c;
        }
    linear(l, 2048, 1000);
}

/* ---- Inception V3: the number in a module's name is the side of its result, in pixels ---- */

static void module_35(layers *l, int in, int pooled)
{
    conv(l, 2, 1, 1, in, 64, 35);
    conv(l, 2, 1, 1, in, 48, 35);
    conv(l, 2, 5, 5, 48, 64, 35);
    conv(l, 2, 1, 1, in, 64, 35);
    conv(l, 2, 3, 3, 64, 96, 35);
    conv(l, 2, 3, 3, 96, 96, 35);
    conv(l, 2, 1, 1, in, pooled, 35);
}

static void module_17(layers *l, int c)
{
    conv(l, 2, 1, 1, 768, 192, 17);
    conv(l, 2, 1, 1, 768, c, 17);
    conv(l, 2, 1, 7, c, c, 17);
    conv(l, 2, 7, 1, c, 192, 17);
    conv(l, 2, 1, 1, 768, c, 17);
    conv(l, 2, 7, 1, c, c, 17);
    conv(l, 2, 1, 7, c, c, 17);
    conv(l, 2, 7, 1, c, c, 17);
    conv(l, 2, 1, 7, c, 192, 17);
    conv(l, 2, 1, 1, 768, 192, 17);
}

static void module_8(layers *l, int in)
{
    conv(l, 2, 1, 1, in, 320, 8);
    conv(l, 2, 1, 1, in, 384, 8);
    conv(l, 2, 1, 3, 384, 384, 8);
    conv(l, 2, 3, 1, 384, 384, 8);
    conv(l, 2, 1, 1, in, 448, 8);
    conv(l, 2, 3, 3, 448, 384, 8);
    conv(l, 2, 1, 3, 384, 384, 8);
    conv(l, 2, 3, 1, 384, 384, 8);
    conv(l, 2, 1, 1, in, 192, 8);
}

void layers_inception_v3(layers *l)
{
    l->n = 0;
    conv(l, 2, 3, 3, 3, 32, 149);
    conv(l, 2, 3, 3, 32, 32, 147);
    conv(l, 2, 3, 3, 32, 64, 147);
    conv(l, 2, 1, 1, 64, 80, 73);
    conv(l, 2, 3, 3, 80, 192, 71);
    module_35(l, 192, 32);
    module_35(l, 256, 64);
    module_35(l, 288, 64);
    conv(l, 2, 3, 3, 288, 384, 17); /* these four lines: the module from 35 to 17 pixels */
    conv(l, 2, 1, 1, 288, 64, 35);
    conv(l, 2, 3, 3, 64, 96, 35);
    conv(l, 2, 3, 3, 96, 96, 17);
    module_17(l, 128);
    module_17(l, 160);
    module_17(l, 160);
    module_17(l, 192);
    conv(l, 2, 1, 1, 768, 192, 17); /* these six lines: the module from 17 to 8 pixels */
    conv(l, 2, 3, 3, 192, 320, 8);
    conv(l, 2, 1, 1, 768, 192, 17);
    conv(l, 2, 1, 7, 192, 192, 17);
    conv(l, 2, 7, 1, 192, 192, 17);
    conv(l, 2, 3, 3, 192, 192, 8);
    module_8(l, 1280);
    module_8(l, 2048);
    linear(l, 2048, 1000);
}
