/* train/group.h - the ranks of one trainer on one device, for tests of data parallel training. */
#ifndef VKT_TEST_GROUP_H
#define VKT_TEST_GROUP_H

#include "train/rig.h"

enum { GROUP_MOST = 16 };

/* The ranks that train together: the trainer of rank 0, and a context for each other rank. */
typedef struct group {
    vkt_ctx *more[GROUP_MOST];
    uint32_t n; /* number of contexts in `more` */
    vkt_trainer *t;
} group;

/* Builds conv, batch norm, relu, max pool, dropout, linear. The results of batch norm and dropout depend on the
 * position of a sample in its step. */
vkt_tensor group_forward(vkt_builder *b, vkt_tensor x, void *user);
/* Returns params for this network on the rig's data: 8 shards, and several buckets. After every third step the weights
 * of the ranks are compared. */
vkt_trainer_params group_params(const rig *r);
/* Makes the contexts and the trainer of a group. Fails the test if one of them cannot be made. */
group group_make(rig *r, vkt_trainer_params p, uint32_t ranks);
void group_free(group *g);

/* Fails the test unless both trainers have the same history except for times, and the same bits in all parts of their
 * stores except for the gradients. */
#define group_same(a, b) group_same_at(a, b, __FILE__, __LINE__)
void group_same_at(vkt_trainer *a, vkt_trainer *b, const char *file, int line);

/* Trains with one rank, then with each number of ranks in `ranks`, which ends with 0. Fails the test unless all
 * trainings have the same bits (group_same). */
void group_alike(rig *r, const vkt_trainer_params *p, const vkt_fit_params *fit, const uint32_t *ranks);

#endif
