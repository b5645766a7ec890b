/* vktrain/dist.h - data parallel training: several devices or processes train one model.
 *
 * A rank is one context with a trainer of its own. All ranks have the same weights. A step's batch consists of V
 * virtual shards (vkt_dist_params.shards). Each rank computes the gradients of V / ranks shards. The gradients of all
 * shards are added by one fixed binary tree, and every rank applies the same sum. So the result does not depend on the
 * number of ranks: 1, 2, 4 .. V ranks end with the same bits.
 *
 * Ranks exchange data through a transport. The library has three: for threads of one process (below), for MPI
 * (vktrain/mpi.h), and for an emulated cluster (below). An application can bring a transport of its own.
 *
 * Threads: one thread at a time per rank. Different ranks of a process run in different threads. */
#ifndef VKTRAIN_DIST_H
#define VKTRAIN_DIST_H

#include <stddef.h>

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_MAX_SHARDS 4096 /* largest number of shards of a batch, and largest number of ranks */

/* ---- transports -------------------------------------------------------------------------------------------------- */

/* One rank's connection to all other ranks. If any rank fails, `exchange` and `barrier` return VKT_E_PEER, after a
 * message that names the failed rank. After VKT_E_PEER, every later call returns VKT_E_PEER, too. VKT_E_ARG: `peer` is
 * not another rank, or `send` or `receive` is NULL although `bytes` is not 0. */
typedef struct vkt_transport {
    void *user;     /* passed to all functions */
    uint32_t rank;  /* from 0 */
    uint32_t ranks; /* a power of two, at most VKT_MAX_SHARDS */
    /* Sends `bytes` bytes to rank `peer` and receives as many bytes from it. The peer must make the matching call.
     * Returns when both directions are done. `send` and `receive` do not overlap. */
    vkt_result (*exchange)(void *user, uint32_t peer, const void *send, void *receive, size_t bytes);
    /* Returns when all ranks have called `barrier`. */
    vkt_result (*barrier)(void *user);
    /* Reports that this rank cannot continue. The message has this rank's number and `reason`. Calls of other ranks
     * that wait now, and all later calls, return VKT_E_PEER. Never waits. */
    void (*fault)(void *user, const char *reason);
} vkt_transport;

/* The form of a number in a message. All additions are in f32. */
typedef enum vkt_wire {
    VKT_WIRE_F32 = 0, /* 4 bytes */
    VKT_WIRE_BF16 /* 2 bytes, bfloat16. Before each addition of the tree (see vkt_all_reduce), both summands are rounded
                   * to bfloat16. The final sum is rounded, too. The rounding does not depend on the number of ranks */
} vkt_wire;

/* Replaces data[0..n) of every rank by the sum over all ranks, which has the same bits on each rank. The method is
 * recursive halving, then recursive doubling (Thakur, Rabenseifner & Gropp, Optimization of Collective Communication
 * Operations in MPICH, 2005). In round s of the halving (s = 0, 1, ..), rank r and rank r xor 2^s exchange and add
 * numbers. So the additions form a binary tree whose leaves are the ranks in rising order. Each rank sends
 * 2 * n * (ranks - 1) / ranks numbers in all, and a few more if n is no multiple of `ranks`.
 *
 * A number or a sum with a magnitude below 2^-126 becomes +0, and every NaN becomes 0x7fc00000. So the result does not
 * depend on whether hosts and devices flush denormal numbers. `scratch` has space for n / 2 numbers, rounded up; it may
 * be NULL if there is only one rank. VKT_E_ARG: a transport, argument or number of ranks is wrong. If `exchange` fails,
 * the call returns the result of `exchange`, and the contents of `data` are undefined. */
VKT_API vkt_result vkt_all_reduce(const vkt_transport *t, float *data, size_t n, vkt_wire wire, float *scratch);
/* Collects one record of `bytes` bytes from each rank, on all ranks. `records` is an array with one record for each
 * rank. Before the call, rank r fills in record r of its array. After the call, the array of every rank has all
 * records. The errors are those of vkt_all_reduce. */
VKT_API vkt_result vkt_all_gather(const vkt_transport *t, void *records, size_t bytes);

/* The ranks of one process. Each rank runs in a thread of its own. */
typedef struct vkt_thread_group vkt_thread_group;
/* Makes the connections of `ranks` ranks (a power of two). A rank that makes no call counts as failed when another rank
 * has waited for it for longer than timeout_seconds. Ranks whose calls do not match also count as failed when they have
 * waited for each other for longer than timeout_seconds. A timeout_seconds of 0 means 60 seconds. After a failure the
 * group logs one message, and all calls of all ranks return VKT_E_PEER. VKT_E_ARG, VKT_E_NOMEM. Owner: the caller.
 * Destroy the group after the last call of its transports. */
VKT_API vkt_result vkt_thread_group_create(const vkt_host *host, uint32_t ranks, double timeout_seconds,
                                           vkt_thread_group **out);
VKT_API void vkt_thread_group_destroy(vkt_thread_group **g);
/* Returns the transport of one rank; all zeros if there is no such rank. The transport is valid as long as the
 * group. */
VKT_API vkt_transport vkt_thread_group_transport(vkt_thread_group *g, uint32_t rank);

/* An emulated cluster, to measure times: only rank 0 is real. See docs/scaling.md. */
typedef struct vkt_emulation_params {
    uint32_t ranks;          /* a power of two, at most VKT_MAX_SHARDS */
    double latency_seconds;  /* latency of each message */
    double bytes_per_second; /* bandwidth of each message; 0: infinite */
} vkt_emulation_params;
typedef struct vkt_emulation vkt_emulation;
/* Makes rank 0 of an emulated cluster. An exchange takes as long as in the cluster: the latency plus
 * bytes / bytes_per_second. But `receive` gets a copy of the bytes of `send`, because there is no other rank. A barrier
 * takes log2(ranks) times the latency. So the times are those of a cluster, but the sums are wrong. VKT_E_ARG,
 * VKT_E_NOMEM. Owner: the caller. */
VKT_API vkt_result vkt_emulation_create(const vkt_host *host, const vkt_emulation_params *params, vkt_emulation **out);
VKT_API void vkt_emulation_destroy(vkt_emulation **e);
/* Returns the transport of rank 0; all zeros if `e` is NULL. The transport is valid as long as the emulation. */
VKT_API vkt_transport vkt_emulation_transport(vkt_emulation *e);

/* ---- parameters and statistics of distributed training (vkt_trainer_params.dist) --------------------------------- */

/* How a step is split among the ranks. A member that is zero selects its default. */
typedef struct vkt_dist_params {
    const vkt_transport *transport; /* must outlive the trainer. NULL: the only ranks are the trainer's context and the
                                     * contexts of vkt_trainer_params.more_devices */
    uint32_t shards;                /* V: a power of two, a multiple of the number of ranks, and a divisor of the batch
                                     * size. 0 means 1 if there is neither a transport nor
                                     * vkt_trainer_params.more_devices. Otherwise 0 means the larger of 8 and the
                                     * number of ranks. With 1 shard, the step is not split. The result depends on V,
                                     * and a checkpoint has V */
    uint64_t bucket_bytes;          /* smallest size of a bucket, which is a range of gradients that the ranks exchange
                                     * at once. Only the bucket with the first parameters may be smaller. 0 means
                                     * 4 MiB */
    vkt_wire wire;                  /* the form of gradients in messages. The result depends on this form. Running
                                     * statistics (vkt_state) are always f32 */
    uint32_t check_every;           /* the ranks compare a hash of their weights once in this many steps; 0 means 100 */
} vkt_dist_params;

#define VKT_DIST_BUCKETS 64 /* length of the arrays in vkt_dist_stats. Further buckets are not in the arrays */
/* Bytes and times of all exchanges of gradients so far. docs/scaling.md predicts the time of a step with more ranks.
 * The prediction uses bucket_bytes, and the mean of ready_ms over the steps: ready_ms / steps. */
typedef struct vkt_dist_stats {
    uint64_t steps;     /* number of steps that ready_ms covers: all but the first one, because ready_ms begins at the
                         * end of the last exchange of the previous step */
    uint64_t bytes;     /* bytes that this rank has sent */
    double exchange_ms; /* time of all exchanges, including waits for other ranks */
    double exposed_ms;  /* time of only those exchanges that ended later than the backward pass of their step. The
                         * exchanges make all steps together longer by at most this time */
    uint32_t ranks;     /* number of ranks */
    uint32_t buckets;   /* number of buckets of a step */
    uint64_t bucket_bytes[VKT_DIST_BUCKETS]; /* sizes of the buckets, in the order in which they become complete */
    double ready_ms[VKT_DIST_BUCKETS]; /* [i] is about the same bucket as bucket_bytes[i]. Each of the `steps` steps
                                        * adds one time to it. This time begins when the last exchange of the previous
                                        * step ends. It ends when this bucket is complete and the exchanges of all
                                        * earlier buckets have ended: then the exchange of this bucket begins */
} vkt_dist_stats;

#ifdef __cplusplus
}
#endif
#endif
