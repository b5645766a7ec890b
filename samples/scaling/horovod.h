/* scaling/horovod.h - the efficiencies that Horovod's authors published, and those that the model predicts.
 * docs/scaling.md has the source of each number. */
#ifndef SCALING_HOROVOD_H
#define SCALING_HOROVOD_H

#include "scaling/model.h"

enum { HOROVOD_NETWORKS = 3, HOROVOD_CLUSTERS = 3 };

typedef struct horovod_case {
    const char *network;
    uint32_t ranks;
    double parameters;
    double published, model; /* efficiencies */
} horovod_case;

/* Returns the connection of Horovod's ranks. The bandwidth is the only fitted number. */
scaling_network horovod_network(void);
/* Returns the published and the predicted efficiency of one neural network in one cluster. Cluster 0 has 512 ranks. The
 * bandwidth was fitted to the three neural networks in cluster 0. Each layer has one bucket. If net->fuse_bytes is 0,
 * neighbouring buckets are merged up to the size of Horovod's fusion buffer. Otherwise an exchange has all buckets that
 * are ready when it begins, but at most net->fuse_bytes bytes. A bucket with more bytes is exchanged alone. */
horovod_case horovod_compare(const scaling_network *net, size_t network, size_t cluster);

#endif
