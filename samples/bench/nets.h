/* bench/nets.h - training steps of the reference networks, on generated data. */
#ifndef BENCH_NETS_H
#define BENCH_NETS_H

#include "vktrain/nn.h"
#include "vktrain/optim.h"

typedef struct bench_net {
    const char *name; /* for instance "mnist-b128" */
    const char *what;
    uint32_t batch;
    vkt_shape sample; /* (C,H,W), (F), or (T,D): T rows of D numbers. (T,D) has the layout VKT_ROWS */
    uint32_t words;   /* above 0: a sample (F) is a sequence of F whole numbers below `words` */
    uint32_t classes; /* number of classes, for cross-entropy; 0: the network is a regression */
    uint32_t targets; /* a regression with samples (F): number of targets of a sample. Not used with samples (T,D),
                       * which have targets (T,D) */
    float range;      /* a regression: inputs and targets are uniform in [-range, range) */
    vkt_optimizer optimizer;
    float lr;
    vkt_forward_fn forward;
    bool large; /* the network belongs to --sizes large, not to --sizes net; its check has fewer steps */
} bench_net;

/* The name of the last entry is NULL. */
extern const bench_net bench_nets[];

/* A recorded training step with all its objects and initial weights. Classifiers gather their batch on the device, from
 * a table of u8 samples or of whole numbers, as a vkt_trainer does. In other networks the batch is an input. */
typedef struct bench_step {
    vkt_graph *g;
    vkt_builder *builder;
    vkt_store *store;
    vkt_array *arrays[3];
    vkt_program *program;
    vkt_run run;
} bench_step;

/* Makes only the graph, and the arrays that the graph reads. The caller calls bench_step_destroy, also after an error.
 */
vkt_result bench_step_graph(vkt_ctx *ctx, const bench_net *net, bench_step *out);
/* Makes the whole step. The caller calls bench_step_destroy, also after an error. `profile`: the program has
 * timestamps. */
vkt_result bench_step_create(vkt_ctx *ctx, const bench_net *net, vkt_precision precision, bool profile,
                             bench_step *out);
void bench_step_destroy(bench_step *s);

#endif
