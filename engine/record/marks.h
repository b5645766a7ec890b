/* record/marks.h - a program whose step is submitted in sections. At each mark, a section ends: a mark is the index of
 * the next section's first dispatch (vkt_program_mark). Other work can begin when a section ends, and a section can
 * wait for work of the host. The exchange of gradients between ranks (dist/exchange.h) uses sections. */
#ifndef VKT_MARKS_H
#define VKT_MARKS_H

#include "gpu/gpu.h"
#include "vktrain/graph.h"

/* The numbers that the host passes to one run of a graph of shards (ops/ops.h): see STEP_SHARD, STEP_PART and RING_DRAW
 * in abi/step.abi.h. */
typedef struct vkt_shard_run {
    uint32_t shard, part, draw;
} vkt_shard_run;

/* Finds the dispatches that use the n buckets of a vector t of the graph. Bucket i has the bytes of t from ends[i - 1]
 * (0 for bucket 0) to ends[i] - 1. A dispatch uses a bucket if one of its bindings overlaps the bucket. first[i] gets
 * the index of the first dispatch that uses bucket i, and last[i] the index of the last one. VKT_E_STATE if there is a
 * bucket that no dispatch uses. */
vkt_result vkt_program_users(const vkt_program *p, vkt_tensor t, const uint64_t *ends, uint32_t n, uint32_t *first,
                             uint32_t *last);
/* Divides the step into sections. A section ends before each of the n dispatches at[0] < at[1] < ..., all above 0. The
 * last section ends with the step, so there are n + 1 sections. VKT_E_STATE after the first run. VKT_E_ARG: the numbers
 * in `at` do not rise, or are not all from 1 to the number of dispatches - 1. VKT_E_NOMEM, or an error of the driver.
 */
vkt_result vkt_program_mark(vkt_program *p, const uint32_t *at, uint32_t n);
/* Returns true once the third run has begun: this run reads the timestamps of the second run. For a program that is not
 * split into submissions (vkt_parts_create), always returns true. While the result is false, a run must not begin if
 * some work waits for a gate of the host (gpu/gpu.h), because Mesa 22.3 reads timestamps only when all submitted work
 * is done. */
bool vkt_program_is_measured(const vkt_program *p);
/* Runs the program like vkt_program_run, section by section. `words` is NULL unless the graph is a graph of shards. If
 * `words` is not NULL, run->rows = 0 means that the run has no rows. Section i waits for the semaphore waits[i] (waits
 * may be NULL), and begins with a barrier for what the host wrote before it signaled this semaphore. values[i] (values
 * may be NULL) gets the value of the context's timeline when section i is done. If VKT_DEBUG is 2 or more, the run is
 * not divided into sections: it waits for no semaphore of `waits`, and the call returns when the run is done. */
vkt_result vkt_program_run_sections(vkt_program *p, const vkt_run *run, const vkt_shard_run *words,
                                    const VkSemaphoreSubmitInfo *waits, uint64_t *values, uint64_t *run_index);

#endif
