/* ops/loss/loss.h - what losses and scores over (B,K) share: how samples are dealt to work groups. */
#ifndef VKT_LOSS_H
#define VKT_LOSS_H

#include "ops/ops.h"

/* Most classes that one lane walks over scores with the batch last: twice, four in an iteration, in less than the
 * 65,535 iterations after which Mesa 22.3 leaves a loop. More classes go by rows, where all lanes of a work group share
 * one. */
#define VKT_MAX_CLASSES_OF_A_LANE 100000u

/* A vector is what one work group takes at once: four samples a lane of a batch-last tensor; of a row-major one a row a
 * lane (`by_lane`, few classes) or one row. A block of vectors is summed by one work group. A row-major z that is
 * larger than a binding comes in windows of rows, each with blocks of its own. All this depends on the shape and the
 * device alone, so sums have a fixed order. */
typedef struct vkt_sample_blocks {
    uint32_t batch, pitch4, classes;
    bool batch_last, columns, by_lane; /* `columns`: batch last, four samples a lane */
    uint32_t lanes, per_block, blocks; /* blocks: of all windows */
    uint32_t window;                   /* rows of one */
} vkt_sample_blocks;
typedef struct vkt_sample_window {
    uint32_t first, end;            /* rows */
    uint32_t vectors, part, blocks; /* its blocks are part .. part + blocks - 1 */
    uint64_t offset_bytes, bytes;   /* of z */
} vkt_sample_window;

/* `label_alone`: of each row one class is read, so rows go to lanes in either layout. Sets the emission's error and
 * returns false if z (B,K) is too large for this device. */
bool vkt_sample_blocks_of(vkt_emit *e, const vkt_value *z, bool label_alone, vkt_sample_blocks *out);
/* The window after *w, the first after a zeroed one; false behind the last. */
bool vkt_next_window(const vkt_sample_blocks *s, vkt_sample_window *w);
/* z by rows if it is BATCH_LAST and either more than every device binds at once (2^27 bytes), for only rows come in
 * windows, or of more classes than one lane walks. */
vkt_tensor vkt_windowed_scores(vkt_graph *g, vkt_tensor z);
/* For gradients over z: lanes of a work group, and how many of them take a window's rows. */
static inline uint32_t vkt_score_lanes(const vkt_emit *e)
{
    return e->lim->cpu ? e->lim->subgroup_size : 64;
}
static inline uint64_t vkt_score_groups(const vkt_sample_blocks *s, const vkt_sample_window *w, uint32_t lanes)
{
    return s->columns   ? vkt_groups(s->pitch4, lanes, 1)
           : s->by_lane ? vkt_groups(w->end - w->first, lanes, 1)
                        : w->end - w->first;
}
/* Refuses what is not z (B,K) f32 and, with labels, t (B) u32, as inputs 0 and 1. */
vkt_result vkt_check_scores(vkt_infer *f, bool labels);
/* Sets the graph's error if an input of n that its row gives no gradient would need one: it must not be left out in
 * silence. For `backward`. */
void vkt_refuse_other_gradients(vkt_graph *g, const vkt_node *n);
/* y = sum of the blocks' partial sums, unless there is one only: then `partial` is y. */
vkt_tensor vkt_partial_sums(vkt_emit *e, vkt_tensor y, uint32_t blocks);
void vkt_sum_partials(vkt_emit *e, vkt_tensor partial, vkt_tensor y);

#endif
