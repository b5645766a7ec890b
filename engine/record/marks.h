/* record/marks.h - a program whose step is submitted in sections, so that work can begin when a section ends, or a
 * section can wait for work of the host. For the exchange of gradients between ranks (dist/exchange.h). */
#ifndef VKT_MARKS_H
#define VKT_MARKS_H

#include "gpu/gpu.h"
#include "vktrain/graph.h"

/* The words of a run of a graph of shards: see STEP_SHARD, STEP_PART and RING_DRAW in abi/step.abi.h. */
typedef struct vkt_shard_run {
    uint32_t shard, part, draw;
} vkt_shard_run;

/* Finds the dispatches that use the buckets of a vector of the graph. The buckets end at ends[0] < ends[1] < ...; a
 * dispatch uses each bucket that a binding of it overlaps. first[i] and last[i]: the numbers of the first and the last
 * dispatch that use bucket i. VKT_E_STATE if no dispatch uses some bucket. */
vkt_result vkt_program_users(const vkt_program *p, vkt_tensor t, const uint64_t *ends, uint32_t n, uint32_t *first,
                             uint32_t *last);
/* Ends a section before each of the dispatches at[0] < at[1] < ..., n of them, all above 0. Call it before the first
 * run. The last section ends with the step; so there are n + 1 sections. */
vkt_result vkt_program_mark(vkt_program *p, const uint32_t *at, uint32_t n);
/* Returns whether later runs read no timestamps: true from the third run on. Before that, a run must not begin while
 * work waits for a gate: Mesa 22.3 reads timestamps only when all submitted work is done. */
bool vkt_program_is_measured(const vkt_program *p);
/* Runs the program like vkt_program_run, section by section. `words`: NULL for a graph that is none of shards; with
 * words, run->rows may be 0, which means no rows. waits[i] (waits may be NULL): section i waits for that semaphore, and
 * it begins with a barrier for what the host wrote before it signaled. values[i] (values may be NULL): the value of the
 * context's timeline when section i is done. */
vkt_result vkt_program_run_sections(vkt_program *p, const vkt_run *run, const vkt_shard_run *words,
                                    const VkSemaphoreSubmitInfo *waits, uint64_t *values, uint64_t *run_index);

#endif
