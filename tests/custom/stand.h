/* custom/stand.h - for tests: a graph with ops of the application, and the program of this graph on a device. */
#ifndef VKT_TEST_STAND_H
#define VKT_TEST_STAND_H

#include "custom/modules.h"
#include "train/rig.h"
#include "vktrain/custom.h"

#define POISON 0x7fc5a5a5u /* a NaN; stand_start fills the memory of activations with it */

/* Returns a shader of the module of this name, for `elements` elements. The caller adds bindings and push constants. */
vkt_custom_shader shader_of(const char *module, uint64_t elements);

/* A graph, and its program. stand_start makes a program with guard words behind all values. */
typedef struct stand {
    rig *r;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
} stand;

stand stand_make(rig *r);
/* Makes the program, and fills its memory of activations and scratch with POISON. */
void stand_start(stand *b);
/* Runs the program `times` times, and checks that no shader wrote behind a value. */
void stand_run(stand *b, uint32_t rows, uint32_t times);
void stand_end(stand *b);

/* Adds an input to the graph. Fills `numbers` with one random number in [low, high) for each element of the input.
 * stand_write copies them to the device. */
vkt_tensor stand_input(stand *b, vkt_shape shape, float low, float high, uint64_t seed, float *numbers);
void stand_write(stand *b, vkt_tensor t, const float *numbers);
/* Returns the numbers of a value. The caller frees them with test_free. */
float *stand_read(stand *b, vkt_tensor t);

/* Adds the op y = x sin(a x) of two tensors of the same shape, and returns y. `gradient`: the name of the gradient
 * shader's module; NULL: the op has no gradient. */
vkt_tensor wave(vkt_graph *g, vkt_tensor x, vkt_tensor a, const char *gradient);
/* Adds the op max(x, 0), which shaders of the application compute. x may have any layout. */
vkt_tensor own_relu(vkt_graph *g, vkt_tensor x);
/* Does the same as own_relu. An audit chooses the numbers of x from [low, high). If both are 0: from [-1, 1). */
vkt_tensor own_relu_in(vkt_graph *g, vkt_tensor x, float low, float high);

/* Fails the test unless `got` is within `allowed` of `want`. */
void expect_close(double got, double want, double allowed, const char *what, size_t at);

#endif
