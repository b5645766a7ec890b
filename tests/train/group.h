/* train/group.h - the ranks of one trainer on one device, for tests of data parallel training. */
#ifndef VKT_TEST_GROUP_H
#define VKT_TEST_GROUP_H

#include "train/rig.h"

enum { GROUP_MOST = 16 };

/* The ranks of one trainer: a context for each further rank, and the trainer of rank 0. */
typedef struct group {
    vkt_ctx *more[GROUP_MOST];
    uint32_t n; /* of the further ranks */
    vkt_trainer *t;
} group;

/* conv, batch norm, relu, max pool, dropout, linear: everything that depends on the place of a row in its step. */
vkt_tensor group_forward(vkt_builder *b, vkt_tensor x, void *user);
/* That network on the rig's data, 8 shards, several buckets, and weights that are compared at every third step. */
vkt_trainer_params group_params(const rig *r);
/* Makes contexts and trainer; fails the test if that is not possible. */
group group_make(rig *r, vkt_trainer_params p, uint32_t ranks);
void group_free(group *g);

/* Fails the test unless both trainers have the same bits in all parts of their stores, and the same history. */
#define group_same(a, b) group_same_at(a, b, __FILE__, __LINE__)
void group_same_at(vkt_trainer *a, vkt_trainer *b, const char *file, int line);

/* Fits with one rank and with each of these numbers of ranks (0 at the end), and compares. The fits are equal. */
void group_alike(rig *r, const vkt_trainer_params *p, const vkt_fit_params *fit, const uint32_t *ranks);

#endif
