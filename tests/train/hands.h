/* train/hands.h - ranks that a test drives by hand: each has a context, a trainer and params of its own. */
#ifndef VKT_TEST_HANDS_H
#define VKT_TEST_HANDS_H

#include <pthread.h>

#include "train/group.h"
#include "vktrain/run_dir.h"

enum { HANDS_MOST = 4 };

typedef struct hand {
    vkt_ctx *ctx;
    vkt_transport transport;
    vkt_trainer *t;
    vkt_fit_params fit;
    vkt_run_dir *dir;  /* the fit writes to this folder (vkt_run_dir_fit); NULL: none. The test owns it */
    vkt_result result; /* of the last fit */
    pthread_t thread;
} hand;

typedef struct hands {
    vkt_thread_group *g;
    uint32_t n;
    hand rank[HANDS_MOST];
} hands;

/* Makes a group of n ranks and their contexts. timeout_seconds: as for vkt_thread_group_create. */
hands hands_make(rig *r, uint32_t n, double timeout_seconds);
/* Makes the trainer of one rank. hands_fit trains with a copy of `fit`. */
void hands_train(hands *h, uint32_t rank, vkt_trainer_params p, const vkt_fit_params *fit);
/* Trains on all ranks, each in its own thread, and sets `result` of each rank. */
void hands_fit(hands *h);
void hands_free(hands *h);

#endif
