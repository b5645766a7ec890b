/* common/schedules.h - reads a learning rate schedule: the value of --schedule. */
#ifndef SAMPLE_SCHEDULES_H
#define SAMPLE_SCHEDULES_H

#include <stdbool.h>

#include "vktrain/schedule.h"

extern const char schedules_help[]; /* the forms that schedule_parse reads, for --help */

/* Reads "cosine", "step=30", "multi-step=30,60,80", "exponential=0.95", ... Returns false if the text has no such form.
 * For "cosine" and "one-cycle", out->total is 0: session_trainer sets `total` later, in a copy of the schedule. */
bool schedule_parse(const char *text, vkt_schedule *out);
/* Replaces the warm-up of a schedule. Cosine and one-cycle count `total` from the end of the warm-up, so the function
 * also changes their `total`, but not below 1. The schedule then ends at the same step as before. */
void schedule_set_warmup(vkt_schedule *s, uint32_t warmup);

#endif
