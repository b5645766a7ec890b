/* bench_emulate - trains a network as one rank of an emulated cluster (vkt_emulation_create). Prints the times of a
 * step as JSON. With RANKS 2 or more, vkt-scaling can read the output. tests/bench/emulated_scaling.py calls this
 * program.
 *
 *     bench_emulate NET RANKS BATCH STEPS BUCKET_KIB ALPHA_US BETA_GB_PER_S
 *
 * NET: resnet20 or mnist. BATCH: samples of a rank. With RANKS 2 or more, each rank has one shard. With RANKS 1, a step
 * has no shards. With BETA_GB_PER_S 0, messages need no time for their bytes. In vkt_dist_stats, ready_ms / steps is
 * the mean time from the last exchange of the previous step until the exchange of a bucket begins. This time includes
 * the update of the previous step, so the program subtracts the time of an update. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"
#include "train/trainer.h"
#include "vktrain/models.h"

#define CHECK(call) ((call) != VKT_OK ? exit(1) : (void)0) /* the library has printed the reason */
enum { CLASSES = 10 };

typedef struct net {
    const char *name;
    uint32_t channels, side;
    vkt_forward_fn forward;
    vkt_optimizer optimizer;
} net;

static vkt_tensor resnet20(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_resnet(b, x, &(vkt_resnet_params){ .depth = 20, .cifar = true });
}

/* The network of vkt-mnist. */
static vkt_tensor mnist(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 5 } });
    x = vkt_nn_dropout2d(b, vkt_nn_max_pool2d(b, x, 2), 0.1f);
    x = vkt_nn_flatten(b, vkt_nn_adaptive_max_pool2d(b, x, 1, 1));
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 32 }));
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = CLASSES });
}

static const net nets[] = {
    { "resnet20", 3, 32, resnet20, { .kind = VKT_SGD, .momentum = 0.9f, .weight_decay = 1e-4f } },
    { "mnist", 1, 28, mnist, { .kind = VKT_ADAM } },
};

/* The arrays of a data set. samples() writes only the samples that rank 0 reads: the first `own` samples of each batch.
 * The system allocates no memory for pages that are never written, so the batches of 4,096 ranks fit. */
typedef struct table {
    uint8_t *pixels;
    uint32_t *labels;
    vkt_dataset *d;
} table;

static table samples(const net *n, uint32_t batches, uint32_t batch, uint32_t own)
{
    const size_t elements = (size_t)n->channels * n->side * n->side, rows = (size_t)batches * batch;
    table t = { calloc(rows, elements), calloc(rows, sizeof(uint32_t)), NULL };
    uint32_t word = 1;
    if (!t.pixels || !t.labels) exit(1);
    for (size_t row = 0; row < rows; row++) {
        uint8_t *x = t.pixels + row * elements;
        if (row % batch >= own) continue;
        for (size_t i = 0; i < elements; i++) x[i] = (uint8_t)((word = word * 1664525 + 1013904223) >> 24);
        t.labels[row] = x[0] % CLASSES;
    }
    const vkt_dataset_params p = { .rows = (uint32_t)rows,
                                   .channels = n->channels,
                                   .height = n->side,
                                   .width = n->side,
                                   .labels = t.labels,
                                   .classes = CLASSES,
                                   .borrow = true };
    CHECK(vkt_dataset_from_arrays(NULL, &p, t.pixels, &t.d));
    return t;
}

static void table_free(table *t)
{
    vkt_dataset_destroy(&t->d);
    free(t->pixels);
    free(t->labels);
}

/* Returns the device's time for the dispatches of nodes [first, end), in ms, in the one run that was measured. */
static double device_ms(const vkt_program *p, size_t first, size_t end)
{
    double ns = 0;
    for (size_t i = 0; p->ns && i < p->lowered.n; i++)
        if (p->lowered.list[i].node >= first && p->lowered.list[i].node < end) ns += (double)p->ns[i];
    return ns * 1e-6;
}

static void print(const vkt_trainer *t)
{
    vkt_dist_stats s = { 0 };
    vkt_trainer_dist_stats(t, &s);
    printf("{\"ms_per_step\": %.3f", vkt_trainer_ms_per_step(t));
    if (s.steps) {
        const size_t loss = t->g->values[t->head.loss.id].producer; /* index of the loss's node, plus 1:
                                                                     * the forward pass ends with this node */
        const double steps = (double)s.steps, update = device_ms(t->shards.update, 0, SIZE_MAX);
        const double forward = device_ms(t->program, 0, loss), both = device_ms(t->program, 0, SIZE_MAX);
        const uint32_t n = VKT_MIN(s.buckets, (uint32_t)VKT_DIST_BUCKETS);
        const double computed = s.ready_ms[n - 1] / steps - update;
        printf(", \"forward_ms\": %.3f, \"backward_ms\": %.3f, \"update_ms\": %.3f", computed * forward / both,
               computed * (1 - forward / both), update);
        printf(", \"exchange_ms\": %.3f, \"exposed_ms\": %.3f, \"buckets\": [", s.exchange_ms / steps,
               s.exposed_ms / steps);
        for (uint32_t i = 0; i < n; i++)
            printf("%s{\"bytes\": %llu, \"ready_ms\": %.3f}", i ? ", " : "", (unsigned long long)s.bucket_bytes[i],
                   s.ready_ms[i] / steps - update);
        printf("]");
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    double number[6];
    const net *n = NULL;
    for (size_t i = 0; argc == 8 && i < VKT_COUNT(nets); i++)
        if (strcmp(argv[1], nets[i].name) == 0) n = &nets[i];
    if (!n) {
        fprintf(stderr, "bench_emulate: want NET RANKS BATCH STEPS BUCKET_KIB ALPHA_US BETA_GB_PER_S\n");
        return 2;
    }
    for (int i = 0; i < 6; i++) number[i] = strtod(argv[i + 2], NULL);
    const uint32_t ranks = (uint32_t)number[0], batch = ranks * (uint32_t)number[1];
    const vkt_emulation_params cluster = { .ranks = ranks,
                                           .latency_seconds = number[4] * 1e-6,
                                           .bytes_per_second = number[5] * 1e9 };
    vkt_emulation *emulation;
    vkt_ctx *ctx;
    vkt_trainer *t;
    table data = samples(n, (uint32_t)number[2], batch, (uint32_t)number[1]);
    CHECK(vkt_emulation_create(NULL, &cluster, &emulation));
    CHECK(vkt_ctx_create_wide(NULL, NULL, &ctx));
    const vkt_transport transport = vkt_emulation_transport(emulation);
    vkt_trainer_params p = { .model = { .name = n->name, .forward = n->forward },
                             .train = data.d,
                             .no_shuffle = true,
                             .batch = batch,
                             .optimizer = n->optimizer,
                             .lr = 0.001f,
                             .seed = 1 };
    if (ranks > 1)
        p.dist =
            (vkt_dist_params){ .transport = &transport, .shards = ranks, .bucket_bytes = (uint64_t)number[3] * 1024 };
    CHECK(vkt_trainer_create(ctx, &p, &t));
    CHECK(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 1, .allow_nonfinite = true }));
    print(t);
    vkt_trainer_destroy(&t);
    vkt_ctx_destroy(&ctx);
    vkt_emulation_destroy(&emulation);
    table_free(&data);
    return 0;
}
