/* train/feed.h - makes a data set readable by a program. The whole data set is on the device, or it is streamed through
 * a ring of slots.
 *
 * All feeds look the same to the program: a table of samples, a table of labels, a table of targets if the data set has
 * targets, and an array `order` with indices into these tables. A batch starts at position `first` of `order`.
 *   resident: the table is the data set, and `order` is the order of the epoch
 *   resident, with vkt_feed_params.room: the table has the samples of one epoch, sorted in the order of the epoch. So
 *   `order` is 0, 1, 2, ..
 *   streamed: the table is a ring of VKT_FEED_SLOTS batches in memory that worker threads write. `order` is 0, 1, 2, ..
 *   `first` selects the slot */
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
    uint32_t batch, n; /* batch: number of samples in a batch; n: number of samples in the data set */
    uint32_t length;   /* number of samples of the current epoch: the first `length` samples of host_order */
    uint32_t room;     /* see vkt_feed_params.room. In a resident feed with `room`, vkt_feed_start fills the tables on
                        * the device with the samples of the epoch, in the epoch's order */
    uint64_t in_room;  /* with `room`: hash of the order whose samples the tables have; 0: the tables are not filled */
    uint32_t workers;  /* see vkt_loader_params.workers */
    bool streams;
    vkt_array *features, *labels, *order;
    vkt_array *targets;   /* NULL: the data set has none */
    uint32_t *host_order; /* order of the current epoch: n indices of samples */
    uint32_t at; /* number of samples of this epoch that vkt_feed_next has returned or vkt_feed_start has skipped */
    vkt_loader *loader;           /* loader, busy, run and slot are used in streamed feeds only */
    bool busy[VKT_FEED_SLOTS];    /* vkt_feed_next has returned the slot, and it is not free yet */
    uint64_t run[VKT_FEED_SLOTS]; /* the run that uses the slot; UINT64_MAX: none yet */
    uint32_t slot;                /* slot of the newest batch */
} vkt_feed;

typedef struct vkt_batch {
    uint32_t rows, first; /* rows: number of samples; 0: the epoch is over. first: position in `order` */
    uint32_t terms;       /* number of terms of the whole batch (vkt_dataset_terms); 0: the data set has no terms */
} vkt_batch;

typedef struct vkt_feed_params {
    uint32_t batch;
    bool stream;
    uint32_t workers; /* see vkt_loader_params.workers */
    uint32_t room;    /* 0: an epoch has all samples of the data set; else an epoch has at most `room` samples */
} vkt_feed_params;
/* Creates a feed. Samples without labels have label 0. `data` and `h` must outlive the feed. VKT_E_SHAPE for too many
 * channels; VKT_E_ARG for a batch or a sample that is too large; the errors of vkt_array_create and of the loader. */
vkt_result vkt_feed_create(vkt_ctx *ctx, const vkt_host *h, const vkt_dataset *data, const vkt_feed_params *p,
                           vkt_feed *out);
void vkt_feed_destroy(vkt_feed *f);
/* Returns how many bytes of device memory the feed's tables use. Reads only data, batch, n, room and streams of the
 * feed. */
uint64_t vkt_feed_bytes(const vkt_feed *f);

/* The external values of a graph, which vkt_feed_bind binds to the feed's arrays. A feed without arrays is enough to
 * build a graph: only its members data, batch, n, room and streams are used. */
typedef struct vkt_feed_values {
    vkt_tensor features, labels, order, targets; /* targets: null if the data set has none */
} vkt_feed_values;
#define VKT_FEED_BINDINGS 4 /* largest number of bindings of a feed */
vkt_feed_values vkt_feed_declare(vkt_graph *g, const vkt_feed *f);
/* Writes the bindings. Returns their number. */
uint32_t vkt_feed_bind(const vkt_feed *f, vkt_feed_values v, vkt_binding out[VKT_FEED_BINDINGS]);
/* Returns the batch in *x and its labels (B) in *t. If the samples are VKT_ROW_U16 or VKT_ROW_U32, for instance
 * tokens, *x is u32, (B,L). Else *x is f32 and normalised: (B,F) if the samples are vectors, otherwise (B,C,H,W). */
void vkt_feed_gather(vkt_graph *g, const vkt_feed *f, vkt_feed_values v, vkt_tensor *x, vkt_tensor *t);
/* Returns the batch's targets (B,K) f32, BATCH_LAST; the null tensor if the data set has none. */
vkt_tensor vkt_feed_gather_targets(vkt_graph *g, const vkt_feed *f, vkt_feed_values v);

/* Adds up the terms (vkt_dataset_terms) of the n samples host_order[first] to host_order[first + n - 1]. Returns 0 if
 * the data set has no terms. */
uint32_t vkt_feed_terms(const vkt_feed *f, uint64_t first, uint32_t n);
/* Begins the epoch of `pass` at batch `skip`. Before this call, the caller writes the epoch's order to f->host_order.
 * The caller may also change f->length, which vkt_feed_create sets to the number of all samples. If runs of an earlier
 * epoch still use slots, first waits for these runs, and frees the slots. */
vkt_result vkt_feed_start(vkt_feed *f, uint32_t skip, vkt_pass pass);
/* Returns the next batch. Streamed feed: waits until workers have made the batch. If all slots are in use, first waits
 * for the oldest run of `p` that uses a slot. */
vkt_result vkt_feed_next(vkt_feed *f, vkt_program *p, vkt_batch *out);
/* Stores the index of the run that uses the batch of the last vkt_feed_next. */
void vkt_feed_used(vkt_feed *f, uint64_t run_index);
/* Ends the epoch, and stops its workers. After this call, a feed of another data set with the same source may start.
 * Feeds of several ranks may run at the same time on one data set: see vkt_dataset_take_worker. */
void vkt_feed_stop(vkt_feed *f);
/* Returns how long all calls of vkt_feed_next have waited for samples, in ns; 0 if the data are on the device. */
uint64_t vkt_feed_waited_ns(const vkt_feed *f);

#endif
