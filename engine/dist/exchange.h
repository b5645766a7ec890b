/* dist/exchange.h - sums a step's gradients over all ranks, bucket by bucket, while the device computes.
 *
 * The program of shards writes the sum of the gradients of this rank's shards to the vector `sum`. With one rank and
 * VKT_WIRE_F32, these sums are final. Otherwise (`active`), host and device share the vector. Each section of the
 * program of shards (record/marks.h), except the last one, ends where a bucket is complete: behind the last dispatch
 * that uses the bucket. The last section ends with the program. The host waits until a bucket is complete, exchanges
 * the bucket with the other ranks, and opens the gate for the bucket. Each section of the update program waits for the
 * buckets that it needs. So the backward pass of early layers runs while the ranks exchange the gradients of late
 * layers, and the update begins with the buckets whose sums have arrived.
 *
 * A bucket may also have sums of states (ops/step/shard.c). With VKT_WIRE_BF16, these are exchanged once more, as f32:
 * their sums as bfloat16 are not used. */
#ifndef VKT_EXCHANGE_H
#define VKT_EXCHANGE_H

#include "record/marks.h"
#include "vktrain/dist.h"

typedef struct vkt_exchange {
    vkt_ctx *ctx;
    const vkt_graph *g;             /* of the update: it has the buckets and the states */
    const vkt_transport *transport; /* NULL: one rank */
    vkt_wire wire;                  /* of gradients */
    bool active;                  /* each step needs the host, because there are other ranks or `wire` rounds numbers */
    vkt_array *sum;               /* f32, with the size of the arena; if `active`, the host can also access it */
    uint32_t n;                   /* number of buckets */
    uint64_t *ends;               /* for each bucket: the offset of its end in the arena, in bytes; rising */
    uint32_t *order;              /* buckets in the order in which they are complete */
    uint32_t *section;            /* for each bucket: the section of the program of shards that completes it */
    uint32_t n_sections, n_waits; /* number of sections of the program of shards, and of the update program */
    uint64_t *values;             /* timeline values of the sections of shards, for the two newest steps */
    uint32_t *needs;              /* section i of the update waits for the first needs[i] buckets of `order` */
    VkSemaphoreSubmitInfo
        *waits;           /* for each section of the update: its wait for the gate, in the last submitted step */
    vkt_gate gate;        /* its value: number of sums of buckets that have arrived, counted over all steps */
    uint64_t begun, done; /* number of steps whose exchange has begun, and of steps whose exchange has ended */
    float *scratch;
    uint64_t *state_bytes; /* VKT_WIRE_BF16: for each bucket, the bytes of the states that change; VKT_WIRE_F32: 0 */
    float *states;         /* the sums of a bucket's states, one after the other */
    uint64_t last_ns;      /* time when the last sum of the previous step arrived; 0: no previous step */
    vkt_dist_stats stats;
} vkt_exchange;

/* Splits an arena into buckets at the borders of parameters. Buckets are formed from the arena's end backwards, and
 * each has at least bucket_bytes; only the bucket at the arena's beginning may be smaller. *ends gets the offsets of
 * the buckets' ends in bytes, in rising order; the caller frees *ends. VKT_E_NOMEM. */
vkt_result vkt_exchange_split(const vkt_graph *g, uint64_t bucket_bytes, uint64_t **ends, uint32_t *n);
/* Makes x->sum and the memory of the exchange. g is the graph of the update (vkt_update_by_sum), and must outlive *x.
 * The caller destroys *x also after a failure. */
vkt_result vkt_exchange_create(vkt_ctx *ctx, const vkt_dist_params *p, const vkt_graph *g, vkt_exchange *x);
/* Divides both programs, which have just been made, into sections. `t` is the value of x->sum in the graph of `shards`,
 * and `u` in the graph of `update`. */
vkt_result vkt_exchange_connect(vkt_exchange *x, vkt_program *shards, vkt_tensor t, vkt_program *update, vkt_tensor u);
void vkt_exchange_destroy(vkt_exchange *x);
/* Returns memory for n_sections timeline values of the step that is submitted next (vkt_program_run_sections). */
uint64_t *vkt_exchange_values(vkt_exchange *x);
/* Begins the exchange of the step whose shards were just submitted, and submits its update. */
vkt_result vkt_exchange_update(vkt_exchange *x, vkt_program *update, const vkt_run *run, uint64_t *run_index);
/* Exchanges the buckets of the oldest step that is not exchanged yet. Does nothing if there is none. */
vkt_result vkt_exchange_step(vkt_exchange *x);
/* Opens the gate for all buckets, so that the device can finish after a failure. The sums that have not arrived are
 * wrong. */
void vkt_exchange_abandon(vkt_exchange *x);

#endif
