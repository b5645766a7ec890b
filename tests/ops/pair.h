/* ops/pair.h - one graph as two programs. In the fused program the lowering fuses nodes as epilogues of others
 * (passes/epilogue.c). In the plain program the lowering fuses nothing, because `no_fuse` of the graph is set after
 * vkt_backward. Nodes that vkt_backward itself fuses are fused in both programs.
 *
 * Each pair is checked. The numbers of elementwise dispatches (with those of running statistics and of cross-entropy's
 * gradient) and of dropouts are the expected ones, and both programs have the same number of other dispatches. All
 * results that `build` passes to pair_show have the same bits, and so have the gradients and values of parameters. With
 * APART, guards do not change. The padding of a result is finite in a value and zero in a gradient. */
#ifndef VKT_TEST_PAIR_H
#define VKT_TEST_PAIR_H

#include "ops/harness.h"

enum { PAIR_MANY = UINT16_MAX };
/* SOME: numbers in [-1, 1). WHOLE: integers from -4 to 4. SPECIAL: as SOME, but also NaN, infinities and zeros. */
typedef enum pair_values { SOME, WHOLE, SPECIAL } pair_values;
/* APART: values share no memory, but an output may have the memory of an input; there are guards
 * (vkt_program_create_in_place). PACKED: vkt_program_create, as users call it. AGAIN: as PACKED, with `recompute`. */
typedef enum pair_memory { APART, PACKED, AGAIN } pair_memory;

typedef struct pair_net pair_net;
typedef struct pair_spec {
    void (*build)(pair_net *n);
    pair_values values;
    pair_memory memory;
    uint32_t rows; /* real rows of the batch; 0: all */
    uint32_t left; /* elementwise dispatches of the fused program */
    /* How many more elementwise dispatches the plain program has. PAIR_MANY: the view splits dispatches, so neither
     * number is known. Then the fused program must not have a dispatch of the kernel `unary`. It must have other
     * elementwise dispatches if `left` is not 0, and none if `left` is 0. */
    uint32_t fused;
    bool unary; /* PAIR_MANY: the fused program has dispatches of `unary` that are not fused */
    /* How many more dispatches that compute only a dropout the plain program has. PAIR_MANY: the view splits
     * dispatches. Then the plain program must have some more, and other dispatches are not counted. */
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

/* Adds an input; `build` calls it. `variance`: the numbers are above 0. */
vkt_tensor pair_input(pair_net *n, bool by_rows, vkt_shape shape, bool variance);
void pair_show(pair_net *n, vkt_tensor t, bool gradient);

/* Makes another program of the net's graph. Returns false if the view's device cannot run it. */
bool pair_program(pair_net *n, const harness_view *view, pair_memory memory, vkt_program **out);
/* Writes the inputs and parameters, whose numbers are the same in each call, and makes three runs. The third is one
 * submission, in which only barriers keep the order. */
void pair_run(pair_net *n);
void pair_same(const pair_net *a, const pair_net *b);
/* Makes and checks both programs; the caller owns them. Returns false, with nothing to free, if the view's device
 * cannot run them. */
bool pair_make(pair_net *fused, pair_net *plain, const pair_spec *s, const harness_view *view);
void pair_free(pair_net *fused, pair_net *plain);
/* pair_agree_in makes, checks and frees both programs of one pair. It returns false if the view's device cannot run
 * them. pair_agree does the same for n pairs, on the device as it is. */
bool pair_agree_in(const pair_spec *s, const harness_view *view);
void pair_agree(const pair_spec *s, size_t n);

#endif
