/* scaling/layers.h - parameters and multiplications of each layer of three networks for ImageNet. */
#ifndef SCALING_LAYERS_H
#define SCALING_LAYERS_H

#include <stddef.h>

enum { MOST_LAYERS = 128 };

typedef struct layer {
    double parameters;
    double products; /* multiplications of the forward pass for one image */
} layer;

/* The layers of a network, in the order of the forward pass. */
typedef struct layers {
    layer at[MOST_LAYERS];
    size_t n;
} layers;

/* Each function fills in *l. */
void layers_vgg16(layers *l);        /* Simonyan & Zisserman, arXiv:1409.1556, table 1, column D */
void layers_resnet101(layers *l);    /* He, Zhang, Ren & Sun, arXiv:1512.03385, table 1 */
void layers_inception_v3(layers *l); /* Szegedy et al., arXiv:1512.00567, without the auxiliary classifier */

#endif
