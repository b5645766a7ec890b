/* scaling/model.h - a model of one data parallel step: when buckets of gradients are ready, and how long each exchange
 * takes. docs/scaling.md explains it. */
#ifndef SCALING_MODEL_H
#define SCALING_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Gradients that are exchanged together. */
typedef struct scaling_bucket {
    double bytes;
    double ready_ms; /* from the beginning of the step */
} scaling_bucket;

/* A step of one rank alone. The batch of a rank is the same for any number of ranks (weak scaling). */
typedef struct scaling_profile {
    double forward_ms, backward_ms, update_ms;
    scaling_bucket *buckets; /* in the order of their exchanges */
    size_t n_buckets;
} scaling_profile;

typedef enum scaling_algorithm {
    SCALING_HALVING = 0, /* recursive halving, then doubling: 2 * ceil(log2(ranks)) messages one after the other */
    SCALING_RING         /* 2 * (ranks - 1) messages one after the other */
} scaling_algorithm;

/* The connection of a rank to the other ranks. */
typedef struct scaling_network {
    scaling_algorithm algorithm;
    double latency_us;    /* alpha: time that a message needs even if it has no bytes */
    double gb_per_s;      /* beta: bandwidth in each direction, 10^9 bytes per second; 0: infinite */
    double contention;    /* number of ranks that share this bandwidth; 0 counts as 1 */
    double copy_gb_per_s; /* rate of the host's copies of a bucket before and after its exchange; 0: no copies */
    double fuse_bytes;    /* limit for the bytes of an exchange of several buckets; 0: an exchange has one bucket */
} scaling_network;

typedef struct scaling_step {
    double step_ms;
    double exposed_ms; /* time after the end of the backward pass in which the ranks only wait for exchanges */
    double efficiency; /* time of one rank alone / step_ms */
    size_t exchanges;
} scaling_step;

/* Returns the time of an all-reduce of `bytes` bytes. ranks: 1 or more; one rank needs no time. */
double scaling_exchange_ms(const scaling_network *net, double bytes, uint32_t ranks);
scaling_step scaling_predict(const scaling_profile *p, const scaling_network *net, uint32_t ranks);
/* Merges neighbouring buckets while their sum is at most `bytes`. A merged bucket is ready when the last of its buckets
 * is ready. */
void scaling_fill(scaling_profile *p, double bytes);

#endif
