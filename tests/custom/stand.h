/* custom/stand.h - a graph with one op of the application on a device, for tests. */
#ifndef VKT_TEST_STAND_H
#define VKT_TEST_STAND_H

#include "custom/modules.h"
#include "train/rig.h"
#include "vktrain/custom.h"

#define POISON 0x7fc5a5a5u /* a NaN; all memory of activations has this value before a run */

/* Returns a shader of the module of this name, for `elements` elements. The caller adds bindings and push constants. */
vkt_custom_shader shader_of(const char *module, uint64_t elements);

/* A graph, and a guarded program of it. */
typedef struct stand {
    rig *r;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
} stand;

stand stand_make(rig *r);
/* Makes the program. All its memory is POISON. */
void stand_start(stand *b);
/* Runs the program `times` times, and checks that no shader wrote behind a value. */
void stand_run(stand *b, uint32_t rows, uint32_t times);
void stand_end(stand *b);

/* Makes an input of n random numbers from low to high. Writes them to `numbers` too, which has room for them. */
vkt_tensor stand_input(stand *b, vkt_shape shape, float low, float high, uint64_t seed, float *numbers);
void stand_write(stand *b, vkt_tensor t, const float *numbers);
/* Reads a value. Free it with test_free. */
float *stand_read(stand *b, vkt_tensor t);

/* Returns the op y = x sin(a x) of two tensors of the same shape. `gradient`: the name of the gradient shader's module;
 * NULL: the op has no gradient. */
vkt_tensor wave(vkt_graph *g, vkt_tensor x, vkt_tensor a, const char *gradient);
/* Returns max(x, 0) of x in any layout, by shaders of the application. */
vkt_tensor own_relu(vkt_graph *g, vkt_tensor x);
/* Works as own_relu. An audit chooses the numbers of x from [low, high). */
vkt_tensor own_relu_in(vkt_graph *g, vkt_tensor x, float low, float high);

/* Fails the test unless `got` is within `allowed` of `want`. */
void expect_close(double got, double want, double allowed, const char *what, size_t at);

#endif
