/* nn/builder.h - the struct of a builder: layers for the summary, and initial distributions of the parameters. */
#ifndef VKT_BUILDER_H
#define VKT_BUILDER_H

#include "ir/ir.h"
#include "vktrain/nn.h"

typedef struct vkt_layer_row {
    char name[2 * VKT_NAME_MAX]; /* for instance "conv1 (Conv2d)" */
    vkt_tensor out;
    /* parameters: how many numbers the layer has in its parameters and frozen arrays. A frozen array is a vkt_array
     * with weights or a bias that training does not change, as in vkt_nn_linear_quantized. bytes: size of these
     * numbers. */
    uint64_t parameters, bytes;
} vkt_layer_row;

typedef struct vkt_init_row {
    vkt_tensor param;
    vkt_init init;
    uint32_t fan_in, fan_out;
    uint32_t zero_row; /* index (dimension 0) of a row that is set to zero after all rows have been generated;
                        * VKT_NO_PADDING: none */
} vkt_init_row;

/* The adapters that layers get (lora.c). */
typedef struct vkt_lora {
    char **targets;   /* NULL: none */
    uint32_t *layers; /* for each target: number of layers that match it */
    uint32_t n_targets, rank;
    float factor, dropout;
} vkt_lora;

struct vkt_builder {
    vkt_graph *g;
    bool training;
    vkt_preset preset;
    char scope[VKT_NAME_MAX]; /* for instance "layer1.0."; "": no scope */
    vkt_layer_row *layers;
    size_t n_layers, cap_layers;
    vkt_init_row *inits;
    size_t n_inits, cap_inits;
    uint64_t counted; /* how many numbers the parameters in the summary's rows have so far */
    /* array_numbers, array_bytes: how many numbers and bytes all frozen arrays have so far. counted_numbers,
     * counted_bytes: how many of these numbers and bytes the rows of the summary have so far. */
    uint64_t array_numbers, array_bytes, counted_numbers, counted_bytes;
    vkt_lora lora;
};

/* Adds a row to the summary. The row counts the parameters and frozen arrays that were added since the last row.
 * Returns `out`; {0} on an error. */
vkt_tensor vkt_builder_note(vkt_builder *b, const char *name, const char *kind, vkt_tensor out);
/* Counts a frozen array for the next row of the summary. */
void vkt_builder_count_array(vkt_builder *b, uint64_t numbers, uint64_t bytes);
/* y is the output of a layer with the input x. If the layer's name matches a target, adds an adapter to the layer and
 * returns y plus the adapter's output for x. Otherwise returns y. */
vkt_tensor vkt_builder_adapt(vkt_builder *b, const char *layer, vkt_tensor x, vkt_tensor y);
/* Returns whether the layer gets an adapter. */
bool vkt_builder_adapts(const vkt_builder *b, const char *layer);
/* Sets *rank, and sets *factor to alpha / rank. A rank or alpha of 0 selects the default. VKT_E_ARG: alpha is not
 * finite. */
vkt_result vkt_lora_resolve(const vkt_host *h, const vkt_lora_params *p, uint32_t *rank, float *factor);
void vkt_lora_free(const vkt_host *h, vkt_lora *lora);
/* Returns `keras` if `given` is VKT_INIT_DEFAULT and the preset is one of the Keras presets; else returns `given`. */
vkt_init vkt_builder_init(const vkt_builder *b, vkt_init given, vkt_init keras);
/* Computes the initial values of the parameter b->inits[i], row-major. `out` has the size of the parameter. */
void vkt_builder_draw(const vkt_builder *b, size_t i, uint64_t seed, float *out);

/* Checks the name of a layer, scope, parameter or state. Returns true if the name is not empty and the graph has no
 * error. A name that is NULL or empty sets the graph's status to VKT_E_ARG. */
bool vkt_builder_is_named(vkt_builder *b, const char *name);

#endif
