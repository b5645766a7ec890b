/* train/group.h - the ranks of one trainer on one device, for tests of data parallel training. */
#ifndef VKT_TEST_GROUP_H
#define VKT_TEST_GROUP_H

#include "train/rig.h"

enum { GROUP_MOST = 16 };

/* The ranks that train together: a context for each further rank, and the trainer of rank 0. */
typedef struct group {
    vkt_ctx *more[GROUP_MOST];
    uint32_t n; /* number of further ranks */
    vkt_trainer *t;
} group;

/* Builds conv, batch norm, relu, max pool, dropout, linear. Batch norm and dropout depend on the position of a row in
 * its step. */
vkt_tensor group_forward(vkt_builder *b, vkt_tensor x, void *user);
/* Returns params for this network on the rig's data: 8 shards, several buckets, and weights that are compared after
 * every third step. */
vkt_trainer_params group_params(const rig *r);
/* Makes contexts and trainer; fails the test if that is not possible. */
group group_make(rig *r, vkt_trainer_params p, uint32_t ranks);
void group_free(group *g);

/* Fails the test unless both trainers have the same history, and the same bits in all parts of their stores except the
 * gradients. */
#define group_same(a, b) group_same_at(a, b, __FILE__, __LINE__)
void group_same_at(vkt_trainer *a, vkt_trainer *b, const char *file, int line);

/* Fits with one rank, and with each of the numbers of ranks in `ranks` (0 at the end). Fails the test unless all fits
 * have the same bits (group_same). */
void group_alike(rig *r, const vkt_trainer_params *p, const vkt_fit_params *fit, const uint32_t *ranks);

#endif
