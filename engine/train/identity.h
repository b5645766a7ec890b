/* train/identity.h - the identity of a run as text in its checkpoints: settings, data and network.
 *
 * The text is in three metadata values of a checkpoint. Each value has one line for each fact:
 *   vktrain.run    a setting: "batch=128"; '#' begins a hash. All lines must be equal, or the run cannot be resumed
 *   vktrain.rate   learning rate; total, warmup and min_lr of the schedule; whether products of f32 are split. If a
 *                  value differs, the difference is logged, and the new value is used. (In vktrain.run, the precisions
 *                  f32 and f32-split are both "f32". So a run of one may go on with the other)
 *   vktrain.graph  a node of model and loss: "attention attention.7 shape=16x64x96 of=add.6 heads=4 causal=1 scale=0.2"
 *
 * Data sets are compared by hashes over type, shape, all labels and targets, and features. If the features are in
 * memory and have 64 MiB or less, the hash reads all of them. Otherwise it reads evenly spaced samples, the first and
 * the last one included: at most 64 MiB, but at least two samples. If a source makes the samples, the hash reads at
 * most 256 of them, as they are in epoch 0. So the comparison may not find a change of single samples in a larger data
 * set. */
#ifndef VKT_IDENTITY_H
#define VKT_IDENTITY_H

#include "train/trainer.h"

/* Writes the lines of a graph, one for each node that it has so far. VKT_E_NOMEM. */
vkt_result vkt_identity_graph(const vkt_graph *g, vkt_text *out);
/* Writes the lines of vktrain.run and vktrain.rate to t->run_lines and t->rate_lines. The first call reads the data
 * sets: VKT_E_NOMEM, or a source's error. The lines do not change after that. */
vkt_result vkt_identity_compute(vkt_trainer *t);
/* Compares the trainer with a checkpoint. VKT_E_STATE if they differ; the message names the differences. VKT_E_FORMAT
 * if the checkpoint lacks one of the three texts. Logs differences that are allowed. `path` is for messages. */
vkt_result vkt_identity_check(vkt_trainer *t, const vkt_safetensors *st, const char *path);

#endif
