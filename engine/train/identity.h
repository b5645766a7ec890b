/* train/identity.h - the identity of a run as text in its checkpoints: settings, data and network.
 *
 * The text is in three metadata values of a checkpoint. Each value has one line for each fact:
 *   vktrain.run    a setting: "batch=128"; '#' begins a hash. All lines must be equal, or the run cannot be resumed
 *   vktrain.rate   learning rate; total, warmup and min_lr of the schedule; whether products of f32 are split. If a
 *                  value differs, the difference is logged, and the new value is used. (In vktrain.run, the precisions
 *                  f32 and f32-split are both "f32". So a run in f32 may go on in f32-split, and the reverse)
 *   vktrain.graph  a node of model and loss: "attention attention.7 shape=16x64x96 of=add.6 heads=4 causal=1 scale=0.2"
 *
 * The comparison of data sets includes type, shape, means, standard deviations, class names, and all labels, targets
 * and terms. Features are compared by a hash. If the features are in memory and have 64 MiB or less, the hash reads all
 * features. Otherwise the hash reads evenly spaced samples, with the first and the last sample of the data set: at most
 * 64 MiB, but at least two samples. If a source makes the samples, the hash reads at most 256 samples, as they are in
 * epoch 0. So the comparison may not find a change of single samples in a larger data set. */
#ifndef VKT_IDENTITY_H
#define VKT_IDENTITY_H

#include "train/trainer.h"

/* Writes one line for each node that the graph has so far. VKT_E_NOMEM. */
vkt_result vkt_identity_graph(const vkt_graph *g, vkt_text *out);
/* Writes the lines of vktrain.run to t->run_lines, and the lines of vktrain.rate to t->rate_lines. The first call reads
 * the data sets, and may fail with VKT_E_NOMEM or the error of a source. Later calls do not change the lines. */
vkt_result vkt_identity_compute(vkt_trainer *t);
/* Compares the trainer with a checkpoint. VKT_E_STATE if the run cannot be resumed; the message names the differences.
 * VKT_E_FORMAT if the checkpoint lacks one of the three texts. Logs differences that are allowed. `path` is for
 * messages. */
vkt_result vkt_identity_check(vkt_trainer *t, const vkt_safetensors *st, const char *path);

#endif
