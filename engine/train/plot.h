/* train/plot.h - a figure of a training run: loss and accuracy over epochs, side by side. */
#ifndef VKT_PLOT_H
#define VKT_PLOT_H

#include "train/history.h"

/* Draws records[0..n) to `path`; n >= 1, and records[i].epoch rises with i. The ending of `path` gives the format:
 * .svg or .png, in small letters or capitals. `title` is UTF-8; if it is NULL, the title is "Training". NaN, infinite
 * and huge values are gaps. A panel without values has the text "not measured". The epoch records[best] is marked as
 * the best one; if `best` is n, no epoch is marked. The file is replaced atomically. VKT_E_ARG: n is 0, the path has
 * another ending, or the title is not UTF-8. VKT_E_UNSUPPORTED: a build without cairo. VKT_E_IO, VKT_E_NOMEM. Threads:
 * any. */
vkt_result vkt_history_plot(const vkt_host *h, const vkt_epoch_record *records, size_t n, size_t best,
                            const char *title, const char *path);

#endif
