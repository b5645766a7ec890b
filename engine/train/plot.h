/* train/plot.h - an image of a training run: loss and accuracy over epochs, side by side. */
#ifndef VKT_PLOT_H
#define VKT_PLOT_H

#include "train/history.h"

/* Draws records[0..n) to `path`; n >= 1, the epochs rise. The ending of `path` is the format: .svg or .png (also in
 * capitals). `title` is UTF-8; NULL: "Training". NaN and infinite values are gaps; a panel without values has a note.
 * The best epoch (vkt_history_best) is marked. The file is replaced atomically. VKT_E_ARG: n is 0, another ending, the
 * title is not UTF-8. VKT_E_IO, VKT_E_NOMEM. Threads: any. */
vkt_result vkt_history_plot(const vkt_host *h, const vkt_epoch_record *records, size_t n, const char *title,
                            const char *path);

#endif
