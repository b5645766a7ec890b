/* ops/loss/loss.h - the code that losses and scores share: checks, partial sums, and how the samples of (B,K) are
 * distributed over work groups. */
#ifndef VKT_LOSS_H
#define VKT_LOSS_H

#include "ops/ops.h"

/* Scores of more classes than this are converted to ROWS, on any device. In ROWS, all lanes of a work group share the
 * classes of a sample. In BATCH_LAST, one lane would loop over all classes of a sample. */
#define VKT_MANY_CLASSES 100000u

/* The distribution of the samples of z over work groups. A vector is the part of z that a work group computes at once.
 * One work group sums a block of vectors. There are three kinds of vectors:
 *   columns: four samples per lane. For a z in BATCH_LAST, unless only the label's class is read
 *   by_lane: one row per lane. For a z in ROWS with few classes, and for any z if only the label's class is read
 *   neither of the two: one row for all lanes. For a z in ROWS with more classes
 * A z in ROWS that is larger than a binding is split into ranges of rows. Each range has its own blocks. The
 * distribution depends only on the shape, the layout and the device, so sums have a fixed order. */
typedef struct vkt_sample_blocks {
    uint32_t batch, pitch4, classes;
    bool batch_last, columns, by_lane; /* batch_last: z is BATCH_LAST */
    /* lanes: number of lanes of a work group; per_block: number of vectors of a block; blocks: number of blocks of all
     * ranges together. */
    uint32_t lanes, per_block, blocks;
    uint32_t range; /* rows of one range */
} vkt_sample_blocks;
typedef struct vkt_sample_range {
    uint32_t first, end;            /* rows first .. end - 1 of z */
    uint32_t vectors, part, blocks; /* the range has `vectors` vectors, and the blocks part .. part + blocks - 1 */
    uint64_t offset_bytes, bytes;   /* the range of z to bind */
} vkt_sample_range;

/* Computes the blocks of z (B,K). `label_alone`: only the label's class of each row is read. If z is too large for
 * this device, sets the emission's error. Returns false if *out could not be set. */
bool vkt_sample_blocks_of(vkt_emit *e, const vkt_value *z, bool label_alone, vkt_sample_blocks *out);
/* Advances *w to the next range; a zeroed *w advances to the first. Returns false after the last one. */
bool vkt_next_range(const vkt_sample_blocks *s, vkt_sample_range *w);
/* Converts a z in BATCH_LAST to ROWS if z has more than VKT_MANY_CLASSES classes or more than 2^27 bytes. Every device
 * can bind 2^27 bytes at once. A larger z may have to be split into ranges, and only ROWS can be split. */
vkt_tensor vkt_scores_by_range(vkt_graph *g, vkt_tensor z);
/* For a kernel that computes the gradient of z, vkt_score_lanes returns the lanes of a work group, and vkt_score_groups
 * returns the number of work groups for the rows of a range. */
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
/* vkt_partial_sums returns the tensor for the blocks' partial sums: y itself if there is one block, else scratch.
 * vkt_sum_partials emits the sum of the partial sums to y, or nothing if `partial` is y. */
vkt_tensor vkt_partial_sums(vkt_emit *e, vkt_tensor y, uint32_t blocks);
void vkt_sum_partials(vkt_emit *e, vkt_tensor partial, vkt_tensor y);

#endif
