/* train/identity.h - what tells a run from another one: settings, data and network, as text in its checkpoints.
 *
 * Metadata of a checkpoint, a line for each fact:
 *   vktrain.run    "batch=128"; a hash stands behind '#'. All of it must be equal for a resumed run to go on
 *   vktrain.rate   learning rate and length of the schedule: another value is said, and then taken
 *   vktrain.graph  a node of model and loss: "attention attention.7 shape=16x64x96 of=add.6 heads=4 causal=1 scale=0.2"
 *
 * Data sets are compared by a hash over type, shape, all labels and targets, and the features: all of them where they
 * lie in memory and take 64 MiB or less, else those of evenly spaced rows that take 64 MiB or less, first and last
 * included (at most 256 rows where a source makes them, as it does for epoch 0). So a change of single rows in a larger
 * data set may pass. */
#ifndef VKT_IDENTITY_H
#define VKT_IDENTITY_H

#include "train/trainer.h"

/* The lines of one graph, of every node that it has so far. VKT_E_NOMEM. */
vkt_result vkt_identity_graph(const vkt_graph *g, vkt_text *out);
/* The other lines, as t->run_lines and t->rate_lines. The first call reads the data sets: VKT_E_NOMEM, or a source's
 * error. Nothing in them changes once a trainer is made. */
vkt_result vkt_identity_know(vkt_trainer *t);
/* Compares the trainer with a checkpoint: VKT_E_STATE, and the message names what differs. Says what may differ and
 * does. `path` is for messages. */
vkt_result vkt_identity_check(vkt_trainer *t, const vkt_safetensors *st, const char *path);

#endif
