/* ops/loss/loss.h - the code that losses and scores over (B,K) share: how samples are distributed over work groups. */
#ifndef VKT_LOSS_H
#define VKT_LOSS_H

#include "ops/ops.h"

/* Scores of more classes than this are converted to ROWS, on any device. In ROWS, all lanes of a work group share such
 * a sample. */
#define VKT_MANY_CLASSES 100000u

/* The distribution of the samples of z. A vector is the part that one work group computes at once. In BATCH_LAST a
 * vector has four samples per lane (`columns`). In ROWS it has one row per lane if the classes are few (`by_lane`),
 * else it is one row. If only the label's class is read, it has one row per lane in either layout (`by_lane`). One work
 * group sums a block of vectors. If a z in ROWS is larger than a binding, it is split into ranges of rows; each has
 * blocks of its own. All this depends on the shape and the device alone. So sums have a fixed order. */
typedef struct vkt_sample_blocks {
    uint32_t batch, pitch4, classes;
    bool batch_last, columns, by_lane; /* batch_last: the layout of z */
    uint32_t lanes, per_block, blocks; /* lanes of a work group; vectors of a block; blocks of all ranges together */
    uint32_t range;                    /* rows of one range */
} vkt_sample_blocks;
typedef struct vkt_sample_range {
    uint32_t first, end;            /* rows */
    uint32_t vectors, part, blocks; /* vectors of the range; its blocks are part .. part + blocks - 1 */
    uint64_t offset_bytes, bytes;   /* the range of z */
} vkt_sample_range;

/* Computes the blocks of z (B,K). `label_alone`: only the label's class of each row is read. Sets the emission's error
 * and returns false if z is too large for this device. */
bool vkt_sample_blocks_of(vkt_emit *e, const vkt_value *z, bool label_alone, vkt_sample_blocks *out);
/* Advances *w to the next range; a zeroed *w advances to the first. Returns false after the last one. */
bool vkt_next_range(const vkt_sample_blocks *s, vkt_sample_range *w);
/* Converts z to ROWS if it is BATCH_LAST and has either more than 2^27 bytes (every device can bind 2^27 bytes at once)
 * or more than VKT_MANY_CLASSES classes. Only ROWS can be split into ranges. */
vkt_tensor vkt_scores_by_range(vkt_graph *g, vkt_tensor z);
/* For gradients over z, vkt_score_lanes returns the lanes of a work group, and vkt_score_groups returns the number of
 * work groups for the rows of a range. */
static inline uint32_t vkt_score_lanes(const vkt_emit *e)
{
    return vkt_lanes(e->lim, e->lim->traits->lanes_classes);
}
static inline uint64_t vkt_score_groups(const vkt_sample_blocks *s, const vkt_sample_range *w, uint32_t lanes)
{
    return s->columns   ? vkt_groups(s->pitch4, lanes, 1)
           : s->by_lane ? vkt_groups(w->end - w->first, lanes, 1)
                        : w->end - w->first;
}
/* Checks that input 0 is z (B,K) f32 and, if `labels`, that input 1 is t (B) u32. */
vkt_result vkt_check_scores(vkt_infer *f, bool labels);
/* Sets the graph's error if an input of n needs a gradient and n's op does not compute it. Without the error, the
 * gradient would be missing without a message. Call it from `backward`. */
void vkt_refuse_other_gradients(vkt_graph *g, const vkt_node *n);
/* vkt_partial_sums returns the tensor for the blocks' partial sums: y itself if there is one block, else scratch.
 * vkt_sum_partials emits the sum of the partial sums to y, or nothing if `partial` is y. */
vkt_tensor vkt_partial_sums(vkt_emit *e, vkt_tensor y, uint32_t blocks);
void vkt_sum_partials(vkt_emit *e, vkt_tensor partial, vkt_tensor y);

#endif
