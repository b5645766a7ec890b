/* train/feed.h - how a data set reaches a program: whole on the device, or streamed through a ring of slots.
 *
 * Both look the same to the program: a table of rows, a table of labels and an order; a batch starts at position
 * `first` of the order. Resident: the table is the data set and the order is the epoch's. Streamed: the table is a ring
 * of S batches in memory that worker threads write, the order is 0, 1, 2, ..., and `first` picks the slot. */
#ifndef VKT_FEED_H
#define VKT_FEED_H

#include "base/base.h"
#include "data/loader.h"
#include "vktrain/ops.h"

#define VKT_FEED_SLOTS 4

typedef struct vkt_feed {
    vkt_ctx *ctx;
    const vkt_host *h;
    const vkt_dataset *data;
    uint32_t batch, n; /* rows of a batch, of the data set */
    bool streams;
    vkt_array *features, *labels, *order;
    vkt_array *targets;           /* NULL: the data set has none */
    uint32_t *host_order;         /* of the running epoch, n */
    uint32_t at;                  /* rows handed out in this epoch */
    vkt_loader *loader;           /* streaming only, like all below */
    bool busy[VKT_FEED_SLOTS];    /* slot was handed out */
    uint64_t run[VKT_FEED_SLOTS]; /* which run uses it; UINT64_MAX: none yet */
    uint32_t slot;                /* of the batch handed out last */
} vkt_feed;

typedef struct vkt_batch {
    uint32_t rows, first; /* rows 0: the epoch is over */
} vkt_batch;

/* Rows without labels get the label 0. `data` and `h` must outlive the feed. VKT_E_SHAPE for too many channels. */
vkt_result vkt_feed_create(vkt_ctx *ctx, const vkt_host *h, const vkt_dataset *data, uint32_t batch, bool stream,
                           uint32_t workers, vkt_feed *out);
void vkt_feed_destroy(vkt_feed *f);
/* Device memory of its tables: asks for data, batch, n and streams alone. */
uint64_t vkt_feed_bytes(const vkt_feed *f);

/* The external values of a graph, and their binding to this feed's arrays. A graph wants no arrays, only data, batch, n
 * and streams. */
typedef struct vkt_feed_values {
    vkt_tensor features, labels, order, targets; /* targets: null where the data set has none */
} vkt_feed_values;
#define VKT_FEED_BINDINGS 4 /* at most */
vkt_feed_values vkt_feed_declare(vkt_graph *g, const vkt_feed *f);
/* Returns how many there are. */
uint32_t vkt_feed_bind(const vkt_feed *f, vkt_feed_values v, vkt_binding out[VKT_FEED_BINDINGS]);
/* The batch, normalised (B,C,H,W) f32, or (B,L) u32 of rows of whole numbers, and its labels (B). */
void vkt_feed_gather(vkt_graph *g, const vkt_feed *f, vkt_feed_values v, vkt_tensor *x, vkt_tensor *t);
/* The batch's targets (B,K) f32, BATCH_LAST; the null tensor where the data set has none. */
vkt_tensor vkt_feed_gather_targets(vkt_graph *g, const vkt_feed *f, vkt_feed_values v);

/* Begins an epoch, of this pass, with batch `skip` of f->host_order, which the caller has filled. What an epoch given
 * up has handed out is taken back, once its runs are done. */
vkt_result vkt_feed_start(vkt_feed *f, uint32_t skip, vkt_pass pass);
/* The next batch; when all slots are taken, waits for the oldest run of `p`. */
vkt_result vkt_feed_next(vkt_feed *f, vkt_program *p, vkt_batch *out);
/* Tells which run uses the batch that vkt_feed_next gave. */
void vkt_feed_used(vkt_feed *f, uint64_t run_index);
/* No more of this epoch: its workers rest, so that the feed of another data set with the same source may start (data
 * sources serve one loader at a time). */
void vkt_feed_stop(vkt_feed *f);
/* How long vkt_feed_next has waited for rows to be made; 0 where the data lie on the device. */
uint64_t vkt_feed_waited_ns(const vkt_feed *f);

#endif
