/* bench/nets.h - training steps of the reference networks, over made-up data. */
#ifndef BENCH_NETS_H
#define BENCH_NETS_H

#include "vktrain/nn.h"
#include "vktrain/optim.h"

typedef struct bench_net {
    const char *name; /* "mnist-b128" */
    const char *what;
    uint32_t batch;
    vkt_shape sample; /* (C,H,W), (F), or (T,D): as many rows of D numbers, by rows */
    uint32_t words;   /* samples are sequences (F) of whole numbers below it; 0: they are not */
    uint32_t classes; /* of labels, cross-entropy; 0: regression on `targets` numbers */
    uint32_t targets; /* 0: of the sample's shape */
    float range;      /* inputs are uniform in +-range */
    vkt_optimizer optimizer;
    float lr;
    vkt_forward_fn forward;
    bool large; /* part of --sizes large, not of net; fewer steps show that it trains */
} bench_net;

/* Terminated by an entry without a name. */
extern const bench_net bench_nets[];

/* A recorded training step with all that it needs, weights drawn. Classifiers gather their batch from a table of u8
 * rows, or of whole numbers, on the device, as vkt_trainer's do; the others have it as an input. */
typedef struct bench_step {
    vkt_graph *g;
    vkt_builder *builder;
    vkt_store *store;
    vkt_array *arrays[3];
    vkt_program *program;
    vkt_run run;
} bench_step;

/* The graph alone, and the arrays that it gathers from; the caller destroys the step in any case. */
vkt_result bench_step_graph(vkt_ctx *ctx, const bench_net *net, bench_step *out);
/* The caller frees in any case. `profile`: with timestamps. */
vkt_result bench_step_create(vkt_ctx *ctx, const bench_net *net, vkt_precision precision, bool profile,
                             bench_step *out);
void bench_step_destroy(bench_step *s);

#endif
