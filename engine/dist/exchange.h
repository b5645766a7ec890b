/* dist/exchange.h - the sum of a step's gradients over all ranks, bucket by bucket, while the device goes on.
 *
 * A program of shards writes this rank's sum to a vector that host and device share (`sum`). Its sections end where a
 * bucket is complete (record/marks.h). The host waits for the end of such a section, exchanges the bucket with the
 * other ranks, and opens a gate. The update program waits for the gates. So early layers are still computed while the
 * gradients of late layers are on their way, and the update begins with the buckets that are back. */
#ifndef VKT_EXCHANGE_H
#define VKT_EXCHANGE_H

#include "record/marks.h"
#include "vktrain/dist.h"

typedef struct vkt_exchange {
    vkt_ctx *ctx;
    const vkt_transport *transport; /* NULL: one rank */
    vkt_wire wire;
    bool active;                  /* the host takes part in each step: there are other ranks, or numbers are rounded */
    vkt_array *sum;               /* f32, as long as the arena */
    uint32_t n;                   /* buckets */
    uint64_t *ends;               /* index: bucket, by address; the offset behind it in bytes */
    uint32_t *order;              /* buckets in the order in which they are complete */
    uint32_t *section;            /* index: bucket; the section of the program of shards that completes it */
    uint32_t n_sections, n_waits; /* sections of both programs */
    uint64_t *values;             /* n_sections of them, for two steps in turn */
    uint32_t *needs;              /* index: section of the update; number of buckets that must be back before it */
    VkSemaphoreSubmitInfo *waits; /* the same, as semaphores of the next step */
    vkt_gate gate;                /* its value: buckets that are back, of all steps */
    uint64_t begun, done;         /* steps whose gates the update waits for; steps that are exchanged */
    float *scratch;
    uint64_t last_ns; /* time when the last bucket of the step before was back; 0: no step before */
    vkt_dist_stats stats;
} vkt_exchange;

/* Splits an arena into buckets of about bucket_bytes, from its end on, at the borders of parameters. *ends gets the
 * offsets behind the buckets, rising; the caller frees it. */
vkt_result vkt_exchange_split(const vkt_graph *g, uint64_t bucket_bytes, uint64_t **ends, uint32_t *n);
/* Makes the shared vector for an arena with these buckets. The caller destroys *x also after a failure. */
vkt_result vkt_exchange_create(vkt_ctx *ctx, const vkt_dist_params *p, const uint64_t *ends, uint32_t n,
                               vkt_exchange *x);
/* Finds the sections of both programs, which have just been made. t and u: x->sum as a value of their graphs. */
vkt_result vkt_exchange_connect(vkt_exchange *x, vkt_program *shards, vkt_tensor t, vkt_program *update, vkt_tensor u);
void vkt_exchange_destroy(vkt_exchange *x);
/* Returns the room for the values of the step that is submitted next: n_sections numbers. */
uint64_t *vkt_exchange_values(vkt_exchange *x);
/* Begins the exchange of the step whose shards were just submitted, and submits its update. */
vkt_result vkt_exchange_update(vkt_exchange *x, vkt_program *update, const vkt_run *run, uint64_t *run_index);
/* Exchanges the buckets of the oldest step that is begun and not exchanged. */
vkt_result vkt_exchange_step(vkt_exchange *x);
/* After a failure: opens all gates, so that the device can finish. The sums are wrong then. */
void vkt_exchange_abandon(vkt_exchange *x);

#endif
