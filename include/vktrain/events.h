/* vktrain/events.h - event files for TensorBoard: scalars, images and texts over steps.
 *
 *   vkt_events *e;
 *   vkt_events_create(NULL, "runs/first", 0, &e);    a new file in that folder; `tensorboard --logdir runs` shows it
 *   vkt_events_scalar(e, "loss/train", 1, 0.25);
 *   vkt_events_flush(e);                             TensorBoard sees all that was added before
 *   vkt_events_destroy(&e);
 *
 * A file is a sequence of records with checksums. Each record is an Event message
 * (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto; the record format is that of
 * tensorflow/core/lib/io/record_writer.h). If a program is killed, the complete records of its file can be read.
 *
 * Texts are UTF-8. Threads: one at a time per object. */
#ifndef VKTRAIN_EVENTS_H
#define VKTRAIN_EVENTS_H

#include "vktrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An event file that grows. */
typedef struct vkt_events vkt_events;

/* Makes a new file in `folder`, which must exist: events.out.tfevents.<seconds>.<host>.<process>.<number>. first_step
 * is 0 for a new run. For a resumed run, first_step is the step at which the run continues. In this case TensorBoard
 * drops the values of this step and of all later steps from the earlier files in the folder. VKT_E_ARG, VKT_E_IO or
 * VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. `host` may be NULL. */
VKT_API vkt_result vkt_events_create(const vkt_host *host, const char *folder, uint64_t first_step, vkt_events **out);
/* Flushes and closes the file. A failed flush is logged. */
VKT_API void vkt_events_destroy(vkt_events **e);

/* Adds one value under `tag`; a slash in the tag makes groups ("loss/train"). The value is stored as f32. VKT_E_ARG,
 * VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_events_scalar(vkt_events *e, const char *tag, uint64_t step, double value);
/* Adds the results of an epoch, which are in `r`, at the step `r->epoch`. Then flushes. The tags are "loss/training",
 * "loss/validation", "accuracy/training", "accuracy/validation", "run/learning rate", "run/seconds an epoch", and
 * "metric/<name>" for each metric. Values that were not measured (NaN) are left out. Call this function from
 * vkt_fit_callbacks.on_epoch. VKT_E_ARG, VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_events_epoch(vkt_events *e, const vkt_epoch_record *r);
/* Adds a text, which TensorBoard shows as Markdown. The errors are those of vkt_events_scalar. */
VKT_API vkt_result vkt_events_text(vkt_events *e, const char *tag, uint64_t step, const char *text);
/* Adds an image of height x width pixels, row-major. A pixel has 1 (gray), 3 (RGB) or 4 (RGBA) channels of one byte.
 * The errors are those of vkt_events_scalar. VKT_E_UNSUPPORTED: the library was built without libpng. */
VKT_API vkt_result vkt_events_image(vkt_events *e, const char *tag, uint64_t step, const uint8_t *pixels,
                                    uint32_t height, uint32_t width, uint32_t channels);
/* Writes everything that was added so far to the file. If a write fails (VKT_E_IO, logged once), nothing more is
 * added, and later calls with valid arguments return VKT_E_IO, too. */
VKT_API vkt_result vkt_events_flush(vkt_events *e);

#ifdef __cplusplus
}
#endif
#endif
