/* ops/pair.h - one graph as two programs. In the fused program, the lowering fuses nodes into other nodes, as epilogues
 * (passes/epilogue.c). In the plain program the lowering fuses nothing, because `no_fuse` of the graph is set after
 * vkt_backward. Nodes that vkt_backward itself fuses are fused in both programs.
 *
 * Each pair is checked:
 * - There are as many elementwise dispatches and dropout dispatches as expected. The kernels of running statistics and
 *   of the gradient of softmax cross-entropy count as elementwise. Both programs have the same number of other
 *   dispatches. If pair_spec.dropouts is PAIR_MANY, only dropout dispatches are counted.
 * - Both programs compute the same bits of the results that `build` passes to pair_show (except for the signs of NaN),
 *   and of the gradients and values of parameters.
 * - With APART (see pair_memory), guards do not change.
 * - The padding of outputs is finite, and the padding of gradients is 0. */
#ifndef VKT_TEST_PAIR_H
#define VKT_TEST_PAIR_H

#include "ops/harness.h"

enum { PAIR_MANY = UINT16_MAX };
/* SOME: numbers in [-1, 1). WHOLE: integers from -4 to 4. SPECIAL: numbers in [-1, 1), NaN, infinities and zeros. */
typedef enum pair_values { SOME, WHOLE, SPECIAL } pair_values;
/* How a program is made. APART: by vkt_program_create_in_place, which puts guards between values. Values share no
 * memory, except that an output may have the memory of an input. PACKED: by vkt_program_create, as users call it.
 * AGAIN: by vkt_program_create with `recompute`. */
typedef enum pair_memory { APART, PACKED, AGAIN } pair_memory;

typedef struct pair_net pair_net;
typedef struct pair_spec {
    void (*build)(pair_net *n);
    pair_values values;
    pair_memory memory;
    uint32_t rows; /* number of rows of the batch that a run uses; 0: all */
    uint32_t left; /* number of elementwise dispatches in the fused program */
    /* Number of elementwise dispatches that only the plain program has. PAIR_MANY: the harness_view splits dispatches,
     * so no exact number is known. With PAIR_MANY, the plain program must have more elementwise dispatches than the
     * fused program. If `left` is 0, the fused program must have no elementwise dispatch, else at least one. */
    uint32_t fused;
    bool unary; /* if `fused` is PAIR_MANY: whether the fused program has dispatches of the kernel `unary` */
    /* Number of dropout dispatches that only the plain program has. PAIR_MANY: the harness_view splits dispatches.
     * With PAIR_MANY, the plain program must have more dropout dispatches than the fused program. Other dispatches are
     * not counted. */
    uint32_t dropouts;
    /* ---- for `build` ---- */
    vkt_shape x, w;
    vkt_conv2d_params conv;
    vkt_tensor (*act)(vkt_graph *g, vkt_tensor x);
    int other;
    bool by_rows, bias, given, swap, flat, bare;
} pair_spec;

typedef struct pair_value {
    vkt_tensor t;
    bool variance, gradient; /* variance: all numbers are above 0; gradient: padding is zero */
} pair_value;

struct pair_net {
    const pair_spec *s;
    vkt_graph *g;
    pair_value in[12], out[4];
    uint32_t n_in, n_out;
    vkt_store *store; /* NULL: there are no parameters */
    vkt_program *p;
};

extern const harness_view pair_whole; /* the device as it is */

/* Functions for `build`. pair_input adds an input. If `variance` is true, all elements of this input are above 0.
 * pair_show adds a result. */
vkt_tensor pair_input(pair_net *n, bool by_rows, vkt_shape shape, bool variance);
void pair_show(pair_net *n, vkt_tensor t, bool gradient);

/* Makes a program of the net's graph. Returns false if the limits of `view` do not allow the program. */
bool pair_program(pair_net *n, const harness_view *view, pair_memory memory, vkt_program **out);
/* Writes inputs and parameters, with the same numbers in each call. Then makes three runs. The third run submits many
 * dispatches together (record/parts.c), so that only barriers keep their order. */
void pair_run(pair_net *n);
void pair_same(const pair_net *a, const pair_net *b);
/* Makes and checks both programs. The caller frees them with pair_free. If the limits of `view` do not allow the
 * programs, returns false, and there is nothing to free. */
bool pair_make(pair_net *fused, pair_net *plain, const pair_spec *s, const harness_view *view);
void pair_free(pair_net *fused, pair_net *plain);
/* Makes, checks and frees both programs of one pair. Returns false if the limits of `view` do not allow them. */
bool pair_agree_in(const pair_spec *s, const harness_view *view);
/* Makes, checks and frees the programs of n pairs, on the device as it is. */
void pair_agree(const pair_spec *s, size_t n);

#endif
