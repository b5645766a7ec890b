// batch_place.glsl - finds the rows of this run's batch: see abi/step.abi.h
// EARLY: the kernel runs beside step_advance, which computes the step state. So the kernel reads the host's words itself.
// These words are in slot r % RING_SLOTS, where r is the number of this run. The word STEP_RUN has r. Runs in an
// application's command buffer use slot RING_SLOTS instead. report.comp sets STEP_RUN to the number of the next run, so a
// gather that runs after the report must not be EARLY.
// The including file defines BATCH_STEP, BATCH_WORDS and BATCH_RUN, the indices of the bindings.
layout(constant_id = BATCH_SPEC_EARLY) const uint EARLY = 0;
layout(binding = BATCH_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = BATCH_WORDS, std430) readonly buffer Words { uint words[]; };
layout(binding = BATCH_RUN, std430) readonly buffer Run { uint run[]; };

// Returns the number of real rows of the batch (or ROWS_ALL), and the index of its first row in the order of the epoch.
uvec2 batch_place()
{
    if (EARLY == 0) return uvec2(step[STEP_ROWS], step[STEP_FIRST]);
    const bool recorded = words[RING_SLOTS * RING_WORDS + RING_RECORDED] != 0u;
    const uint slot = (recorded ? RING_SLOTS : run[0] % RING_SLOTS) * RING_WORDS;
    return uvec2(words[slot + RING_ROWS], words[slot + RING_FIRST]);
}
