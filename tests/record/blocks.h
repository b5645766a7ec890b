/* record/blocks.h - small networks whose blocks can be marked (vkt_recompute_begin), and their training, for tests. */
#ifndef VKT_TEST_BLOCKS_H
#define VKT_TEST_BLOCKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "vktrain/nn.h"

#define OK(call) assert_int_equal((call), VKT_OK)

enum { BLOCKS = 3 };

/* The settings of a network and of the program that trains this network. */
typedef struct job {
    bool blocks; /* each block is marked */
    uint32_t n;  /* number of blocks; the network "all in one" has 1 in any case */
    vkt_precision precision;
    bool cheap; /* vkt_program_params.recompute: cheap activations may be computed again */
    uint32_t micro_batches;
} job;

/* Builds a network, and returns its loss. */
typedef vkt_tensor (*build_fn)(vkt_builder *b, const job *j);

typedef struct network {
    const char *name;
    build_fn build;
    bool fused; /* without VKT_NO_FUSE=1, one node makes all gradients, so no node of a block is computed again */
} network;
enum { NETWORKS = 7 };
extern const network networks[NETWORKS];
/* transformer builds transformer blocks. images builds blocks of convolutions and batch norms. */
vkt_tensor transformer(vkt_builder *b, const job *j);
vkt_tensor images(vkt_builder *b, const job *j);

/* begin opens the scope "block<i>", and end closes this scope. If j->blocks is true, begin also begins a block
 * (vkt_recompute_begin), and end ends this block. */
void begin(vkt_builder *b, const job *j, uint32_t i);
void end(vkt_builder *b, const job *j);
/* input makes the input "x". linear makes a linear layer. target makes an input "t", and returns the mean squared error
 * between y and "t". */
vkt_tensor input(vkt_builder *b, vkt_layout layout, vkt_shape s);
vkt_tensor linear(vkt_builder *b, const char *name, vkt_tensor x, uint32_t outputs);
vkt_tensor target(vkt_builder *b, vkt_tensor y);

/* A network with its builder, store and program. */
typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
    vkt_store *s;
    vkt_program *p;
} net;
net make(build_fn build, const job *j);
void free_net(net *n);
/* Writes random numbers to the inputs, and runs the program `runs` times. */
void train(net *n, int runs);

#endif
