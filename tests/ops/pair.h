/* ops/pair.h - one graph as two programs: as it is lowered, with nodes within others (passes/epilogue.c), and with a
 * node for each (its graph's `no_fuse`, set behind vkt_backward: what that makes one node is so in both).
 *
 * Checked of each pair: as many elementwise dispatches as are said, and of all others the same number; the same bits in
 * all that is shown, and in gradients and values of parameters; guards untouched; padding finite, and zero in
 * gradients. */
#ifndef VKT_TEST_PAIR_H
#define VKT_TEST_PAIR_H

#include "ops/harness.h"

enum { PAIR_MANY = UINT16_MAX };
typedef enum pair_values { SOME, WHOLE, SPECIAL } pair_values; /* in [-1,1]; small whole ones; NaN and infinite too */
typedef enum pair_lie { APART, PACKED, AGAIN } pair_lie; /* guarded; as users have it; recomputing what is cheap */

typedef struct pair_net pair_net;
typedef struct pair_spec {
    void (*build)(pair_net *n);
    pair_values values;
    pair_lie lie;
    uint32_t rows; /* real ones; 0: all */
    uint32_t left; /* elementwise dispatches */
    uint32_t gone; /* and how many more the plain program has. PAIR_MANY, where a view cuts them: some; then no relu is
                    * left, and nothing where left is 0 */
    /* ---- for `build` ---- */
    vkt_shape x, w;
    vkt_conv2d_params conv;
    vkt_tensor (*act)(vkt_graph *g, vkt_tensor x);
    int other;
    bool by_rows, bias, given, swap, flat, bare;
} pair_spec;

typedef struct pair_value {
    vkt_tensor t;
    bool variance, gradient; /* what it is like */
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

/* For `build`. `variance`: of numbers above 0. */
vkt_tensor pair_input(pair_net *n, bool by_rows, vkt_shape shape, bool variance);
void pair_show(pair_net *n, vkt_tensor t, bool gradient);

/* Another program of the net's graph. False: the view's device cannot. */
bool pair_program(pair_net *n, const harness_view *view, pair_lie lie, vkt_program **out);
/* Three runs from the same numbers: the third is one submission, where barriers alone keep the order. */
void pair_run(pair_net *n);
void pair_same(const pair_net *a, const pair_net *b);
/* Both are made, checked and the caller's. False, and nothing to free, where the view's device cannot. */
bool pair_make(pair_net *fused, pair_net *plain, const pair_spec *s, const harness_view *view);
void pair_free(pair_net *fused, pair_net *plain);
/* The same in one go: of one, or of n on the device as it is. */
bool pair_agree_in(const pair_spec *s, const harness_view *view);
void pair_agree(const pair_spec *s, size_t n);

#endif
