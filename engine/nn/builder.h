/* nn/builder.h - the struct of a builder: layers for the summary, and initial distributions of the parameters. */
#ifndef VKT_BUILDER_H
#define VKT_BUILDER_H

#include "ir/ir.h"
#include "vktrain/nn.h"

typedef struct vkt_layer_row {
    char name[2 * VKT_NAME_MAX]; /* for instance "conv1 (Conv2d)" */
    vkt_tensor out;
    uint64_t parameters;
} vkt_layer_row;

typedef struct vkt_init_row {
    vkt_tensor param;
    vkt_init init;
    uint32_t fan_in, fan_out;
    uint32_t zero_row; /* index (dimension 0) of a row that is set to zero after all rows have been generated;
                        * VKT_NO_PADDING: none */
} vkt_init_row;

struct vkt_builder {
    vkt_graph *g;
    bool training;
    vkt_preset preset;
    char scope[VKT_NAME_MAX]; /* for instance "layer1.0."; "": no scope */
    vkt_layer_row *layers;
    size_t n_layers, cap_layers;
    vkt_init_row *inits;
    size_t n_inits, cap_inits;
    uint64_t counted; /* parameters of all layers so far */
};

/* Adds a row to the summary, with the number of parameters made since the last row. Returns `out`; {0} on an error. */
vkt_tensor vkt_builder_note(vkt_builder *b, const char *name, const char *kind, vkt_tensor out);
/* Returns `keras` if `given` is VKT_INIT_DEFAULT and the preset is one of the Keras presets; else returns `given`. */
vkt_init vkt_builder_init(const vkt_builder *b, vkt_init given, vkt_init keras);
/* Computes the initial values of the builder's parameter number i (b->inits), row-major. `out` has room for all
 * elements. */
void vkt_builder_draw(const vkt_builder *b, size_t i, uint64_t seed, float *out);

/* Checks the name of a layer or scope. Returns true if it is not empty and the graph has no error. If it is NULL or
 * empty, sets the graph's status to VKT_E_ARG. */
bool vkt_builder_is_named(vkt_builder *b, const char *name);

#endif
