/* scaling/horovod.c - see horovod.h. */
#include "scaling/horovod.h"

#include "scaling/layers.h"

#define LINK_GB_PER_S (25.0 / 8)           /* the connection of a server has 25 Gbit/s */
#define FITTED 0.70                        /* the fraction of LINK_GB_PER_S that an all-reduce gets (horovod.h) */
#define FUSION_BUFFER (64.0 * 1024 * 1024) /* bytes: Horovod's default */
#define BATCH 64
#define GPUS_PER_SERVER 4

/* Constants of NCCL's own model of a ring all-reduce: see docs/scaling.md. */
#define NCCL_PCI_US 5.7     /* microseconds of a message over PCIe */
#define NCCL_NETWORK_US 9.6 /* microseconds of a message over the network */
#define NCCL_LARGE 1.9      /* factor for these times if the buffers are large */

static const uint32_t clusters[HOROVOD_CLUSTERS] = { 512, 128, 16 };

static const struct {
    const char *name;
    void (*layers)(layers *);
    double images_per_s; /* of one GPU alone */
    double published[HOROVOD_CLUSTERS];
} networks[HOROVOD_NETWORKS] = {
    { "Inception V3", layers_inception_v3, 134.4, { 0.90, 0.90, 2022.6 / (16 * 134.4) } },
    { "ResNet-101", layers_resnet101, 119.4, { 0.90, 0.90, 1746.2 / (16 * 119.4) } },
    { "VGG-16", layers_vgg16, 130.9, { 0.68, 0.79, 1787.4 / (16 * 130.9) } },
};

scaling_network horovod_network(void)
{
    /* A server has four GPUs, and the ring leaves each server once. So one of four messages crosses the network. */
    const double mean_us = ((GPUS_PER_SERVER - 1) * NCCL_PCI_US + NCCL_NETWORK_US) / GPUS_PER_SERVER;
    return (scaling_network){ .algorithm = SCALING_RING,
                              .latency_us = NCCL_LARGE * mean_us,
                              .gb_per_s = FITTED * LINK_GB_PER_S };
}

/* Fills in the times of *p, and one bucket per layer, from the last layer to the first. The backward pass of each layer
 * has twice the multiplications of its forward pass. The update takes no time. Returns the number of parameters. */
static double profile_of(const layers *l, double images_per_s, scaling_profile *p)
{
    const double alone = 1e3 * BATCH / images_per_s;
    double products = 0, done = 0, parameters = 0;
    p->forward_ms = alone / 3;
    p->backward_ms = alone - p->forward_ms;
    p->n_buckets = l->n;
    for (size_t i = 0; i < l->n; i++) products += l->at[i].products;
    for (size_t i = 0; i < l->n; i++) {
        const layer *at = l->at + l->n - 1 - i;
        done += at->products;
        parameters += at->parameters;
        p->buckets[i] = (scaling_bucket){ 4 * at->parameters, p->forward_ms + p->backward_ms * done / products };
    }
    return parameters;
}

horovod_case horovod_compare(const scaling_network *net, size_t network, size_t cluster)
{
    layers l;
    scaling_bucket buckets[MOST_LAYERS];
    scaling_profile p = { .buckets = buckets };
    networks[network].layers(&l);
    horovod_case c = { networks[network].name, clusters[cluster], profile_of(&l, networks[network].images_per_s, &p),
                       networks[network].published[cluster], 0 };
    if (net->fuse_bytes <= 0) scaling_fill(&p, FUSION_BUFFER);
    c.model = scaling_predict(&p, net, c.ranks).efficiency;
    return c;
}
